package outbound

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// MaxURLBytes bounds a remote's URL (api.md: Remotes).
const MaxURLBytes = 2048

// urlError names the rule that a URL breaks, never the URL (DEC-20).
type urlError string

func (e urlError) Error() string { return "url " + string(e) }

// CanonicalURL returns the one spelling of a remote's URL: https, host in lower case ASCII (IDNA) without a trailing dot,
// no default port, no trailing slash. It refuses a user, query, fragment, and a host that spells an IPv4 address in any other
// way than four decimal numbers. The result is its own canonical form. The error names the rule, never the value.
func CanonicalURL(raw string) (string, error) {
	if raw == "" || len(raw) > MaxURLBytes {
		return "", urlError("must have 1 to 2048 bytes")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", urlError("cannot be read")
	}
	switch {
	case u.Scheme != "https":
		return "", urlError("must begin with https://")
	case u.User != nil:
		return "", urlError("must not carry a user")
	case u.RawQuery != "" || u.ForceQuery:
		return "", urlError("must not carry a query")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return "", urlError("must not carry a fragment")
	case u.Opaque != "" || u.Host == "":
		return "", urlError("must name a host")
	}
	host, err := CanonicalHost(u.Hostname())
	if err != nil {
		return "", err
	}
	port, err := canonicalPort(u.Host, u.Port())
	if err != nil {
		return "", err
	}
	path, err := canonicalPath(u.EscapedPath())
	if err != nil {
		return "", err
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	canonical := "https://" + host + port + path
	if len(canonical) > MaxURLBytes {
		return "", urlError("must have 1 to 2048 bytes")
	}
	return canonical, nil
}

// HostPort returns "host:port" of a canonical URL, with the default port spelled out. Two remotes with the same one reach the same
// target (TGT-11).
func HostPort(canonical string) string {
	u, err := url.Parse(canonical)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// CanonicalHost returns a host name in lower case ASCII without a trailing dot, or an IP address in its shortest spelling.
func CanonicalHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", urlError("must not name an address with a zone")
		}
		return addr.Unmap().String(), nil
	}
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil || ascii == "" || len(ascii) > 253 || !utf8.ValidString(host) {
		return "", urlError("must name a valid host")
	}
	if again, err := idna.Lookup.ToASCII(ascii); err != nil || again != ascii {
		return "", urlError("must name a valid host") // the mapping made a name that it would not take itself
	}
	// The mapping may have turned look-alike digits into an address.
	if addr, err := netip.ParseAddr(ascii); err == nil {
		return addr.String(), nil
	}
	labels := strings.Split(ascii, ".")
	for _, label := range labels {
		if !hostLabel(label) {
			return "", urlError("must name a valid host")
		}
	}
	if number(labels[len(labels)-1]) {
		return "", urlError("must spell an IPv4 address as four decimal numbers")
	}
	return ascii, nil
}

func hostLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return strings.IndexFunc(label, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	}) < 0
}

// number tells whether a resolver may read the last label of a host as a number, which makes the whole host an IPv4 address
// in a decimal, octal or hexadecimal spelling.
func number(label string) bool {
	if strings.HasPrefix(label, "0x") {
		return true
	}
	return strings.Trim(label, "0123456789") == ""
}

func canonicalPort(hostport, port string) (string, error) {
	if port == "" {
		if strings.HasSuffix(hostport, ":") {
			return "", urlError("must name a port after the colon")
		}
		return "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", urlError("must name a port from 1 to 65535")
	}
	if n == 443 {
		return "", nil
	}
	return ":" + strconv.FormatUint(n, 10), nil
}

// canonicalPath takes a plain prefix, for a cluster behind a path, and drops the slash at its end.
func canonicalPath(path string) (string, error) {
	path = strings.TrimRight(path, "/")
	if path == "" {
		return "", nil
	}
	for _, segment := range strings.Split(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." || strings.IndexFunc(segment, notPlain) >= 0 {
			return "", urlError("must have a plain path of letters, digits and -._~")
		}
	}
	return path, nil
}

func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~", r)
}
