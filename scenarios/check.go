package scenarios

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"narad.example/narad/wire"
)

// Judges are the judges by the names under which a scenario may relax them. The judge that asks whether the run proved anything
// cannot be relaxed.
var Judges = []string{
	"no gap", "order per key", "bytes equal", "duplicates explained", "every state cleared", "audit trail", "no secret anywhere", "drained",
}

// checker follows the decoder: what the types cannot say. Each method adds problems and none stops at the first.
type checker struct {
	*decoder
	s     *Scenario
	links map[string]bool // by child
	nodes []string        // "source-1", "target-1", ...
}

func check(d *decoder, s *Scenario) {
	c := &checker{decoder: d, s: s, links: map[string]bool{}}
	for i := range s.Source.Nodes + max(0, s.Source.Spares) {
		c.nodes = append(c.nodes, fmt.Sprintf("source-%d", i+1))
	}
	for i := range s.Target.Nodes {
		c.nodes = append(c.nodes, fmt.Sprintf("target-%d", i+1))
	}
	c.head()
	c.clusters()
	c.releases()
	c.topicsAndLinks()
	for i := range s.Load {
		c.load(i)
	}
	c.faults()
	c.steps()
	c.expect()
	c.counted()
}

// say adds a problem at a field, or at the nearest field above it that stands in the file.
func (c *checker) say(path, format string, args ...any) {
	for p := path; ; {
		if at, ok := c.places[p]; ok {
			c.fail(at, path, format, args...)
			return
		}
		cut := strings.LastIndexAny(p, ".[")
		if cut < 0 {
			c.fail(nil, path, format, args...)
			return
		}
		p = p[:cut]
	}
}

func (c *checker) given(path string) bool { return c.places[path] != nil }

// among says so when name is none of names.
func (c *checker) among(path, what, name string, names []string) bool {
	if slices.Contains(names, name) {
		return true
	}
	if !c.given(path) && name == "" {
		c.say(path, "is missing; it wants %s", what)
	} else {
		c.say(path, "%q is no %s of this scenario; %s", name, what, allowed(names))
	}
	return false
}

func (c *checker) head() {
	if strings.TrimSpace(c.s.Name) == "" {
		c.say("name", "is missing")
	}
	if len(c.s.Covers) == 0 {
		c.say("covers", "is missing: a scenario names the requirement rows that it proves")
	}
	for i, id := range c.s.Covers {
		if wrong := rowProblem(id); wrong != "" {
			c.say(fmt.Sprintf("covers[%d]", i), "%s", wrong)
		}
	}
	if b := c.s.Backends; b != nil {
		if len(b.Only) == 0 {
			c.say("backends.only", "is missing; allowed: container, process, sim")
		}
		if strings.TrimSpace(b.Reason) == "" {
			c.say("backends.reason", "is missing: a scenario that does not run everywhere says why")
		}
	}
	for i, r := range c.s.Relax {
		path := fmt.Sprintf("relax[%d]", i)
		c.among(path+".judge", "judge", r.Judge, Judges)
		if strings.TrimSpace(r.Reason) == "" {
			c.say(path+".reason", "is missing: a judge is relaxed with a reason")
		}
	}
}

func (c *checker) clusters() {
	odd := []int{1, 3, 5}
	if !slices.Contains(odd, c.s.Source.Nodes) {
		c.say("source.nodes", "allowed: 1, 3 or 5")
	}
	switch n := c.s.Source.Spares; {
	case n < 0 || n > 4:
		c.say("source.spares", "allowed: 0 to 4")
	case n > 0 && c.s.Source.Nodes < 3:
		c.say("source.spares", "a node joins a cluster: say source: {nodes: 3}")
	}
	if f := c.s.Target.Fake; f != nil {
		if c.given("target.nodes") || c.given("target.config") {
			c.say("target.fake", "a fake has neither nodes nor config")
		}
		for i := range f.Steps {
			c.fakeStep(i, &f.Steps[i])
		}
	} else if !slices.Contains(odd, c.s.Target.Nodes) {
		c.say("target.nodes", "allowed: 1, 3 or 5")
	}
	for name, r := range c.s.Remotes {
		path := "remotes." + name
		if !remoteName.MatchString(name) {
			c.say(path, "a remote's name is a-z, 0-9 and dashes, a letter first, at most 63")
		}
		c.limits(path+".limits", &r.Limits)
	}
}

var (
	remoteName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	topicName  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)
	comparison = regexp.MustCompile(`^(>|>=|<|<=|==) ?[0-9]+(\.[0-9]+)?$`)
	metricName = regexp.MustCompile(`^narad_[a-z0-9_]+$`)
)

