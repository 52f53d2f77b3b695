package outbound

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// forbiddenSpellings is BR-26's table: each reaches loopback or a metadata service on some network.
var forbiddenSpellings = []string{
	"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.1.1", "224.0.0.1", "239.255.255.255",
	"255.255.255.255", "100.100.100.200", "168.63.129.16", "192.0.0.192",
	"::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "ff02::1", "fd00:ec2::254", "fd00:ec2:ffff::1", "fd20:ce::254", "fd00:42::42",
	"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "::ffff:255.255.255.255",
	"64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::100.100.100.200",
	"64:ff9b:1::169.254.169.254", "64:ff9b:1:ffff::1",
	"::ffff:0:127.0.0.1", "::ffff:0:169.254.169.254", "::ffff:0:10.0.0.1",
	"::127.0.0.1", "::169.254.169.254",
	"2002:7f00:1::", "2002:a9fe:a9fe::1", "2001::1", "2001:0:53aa:64c:0:0:5601:5601",
}

// Each spelling of BR-26, when a remote is made and when it is dialled.
// covers: NET-05
func TestGuardRefusesEverySpelling(t *testing.T) {
	g, err := NewGuard([]int{443}, nil, nil)
	require.NoError(t, err)
	for _, s := range forbiddenSpellings {
		t.Run(s, func(t *testing.T) {
			err := g.Control("tcp", netip.AddrPortFrom(netip.MustParseAddr(s), 443).String())
			require.Equal(t, RefusedAddress, RefusedReason(err))
			require.NotContains(t, err.Error(), s)
			if !strings.Contains(s, "%") && s != "::" {
				canonical, err := CanonicalURL("https://[" + s + "]")
				if !strings.Contains(s, ":") {
					canonical, err = CanonicalURL("https://" + s)
				}
				require.NoError(t, err)
				require.Equal(t, RefusedAddress, RefusedReason(g.CheckURL(canonical)), "at create")
			}
		})
	}
	for _, s := range []string{"10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "fd12:3456::1", "8.8.8.8", "2606:4700::1111", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1"} {
		require.NoError(t, g.Control("tcp", netip.AddrPortFrom(netip.MustParseAddr(s), 443).String()), s)
	}
	for _, a := range []string{"", "localhost:443", "10.0.0.1", "10.0.0.1:https"} {
		require.Equal(t, RefusedAddress, RefusedReason(g.Control("tcp", a)), a)
	}
	require.Equal(t, RefusedAddress, RefusedReason(g.Control("unix", "10.0.0.1:443")))
	require.Equal(t, RefusedPort, RefusedReason(g.Control("tcp", "10.0.0.1:80")))
}

// An entry of remotes.allow_addresses opens its address and no neighbour (BR-26).
// covers: NET-05
func TestGuardOpensExactlyWhatIsListed(t *testing.T) {
	g, err := NewGuard([]int{443}, nil, []string{"127.0.0.1", "fd00:ec2::/64", "fe80::7"})
	require.NoError(t, err)
	for _, s := range []string{"127.0.0.1", "::ffff:127.0.0.1", "fd00:ec2::254", "fe80::7%eth0"} {
		require.NoError(t, g.Control("tcp", netip.AddrPortFrom(netip.MustParseAddr(s), 443).String()), s)
	}
	for _, s := range []string{"127.0.0.2", "64:ff9b::127.0.0.1", "::127.0.0.1", "fd00:ec2:1::1", "fe80::8", "::1"} {
		require.Error(t, g.Control("tcp", netip.AddrPortFrom(netip.MustParseAddr(s), 443).String()), s)
	}
	for _, bad := range []string{"", "x", "10.0.0.0/33", "10.0.0.1:443"} {
		_, err := NewGuard(nil, nil, []string{bad})
		require.Error(t, err, bad)
	}
}

// covers: NET-05
func TestTranslatedSpellingsOfAnyForbiddenIPv4(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		four := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4"))
		bad := forbidden(netip.AddrFrom4(four))
		for _, prefix := range []string{"::ffff:0.0.0.0", "64:ff9b::"} {
			b := netip.MustParseAddr(prefix).As16()
			copy(b[12:], four[:])
			require.Equal(t, bad, forbidden(netip.AddrFrom16(b)), prefix)
		}
	})
}

// covers: NET-04, NET-06
func TestGuardHosts(t *testing.T) {
	g, err := NewGuard([]int{443, 7942}, []string{"*.Example.org", "target.test", "bücher.test"}, nil)
	require.NoError(t, err)
	require.True(t, g.HasAllowlist())
	for _, raw := range []string{"https://a.example.org", "https://A.B.EXAMPLE.ORG.:7942", "https://target.test.", "https://xn--bcher-kva.test", "https://BÜCHER.test"} {
		canonical, bad := CanonicalURL(raw)
		require.NoError(t, bad, raw)
		require.NoError(t, g.CheckURL(canonical), raw)
	}
	for _, raw := range []string{"https://example.org", "https://evilexample.org", "https://sub.target.test", "https://10.0.0.1"} {
		canonical, bad := CanonicalURL(raw)
		require.NoError(t, bad, raw)
		require.Equal(t, RefusedHost, RefusedReason(g.CheckURL(canonical)), raw)
	}
	canonical, err := CanonicalURL("https://target.test:8443")
	require.NoError(t, err)
	require.Equal(t, RefusedPort, RefusedReason(g.CheckURL(canonical)))
	_, err = NewGuard(nil, []string{"*"}, nil)
	require.Error(t, err)
}

