package outbound

import (
	"net"
	"sync"
)

const (
	flushAt = 64 << 10
	control = 1 << 10 // TLS records of the read loop (alerts, key updates) are smaller than this
)

// corked sits between TLS and the connection. While a request is written it gathers records, so that a chunk costs a few large
// writes instead of one for each record of 16 KiB, and it knows whether a byte of the request may have left.
// Its mutex is never held while the network is waited for.
type corked struct {
	net.Conn

	mu     sync.Mutex // guards all below
	buf    []byte
	gather bool  // a request is being written
	wrote  bool  // a write of this request to the network has begun
	last   bool  // its last write has begun
	sealed bool  // nothing more may be written
	err    error // of the first failed write
}

// cork begins a request.
func (c *corked) cork() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gather, c.wrote, c.last = true, false, false
}

// began tells whether a part of the request may have left.
func (c *corked) began() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrote
}

// lastBegan tells whether the request's last write has begun.
func (c *corked) lastBegan() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// seal stops the request if not one byte of it has left, and tells whether that was so.
func (c *corked) seal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gather && !c.wrote {
		c.sealed = true
	}
	return c.sealed
}

// Write gathers p, or passes it on when no request is being written (the handshake, an alert on an idle connection).
func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	switch {
	case c.sealed:
		c.mu.Unlock()
		return 0, errUnsent
	case !c.gather:
		c.mu.Unlock()
		return c.Conn.Write(p)
	}
	// Room is made before a record goes in, so that the end of the request is always written by flush. Only the request's own
	// records set off a write, so that never two goroutines write at once.
	full := len(c.buf) > 0 && len(c.buf)+len(p) > flushAt && len(p) > control
	c.mu.Unlock()
	if full {
		if err := c.drain(false); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = append(c.buf, p...)
	return len(p), nil
}

// flush writes what is left of the request and ends it.
func (c *corked) flush() error { return c.drain(true) }

func (c *corked) drain(last bool) error {
	for {
		c.mu.Lock()
		switch {
		case c.sealed:
			c.mu.Unlock()
			return errUnsent
		case c.err != nil:
			defer c.mu.Unlock()
			return c.err
		case len(c.buf) == 0:
			c.gather = c.gather && !last
			c.mu.Unlock()
			return nil
		}
		out := c.buf
		c.buf, c.wrote, c.last = nil, true, c.last || last
		c.mu.Unlock()

		_, err := c.Conn.Write(out)

		c.mu.Lock()
		if c.err == nil {
			c.err = err
		}
		if c.buf == nil {
			c.buf = out[:0]
		}
		c.mu.Unlock()
	}
}
