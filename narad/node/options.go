package node

import (
	"context"
	"log/slog"
	"time"

	"narad.example/narad/config"
	"narad.example/narad/move"
	"narad.example/narad/vfs"
)

// Options are what a node is built from. Config must be validated; FS holds everything but the Raft log, which bbolt keeps
// in RaftDir.
type Options struct {
	Config  config.Config
	Secrets config.Secrets
	Network Network
	FS      vfs.FS
	Logger  *slog.Logger
	RaftDir string           // a real folder; empty is <data_dir>/raft
	Now     func() time.Time // the wall clock alone: stamps, due times, ages, retention, certificates (DEC-15), but not the log's times; nil is time.Now
	Fast    bool             // leaves fsync out of the Raft log and the process out of the metrics, weakens bcrypt: for simulations alone
	Seed    uint64           // of jitter; 0 is seeded by chance

	// Older makes the node pose as a release before remotes, for simulations and tests of clusters of two releases: no entry type, node
	// RPC or route of remotes, 100 messages a batch, no zstd, no parent_id, no X-Narad-If-Topic-Id. No setting of a node reaches it, and of
	// the builds of narad that of the tag chaos alone.
	Older bool

	// AtMoveStep, when not nil, is called at each step of a move to this node, before it goes on (move.Options.At).
	AtMoveStep func(ctx context.Context, s move.Step)

	// Unaudited, when not nil, is called on the leader between the commit of a remote write and its audit line (link.Options.Unaudited).
	Unaudited func(requestID string, index uint64)
}

// The node's own waits.
const (
	retentionEvery = time.Minute            // how often retention looks at every partition
	restEvery      = time.Minute            // at most, how often idle partitions are looked for
	lookAgain      = 100 * time.Millisecond // between two tries of a start to become current
	sweepAgain     = time.Minute            // when the data of a deleted topic could not be removed
	noLeaderRetry  = 2 * time.Second        // Retry-After of a write that met no leader
	startWait      = 15 * time.Second       // how long Start waits for a leader and the root admin
)
