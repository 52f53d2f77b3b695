package outbound

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Guard decides where requests may go: ports and hosts on the URL, addresses after name resolution (NET-04 to NET-06, DEC-06).
// It is not changed after NewGuard. The zero Guard allows no port.
type Guard struct {
	ports    []int
	exact    map[string]bool // canonical hosts; with suffixes empty, every host
	suffixes []string        // ".example.org" for "*.example.org"
	open     []netip.Prefix  // remotes.allow_addresses
}

// NewGuard builds the guard from remotes.allowed_ports, allowed_hosts (empty allows every host; exact names and "*.suffix") and
// allow_addresses (addresses and prefixes that are reachable although the guard refuses them).
func NewGuard(ports []int, hosts, addresses []string) (*Guard, error) {
	g := &Guard{ports: slices.Clone(ports), exact: map[string]bool{}}
	for _, p := range ports {
		if p < 1 || p > 65535 {
			return nil, errors.New("remotes.allowed_ports: a port must be from 1 to 65535")
		}
	}
	for i, h := range hosts {
		name, wild := strings.CutPrefix(h, "*.")
		canonical, err := CanonicalHost(strings.Trim(name, "[]"))
		if err != nil {
			return nil, fmt.Errorf("remotes.allowed_hosts: entry %d is no host name", i)
		}
		if wild {
			g.suffixes = append(g.suffixes, "."+canonical)
		} else {
			g.exact[canonical] = true
		}
	}
	for i, a := range addresses {
		p, err := parsePrefix(a)
		if err != nil {
			return nil, fmt.Errorf("remotes.allow_addresses: entry %d is no address and no prefix", i)
		}
		g.open = append(g.open, p)
	}
	return g, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return netip.Prefix{}, err
		}
		return p.Masked(), nil
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	addr = addr.Unmap().WithZone("")
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

// HasAllowlist tells whether remotes.allowed_hosts is set.
func (g *Guard) HasAllowlist() bool { return len(g.exact)+len(g.suffixes) > 0 }

// CheckURL checks port and host of a canonical URL, and the address when the host is one. The error names the rule alone.
func (g *Guard) CheckURL(canonical string) error {
	host, port, err := net.SplitHostPort(HostPort(canonical))
	if err != nil {
		return &guardError{RefusedHost}
	}
	if err := g.checkPort(port); err != nil {
		return err
	}
	if !g.hostAllowed(host) {
		return &guardError{RefusedHost}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return g.checkAddress(addr)
	}
	return nil
}

func (g *Guard) checkPort(port string) error {
	n, err := strconv.Atoi(port)
	if err != nil || !slices.Contains(g.ports, n) {
		return &guardError{RefusedPort}
	}
	return nil
}

func (g *Guard) hostAllowed(host string) bool {
	if !g.HasAllowlist() || g.exact[host] {
		return true
	}
	return slices.ContainsFunc(g.suffixes, func(s string) bool { return strings.HasSuffix(host, s) && len(host) > len(s) })
}

// Control checks the address that is about to be dialled, after name resolution, so that a name which changes its address
// between the check and the dial gains nothing (NET-05). What is not an address and a port is refused.
func (g *Guard) Control(network, address string) error {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return &guardError{RefusedAddress}
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &guardError{RefusedAddress}
	}
	if err := g.checkPort(strconv.Itoa(int(ap.Port()))); err != nil {
		return err
	}
	return g.checkAddress(ap.Addr())
}

func (g *Guard) checkAddress(addr netip.Addr) error {
	plain := addr.WithZone("").Unmap()
	for _, p := range g.open {
		if p.Contains(plain) {
			return nil
		}
	}
	if forbidden(addr) {
		return &guardError{RefusedAddress}
	}
	return nil
}

// RefusedReason is the rule behind an error of the guard, or "" for any other error.
func RefusedReason(err error) string {
	var g *guardError
	if errors.As(err, &g) {
		return g.reason
	}
	return ""
}
