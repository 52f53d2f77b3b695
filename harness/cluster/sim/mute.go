package sim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"narad.example/fakes"
	"narad.example/harness/cluster"
)

// muted stands at ports of a node in its place.
type muted struct {
	net   *Network
	cert  tls.Certificate
	says  string
	stood map[netip.AddrPort]*listener // what listened there
	mine  []*listener
	met   atomic.Int64
	all   sync.WaitGroup // one for each listener and connection

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

// Mute is cluster.Mutable.
func (r *rig) Mute(_ context.Context, node, carries, says string) (cluster.Muted, error) {
	if _, err := r.Node(node); err != nil {
		return nil, err
	}
	ca, err := fakes.NewCA(time.Now())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	id, err := ca.Issue(time.Now(), "narad")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	m := &muted{net: r.net, says: says, stood: map[netip.AddrPort]*listener{}}
	if m.cert, err = tls.X509KeyPair([]byte(id.CertPEM), []byte(id.KeyPEM)); err != nil {
		return nil, fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	ports := map[string][]uint16{cluster.CarriesRaft: {raftPort}, cluster.CarriesRPC: {rpcPort}, cluster.CarriesAll: {raftPort, rpcPort}}[carries]
	return m, m.stand(r.net.Host(node), ports)
}

// stand takes the ports, and resets what was dialled to them.
func (m *muted) stand(h *Host, ports []uint16) error {
	m.net.mu.Lock()
	var cut []*conn
	for _, port := range ports {
		at := netip.AddrPortFrom(h.addr, port)
		was := m.net.listeners[at]
		if was == nil {
			m.net.mu.Unlock()
			return errors.Join(fmt.Errorf("%w: nobody listens on %s:%d", cluster.ErrTrouble, h.name, port), m.Mend(context.Background()))
		}
		l := &listener{host: h, at: at, accepted: make(chan net.Conn, 128), done: make(chan struct{})}
		m.stood[at], m.net.listeners[at] = was, l
		m.mine = append(m.mine, l)
		for c, e := range m.net.conns {
			if e.at == h && e.port == port && !e.dialled {
				cut = append(cut, c)
			}
		}
	}
	m.net.mu.Unlock()
	for _, c := range cut {
		c.Reset()
	}
	for _, l := range m.mine {
		m.all.Go(func() { m.take(l) })
	}
	return nil
}

func (m *muted) take(l *listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		m.met.Add(1)
		m.mu.Lock()
		m.conns = append(m.conns, c)
		m.mu.Unlock()
		m.all.Go(func() { m.answer(c, l.at) })
	}
}

// answer ends with the connection.
func (m *muted) answer(c net.Conn, at netip.AddrPort) {
	to := c
	switch m.says {
	case cluster.SaysNothing:
		_, _ = io.Copy(io.Discard, c)
		return
	case cluster.SaysRelayed:
		m.relay(c, at)
		return
	case cluster.SaysEndless:
		to = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{m.cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})
	}
	piece := make([]byte, 4<<10)
	for i := range piece {
		piece[i] = byte(i*7 + 1)
	}
	for {
		if _, err := to.Write(piece); err != nil {
			_ = c.Close()
			return
		}
	}
}

// Met is cluster.Muted.
func (m *muted) Met() int { return int(m.met.Load()) }

// Mend is cluster.Muted.
func (m *muted) Mend(context.Context) error {
	for _, l := range m.mine {
		_ = l.Close()
	}
	m.net.mu.Lock()
	for at, was := range m.stood {
		if _, taken := m.net.listeners[at]; !taken && !m.net.closed {
			m.net.listeners[at] = was
		}
	}
	m.net.mu.Unlock()
	m.mu.Lock()
	conns := m.conns
	m.mu.Unlock()
	for _, c := range conns {
		if t, ok := c.(*tracked); ok {
			t.Reset()
		}
		_ = c.Close()
	}
	m.all.Wait()
	return nil
}