// covers: NET-04, NET-05
func TestMixedAnswersReachOnlyTheGood(t *testing.T) {
	g, err := NewGuard([]int{443}, nil, nil)
	require.NoError(t, err)
	dialled := []string{}
	resolve := func(addresses ...string) DialFunc {
		return func(_ context.Context, network, _ string, control func(network, address string) error) (net.Conn, error) {
			var first error
			for _, a := range addresses {
				err := control(network, a)
				if err == nil {
					dialled = append(dialled, a)
					err = net.ErrClosed
				}
				if first == nil {
					first = err
				}
			}
			return nil, first
		}
	}
	try := func(d DialFunc) *Failure {
		c, err := New(Config{URL: "https://name.test", Guard: g, Dial: d, RequestTimeout: time.Second})
		require.NoError(t, err)
		_, err = c.Do(t.Context(), &Request{Method: "GET", Path: "/"})
		return failure(t, err)
	}
	f := try(resolve("127.0.0.1:443", "10.0.0.1:443"))
	require.Equal(t, Unreachable, f.Class, "the good one could not be reached")
	require.Equal(t, []string{"10.0.0.1:443"}, dialled)
	f = try(resolve("127.0.0.1:443", "[64:ff9b::a9fe:a9fe]:443"))
	require.Equal(t, Refused, f.Class)
	require.Equal(t, RefusedAddress, f.Reason)
	require.Len(t, dialled, 1)
}

// covers: NET-04
func TestNoGuardNoDial(t *testing.T) {
	c, err := New(Config{URL: "https://10.0.0.1", Dial: func(context.Context, string, string, func(string, string) error) (net.Conn, error) {
		t.Error("dialled")
		return nil, net.ErrClosed
	}})
	require.NoError(t, err)
	_, err = c.Do(t.Context(), &Request{Method: "GET", Path: "/"})
	require.Equal(t, Refused, failure(t, err).Class)
}

func TestCanonicalURL(t *testing.T) {
	for raw, want := range map[string]string{
		"HTTPS://Target.Example:443/":    "https://target.example",
		"https://target.example.:07942":  "https://target.example:7942",
		"https://target.example/a/b//":   "https://target.example/a/b",
		"https://BÜCHER.example":         "https://xn--bcher-kva.example",
		"https://[FD00::0:1]:7942":       "https://[fd00::1]:7942",
		"https://[::ffff:10.0.0.1]":      "https://10.0.0.1",
		"https://１０.0.0.1":               "https://10.0.0.1",
		"https://target-1.example:00443": "https://target-1.example",
	} {
		got, err := CanonicalURL(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got)
	}
	for _, raw := range []string{
		"", "http://a.test", "https://", "a.test", "https://u@a.test", "https://u:" + canary + "@a.test", "https://a.test?x", "https://a.test?",
		"https://a.test#f", "https://a.test#", "https://a.test:", "https://a.test:0", "https://a.test:65536", "https://a..test", "https://-a.test",
		"https://2130706433", "https://0x7f000001", "https://0x7f.1", "https://0177.0.0.1", "https://127.1", "https://127.0.0.1.1", "https://0300.0250.1",
		"https://a.0x1", "https://a.test/../b", "https://a.test/%2e%2e", "https://a.test/x y", "https://[fe80::1%25eth0]", "https://a b.test", "https:a.test",
		"https://*.a.test", "https://" + strings.Repeat("a", 64) + ".test", "https://a.test/" + strings.Repeat("a", 2048), "https://a.test\n", " https://a.test",
	} {
		_, err := CanonicalURL(raw)
		require.Error(t, err, raw)
		require.NotContains(t, err.Error(), canary)
	}
}

func TestCanonicalURLIsItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := "https://" + rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`[A-Za-z0-9._\-ßüé:\[\]%]{1,30}(:[0-9]{1,6})?(/[a-zA-Z0-9._~%/-]{0,20})?`),
			rapid.StringMatching(`[0-9]{1,3}(\.[0-9]{1,3}){3}(:[0-9]{1,5})?/?`),
		).Draw(t, "rest")
		one, err := CanonicalURL(raw)
		if err != nil {
			return
		}
		two, err := CanonicalURL(one)
		require.NoError(t, err)
		require.Equal(t, one, two)
		_, err = New(Config{URL: one})
		require.NoError(t, err)
		_, _, err = net.SplitHostPort(HostPort(one))
		require.NoError(t, err)
	})
}
