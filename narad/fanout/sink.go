package fanout

import (
	"context"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/wire"
)

// Outcome is a sink's answer to a slab (CUR-06).
type Outcome uint8

// The outcomes. Only Committed moves the cursor.
const (
	Committed Outcome = iota // every record of the slab is at the child, or skipped by an admin
	Stopped                  // the slab ended early, as when the cursor stops
	ReadAgain                // the sink could not keep the records: read the same slab again after the next Wait
)

// Sink is where the records of one cursor go: a local child's partitions, or a remote child's sender. One goroutine calls
// Wait, Ship and Marks; Status and Close may come from others meanwhile.
type Sink interface {
	// Wait is called when there are records to read, before each slab: it returns nil when a slab is worth reading (GAT-04).
	// It returns ctx's error once ctx ended. No Ship follows when the record is gone by then; Wait is called again first.
	Wait(ctx context.Context) error
	// Ship returns once every record of the slab is committed, or once it must not or cannot go on. It ends soon after Close
	// returned or ctx ended.
	Ship(ctx context.Context, s *Slab) Outcome
	// Marks returns per lane the last offset accepted, or skipped, of the slab in work, -1 for none (CUR-07); nil without lanes.
	Marks() []int64
	Status() SinkStatus
	// Close ends a Ship: it waits for the request on the wire at most until ctx ends, then cuts it (DEC-09).
	Close(ctx context.Context)
}

// SinkStatus is what a sink knows of itself (LST-01).
type SinkStatus struct {
	State       wire.LinkState
	Blocked     []wire.BlockedAt // every stuck record, the lowest offset first
	LastSuccess time.Time        // of the last accepted request; zero when none
	LastCheck   time.Time        // of the last good target check; zero when none
	Unverified  bool
}

// Opener opens the sink of a remote child's cursor. marks are the lane marks of the cursor file, nil when it had none.
type Opener func(child meta.Topic, partition int, marks []int64) (Sink, error)

// Committer commits records to a partition of a local child, on whichever node owns it. It may keep nothing of recs.
type Committer interface {
	Commit(ctx context.Context, topicID string, partition int, recs []partition.Record) error
}

// Slab is a run of records of one parent partition, in order and without a gap but what retention took.
type Slab struct {
	Partition int
	Records   []partition.Record // they live until Release, or until Ship returns
	Next      int64              // the cursor's position once the slab is committed

	mem   *partition.Slab // nil once given back
	pool  *sync.Pool
	left  bool      // there was more when it was read
	lanes int       // of the link, 0 for a local child
	sent  sentLanes // filled by Release: what a drop inside the slab has to know (DEC-29)
}

// Release gives the records' memory back before Ship returns, for a sink that keeps copies of what it still needs: a slab that
// waits out a long outage then costs what the sink accounts for and no more. It must be called from the goroutine that runs
// Ship, or before Ship returns with that known to it. Records is nil afterwards; a second call does nothing.
func (s *Slab) Release() {
	s.sent.note(s.Records, s.lanes)
	s.giveBack()
}

func (s *Slab) giveBack() {
	if s.mem != nil {
		s.pool.Put(s.mem)
	}
	s.mem, s.Records = nil, nil
}

// Observer counts what cursors do. Gauges are read from Runner.All instead. Calls come from many goroutines and must not block.
type Observer interface {
	// Shipped: a slab was committed.
	Shipped(parent, child string, partition, records int, bytes int64)
	// Dropped: retention took records that the cursor had not shipped (CUR-10).
	Dropped(parent, child string, partition int, records int64)
	// Reread: a slab is read again because it could not be held; only for remote children.
	Reread(parent, child string, partition int)
}

type silent struct{}

func (silent) Shipped(string, string, int, int, int64) {}
func (silent) Dropped(string, string, int, int64)      {}
func (silent) Reread(string, string, int)              {}
