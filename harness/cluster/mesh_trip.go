package cluster

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// trip is one connection through a mesh.
type trip struct {
	mesh   *mesh
	way    way
	near   *net.TCPConn
	ctx    context.Context // ends with the trip
	cancel context.CancelFunc

	mu  sync.Mutex // guards what follows
	far *net.TCPConn
	cut bool // it was reset
}

func newTrip(m *mesh, w way, near *net.TCPConn) *trip {
	t := &trip{mesh: m, way: w, near: near}
	t.ctx, t.cancel = context.WithCancel(m.alone)
	return t
}

// reaches takes the far end in; false, and the end of both, when the trip was reset meanwhile.
func (t *trip) reaches(far *net.TCPConn) bool {
	t.mu.Lock()
	t.far = far
	gone := t.cut
	t.mu.Unlock()
	if gone {
		t.reset()
	}
	return !gone
}

// reset ends both connections at once, and both ends see that.
func (t *trip) reset() {
	t.mu.Lock()
	t.cut = true
	far := t.far
	t.mu.Unlock()
	t.cancel()
	reset(t.near)
	if far != nil {
		reset(far)
	}
}

// pump carries what one end says to the other, and its end: either end's end is the end of both. What a cut holds waits here, an end too, and what
// is said after it waits in the connection.
func (t *trip) pump(src, dst *net.TCPConn, first []byte, from, to string) {
	buf := make([]byte, 64<<10)
	for {
		n, err := copy(buf, first), error(nil)
		if first = first[n:]; n == 0 {
			n, err = src.Read(buf)
		}
		if !t.passes(from, to) {
			return // reset already
		}
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); err == nil {
				err = werr
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, syscall.ECONNRESET):
			t.reset()
			return
		default:
			t.cancel()
			_ = dst.Close()
			_ = src.Close()
			return
		}
	}
}

// passes returns true once no cut holds what one node says to the other; false when the trip is over before.
func (t *trip) passes(from, to string) bool {
	for {
		c := t.mesh.holding(from, to, t.way.carries)
		if c == nil {
			return t.ctx.Err() == nil
		}
		select {
		case <-c.Done():
		case <-t.ctx.Done():
			return false
		}
	}
}

// reset closes a connection so that its other end sees a reset and no orderly end.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
