package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// trip is one connection through a mesh.
type trip struct {
	mesh   *mesh
	way    way
	near   *net.TCPConn
	own    bool            // of the harness
	ctx    context.Context // ends with the trip
	cancel context.CancelFunc

	mu  sync.Mutex // guards what follows
	far *net.TCPConn
	cut bool // it was reset
}

func newTrip(m *mesh, w way, near *net.TCPConn, own bool) *trip {
	t := &trip{mesh: m, way: w, near: near, own: own}
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

// said is what one end said at a time, or how it ended.
type said struct {
	b   []byte
	at  time.Time
	end error
}

// Of one direction of a connection: how much is read at a time, and how much of that may wait for its pace or the end of a cut.
const (
	mostRead  = 16 << 10
	mostQueue = 64
)

// pump carries what one end says to the other, and its end: either end's end is the end of both. What a cut holds waits here, an end too, and so
// does what is slowed; the rest waits in the connection.
func (t *trip) pump(src, dst *net.TCPConn, first []byte, from, to string) {
	queue := make(chan said, mostQueue)
	var hearing sync.WaitGroup
	hearing.Go(func() { t.hear(src, first, queue) })
	defer hearing.Wait()
	for s := range queue {
		if !t.deliver(s, src, dst, from, to) {
			return // both ends are closed, which ends the other goroutine
		}
	}
}

// hear queues what one end says until it ends or the trip does.
func (t *trip) hear(src *net.TCPConn, first []byte, queue chan<- said) {
	defer close(queue)
	tell := func(s said) bool {
		select {
		case queue <- s:
			return s.end == nil
		case <-t.ctx.Done():
			return false
		}
	}
	if len(first) > 0 && !tell(said{b: first, at: time.Now()}) {
		return
	}
	buf := make([]byte, mostRead)
	for {
		n, err := src.Read(buf)
		if n > 0 && !tell(said{b: slices.Clone(buf[:n]), at: time.Now()}) {
			return
		}
		if err != nil {
			tell(said{at: time.Now(), end: err})
			return
		}
	}
}

// deliver says to one end what the other said, at the pace of the way; false once the trip is over.
func (t *trip) deliver(s said, src, dst *net.TCPConn, from, to string) bool {
	for end := s.end; ; {
		b, n := t.mesh.beat(from, to, t.way.carries, len(s.b), t.own)
		if !t.waits(time.Until(s.at.Add(b.Latency))) || !t.waits(b.Takes(n)) || !t.passes(from, to) {
			return false // reset already
		}
		if n > 0 {
			if _, err := dst.Write(s.b[:n]); err != nil {
				end = err
			}
		}
		switch s.b = s.b[n:]; {
		case end == nil && len(s.b) > 0:
		case end == nil:
			return true
		case errors.Is(end, syscall.ECONNRESET):
			t.reset()
			return false
		default:
			t.cancel()
			_ = dst.Close()
			_ = src.Close()
			return false
		}
	}
}

// waits returns true after d, false when the trip is over before.
func (t *trip) waits(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
		return true
	case <-t.ctx.Done():
		return false
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
