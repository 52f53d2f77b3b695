package sim

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeBytes is how much one direction of a connection holds, about what a kernel's socket buffers do.
const pipeBytes = 256 << 10

// half is one direction of a connection in memory.
type half struct {
	// mu guards everything below; cond wakes whoever waits for a change of it.
	mu       sync.Mutex
	cond     *sync.Cond
	buf      []byte
	closed   bool  // no more bytes will come: the reader gets what is left, then EOF
	broken   error // the connection was reset: reader and writer get this at once
	frozen   bool  // a paused host: nothing moves
	held     bool  // a silent cut: what is written does not arrive
	rd, wd   deadline
	tornDown bool // the reader's side is closed: writing is an error
	late     late // what has not arrived yet
}

// deadline is a point in virtual time after which a wait ends.
type deadline struct {
	timer  *time.Timer
	passed bool
}

func newHalf() *half {
	h := &half{}
	h.cond = sync.NewCond(&h.mu)
	return h
}

func (h *half) set(d *deadline, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.passed = false
	switch wait := time.Until(t); {
	case t.IsZero():
	case wait <= 0:
		d.passed = true
	default:
		var mine *time.Timer
		mine = time.AfterFunc(wait, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if d.timer == mine {
				d.passed = true
				h.cond.Broadcast()
			}
		})
		d.timer = mine
	}
	h.cond.Broadcast()
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.tornDown:
			return 0, net.ErrClosed
		case h.rd.passed:
			return 0, os.ErrDeadlineExceeded
		case h.frozen, h.held:
		case h.broken != nil:
			return 0, h.broken
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			if len(h.buf) == 0 {
				h.buf = nil
			}
			h.cond.Broadcast()
			return n, nil
		case h.closed && len(h.late.queue) == 0:
			return 0, io.EOF
		}
		h.cond.Wait()
	}
}

func (h *half) write(p []byte, own bool) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for len(p) > 0 {
		switch {
		case h.closed:
			return n, net.ErrClosed
		case h.wd.passed:
			return n, os.ErrDeadlineExceeded
		case h.frozen:
			h.cond.Wait()
			continue
		case h.broken != nil:
			return n, h.broken
		case h.tornDown:
			return n, syscall.EPIPE
		case len(h.buf)+h.late.bytes >= pipeBytes:
			h.cond.Wait()
			continue
		}
		k := min(len(p), pipeBytes-len(h.buf)-h.late.bytes)
		h.say(p[:k], own)
		p, n = p[k:], n+k
		h.cond.Broadcast()
	}
	return n, nil
}

func (h *half) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	h.cond.Broadcast()
}

// stopTimers ends the deadlines, so that no timer outlives the connection.
func (h *half) stopTimers(d *deadline) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// conn is one end: it reads from in and writes to out.
type conn struct {
	in, out       *half
	local, remote net.Addr
	own           bool // of the harness: it does not count
}

// pair makes a connection between two addresses.
func pair(a, b net.Addr) (*conn, *conn) {
	ab, ba := newHalf(), newHalf()
	return &conn{in: ba, out: ab, local: a, remote: b}, &conn{in: ab, out: ba, local: b, remote: a}
}

func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p, c.own) }
func (c *conn) LocalAddr() net.Addr         { return c.local }
func (c *conn) RemoteAddr() net.Addr        { return c.remote }

// Close ends both directions as a close of a socket does: the peer reads what was written, then EOF.
func (c *conn) Close() error {
	c.in.change(func() { c.in.tornDown = true; c.in.lose(); c.in.stopTimers(&c.in.rd) })
	c.out.change(func() { c.out.end(); c.out.closed = true; c.out.stopTimers(&c.out.wd) })
	return nil
}

// Reset ends both directions at once, as a RST does: bytes under way are lost.
func (c *conn) Reset() {
	for _, h := range []*half{c.in, c.out} {
		h.change(func() {
			if h.broken == nil {
				h.broken = syscall.ECONNRESET
			}
			h.buf = nil
			h.lose()
		})
	}
}

// hold freezes the connection, or lets it go, and holds what comes in and what goes out.
func (c *conn) hold(frozen, in, out bool) {
	c.in.change(func() { c.in.frozen, c.in.held = frozen, in })
	c.out.change(func() { c.out.frozen, c.out.held = frozen, out })
}

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error  { c.in.set(&c.in.rd, t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.out.set(&c.out.wd, t); return nil }
