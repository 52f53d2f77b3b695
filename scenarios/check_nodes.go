package scenarios

import (
	"slices"
	"strings"
)

// diskFaults says which files a disk's fault may name, the one that it means when none is named, and whether it is a loss of power.
var diskFaults = map[string]struct {
	files    []string
	standard string
	power    bool
}{
	"full":        {files: []string{"all", "cursors", "wal", "partitions"}, standard: "all"},
	"fsync_error": {files: []string{"all", "cursors", "wal", "partitions"}, standard: "all"},
	"slow_fsync":  {files: []string{"all", "cursors", "wal", "partitions"}, standard: "all"},
	"bit_flip":    {files: []string{"cursors", "segments"}, standard: "segments"},
	"power_loss":  {files: []string{"all"}, standard: "all", power: true},
	"torn":        {files: []string{"all"}, standard: "all", power: true},
}

// losesPower tells whether a fault cuts a node's power.
func (f *Fault) losesPower() bool { return f.Disk != nil && diskFaults[f.Disk.Fault].power }

// Kills tells whether the node's process ends in the fault.
func (f *Fault) Kills() bool {
	return f.Kill != "" || f.Stop != "" || f.Restart != "" || f.Rolling != "" || f.Upgrade != "" || f.losesPower()
}

// simOnly asks for the backend that alone can do what is said.
func (c *checker) simOnly(path, what string) {
	if b := c.s.Backends; b == nil || !slices.Equal(b.Only, []string{"sim"}) {
		c.say(path, "%s in the simulation alone: say backends: {only: [sim], reason: ...}", what)
	}
}

// unaudited is of a node of the source, where remote writes are made.
func (c *checker) unaudited(f *Fault, path string) {
	if !f.Unaudited {
		return
	}
	c.simOnly(path+".unaudited", "a node can be killed between a commit and its audit line")
	if f.Kill == "" {
		c.say(path+".unaudited", "is for kill")
	} else if !strings.HasPrefix(f.Kill, "source") {
		c.say(path+".unaudited", "remote writes are made on the source: kill its leader")
	}
}

func (c *checker) disk(f *Fault, path string, down map[string]bool) {
	d := f.Disk
	if d == nil {
		return
	}
	c.simOnly(path+".disk", "a disk can be broken")
	row, known := diskFaults[d.Fault]
	if !known {
		if !c.given(path + ".disk.fault") {
			c.say(path+".disk.fault", "is missing; allowed: full, fsync_error, slow_fsync, bit_flip, power_loss, torn")
		}
		return // the decoder has said so
	}
	c.among(path+".disk.node", "node", d.Node, c.nodes)
	if d.Files != "" && !slices.Contains(row.files, d.Files) {
		c.say(path+".disk.files", "%s takes %s", d.Fault, strings.Join(row.files, ", "))
	}
	if slow := d.Fault == "slow_fsync"; slow != (d.Delay > 0) {
		c.say(path+".disk.delay", "slow_fsync wants it, above 0, and no other does")
	}
	if f.For <= 0 {
		c.say(path+".for", "is missing: a disk heals; after a loss of power the node starts then")
	}
	if cursors := d.Fault == "bit_flip" && d.Files == "cursors"; cursors != down[d.Node] {
		if cursors {
			c.say(path+".disk", "%s runs then: a node reads its cursor files at a start only", d.Node)
		} else {
			c.say(path+".disk", "%s is down then", d.Node)
		}
	}
}

// mute is of a node that others dial.
func (c *checker) mute(f *Fault, path string) {
	c.simOnly(path+".mute", "a node can be muted")
	if f.For <= 0 {
		c.say(path+".for", "is missing: a muted node speaks again")
	}
	if f.Says == "" && !c.given(path+".says") {
		c.say(path+".says", "is missing; allowed: nothing, garbage, endless, relayed")
	}
	if f.Says == "relayed" && f.Carries != "rpc" {
		c.say(path+".says", "relayed is of the node RPC alone, whose ends prove themselves: carries: rpc")
	}
	if side, _, _ := strings.Cut(f.Mute, "-"); side == "source" && c.s.Source.Nodes < 3 || side == "target" && c.s.Target.Nodes < 3 {
		c.say(path+".mute", "nobody dials a single node")
	}
}

func (c *checker) clock(f *Fault, path string) {
	if f.Clock == nil {
		return
	}
	c.simOnly(path+".clock", "a clock can be broken")
	c.among(path+".clock.node", "node", f.Clock.Node, c.nodes)
	if f.Clock.Step == 0 && f.Clock.Drift == 0 {
		c.say(path+".clock", "wants a step or a drift")
	}
	if f.For <= 0 {
		c.say(path+".for", "is missing: a clock is set right again")
	}
}
