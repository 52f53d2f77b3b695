package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// dialLimit bounds the dial of a node behind its door: it is on this machine.
const dialLimit = 2 * time.Second

// mesh is the network between nodes: each node has a door for Raft and one for node RPC, which is the address that it advertises; behind it the
// mesh knows who dialled, and carries the connection on, or what a cut lets of it. Every node knows a peer by one address, the same for all, since
// Raft replicates it: so a way between two nodes cannot be told by its address, only by who dials (DESIGN.md).
type mesh struct {
	who   func(c net.Conn) string // the node that dialled a door; "" when it is none, or is gone by now
	alone context.Context         // ends with the mesh
	end   context.CancelFunc
	tasks sync.WaitGroup // every goroutine of the mesh
	ways  net.Listener   // where the harness asks to be taken for a node (reach)

	mu    sync.Mutex // guards what follows; never held while anything is awaited
	doors []net.Listener
	peers map[door]string // addresses of nodes, behind their doors
	trips map[*trip]struct{}
	cuts  []*meshCut
	paces []*meshPace
	begun int // cuts and paces so far
}

// newMesh makes a mesh without doors, which is asked for ways at address.
func newMesh(address string, who func(net.Conn) string) (*mesh, error) {
	ways, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: mesh: %w", ErrTrouble, err)
	}
	m := &mesh{who: who, ways: ways, peers: map[door]string{}, trips: map[*trip]struct{}{}}
	m.alone, m.end = context.WithCancel(context.Background())
	m.accept(ways, m.ask)
	return m, nil
}

// door is where others find a node's Raft or node RPC; that of Target, which carries "", is where nodes of the source find the link.
type door struct{ node, carries string }

// open opens a door at listen, behind which the node itself is at address.
func (m *mesh) open(d door, listen, address string) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", listen)
	if err != nil {
		return fmt.Errorf("%w: the door of %s: %w", ErrTrouble, d.node, err)
	}
	m.mu.Lock()
	m.doors, m.peers[d] = append(m.doors, l), address
	m.mu.Unlock()
	m.accept(l, func(c *net.TCPConn) {
		if from := m.who(c); from != "" {
			m.carry(c, way{from, d.node, d.carries}, nil)
			return
		}
		reset(c)
	})
	return nil
}

// behind is where the node is itself, "" when it has no such door.
func (m *mesh) behind(d door) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peers[d]
}

// accept is a loop: each connection gets a goroutine of its own.
func (m *mesh) accept(l net.Listener, do func(*net.TCPConn)) {
	m.tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed: nothing else ends it on loopback
			}
			m.tasks.Go(func() { do(c.(*net.TCPConn)) }) //nolint:forcetypeassert // a TCP listener gives nothing else
		}
	})
}

// close ends every connection and waits for all goroutines.
func (m *mesh) close() {
	m.end()
	_ = m.ways.Close()
	m.mu.Lock()
	trips, doors := m.trips, m.doors
	m.trips, m.doors = nil, nil
	m.mu.Unlock()
	for _, l := range doors {
		_ = l.Close()
	}
	for t := range trips {
		t.reset()
	}
	m.tasks.Wait()
}

// way is one direction between two nodes, as one of them dials the other.
type way struct{ from, to, carries string }

// carry takes a connection along its way until either end is over. opened, when not nil, is called once the far end is there: the connection is the
// harness' own.
func (m *mesh) carry(near *net.TCPConn, w way, opened func() error) {
	t, held, ok := m.enter(near, w, opened != nil)
	if !ok {
		reset(near)
		return
	}
	defer m.leave(t)
	d := net.Dialer{Timeout: dialLimit}
	far, err := d.DialContext(t.ctx, "tcp", m.behind(door{w.to, w.carries}))
	if err != nil {
		reset(near) // as from a port at which nobody is
		return
	}
	if !t.reaches(far.(*net.TCPConn)) { //nolint:forcetypeassert // "tcp" gives nothing else
		return
	}
	if opened != nil && opened() != nil {
		t.reset()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { t.pump(near, t.far, held, w.from, w.to) })
	both.Go(func() { t.pump(t.far, near, nil, w.to, w.from) })
	both.Wait()
}

// enter waits until no cut meets the way and puts the connection into the book. held is what its client has said meanwhile; a client that has
// given up enters nothing, nor does one that a loud cut refuses.
func (m *mesh) enter(near *net.TCPConn, w way, own bool) (t *trip, held []byte, ok bool) {
	counted := map[*meshCut]bool{}
	for {
		m.mu.Lock()
		if m.trips == nil {
			m.mu.Unlock()
			return nil, nil, false
		}
		i := slices.IndexFunc(m.cuts, func(c *meshCut) bool { return c.cut.meets(w) })
		if i < 0 {
			t = newTrip(m, w, near, own)
			m.trips[t] = struct{}{}
			m.mu.Unlock()
			return t, held, true
		}
		c := m.cuts[i]
		if !counted[c] { // a dial counts once with each
			c.met.Dials++
		}
		counted[c] = true
		m.mu.Unlock()
		if !c.cut.Silent {
			return nil, nil, false
		}
		if held, ok = await(c.mended, near, held); !ok {
			return nil, nil, false
		}
	}
}

// mostHeld bounds what a client may say before it is let through: more is a flood, and no node does that unanswered.
const mostHeld = 1 << 20

// lastWord is how long a client that waited is still listened to once it may pass: it may have given up, and its end is behind what it said.
const lastWord = 10 * time.Millisecond

// await reads what near says until ctx is over; false when near ended before.
func await(ctx context.Context, near *net.TCPConn, held []byte) ([]byte, bool) {
	stop := context.AfterFunc(ctx, func() { _ = near.SetReadDeadline(time.Now().Add(lastWord)) })
	defer stop()
	buf := make([]byte, 32<<10)
	for {
		n, err := near.Read(buf)
		held = append(held, buf[:n]...)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return held, near.SetReadDeadline(time.Time{}) == nil
		case err != nil || len(held) > mostHeld:
			return nil, false
		}
	}
}

func (m *mesh) leave(t *trip) {
	t.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.trips, t)
}
