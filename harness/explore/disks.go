package explore

import (
	"slices"
	"time"

	"narad.example/scenarios"
)

// aNode is any node of the product's: a fake is none.
func aNode(d dice, fake bool) string {
	if fake {
		return sourceNode
	}
	return pick(d, sourceNode, targetNode)
}

// onDisk breaks the disk of a node. Failed syncs and rotten bits are left out: the first want a start of the node, the second segments of a size
// that a schedule does not reach.
func (g *generator) onDisk(d dice, at scenarios.Duration, fake bool) scenarios.Duration {
	f := scenarios.Fault{At: at, For: d.tenths(20, 80), Disk: &scenarios.Disk{Node: aNode(d, fake), Fault: pick(d, "slow_fsync", "full", "power_loss", "torn")}}
	switch f.Disk.Fault {
	case "slow_fsync":
		f.Disk.Files = pick(d, "all", "wal", "partitions")
		if f.Disk.Node == sourceNode && d.percent(20) {
			f.Disk.Files = "cursors" // the target has none
		}
		f.Disk.Delay = d.millis(5, 300)
	case "full":
		f.Disk.Files = pick(d, "all", "partitions")
		f.For = max(f.For, 4*second) // a load within it must meet it
	default:
		// Power takes only what no sync has made safe: syncs are slow around it, so that there is something.
		slow := f
		slow.Disk = &scenarios.Disk{Node: f.Disk.Node, Fault: "slow_fsync", Files: "all", Delay: d.millis(400, 900)}
		slow.For = 4*second + f.For
		g.fault(slow)
		f.At, f.Disk.Files = at+3*second, "all"
		g.fault(f)
		return slow.At + slow.For + 2*second
	}
	g.fault(f)
	return at + f.For + 2*second
}

// onClock moves the wall clock of a node by up to two hours. A delayed link sends what was stamped ahead of time as late as it was stamped, which
// is owed and takes longer than any schedule: the source's clock is moved back then, and only the target's ahead.
func (g *generator) onClock(d dice, at scenarios.Duration, fake bool) scenarios.Duration {
	f := scenarios.Fault{At: at, For: d.tenths(30, 100), Clock: &scenarios.Clock{Node: aNode(d, fake)}}
	size := scenarios.Shift(pick(d, 5*time.Second, 20*time.Second, time.Minute, 15*time.Minute, 2*time.Hour))
	if d.percent(50) || (f.Clock.Node == sourceNode && slices.ContainsFunc(g.s.Links, func(l scenarios.Link) bool { return l.Delay > 0 })) {
		size = -size
	}
	f.Clock.Step = size
	if size > 0 && d.percent(30) {
		f.Clock.Step, f.Clock.Drift = 0, scenarios.Shift(d.millis(500, 2000))
		f.For = max(f.For, 6*second) // it must come to more than two seconds to be told from none
	}
	g.fault(f)
	return at + f.For + 2*second
}
