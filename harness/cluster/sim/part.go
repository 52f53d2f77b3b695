package sim

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"narad.example/harness/cluster"
)

// Ports of a node, beside its API's, where the others find it.
const (
	raftPort = 7943
	rpcPort  = 7944
)

// parting is a cut in force between hosts.
type parting struct {
	net      *Network
	from, to []*Host
	oneWay   bool
	silent   bool
	port     uint16        // 0 is every port
	mended   chan struct{} // closed once
	over     func()
	met      cluster.CutMet // guarded by net.mu
}

// carried tells whether a cut meets connections to that port.
func (p *parting) carried(port uint16) bool { return p.port == 0 || p.port == port }

func (p *parting) leads(a, b *Host) bool {
	return slices.Contains(p.from, a) && slices.Contains(p.to, b)
}

// holds tells whether bytes from a to b are held.
func (p *parting) holds(a, b *Host, port uint16) bool {
	return p.silent && p.carried(port) && (p.leads(a, b) || !p.oneWay && p.leads(b, a))
}

// meets tells whether a connection that a dials to b ends, or does not come about. None comes about when either direction is silent.
func (p *parting) meets(a, b *Host, port uint16) bool {
	return p.carried(port) && (p.leads(a, b) || (!p.oneWay || p.silent) && p.leads(b, a))
}

// part begins a cut.
func (n *Network) part(c cluster.Cut) *parting {
	p := &parting{net: n, oneWay: c.OneWay, silent: c.Silent, mended: make(chan struct{})}
	p.over = sync.OnceFunc(func() { close(p.mended) })
	switch c.Carries {
	case cluster.CarriesRaft:
		p.port = raftPort
	case cluster.CarriesRPC:
		p.port = rpcPort
	}
	for _, name := range c.From {
		p.from = append(p.from, n.Host(name))
	}
	for _, name := range c.To {
		if name == cluster.Target {
			name = linkHost
		}
		p.to = append(p.to, n.Host(name))
	}
	n.mu.Lock()
	n.partings = append(n.partings, p)
	var cut []*conn
	for c, e := range n.conns {
		dialler, far := e.at, e.far
		if !e.dialled {
			dialler, far = far, dialler
		}
		if !p.meets(dialler, far, e.port) {
			continue
		}
		if e.dialled {
			p.met.Ended++
		}
		if !p.silent {
			cut = append(cut, c)
		}
	}
	n.settle()
	n.mu.Unlock()
	for _, c := range cut {
		c.Reset()
	}
	return p
}

// Met is what met the cut (cluster.Parting).
func (p *parting) Met() cluster.CutMet {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	return p.met
}

// Mend lets everything pass again: what was held goes on as if nothing had been (cluster.Parting).
func (p *parting) Mend(context.Context) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.partings = slices.DeleteFunc(p.net.partings, func(q *parting) bool { return q == p })
	p.net.settle()
	p.over()
	return nil
}

// settle holds and lets go every connection as pauses and cuts want it; mu must be held.
func (n *Network) settle() {
	for c := range n.conns {
		n.settleOne(c)
	}
}

func (n *Network) settleOne(c *conn) {
	e := n.conns[c]
	in, out := false, false
	for _, p := range n.partings {
		in = in || p.holds(e.far, e.at, e.port)
		out = out || p.holds(e.at, e.far, e.port)
	}
	c.hold(e.at.frozen || e.far.frozen, in, out)
	c.pace(n.beatOf(e.at, e.far, e.port))
}

// passes returns nil when no cut meets a dial from h, at once or once it is mended; mu is held then, so that none begins before the
// connection is in the book.
func (n *Network) passes(ctx context.Context, h *Host, at netip.AddrPort) error {
	var counted *parting
	for {
		n.mu.Lock()
		p := n.cutting(h, at)
		if p == nil {
			return nil
		}
		if p != counted { // a dial counts once with each
			p.met.Dials++
		}
		n.mu.Unlock()
		if !p.silent {
			return syscall.ECONNREFUSED
		}
		counted = p
		select {
		case <-p.mended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// cutting is the cut that meets a dial, nil when none does; mu must be held.
func (n *Network) cutting(h *Host, at netip.AddrPort) *parting {
	for _, far := range n.hosts {
		if far.addr != at.Addr() {
			continue
		}
		for _, p := range n.partings {
			if p.meets(h, far, at.Port()) {
				return p
			}
		}
	}
	return nil
}

// Part parts nodes (cluster.Parted).
func (r *rig) Part(_ context.Context, c cluster.Cut) (cluster.Parting, error) {
	for _, name := range slices.Concat(c.From, c.To) {
		if _, err := r.Node(name); err != nil && name != cluster.Target {
			return nil, err
		}
	}
	return r.net.part(c), nil
}

// Reach dials as a node would (cluster.Parted).
func (r *rig) Reach(ctx context.Context, from, to, carries string) (net.Conn, error) {
	at := linkHost + ":" + linkPort
	switch {
	case to == cluster.Target:
	case carries == cluster.CarriesRaft:
		at = fmt.Sprintf("%s:%d", to, raftPort)
	case carries == cluster.CarriesRPC:
		at = fmt.Sprintf("%s:%d", to, rpcPort)
	default:
		return nil, fmt.Errorf("%w: %q is neither Raft nor node RPC", cluster.ErrTrouble, carries)
	}
	c, err := r.net.Host(from).Dial(ctx, "tcp", at, nil)
	if t, ok := c.(*tracked); ok {
		t.own = true
	}
	return c, err
}

// Partings is how many cuts are in force (cluster.Parted).
func (r *rig) Partings() int {
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	return len(r.net.partings)
}

// mend takes every cut back.
func (n *Network) mend() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.partings {
		p.over()
	}
	n.partings, n.paces = nil, nil
	n.settle()
}
