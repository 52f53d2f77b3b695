package cluster

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errRefused = errors.New("connection refused")

// network is a network in memory.
type network struct {
	mu sync.Mutex // guards the rest
	ls map[string]*listener
}

func newNetwork() *network { return &network{ls: make(map[string]*listener)} }

type listener struct {
	addr string
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ch:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *listener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *listener) Addr() net.Addr { return address(l.addr) }

type address string

func (a address) Network() string { return "mem" }
func (a address) String() string  { return string(a) }

func (n *network) listen(addr string) *listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &listener{addr: addr, ch: make(chan net.Conn), done: make(chan struct{})}
	n.ls[addr] = l
	return l
}

func (n *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.ls[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, errRefused
	}
	c, s := net.Pipe()
	select {
	case l.ch <- s:
		return c, nil
	case <-l.done:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rafts is one node's Raft stream layer.
type rafts struct {
	*listener
	n *network
}

func (r rafts) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return r.n.dial(ctx, string(to))
}
