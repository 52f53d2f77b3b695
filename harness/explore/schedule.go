package explore

import (
	"fmt"
	"time"

	"narad.example/harness/workload"
	"narad.example/scenarios"
)

// Names in every schedule.
const (
	remote     = scenarios.DefaultRemote
	sourceNode = "source-1"
	targetNode = "target-1"
	firstTopic = "orders"
	otherTopic = "events"
)

// drained is the deadline for liveness. It is far above what the slowest recovery needs (a stall is looked at again after 30 s, a gate's backoff
// has its limit well below a minute), so that only a link that stands still misses it.
const drained = 300 * second

// generator fills one schedule. Each part throws dice of its own, derived by name, so that a new choice in one part leaves the others as they are.
type generator struct {
	of     string // whose schedule it is: explore or soak
	seed   uint64
	number int
	s      *scenarios.Scenario
	end    scenarios.Duration // of the load
	first  scenarios.Duration // when the first window may begin
	check  scenarios.Duration // when an admin's action last made the source check the target
}

// Schedule makes the schedule of that number under a seed. It is pure: two calls give the same scenario, with every default filled.
func Schedule(seed uint64, number int) *scenarios.Scenario {
	g := &generator{of: "explore", seed: seed, number: number, s: &scenarios.Scenario{
		Name:     fmt.Sprintf("explored %d of seed %d", number, seed),
		Covers:   []string{"HAR-05", "HAR-06", "HAR-09", "HAR-10", "HAR-15", "HAR-16"},
		Backends: &scenarios.Backends{Only: []string{"sim"}, Reason: "explored in virtual time"},
		Source:   scenarios.Cluster{Nodes: 1},
		Expect:   scenarios.Expect{Drained: drained},
	}}
	fake := g.dice("target").percent(30)
	if !fake {
		g.s.Target.Nodes = 1
	}
	g.links()
	g.limits()
	g.config()
	poison := fake && g.dice("poison").percent(20)
	g.windows(fake, poison)
	switch {
	case poison:
		g.poison()
	case fake:
		g.script()
	}
	g.load()
	return g.s
}

func (g *generator) dice(part string) dice {
	return dice{workload.Source(g.seed, fmt.Sprintf("%s %d %s", g.of, g.number, part))}
}

// links makes one or two topics and one or two links, which share the remote.
func (g *generator) links() {
	d := g.dice("links")
	g.s.Topics = map[string]scenarios.Topic{firstTopic: {Partitions: d.between(3, 6)}}
	g.first = d.tenths(50, 80)
	first := g.link(d, firstTopic, firstTopic)
	if d.percent(15) {
		g.attachLater(d, &first)
	}
	g.s.Links = append(g.s.Links, first)
	if !d.percent(45) {
		return
	}
	parent, aim := firstTopic, firstTopic+"-copy"
	if d.percent(50) {
		parent, aim = otherTopic, otherTopic
		g.s.Topics[otherTopic] = scenarios.Topic{Partitions: d.between(3, 6)}
	}
	second := g.link(d, parent, aim)
	switch {
	case d.percent(20):
		g.attachLater(d, &second)
	case d.percent(12):
		second.Attach, second.From = "after", "earliest" // with attach nothing would be owed any more
	}
	g.s.Links = append(g.s.Links, second)
}

func (*generator) link(d dice, parent, aim string) scenarios.Link {
	l := scenarios.Link{
		Parent: parent, Child: aim + "-to-b", Remote: remote, Topic: aim, Lanes: d.between(1, 8),
		From: pick(d, "attach", "unconsumed", "earliest"), Attach: "before",
	}
	if d.percent(15) {
		l.Delay = d.tenths(5, 25)
	}
	return l
}

// attachLater lets a step attach the link early in the load, before anything breaks.
func (g *generator) attachLater(d dice, l *scenarios.Link) {
	l.Attach = "step"
	at := g.checkAt(d.tenths(10, 70))
	g.s.Steps = append(g.s.Steps, scenarios.Step{At: at, Action: "attach", Link: l.Child, Expect: 201})
	g.first = max(g.first, at+4*second)
}

// betweenChecks keeps the checks that admins ask for apart: a remote takes one every five seconds, others are refused (TGT-13, DEC-48).
const betweenChecks = 55 * tenth

// checkAt is the time of an attach or a resume, at or as soon as a check is owed. The setup attaches right before the load begins.
func (g *generator) checkAt(at scenarios.Duration) scenarios.Duration {
	g.check = max(at, g.check+betweenChecks)
	return g.check
}

func (g *generator) limits() {
	d := g.dice("limits")
	l := scenarios.Limits{RequestTimeoutMS: pick(d, 5000, 5000, 8000, 15000)}
	if d.percent(40) {
		l.MaxInFlight = d.between(1, 8)
	}
	if d.percent(30) {
		l.IdleConnTimeoutMS = d.between(1, 10) * 1000
	}
	if d.percent(30) {
		l.ConnMaxAgeMS = d.between(10, 20) * 1000
	}
	if d.percent(40) {
		l.CheckIntervalMS = d.between(10, 30) * 1000
	}
	if d.percent(30) {
		l.Compression = "zstd"
	}
	g.s.Remotes = map[string]scenarios.Remote{remote: {Limits: l}}
}

// config makes segments and hand-overs small now and then, so that their edges are met within a few hundred records.
func (g *generator) config() {
	d := g.dice("config")
	over := map[string]any{}
	if d.percent(25) {
		over["storage"] = map[string]any{"segment_bytes": smallSegment}
	}
	if d.percent(25) {
		over["fanout"] = map[string]any{"max_batch_records": pick(d, 1, 3, 10, 50)}
	}
	if len(over) > 0 {
		g.s.Source.Config = over
	}
}

// smallSegment is the smallest segment that a node takes.
const smallSegment = 1 << 20

// load produces into every topic from the start to the end of the windows.
func (g *generator) load() {
	d := g.dice("load")
	seconds := int(g.end / second)
	big := d.percent(6)
	for _, topic := range []string{firstTopic, otherTopic} {
		if _, there := g.s.Topics[topic]; !there {
			continue
		}
		records := d.between(120, 350)
		if big {
			records = d.between(600, 1500)
		}
		least := 8 // a fault wants traffic within every second
		if len(g.s.Faults) == 0 {
			least = 4
		}
		rate := max(records/seconds, least)
		l := scenarios.Traffic{
			Name: topic, Topic: topic, Rate: scenarios.Rate(rate), For: g.end, Batch: min(pick(d, 1, 2, 5, 10, 20), rate),
			Keys: pick(d, 1, 5, 20, 50), Payload: payload(d, topic),
		}
		if topic == otherTopic && d.percent(40) {
			l.Keys = 0 // order is judged by the keys of the first topic
		}
		if d.percent(5) && l.Batch > 1 {
			l.NastyKeys = true
		}
		g.s.Load = append(g.s.Load, l)
	}
}

// payload mixes shapes and sizes. Tiny ones are for the second topic alone: they carry their ID in a key of their own, which says nothing about order.
func payload(d dice, topic string) scenarios.Payload {
	p := scenarios.Payload{JSON: 100}
	if d.percent(70) {
		p.JSON = scenarios.Percent(d.between(0, 100))
		p.Text = scenarios.Percent(d.between(0, 100-int(p.JSON)))
		p.Binary = 100 - p.JSON - p.Text
	}
	p.Size = pick(d,
		scenarios.Sizes{Min: 50, Max: 400}, scenarios.Sizes{Min: 200, Max: 1 << 10},
		scenarios.Sizes{Min: 200, Max: 1 << 10}, scenarios.Sizes{Min: 1 << 10, Max: 4 << 10}, scenarios.Sizes{Min: 100, Max: 32 << 10})
	if topic == otherTopic && d.percent(25) {
		p.Size = scenarios.Sizes{Min: 1, Max: 64}
	}
	return p
}

// whole cuts a time to whole tenths of a second, which read well in a file.
func whole(d scenarios.Duration) scenarios.Duration {
	return scenarios.Duration(time.Duration(d).Truncate(time.Duration(tenth)))
}
