package outbound

import "net/netip"

// refusedRanges are refused in every spelling. Private ranges are not among them: a remote is normally a first-party cluster on a
// private network.
var refusedRanges = prefixes(
	"0.0.0.0/8",          // "this network"; 0.0.0.0 reaches loopback
	"127.0.0.0/8",        // loopback
	"169.254.0.0/16",     // link-local and most metadata services
	"224.0.0.0/4",        // multicast
	"255.255.255.255/32", // broadcast
	"100.100.100.200/32", // metadata: Alibaba Cloud
	"168.63.129.16/32",   // metadata: Azure
	"192.0.0.192/32",     // metadata: Oracle Cloud
	"::/128",             // unspecified
	"::1/128",            // loopback
	"fe80::/10",          // link-local, with a zone or without
	"ff00::/8",           // multicast
	"fd00:ec2::/32",      // metadata: AWS
	"fd20:ce::254/128",   // metadata: Google Cloud
	"fd00:42::42/128",    // metadata: Scaleway

	// Tunnels and translations whose far end we cannot know (DEC-06).
	"::/96",           // IPv4-compatible
	"::ffff:0:0:0/96", // IPv4-translated
	"64:ff9b:1::/48",  // local NAT64
	"2001::/32",       // Teredo
	"2002::/16",       // 6to4
)

// nat64 carries an IPv4 address in its last four bytes; it is judged by that address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// forbidden decides on the address itself, after its zone and an IPv4-mapped or NAT64 spelling are taken off (DEC-06).
func forbidden(addr netip.Addr) bool {
	if !addr.IsValid() {
		return true
	}
	addr = addr.WithZone("").Unmap()
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, p := range refusedRanges {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
