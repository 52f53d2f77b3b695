package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Aliased is a node that is looked for at the moment of a fault: the leader of a side, or the owner of a partition there.
type Aliased struct {
	Side      string // source or target
	Topic     string // of an owner; "" asks for the leader
	Partition int
}

var aliases = regexp.MustCompile(`^(source|target) (leader|owner of ([A-Za-z0-9._-]{1,200})/([0-9]{1,3}))$`)

// Alias reads "source leader" or "target owner of orders/0".
func Alias(name string) (Aliased, bool) {
	m := aliases.FindStringSubmatch(name)
	if m == nil {
		return Aliased{}, false
	}
	a := Aliased{Side: m[1], Topic: m[3]}
	if a.Topic != "" {
		a.Partition, _ = strconv.Atoi(m[4]) // up to three digits
	}
	return a, true
}

// Parts tells whether a fault cuts between nodes, and not the link between the sites.
func (f *Fault) Parts() bool {
	return f.Cut && len(f.Between) > 0 && f.Between[0] != "source" && f.Between[0] != "target"
}

// Paces tells whether a fault slows what nodes say to each other, and not the link between the sites.
func (f *Fault) Paces() bool {
	return f.Toxic != nil && len(f.Between) > 0 && f.Between[0] != "source" && f.Between[0] != "target"
}

// paceToxics are the toxics that there are between nodes; what ends or holds connections is a cut's.
var paceToxics = []string{"bandwidth", "latency", "slicer"}

// pace checks a toxic between nodes, whose parties are those of a cut.
func (c *checker) pace(f *Fault, path string) {
	if len(f.Between) == 2 && f.Between[1] == "target" && strings.HasPrefix(f.Between[0], "source") {
		c.say(path+".between", "the way of one node to the target takes no toxic: say [source, target]")
		return
	}
	c.parties(f, path)
	for field, set := range map[string]bool{"one_way": f.OneWay, "silent": f.Silent} {
		if set {
			c.say(path+"."+field, "is for a cut between nodes")
		}
	}
	c.toxic(f.Toxic, path+".toxic")
	if _, known := toxicFields[f.Toxic.Type]; known && !slices.Contains(paceToxics, f.Toxic.Type) {
		c.say(path+".toxic.type", "between nodes %s; what ends or holds connections is a cut", allowed(paceToxics))
	}
	if f.Toxic.Stream != "upstream" {
		c.say(path+".toxic.stream", "allowed between nodes: upstream, what the first says to the second; name them the other way round")
	}
}

// parted names the parties of a cut between nodes, with what is special about it.
func (f *Fault) parted() string {
	mark := "<>"
	if f.OneWay || f.Paces() {
		mark = ">"
	}
	on := strings.Join(f.Between, mark)
	if f.Carries != "" && f.Carries != "all" {
		on += " " + f.Carries
	}
	if f.Silent {
		on += " silent"
	}
	return on
}

// repeat makes of each fault with every as many as it is done times. It comes after the checks, which name what stands in the file.
func repeat(s *Scenario) {
	var out []Fault
	for _, f := range s.Faults {
		every, times := f.Every, max(1, f.Times)
		f.Every, f.Times = 0, 0
		for range times {
			out = append(out, f)
			f.At += every
		}
	}
	s.Faults = out
}

func (c *checker) repeats(f *Fault, path string) {
	switch {
	case f.Every == 0 && f.Times == 0:
		return
	case f.Every <= 0 || f.Times < 2:
		c.say(path, "every and times come together: how often it is done again, and how many times in all (2 at least)")
		return
	case f.Start != "" || f.For <= 0:
		c.say(path+".every", "is for faults with a for: each heals before it is done again")
	case f.For >= f.Every:
		c.say(path+".every", "each heals before it is done again: wants more than for")
	}
	if loads := c.loadEnd(); loads > 0 && int64(f.At)+int64(f.Every)*int64(f.Times-1) >= loads {
		c.say(path+".times", "the load ends at %s: a fault after it proves nothing", Duration(loads))
	}
}

// alias checks a fault on a node that is looked for.
func (c *checker) alias(f *Fault, path string) {
	c.aliased(f.Node(), path)
	if f.Start != "" {
		c.say(path, "start names its node; who was leader or owner is not known any more")
	} else if f.For <= 0 {
		c.say(path[:strings.LastIndexByte(path, '.')]+".for", "is missing: no start can name that node later")
	}
}

func (c *checker) aliased(name, path string) {
	a, _ := Alias(name)
	if a.Side == "target" && c.s.Target.Fake != nil {
		c.say(path, "a fake has neither leader nor owners")
	}
	if a.Topic == "" {
		return
	}
	partitions := map[string]int{}
	for topic, t := range c.s.Topics {
		if a.Side == "source" {
			partitions[topic] = t.Partitions
		}
	}
	for _, l := range c.s.Links {
		if a.Side == "target" {
			partitions[l.Topic] = c.s.Topics[l.Parent].Partitions
		}
	}
	if a.Partition >= partitions[a.Topic] {
		c.say(path, "%s has no partition %s/%d", a.Side, a.Topic, a.Partition)
	}
}

// transfer is of whoever leads a side of several nodes.
func (c *checker) transfer(f *Fault, path string) {
	a, isAlias := Alias(f.Transfer)
	if !isAlias {
		return // the decoder has said so
	}
	c.aliased(f.Transfer, path+".transfer")
	if a.Side == "source" && c.s.Source.Nodes < 3 || a.Side == "target" && c.s.Target.Fake == nil && c.s.Target.Nodes < 3 {
		c.say(path+".transfer", "a single node has nobody to hand its lead to")
	}
}

// parties checks a cut that has single nodes for its parties: the first is a node, the second another node of its side, the side itself
// (all its other nodes), or the target as a node of the source reaches it.
func (c *checker) parties(f *Fault, path string) {
	if f.For <= 0 {
		c.say(path+".for", "is missing: a cut heals")
	}
	if len(f.Between) != 2 {
		c.say(path+".between", "wants two: a node, and another one, its side or, for a node of the source, target")
		return
	}
	sides, found := [2]string{}, 0
	for i, name := range f.Between {
		sides[i], _, _ = strings.Cut(strings.ReplaceAll(name, " ", "-"), "-")
		inner := fmt.Sprintf("%s.between[%d]", path, i)
		if _, isAlias := Alias(name); isAlias {
			c.aliased(name, inner)
			found++
		} else if i == 0 || name != "source" && name != "target" {
			c.among(inner, "node", name, c.nodes)
		}
	}
	way := sides[0] == "source" && f.Between[1] == "target"
	if way && c.s.Source.Nodes < 2 {
		c.simOnly(path+".between", "the way of a single node to the target can be cut")
	}
	switch {
	case found > 0 && f.Between[1] != "source" && f.Between[1] != "target":
		c.say(path+".between", "a node that is looked for may be the other one too; it is parted from its side, or from target")
	case f.Between[0] == f.Between[1]:
		c.say(path+".between", "a node is not parted from itself")
	case !way && sides[0] != sides[1]:
		c.say(path+".between", "nodes of two sides do not talk; a node of the source talks to target")
	case !way && (sides[0] == "source" && c.s.Source.Nodes < 2 || sides[0] == "target" && c.s.Target.Nodes < 2):
		c.say(path+".between", "there is no other node on that side")
	case way && f.Carries != "all":
		c.say(path+".carries", "is for cuts between nodes of one side")
	}
}
