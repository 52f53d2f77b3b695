package explore

import (
	"fmt"
	"slices"

	"narad.example/scenarios"
)

// Windows of a round. Each name stands as often as it is to be drawn.
var (
	everywhere  = []string{"link", "link", "link", "latency", "node", "node", "node", "both", "admin", "admin"}
	someCluster = []string{"node", "leader", "owner", "majority", "rolling", "transfer"}
	someParted  = []string{"parted", "parted", "paced"}
	sourceOnly  = []string{"move", "way"}
	brokenSim   = []string{"disk", "disk", "clock"}
)

// roundWindow fills one window of a round from at on and returns its end.
func (g *generator) roundWindow(d dice, at scenarios.Duration, on Ground, fake bool) scenarios.Duration {
	switch pick(d, g.kinds(on, fake)...) {
	case "link":
		return g.onLink(d, at)
	case "latency":
		return g.cutInLatency(d, at)
	case "both":
		// As in window: the link is bad for longer than the node is away.
		g.onLink(d, at)
		link := len(g.s.Faults) - 1
		back := g.takeNode(d, at+d.tenths(20, 30), g.someNode(d))
		f := &g.s.Faults[link]
		f.For = max(f.For, back+3*second-at)
		return f.At + f.For + settles(f.Toxic)
	case "admin":
		return g.admin(d, at, fake)
	case "leader":
		return g.takeNode(d, at, g.several(d)+" leader")
	case "owner":
		return g.takeNode(d, at, g.owner(d, g.several(d)))
	case "majority":
		return g.majority(d, at, g.several(d))
	case "rolling":
		side := g.several(d)
		g.fault(scenarios.Fault{At: at, For: second, Rolling: side})
		return at + 40*second
	case "transfer":
		g.fault(scenarios.Fault{At: at, For: second, Transfer: g.several(d) + " leader"})
		return at + 12*second
	case "parted":
		return g.part(d, at, g.several(d))
	case "paced":
		return g.pace(d, at, g.several(d))
	case "way":
		f := scenarios.Fault{At: at, For: d.tenths(60, 150), Cut: true, Silent: d.percent(50), Carries: "all"}
		f.Between = []string{g.owner(d, "source"), "target"}
		g.fault(f)
		return at + f.For + 4*second
	case "move":
		return g.move(d, at)
	case "disk":
		return g.onDisk(d, at, fake)
	case "clock":
		return g.onClock(d, at, fake)
	}
	return g.takeNode(d, at, g.someNode(d))
}

// kinds are the windows that the clusters and the ground of a round allow.
func (g *generator) kinds(on Ground, fake bool) []string {
	source, target := g.s.Source.Nodes > 1, g.s.Target.Nodes > 1
	kinds := slices.Clone(everywhere)
	if source || target {
		kinds = append(kinds, someCluster...)
		if on.Parted {
			kinds = append(kinds, someParted...)
		}
	}
	switch {
	case source && !fake && on.Parted:
		kinds = append(kinds, sourceOnly...)
	case source:
		kinds = append(kinds, "move")
	case on.Virtual && !target:
		kinds = append(kinds, brokenSim...)
	}
	return kinds
}

// several is a side of several nodes.
func (g *generator) several(d dice) string {
	switch {
	case g.s.Source.Nodes == 1:
		return "target"
	case g.s.Target.Nodes <= 1:
		return "source"
	}
	return pick(d, "source", "target")
}

// someNode is any node of the product's.
func (g *generator) someNode(d dice) string {
	n := d.between(1, g.s.Source.Nodes+g.s.Target.Nodes)
	if n <= g.s.Source.Nodes {
		return fmt.Sprintf("source-%d", n)
	}
	return fmt.Sprintf("target-%d", n-g.s.Source.Nodes)
}

// owner is the node that owns a partition of the first topic, which has traffic.
func (g *generator) owner(d dice, side string) string {
	return fmt.Sprintf("%s owner of %s/%d", side, firstTopic, d.between(0, g.s.Topics[firstTopic].Partitions-1))
}

// takeNode takes a node away, and gives it back with some seconds to start in.
func (g *generator) takeNode(d dice, at scenarios.Duration, node string) scenarios.Duration {
	f := scenarios.Fault{At: at, For: d.tenths(30, 120)}
	switch d.IntN(5) {
	case 0:
		f.Pause = node
		g.fault(f)
		return at + f.For + 2*second
	case 1:
		f.Stop = node
	case 2:
		f.Restart = node
	default:
		f.Kill = node
	}
	g.fault(f)
	return at + f.For + 6*second
}

// majority kills two of three nodes, so that nobody leads for a while.
func (g *generator) majority(d dice, at scenarios.Duration, side string) scenarios.Duration {
	spared := d.between(1, 3)
	end := at
	for n := 1; n <= 3; n++ {
		if n == spared {
			continue
		}
		f := scenarios.Fault{At: at, For: d.tenths(60, 150), Kill: fmt.Sprintf("%s-%d", side, n)}
		g.fault(f)
		end = max(end, at+f.For)
	}
	return end + 10*second
}

// part cuts one node of a side from its peers.
func (g *generator) part(d dice, at scenarios.Duration, side string) scenarios.Duration {
	f := scenarios.Fault{At: at, For: d.tenths(80, 150), Cut: true, Silent: d.percent(50), OneWay: d.percent(40), Carries: pick(d, "all", "all", "raft", "rpc")}
	f.Between = []string{g.party(d, side), side}
	g.fault(f)
	return at + f.For + 8*second
}

// pace slows what one node of a side says to its peers.
func (g *generator) pace(d dice, at scenarios.Duration, side string) scenarios.Duration {
	f := scenarios.Fault{At: at, For: d.tenths(80, 120), Between: []string{g.party(d, side), side}}
	switch d.IntN(3) {
	case 0:
		f.Carries, f.Toxic = "raft", &scenarios.Toxic{Type: "latency", Latency: d.millis(50, 150)}
	case 1:
		f.Carries, f.Toxic = "rpc", &scenarios.Toxic{Type: "bandwidth", Rate: scenarios.ByteRate(d.between(16, 64) << 10)}
	default:
		f.Carries, f.Toxic = "all", &scenarios.Toxic{Type: "slicer", AverageSize: 512, Delay: d.millis(20, 100)}
	}
	f.Toxic.Stream = "upstream"
	g.fault(f)
	return at + f.For + 6*second
}

// party is whoever leads a side, or one of its nodes.
func (*generator) party(d dice, side string) string {
	if d.percent(50) {
		return side + " leader"
	}
	return fmt.Sprintf("%s-%d", side, d.between(1, 3))
}

// move moves a partition of the first link's parent to the next node.
func (g *generator) move(d dice, at scenarios.Duration) scenarios.Duration {
	partition := d.between(0, g.s.Topics[firstTopic].Partitions-1)
	g.s.Steps = append(g.s.Steps, scenarios.Step{At: at, Action: "move", Link: g.s.Links[0].Child, Partition: &partition, Expect: 202})
	return at + 8*second
}
