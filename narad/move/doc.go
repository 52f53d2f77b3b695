// Package move moves partitions between the nodes of a cluster (BRK-07, CUR-12). DESIGN.md tells the steps, who owns what at each of
// them, and how every crash ends.
//
// It promises: no record that a commit was answered for is lost, whoever dies and whenever; a partition has one owner that takes
// records and one that runs cursors, never two; a move that nothing hinders ends by itself, and one that cannot go on holds no commit
// for longer than FreezeTTL, and no other move for longer than GiveUpAfter, while there is a leader.
//
// Every node has one Moves, which is a source for the partitions that it owns and a target for those that come to it. Run owns one loop
// and, while there is something to do, one goroutine per partition: it waits for all of them. The gate in front of commits is in
// memory alone; what must outlive a process stands in the metadata.
package move

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/vfs"
)

// FreezeTTL is how long a frozen partition waits for the next word of the target (broker.md, Moves).
const FreezeTTL = 30 * time.Second

// GiveUpAfter is how long a target tries on while every attempt fails and its copy gets no longer: then it ends the move, so that the source's other
// partitions have their turn.
const GiveUpAfter = 2 * time.Minute

const (
	retryAfter   = time.Second      // after a step that failed, doubled up to maxRetry by an attempt that fails again and again
	maxRetry     = 8 * time.Second  //
	readBytes    = 3 << 20          // records asked for at once, so that their batch goes back into its pool
	readRecords  = 16384            // the same, in records
	callWait     = 10 * time.Second // an answer of the source
	freezeWait   = 20 * time.Second // a freeze ends cursors, which wait up to 5 s for a request on the wire
	proposeWait  = 10 * time.Second // an entry
	withdrawWait = 5 * time.Second  // the same, of a source that wants to serve again
)

var (
	// ErrFrozen is returned by Enter while the partition is at the end of its move: the caller tries again.
	ErrFrozen = errors.New("the partition is being moved")
	// ErrStarting is returned by Enter before Begin.
	ErrStarting = errors.New("this node does not know yet what it owns")
)

// State is the metadata of this node; *meta.State is one.
type State interface {
	TopicByID(id string) (meta.Topic, bool)
	Topics() []meta.Topic
	Changed() <-chan struct{}
	Applied() uint64
}

// Leader changes the metadata and asks the leader about it.
type Leader interface {
	Propose(ctx context.Context, e meta.Entry) (uint64, error)
	// Current returns once the replica holds what was committed before the call.
	Current(ctx context.Context) error
	// WaitApplied returns once the replica has applied this index.
	WaitApplied(ctx context.Context, index uint64) error
}

// Cursors ends and starts the cursors of a partition of this node; *fanout.Runner is one.
type Cursors interface {
	Hold(ctx context.Context, topicID string, partition int) error
	Release(topicID string, partition int)
}

// Consumers saves the consumers' frontier of a partition and keeps it closed; *queue.Manager is one.
type Consumers interface {
	Hold(topicID string, partition int) error
	Unhold(topicID string, partition int)
}

// Caller calls an op of another node.
type Caller interface {
	// Call returns the answer, which lies in room when that is large enough.
	Call(ctx context.Context, node, op string, body, room []byte, limit time.Duration) ([]byte, error)
}

// Options of Moves. All but At are needed.
type Options struct {
	NodeID    string
	State     State
	Leader    Leader
	Store     *partition.Store
	FS        vfs.FS
	Cursors   Cursors
	Consumers Consumers
	Caller    Caller
	Logger    *slog.Logger
	// At, when not nil, is called by a target at each step, before it goes on; tests stop a move there.
	At func(ctx context.Context, s Step)
}

// Step is a place in a target's work.
type Step string

// The steps, in their order.
const (
	Claimed  Step = "claimed"
	Cleaned  Step = "cleaned"
	Copied   Step = "copied"
	Frozen   Step = "frozen"
	Drained  Step = "drained"
	Filed    Step = "filed"
	Fenced   Step = "fenced"
	Proposed Step = "proposed" // the flip has an answer, or none
)

// Steps lists them.
var Steps = []Step{Claimed, Cleaned, Copied, Frozen, Drained, Filed, Fenced, Proposed}

// place is one partition of one topic incarnation.
type place struct {
	topicID   string
	partition int
}

// Moves is the moves of one node.
type Moves struct {
	o     Options
	begun chan struct{} // closed by Begin
	kick  chan struct{} // has one element when the loop is to look again

	workers sync.WaitGroup
	reads   sync.Pool // *partition.Stored, for answers of OpRead
	rooms   sync.Pool // *[]byte of roomBytes, for those that come

	mu    sync.Mutex // guards what follows
	gates map[place]*gate
	jobs  map[place]*job
	here  map[place]bool // files of these may lie here
}

// job is the one worker of a place: it copies or deletes. id is the move's, empty for one that deletes.
type job struct {
	id     string
	cancel context.CancelFunc
}

// New makes the moves of a node. Nothing is served before Begin.
func New(o Options) *Moves {
	if o.At == nil {
		o.At = func(context.Context, Step) {}
	}
	return &Moves{
		o: o, begun: make(chan struct{}), kick: make(chan struct{}, 1),
		reads: sync.Pool{New: func() any { return new(partition.Stored) }},
		rooms: sync.Pool{New: func() any { room := make([]byte, roomBytes); return &room }},
		gates: map[place]*gate{}, jobs: map[place]*job{}, here: map[place]bool{},
	}
}

// Run works on the moves until ctx ends, and waits for every worker. It returns nil.
func (m *Moves) Run(ctx context.Context) error {
	defer m.workers.Wait()
	select {
	case <-m.begun:
	case <-ctx.Done():
		return nil
	}
	m.scan()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		changed := m.o.State.Changed()
		m.reconcile(ctx)
		var due <-chan time.Time
		if at, ok := m.review(ctx); ok {
			timer.Reset(time.Until(at))
			due = timer.C
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-m.kick:
		case <-due:
		}
	}
	return nil
}

// again has the loop look again.
func (m *Moves) again() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// pause waits for d; false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