func (c *checker) limits(path string, l *Limits) {
	for _, one := range []struct {
		name           string
		value, low, up int
	}{
		{"max_in_flight", l.MaxInFlight, 1, 256},
		{"request_timeout_ms", l.RequestTimeoutMS, 5000, 120_000},
		{"idle_conn_timeout_ms", l.IdleConnTimeoutMS, 1000, 300_000},
		{"conn_max_age_ms", l.ConnMaxAgeMS, 10_000, 3_600_000},
		{"check_interval_ms", l.CheckIntervalMS, 10_000, 3_600_000},
	} {
		if c.given(path+"."+one.name) && (one.value < one.low || one.value > one.up) {
			c.say(path+"."+one.name, "allowed: %d to %d", one.low, one.up)
		}
	}
}

func (c *checker) topicsAndLinks() {
	topics := slices.Sorted(maps.Keys(c.s.Topics))
	if len(topics) == 0 {
		c.say("topics", "is missing: a scenario has a topic at least")
	}
	for _, name := range topics {
		path := "topics." + name
		if !topicName.MatchString(name) {
			c.say(path, "a topic's name is A-Z, a-z, 0-9, dot, underscore and dash, at most 200")
		}
		if p := c.s.Topics[name].Partitions; p < 3 || p > 108 {
			c.say(path+".partitions", "allowed: 3 to 108")
		}
	}
	if len(c.s.Links) == 0 {
		c.say("links", "is missing: a scenario has a link at least")
	}
	remotes := slices.Sorted(maps.Keys(c.s.Remotes))
	aims := map[string]bool{}
	for i, l := range c.s.Links {
		path := fmt.Sprintf("links[%d]", i)
		c.among(path+".parent", "topic", l.Parent, topics)
		c.among(path+".remote", "remote", l.Remote, remotes)
		if l.Lanes < 1 || l.Lanes > 8 {
			c.say(path+".lanes", "allowed: 1 to 8")
		}
		switch _, isTopic := c.s.Topics[l.Child]; {
		case !topicName.MatchString(l.Child):
			c.say(path+".child", "is missing or no topic name")
		case isTopic || c.links[l.Child]:
			c.say(path+".child", "%q is taken already", l.Child)
		}
		if aims[l.Remote+" "+l.Topic] {
			c.say(path, "a remote topic takes one link (TGT-11)")
		}
		aims[l.Remote+" "+l.Topic] = true
		c.links[l.Child] = true
	}
}

func (c *checker) load(i int) {
	l, path := &c.s.Load[i], fmt.Sprintf("load[%d]", i)
	c.among(path+".topic", "topic", l.Topic, slices.Sorted(maps.Keys(c.s.Topics)))
	switch {
	case l.For > 0 && l.Count > 0:
		c.say(path, "for and count: one of them ends the load")
	case !c.given(path+".for") && !c.given(path+".count"):
		c.say(path, "wants for or count to end it")
	case l.Rate > 0 && l.Every > 0:
		c.say(path, "rate and every: one of them says how much")
	case l.For > 0 && !c.given(path+".rate") && !c.given(path+".every"):
		c.say(path, "for wants a rate, or every")
	}
	if sum := l.Payload.JSON + l.Payload.Text + l.Payload.Binary; sum != 100 {
		c.say(path+".payload", "json, text and binary add up to %d%%, they want 100%%", sum)
	}
	if l.Payload.Size.Max > 1<<20 {
		c.say(path+".payload.size", "a record has 1MiB at most")
	}
	if l.Batch < 1 || l.Batch > 1000 {
		c.say(path+".batch", "allowed: 1 to 1000")
	}
	if Size(l.Batch)*l.Payload.Size.Max > 8<<20 {
		c.say(path+".batch", "times the largest payload is over 8MiB, more than a request takes once it is base64")
	}
	if l.NastyKeys && l.Batch == 1 {
		c.say(path+".nasty_keys", "wants batch of 2 at least: a key of 64KiB does not fit into a URL")
	}
}

func (c *checker) expect() {
	children := slices.Sorted(maps.Keys(c.links))
	states := make([]string, 0, len(wire.LinkStates))
	for _, s := range wire.LinkStates {
		states = append(states, string(s))
	}
	for field, by := range map[string]map[string][]string{"expect.states": c.s.Expect.States, "expect.never": c.s.Expect.Never} {
		for child, list := range by {
			path := field + "." + child
			c.among(path, "child", child, children)
			for i, s := range list {
				c.among(fmt.Sprintf("%s[%d]", path, i), "link state", s, states)
			}
		}
	}
	for i, child := range c.s.Expect.Waits {
		c.among(fmt.Sprintf("expect.waits[%d]", i), "child", child, children)
	}
	for name, want := range c.s.Expect.Metrics {
		path := "expect.metrics." + name
		if !metricName.MatchString(name) {
			c.say(path, "a metric's name is narad_ and lower case, without labels")
		}
		if !comparison.MatchString(want) {
			c.say(path, `%q: wants a comparison such as "> 0" or "== 12"; allowed: >, >=, <, <=, ==`, want)
		}
	}
}
