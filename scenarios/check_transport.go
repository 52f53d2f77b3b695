package scenarios

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// dnsWords are the answers of a name that are no address.
var dnsWords = []string{"truth", "nxdomain", "servfail", "silence"}

func (c *checker) dns(f *Fault, path string) {
	if len(f.DNS) == 0 {
		return
	}
	c.simOnly(path+".dns", "a name can be broken")
	for i, a := range f.DNS {
		if slices.Contains(dnsWords, a) {
			continue
		}
		if _, err := netip.ParseAddr(a); err != nil {
			c.say(fmt.Sprintf("%s.dns[%d]", path, i), "%q is no address and none of %s", a, strings.Join(dnsWords, ", "))
		}
	}
}

func (c *checker) config(f *Fault, path string, down map[string]bool) {
	if f.Config == nil {
		return
	}
	c.among(path+".config.node", "node", f.Config.Node, c.nodes)
	if len(f.Config.Set) == 0 {
		c.say(path+".config.set", "is missing: what is laid over the node's configuration")
	}
	if f.For <= 0 {
		c.say(path+".for", "is missing: the node gets its own configuration back")
	}
	if down[f.Config.Node] {
		c.say(path+".config", "%s is down then", f.Config.Node)
	}
}
