package sim

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"sync"
)

// relay is a man in the middle: he ends TLS on both sides, with a certificate of his own, and passes on what both ends say behind it, their
// proofs first. Those are bound to the two sessions, so neither end may take the other's.
func (m *muted) relay(c net.Conn, at netip.AddrPort) {
	defer func() { _ = c.Close() }()
	back := m.behind(at)
	if back == nil {
		return
	}
	defer func() { _ = back.Close() }()
	in := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{m.cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})
	out := tls.Client(back, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}})
	var both sync.WaitGroup
	for _, way := range [][2]*tls.Conn{{out, in}, {in, out}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = c.Close(), back.Close() // whichever end goes, the other one does
		})
	}
	both.Wait()
}

// behind connects to who listened there, which no dialer finds any more.
func (m *muted) behind(at netip.AddrPort) net.Conn {
	m.net.mu.Lock()
	was := m.stood[at]
	var back, theirs *conn
	if was != nil && !m.net.closed {
		m.net.nextPort++
		back, theirs = pair(net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), m.net.nextPort)), net.TCPAddrFromAddrPort(at))
		select {
		case was.accepted <- &tracked{theirs, m.net}:
		default:
			back = nil
		}
	}
	m.net.mu.Unlock()
	if back == nil {
		return nil
	}
	m.mu.Lock()
	m.conns = append(m.conns, back)
	m.mu.Unlock()
	return back
}
