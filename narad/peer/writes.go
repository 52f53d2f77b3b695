package peer

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// session is a TLS connection whose writes reach the one below whole. TLS would write its records of 16 KiB one by one, a system call for each,
// while gRPC hands over many of them at once (BenchmarkAnswers).
type session struct {
	*tls.Conn
	below *gathering
}

// Write returns once all of b was written below.
func (s session) Write(b []byte) (int, error) {
	s.below.hold()
	n, err := s.Conn.Write(b)
	if failed := s.below.release(); err == nil && failed != nil {
		return 0, failed // how much of it went out nobody knows, and nothing may follow
	}
	return n, err
}

// Close ends the connection. While a write is under way it does so without a goodbye, for which it would wait, as TLS itself does.
func (s session) Close() error {
	if s.below.busy.Load() {
		return s.below.Close()
	}
	return s.Conn.Close()
}

// gathering is a connection that keeps what is written to it between hold and release, and writes it at once then.
type gathering struct {
	net.Conn
	busy atomic.Bool // from hold to the end of release

	mu     sync.Mutex // guards what follows
	holds  bool
	held   []byte
	failed error // of an earlier release: what stands on the wire is not whole
}

// Write writes b, or keeps it for release.
func (g *gathering) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.failed != nil:
		return 0, g.failed
	case g.holds:
		g.held = append(g.held, b...)
		return len(b), nil
	}
	return g.Conn.Write(b)
}

func (g *gathering) hold() {
	g.busy.Store(true)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = true
}

// release writes what was held.
func (g *gathering) release() error {
	defer g.busy.Store(false)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = false
	if len(g.held) > 0 && g.failed == nil {
		_, g.failed = g.Conn.Write(g.held)
	}
	g.held = g.held[:0]
	return g.failed
}
