package sim

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"

	"narad.example/harness/cluster"
)

// Network is a network in memory: hosts with names and private addresses, listeners, connections.
type Network struct {
	// mu guards everything below.
	mu        sync.Mutex
	hosts     map[string]*Host
	listeners map[netip.AddrPort]*listener
	conns     map[*conn]end // each end of each connection
	partings  []*parting
	paces     []*pacing
	nextPort  uint16
	closed    bool
	changed   changedName
}

// end says where one end of a connection is and where the other.
type end struct {
	at, far *Host
	port    uint16 // that was dialled
	dialled bool   // this end dialled it
}

// NewNetwork makes an empty one.
func NewNetwork() *Network {
	return &Network{hosts: map[string]*Host{}, listeners: map[netip.AddrPort]*listener{}, conns: map[*conn]end{}, nextPort: 40000}
}

// Host is one machine's view of the network; it is what a node takes as its network.
type Host struct {
	name   string
	addr   netip.Addr
	net    *Network
	frozen bool // guarded by net.mu
}

// Host returns the host of that name, made on first use with an address of its own in 10.0.0.0/8.
func (n *Network) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h, ok := n.hosts[name]; ok {
		return h
	}
	i := len(n.hosts) + 1
	h := &Host{name: name, addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), net: n}
	n.hosts[name] = h
	return h
}

// Close ends every listener and connection.
func (n *Network) Close() {
	n.mu.Lock()
	n.closed = true
	ls, cs, ps := n.listeners, n.conns, n.partings
	n.listeners, n.conns, n.partings = map[netip.AddrPort]*listener{}, map[*conn]end{}, nil
	n.mu.Unlock()
	for _, p := range ps {
		p.over()
	}
	for _, l := range ls {
		_ = l.Close()
	}
	for c := range cs {
		c.hold(false, false, false)
		c.Reset()
		_ = c.Close()
	}
}

// Cut closes the host's listeners and resets its connections, as the death of its process does. The listeners go first: who dials
// again at once meets nobody.
func (h *Host) Cut() {
	h.net.mu.Lock()
	var ls []*listener
	for _, l := range h.net.listeners {
		if l.host == h {
			ls = append(ls, l)
		}
	}
	h.net.mu.Unlock()
	for _, l := range ls {
		_ = l.Close()
	}
	for _, c := range h.connections() {
		c.Reset()
		_ = c.Close()
		h.net.forget(c)
	}
}

// Freeze holds every byte from and to the host until it is let go.
func (h *Host) Freeze(on bool) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.frozen = on
	h.net.settle()
}

func (h *Host) connections() []*conn {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	var out []*conn
	for c, e := range h.net.conns {
		if e.at == h {
			out = append(out, c)
		}
	}
	return out
}

func (n *Network) forget(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// tracked is a conn that leaves the network's book when it is closed.
type tracked struct {
	*conn
	net *Network
}

// Close ends the connection.
func (t *tracked) Close() error {
	t.net.forget(t.conn)
	return t.conn.Close()
}

// Listen opens a listener on the host, whatever address the caller names: only its port counts, 0 takes a free one.
func (h *Host) Listen(network, address string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if p == 0 {
		h.net.nextPort++
		p = uint64(h.net.nextPort)
	}
	at := netip.AddrPortFrom(h.addr, uint16(p))
	if h.net.closed || h.net.listeners[at] != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: syscall.EADDRINUSE}
	}
	l := &listener{host: h, at: at, accepted: make(chan net.Conn, 128), done: make(chan struct{})}
	h.net.listeners[at] = l
	return l, nil
}

// Dial resolves the host's name, asks control as a dialer's control hook is asked, and connects; of several addresses to the first that it can.
func (h *Host) Dial(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Net: network, Err: err} }
	list, changed, err := h.lookup(ctx, address)
	if err != nil {
		return fail(err)
	}
	var first error
	for _, at := range list {
		conn, derr := h.connect(ctx, at, control, changed)
		if derr == nil {
			return conn, nil
		}
		if first == nil {
			first = derr
		}
	}
	return fail(first)
}

func (h *Host) connect(ctx context.Context, at netip.AddrPort, control func(network, address string) error, changed bool) (net.Conn, error) {
	if control != nil {
		network := "tcp6"
		if at.Addr().Is4() {
			network = "tcp4"
		}
		if err := control(network, at.String()); err != nil {
			h.net.tell(func(l *cluster.Lookups) { l.Refused++ }, changed)
			return nil, err
		}
	}
	if err := h.net.passes(ctx, h, at); err != nil {
		return nil, err
	}
	mine := h.reach(at)
	h.net.mu.Unlock()
	if mine == nil {
		h.net.tell(func(l *cluster.Lookups) { l.Dialled++ }, changed)
		return nil, syscall.ECONNREFUSED
	}
	return mine, nil
}

// reach connects to the listener of an address, nil when there is none or its backlog is full; mu must be held.
func (h *Host) reach(at netip.AddrPort) net.Conn {
	h.net.nextPort++
	l := h.net.listeners[at]
	if l == nil || h.net.closed {
		return nil
	}
	mine, theirs := pair(net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.addr, h.net.nextPort)), net.TCPAddrFromAddrPort(at))
	h.net.conns[mine] = end{at: h, far: l.host, port: at.Port(), dialled: true}
	h.net.conns[theirs] = end{at: l.host, far: h, port: at.Port()}
	h.net.settleOne(mine)
	h.net.settleOne(theirs)
	select {
	case l.accepted <- &tracked{theirs, h.net}: // a listener that closes has left the book first and then drains
		return &tracked{mine, h.net}
	default:
		delete(h.net.conns, mine)
		delete(h.net.conns, theirs)
		return nil
	}
}

func (n *Network) resolve(address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if ip, perr := netip.ParseAddr(host); perr == nil {
		return netip.AddrPortFrom(ip, uint16(p)), nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	h, ok := n.hosts[host]
	if !ok {
		return netip.AddrPort{}, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return netip.AddrPortFrom(h.addr, uint16(p)), nil
}

// listener hands out the connections that were dialled to one address.
type listener struct {
	host     *Host
	at       netip.AddrPort
	accepted chan net.Conn
	done     chan struct{}
	once     sync.Once
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		select {
		case <-l.done:
			l.refuse(c)
			return nil, net.ErrClosed
		default:
			return c, nil
		}
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends the listener; connections that nobody accepted are reset.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.host.net.mu.Lock()
		if l.host.net.listeners[l.at] == l {
			delete(l.host.net.listeners, l.at)
		}
		l.host.net.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.accepted:
				l.refuse(c)
			default:
				return
			}
		}
	})
	return nil
}

func (l *listener) refuse(c net.Conn) {
	if t, ok := c.(*tracked); ok {
		t.Reset()
	}
	_ = c.Close()
}

// Addr is where the listener listens.
func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }
