package scenarios

import (
	"fmt"
	"slices"
)

// releases checks the nodes that pose as an older release. With one on the source no remote can be made before it is upgraded, so that
// steps make remotes and links.
func (c *checker) releases() {
	if c.s.Target.Fake != nil && c.given("target.older") {
		c.say("target.older", "a fake is of no release; old-listing, over-100 and no-zstd answer as an older one")
	}
	c.older("source", c.s.Source.Older, c.s.Source.Nodes, 2)
	c.older("target", c.s.Target.Older, c.s.Target.Nodes, 1)
	if len(c.s.Source.Older) == 0 {
		return
	}
	for i, l := range c.s.Links {
		if l.Attach == "before" {
			c.say(fmt.Sprintf("links[%d].attach", i), "no link can be made while a node of the source is of an older release: say step or after")
		}
		made := func(s Step) bool { return s.Action == "create_remote" && (s.Remote == l.Remote) && s.Expect == 201 }
		if !slices.ContainsFunc(c.s.Steps, made) {
			c.say("source.older", "no step makes the remote %s: say {action: create_remote, remote: %s} after the last upgrade", l.Remote, l.Remote)
		}
	}
}

// older checks the numbers of one side. Steps ask the first node that runs, which must know what they ask for.
func (c *checker) older(side string, numbers []int, nodes, from int) {
	if len(numbers) == 0 {
		return
	}
	for i, n := range numbers {
		path := fmt.Sprintf("%s.older[%d]", side, i)
		switch {
		case n < from || n > nodes:
			c.say(path, "allowed: numbers of nodes, %d to %d", from, nodes)
		case slices.Contains(numbers[:i], n):
			c.say(path, "is there twice")
		}
	}
}

// upgrade is of a node that poses, once.
func (c *checker) upgrade(f *Fault, path string) {
	var names []string
	for _, n := range c.s.Source.Older {
		names = append(names, fmt.Sprintf("source-%d", n))
	}
	for _, n := range c.s.Target.Older {
		names = append(names, fmt.Sprintf("target-%d", n))
	}
	if !c.among(path+".upgrade", "node of an older release", f.Upgrade, names) {
		return
	}
	for i := range c.s.Faults {
		if g := &c.s.Faults[i]; g != f && g.Upgrade == f.Upgrade && g.At <= f.At {
			c.say(path+".upgrade", "%s is upgraded already", f.Upgrade)
		}
	}
}
