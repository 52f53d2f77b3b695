package cluster

import (
	"context"
	"time"
)

// Kinds of a DiskFault.
const (
	DiskFull      = "full"        // files do not grow, or chosen ones take no write at all
	FsyncError    = "fsync_error" // a sync fails
	SlowFsync     = "slow_fsync"  // a sync takes longer
	BitFlip       = "bit_flip"    // one bit in each sector is another
	PowerLoss     = "power_loss"  // the node dies, and what was not synced is gone
	TornWrite     = "torn"        // the same, but some sectors of it are there
	FilesAll      = "all"
	FilesCursors  = "cursors"    // the cursor files
	FilesWAL      = "wal"        // the ingress' write-ahead log
	FilesParts    = "partitions" // the partitions' folders: logs, cursor files, frontiers
	FilesSegments = "segments"   // the partitions' sealed segments, for bit_flip
)

// DiskFault says what is broken of a node's disk: a kind above, in which files, and of a slow sync how much longer it takes.
type DiskFault struct {
	Kind  string
	Files string
	Delay time.Duration
}

// Disk is a node whose disk can be broken. It holds the node's files alone: the harness writes elsewhere (BR-38).
type Disk interface {
	// Damage breaks the disk. A bit flip changes files at once: hits is how many.
	Damage(ctx context.Context, d DiskFault) (b Broken, err error)
	// CutPower kills the node and takes what was not synced from its disk; pick, when not nil, keeps some sectors (vfs.Mem). It
	// returns how many files and folders lost something.
	CutPower(ctx context.Context, pick func(n int) int) (lost int, err error)
}

// Broken is a disk that is broken.
type Broken interface {
	// Hits is how many operations met it so far, of a bit flip how many files it changed.
	Hits() int64
	// Mend takes it back and verifies that.
	Mend(ctx context.Context) error
}

// Clocked is a node whose wall clock can be set.
type Clocked interface {
	// SetClock moves the clock by a step away from the harness' own, and by drift more in each second from now on; two zeros set
	// it right.
	SetClock(ctx context.Context, step, drift time.Duration) error
	// ReportedTime is the time that the node itself tells, to the second.
	ReportedTime(ctx context.Context) (time.Time, error)
}

// Joiner is a node that may be one of a cluster's spares.
type Joiner interface {
	// Join starts a spare, which asks the cluster to let it in. From then on it is one of the rig's nodes.
	Join(ctx context.Context) error
}

// Upgradable is a node that may pose as a release before remotes.
type Upgradable interface {
	// Older tells whether the next start poses.
	Older() bool
	// Upgrade has every later start be of the present release. The node must be down.
	Upgrade(ctx context.Context) error
}

// Stepper is a node that can be told to hand its lead over and goes on, which no route of the API does.
type Stepper interface {
	// StepDown hands the lead to another node of the cluster.
	StepDown(ctx context.Context) error
	// Term is the term of its Raft, 0 while it is down.
	Term() uint64
}

// Mover is a node that can be told to begin a move, which no route of the API does.
type Mover interface {
	// Move begins to move a partition of a topic to another member. An error carries the status that the API would give it.
	Move(ctx context.Context, topic string, partition int, to string) error
}

// Unaudited is a node that can be killed between the commit of a remote write that it leads and its audit line (DEC-13).
type Unaudited interface {
	// KillUnaudited waits for the node's next such commit, calls dying and kills the node. It returns the request behind the change and its
	// Raft index; an error when none came before ctx ended, and then the node lives.
	KillUnaudited(ctx context.Context, dying func(ctx context.Context)) (requestID string, index uint64, err error)
}

// Answers of a name that are no address.
const (
	AnswerTruth   = "truth"    // the address that it has
	AnswerNone    = "nxdomain" // there is no such name
	AnswerFailure = "servfail" // the name server fails
	AnswerSilence = "silence"  // it never answers
)

// Answers are these words.
var Answers = []string{AnswerTruth, AnswerNone, AnswerFailure, AnswerSilence}

// Lookups is what became of changed answers. Dialled counts connections that were tried to an address at which nobody is: one that the
// source's guard let pass.
type Lookups struct{ Asked, Refused, Dialled int }

// Named is a rig in which the answers to the source's lookups of the link's name can be changed.
type Named interface {
	// Answer gives every lookup from now on these addresses, or words of Answers; nil is the truth again.
	Answer(ctx context.Context, answers []string) error
	// Asked is what became of changed answers so far.
	Asked(ctx context.Context) (Lookups, error)
}

// Reconfigurable is a node that can be given another configuration.
type Reconfigurable interface {
	// Reconfigure lays over on the node's configuration, nil none; the next start takes it.
	Reconfigure(ctx context.Context, over map[string]any) error
}

// Slow is a node whose start can be slow.
type Slow interface {
	// StartSlowly is Start with a process that stands still for so long before it says anything.
	StartSlowly(ctx context.Context, still time.Duration) error
}
