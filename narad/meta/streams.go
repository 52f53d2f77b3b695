package meta

import (
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// streams is the node's stream layer with a memory of its connections, so that Close ends them all and no handler of Raft's
// transport waits for a peer that is never heard of again.
type streams struct {
	raft.StreamLayer
	ending chan struct{} // closed by closeAll

	mu     sync.Mutex // guards open and closed
	open   map[*stream]struct{}
	closed bool
}

type stream struct {
	net.Conn
	in *streams
}

func newStreams(l raft.StreamLayer) *streams {
	return &streams{StreamLayer: l, ending: make(chan struct{}), open: make(map[*stream]struct{})}
}

func (s *streams) keep(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	k := &stream{Conn: c, in: s}
	s.open[k] = struct{}{}
	return k, nil
}

// Accept waits for the next connection of a peer.
func (s *streams) Accept() (net.Conn, error) { return s.keep(s.StreamLayer.Accept()) }

// Dial connects to a peer's Raft address.
func (s *streams) Dial(a raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.keep(s.StreamLayer.Dial(a, timeout))
}

// Close ends the connection.
func (c *stream) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// closeAll ends every connection and lets none be made any more.
func (s *streams) closeAll() {
	s.mu.Lock()
	if !s.closed {
		close(s.ending)
	}
	s.closed = true
	var open []*stream
	for c := range s.open {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}
