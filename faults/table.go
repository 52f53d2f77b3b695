package faults

import (
	"fmt"
	"strings"
	"time"

	"narad.example/harness/cluster"
)

// Spec says which fault: a kind of Table with its parameters.
type Spec struct {
	Label string // its name in the ledger; empty makes one
	Kind  string
	Node  string        // of a fault on a node
	Stay  bool          // of kill and stop: the node stays down
	Toxic cluster.Toxic // of a toxic; its Type may be empty, it is the kind
	Flap  *Flap         // of cut, toxics and losses of power

	Disk        cluster.DiskFault // of a disk; its Kind may be empty, it is the kind
	Step, Drift time.Duration     // of a clock
	Dying       Dying             // of each fault that ends a node

	Face    string        // of tls
	Answers []string      // of dns
	Slow    time.Duration // of kill, stop, start, restart, upgrade: how long the started node stands still
	Parted  cluster.Cut   // of part, and of toxics between nodes: who, and what they carry; of mute what it carries
	Says    string        // of mute

	Unaudited bool           // of kill
	Set       map[string]any // of config
}

// Row is one fault of the table.
type Row struct {
	Kind string
	Does string
	new  func(Spec) Fault
}

// Table lists every fault.
var Table = []Row{
	{"latency", "bytes on the link arrive later", toxic},
	{"bandwidth", "bytes on the link arrive at a rate", toxic},
	{"slow_close", "connections close later", toxic},
	{"timeout", "bytes stop, and connections end after a time; healing ends those that it held", toxic},
	{"reset_peer", "connections are reset", toxic},
	{"slicer", "bytes come in small pieces with pauses", toxic},
	{"limit_data", "connections end after so many bytes", toxic},
	{"cut", "the link is down: open connections end, new ones are refused", func(s Spec) Fault { return &Cut{Label: s.Label, Flap: s.Flap} }},
	{Kill, "a node ends at once, as by SIGKILL", process},
	{Stop, "a node ends as it is meant to", process},
	{Start, "a node that is down starts", process},
	{Restart, "a node ends as it is meant to and starts again", process},
	{Transferred, "a leader hands its lead over", func(s Spec) Fault {
		return &Transfer{Process: Process{Label: s.Label, Kind: Transferred, Node: s.Node, Dying: s.Dying}}
	}},
	{Upgraded, "a node of an older release ends as it is meant to and starts as the present one", func(s Spec) Fault {
		return &Upgrade{Process: Process{Label: s.Label, Kind: Upgraded, Node: s.Node, Slow: s.Slow, Dying: s.Dying}}
	}},
	{Muted, "others that dial a node meet somebody who never answers", func(s Spec) Fault {
		return &Mute{Label: s.Label, Node: s.Node, Carries: s.Parted.Carries, Says: s.Says}
	}},
	{Part, "nodes are parted from each other", func(s Spec) Fault { return &Parting{Label: s.Label, Cut: s.Parted} }},
	{Pause, "a node stands still, as by SIGSTOP", process},
	{cluster.DiskFull, "a node's files do not grow, or chosen ones take no write", disk},
	{cluster.FsyncError, "a node's syncs fail", disk},
	{cluster.SlowFsync, "a node's syncs take longer", disk},
	{cluster.BitFlip, "bits of a node's files are others", disk},
	{cluster.PowerLoss, "a node dies and its disk loses what was not synced", power},
	{cluster.TornWrite, "a node dies and its disk keeps some sectors of what was not synced", power},
	{"clock", "a node's wall clock is moved, and runs faster or slower", func(s Spec) Fault {
		return &Clock{Label: s.Label, Node: s.Node, Step: s.Step, Drift: s.Drift}
	}},
	{"tls", "the target's TLS edge shows another face", func(s Spec) Fault { return &TLS{Label: s.Label, Face: s.Face} }},
	{"dns", "lookups of the target's name are answered otherwise", func(s Spec) Fault { return &DNS{Label: s.Label, Answers: s.Answers} }},
	{"config", "a node runs with another configuration", func(s Spec) Fault {
		return &Config{Label: s.Label, Node: s.Node, Set: s.Set, Dying: s.Dying}
	}},
}

// New makes the fault that s names.
func New(s Spec) (Fault, error) {
	var kinds []string
	for _, row := range Table {
		if row.Kind == s.Kind {
			return row.new(s), nil
		}
		kinds = append(kinds, row.Kind)
	}
	return nil, fmt.Errorf("fault %q is none of %s", s.Kind, strings.Join(kinds, ", "))
}

func toxic(s Spec) Fault {
	s.Toxic.Type = s.Kind
	if len(s.Parted.From) > 0 {
		return &Pacing{Label: s.Label, Kind: s.Kind, Pace: paceOf(s.Toxic, s.Parted)}
	}
	return &Toxic{Label: s.Label, Toxic: s.Toxic, Flap: s.Flap}
}

func disk(s Spec) Fault {
	s.Disk.Kind = s.Kind
	return &Disk{Label: s.Label, Node: s.Node, Disk: s.Disk}
}

func power(s Spec) Fault {
	return &Power{Label: s.Label, Node: s.Node, Torn: s.Kind == cluster.TornWrite, Flap: s.Flap, Dying: s.Dying}
}

func process(s Spec) Fault {
	return &Process{Label: s.Label, Kind: s.Kind, Node: s.Node, Stay: s.Stay, Slow: s.Slow, Unaudited: s.Unaudited, Dying: s.Dying}
}
