package explore

import (
	"fmt"
	"time"

	"narad.example/scenarios"
)

// Ground is what a round of a soak (harness/soak) is played on.
type Ground struct {
	Virtual bool          // virtual time, where disks and clocks can be broken too
	Parted  bool          // nodes of one side can be parted from each other
	Length  time.Duration // of the load; a fake's script and a window that is open make it longer
}

// Bounds of a round. A ledger is held in memory whole while it is judged, and the tap's is read twice a second.
const (
	ShortestRound = 40 * time.Second
	LongestRound  = 15 * time.Minute
	mostRecords   = 12_000
)

// Round makes the round of that number of a soak under a seed. It is pure, and asks as Schedule does for nothing that is not owed. Other than a
// schedule of Schedule it has several nodes on a side, more faults one after the other, and the times that real processes need: a node that was
// killed has some seconds to come back before anything else breaks.
func Round(seed uint64, number int, on Ground) *scenarios.Scenario {
	g := &generator{of: "soak", seed: seed, number: number, s: &scenarios.Scenario{
		Name:   fmt.Sprintf("soak round %d of seed %d", number, seed),
		Covers: []string{"HAR-05", "HAR-06", "HAR-07", "HAR-08", "HAR-09", "HAR-10", "HAR-12"},
		Expect: scenarios.Expect{Drained: drained},
	}}
	if on.Virtual {
		g.s.Backends = &scenarios.Backends{Only: []string{"sim"}, Reason: "made for virtual time"}
	}
	d := g.dice("clusters")
	g.s.Source.Nodes = pick(d, 1, 3, 3)
	fake := d.percent(20)
	if !fake {
		g.s.Target.Nodes = pick(d, 1, 3, 3)
	}
	g.links()
	g.limits()
	g.handOvers()
	poison := fake && g.dice("poison").percent(20)
	if poison {
		g.end = scenarios.Duration(on.Length)
		g.poison()
	} else {
		g.rounds(on, fake)
	}
	if fake && !poison {
		g.script()
	}
	g.roundLoad()
	return g.s
}

// handOvers makes segments and hand-overs small now and then. Those of one record are for schedules of a few hundred: a backlog of thousands
// would not be gone by any deadline behind a slow link.
func (g *generator) handOvers() {
	d := g.dice("config")
	over := map[string]any{}
	if d.percent(25) {
		over["storage"] = map[string]any{"segment_bytes": smallSegment}
	}
	if d.percent(25) {
		over["fanout"] = map[string]any{"max_batch_records": pick(d, 20, 100)}
	}
	if len(over) > 0 {
		g.s.Source.Config = over
	}
}

// Quiet around windows: what real processes need to be sound again, and what proves that they are.
const (
	betweenLow, betweenHigh = 60, 120 // tenths of a second
	lastQuiet               = 10 * second
)

// rounds lays window after window until the length is reached.
func (g *generator) rounds(on Ground, fake bool) {
	d := g.dice("windows")
	at := g.first
	length := scenarios.Duration(on.Length)
	for at+2*lastQuiet < length {
		at = g.roundWindow(d, at, on, fake) + d.tenths(betweenLow, betweenHigh)
	}
	g.end = max(at+lastQuiet, length)
}

// roundLoad produces into every topic, with so many keys that every partition has traffic.
func (g *generator) roundLoad() {
	d := g.dice("load")
	most := max(10, mostRecords/(len(g.s.Topics)*int(g.end/second)))
	for _, topic := range []string{firstTopic, otherTopic} {
		if _, there := g.s.Topics[topic]; !there {
			continue
		}
		rate := min(d.between(20, 100), most)
		l := scenarios.Traffic{
			Name: topic, Topic: topic, Rate: scenarios.Rate(rate), For: g.end, Batch: min(pick(d, 1, 2, 5, 10), rate),
			Keys: pick(d, 50, 100, 200), Payload: payload(d, topic),
		}
		if topic == otherTopic && d.percent(40) {
			l.Keys = 0 // order is judged by the keys of the first topic
		}
		l.NastyKeys = l.Batch > 1 && d.percent(10)
		l.Payload.Size.Max = min(l.Payload.Size.Max, 4<<10)
		g.s.Load = append(g.s.Load, l)
	}
}
