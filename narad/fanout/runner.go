package fanout

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/vfs"
)

// Meta is what the runner reads of the metadata; *meta.State is one.
type Meta interface {
	Topic(name string) (meta.Topic, bool)
	TopicByID(id string) (meta.Topic, bool)
	Topics() []meta.Topic
	Children(parent string) []meta.Topic
	Changed() <-chan struct{}
}

// Confirmer asks the Raft leader, behind a barrier when this node leads, whether the cursor may start: this node owns the
// parent partition, the child has this epoch, this replica is caught up (CUR-15, CUR-17).
type Confirmer interface {
	Confirm(ctx context.Context, parentID string, partition int, child, epoch string) (bool, error)
}

// RunnerOptions of a Runner. Confirm, Frontier, Logger and Observer may be nil: then the replica is trusted, consumers have
// acked nothing, nothing is logged, nothing counted. OpenRemote may be nil on a node without remotes.
type RunnerOptions struct {
	Meta       Meta
	NodeID     string
	Store      *partition.Store
	FS         vfs.FS
	Commit     Committer // for local children
	OpenRemote Opener
	Confirm    Confirmer
	Frontier   func(topicID string, partition int) int64
	Now        func() time.Time // the wall clock of due times and ages; nil is time.Now
	Logger     *slog.Logger
	Observer   Observer

	// Bounds of a local child's slabs (fanout.max_batch_records, max_batch_bytes, linger_ms); 0 is the default.
	MaxRecords int
	MaxBytes   int
	Linger     time.Duration
}

// Runner runs the cursors of one node (CUR-02).
type Runner struct {
	o    RunnerOptions
	pool sync.Pool     // of *partition.Slab
	poke chan struct{} // a hold ended

	mu      sync.Mutex // guards the rest
	entries map[place]*entry
	ending  map[place]chan struct{} // closed when the last entry that left this place has ended
	held    map[holding]bool
}

// place is where at most one cursor runs at a time: its cursor file.
type place struct {
	parentID  string
	partition int
	child     string
}

type holding struct {
	topicID   string
	partition int
}

// NewRunner makes a runner; Run starts its cursors.
func NewRunner(o RunnerOptions) *Runner {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = silent{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxRecords == 0 {
		o.MaxRecords = 4096
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 4 << 20
	}
	if o.Linger == 0 {
		o.Linger = 25 * time.Millisecond
	}
	return &Runner{
		o: o, pool: sync.Pool{New: func() any { return new(partition.Slab) }}, poke: make(chan struct{}, 1),
		entries: map[place]*entry{}, ending: map[place]chan struct{}{}, held: map[holding]bool{},
	}
}

// Run keeps the running cursors equal to the desired ones until ctx ends; then it stops them all gracefully and waits for
// them. It wakes when the metadata changes. It returns nil.
func (r *Runner) Run(ctx context.Context) error {
	base := context.WithoutCancel(ctx) // entries are ended one by one, so that a detach is never mistaken for a stop
	for ctx.Err() == nil {
		changed := r.o.Meta.Changed()
		r.reconcile(base)
		select {
		case <-changed:
		case <-r.poke:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	for at, e := range r.entries {
		r.end(at, e)
	}
	ending := slices.Collect(maps.Values(r.ending))
	r.mu.Unlock()
	for _, done := range ending {
		<-done
	}
	return nil
}

// desired lists the cursors that this node should run.
func (r *Runner) desired() map[place]spec {
	want := map[place]spec{}
	for _, child := range r.o.Meta.Topics() {
		if child.Parent == "" || child.AttachEpoch == "" {
			continue
		}
		parent, ok := r.o.Meta.Topic(child.Parent)
		if !ok {
			continue
		}
		for p, node := range parent.Nodes {
			if node == r.o.NodeID && p < parent.Partitions && !r.held[holding{parent.ID, p}] {
				want[place{parent.ID, p, child.Name}] = spec{parent: parent, child: child, partition: p}
			}
		}
	}
	return want
}

// reconcile ends cursors that are not desired and starts those that are. It waits for none: a new one waits for its forerunner.
func (r *Runner) reconcile(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := r.desired()
	for at, e := range r.entries {
		if s, ok := want[at]; !ok || s.child.AttachEpoch != e.spec.child.AttachEpoch {
			if !r.attached(e) {
				e.detached.Store(true)
			}
			r.end(at, e)
		}
	}
	for at, done := range r.ending {
		select {
		case <-done:
			delete(r.ending, at)
		default:
		}
	}
	for at, s := range want {
		if r.entries[at] == nil {
			r.entries[at] = r.start(ctx, s, r.ending[at])
		}
	}
}

// attached tells whether the attach that the entry runs for still stands, here or on another owner.
func (r *Runner) attached(e *entry) bool {
	child, ok := r.o.Meta.Topic(e.spec.child.Name)
	if !ok || child.AttachEpoch != e.spec.child.AttachEpoch {
		return false
	}
	parent, ok := r.o.Meta.TopicByID(e.spec.parent.ID)
	return ok && parent.Name == child.Parent
}

// end tells an entry to stop. The caller holds mu.
func (r *Runner) end(at place, e *entry) {
	e.cancel()
	r.ending[at] = e.done
	delete(r.entries, at)
}

// Hold ends the cursors of one parent partition of this node, gracefully, and keeps them ended until Release: a move reads
// their files meanwhile (CUR-12). It returns when they have ended, or with ctx's error. Whoever closes an open partition holds
// its cursors first: one that waits for records does not notice a close.
func (r *Runner) Hold(ctx context.Context, topicID string, partition int) error {
	r.mu.Lock()
	r.held[holding{topicID, partition}] = true
	for at, e := range r.entries {
		if at.parentID == topicID && at.partition == partition {
			r.end(at, e)
		}
	}
	var waits []chan struct{}
	for at, done := range r.ending {
		if at.parentID == topicID && at.partition == partition {
			waits = append(waits, done)
		}
	}
	r.mu.Unlock()
	for _, done := range waits {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Release ends a Hold: the cursors start again if this node still owns the partition.
func (r *Runner) Release(topicID string, partition int) {
	r.mu.Lock()
	delete(r.held, holding{topicID, partition})
	r.mu.Unlock()
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// Stats reports the running cursors of a child on this node, by partition.
func (r *Runner) Stats(child string) []CursorStats {
	return r.stats(func(at place) bool { return at.child == child })
}

// All reports every running cursor of this node. A cursor that stopped is not in it, so a collector that reads it at each
// scrape shows no series of a node that no longer runs the partition (CUR-13).
func (r *Runner) All() []CursorStats { return r.stats(func(place) bool { return true }) }

func (r *Runner) stats(of func(place) bool) []CursorStats {
	var cursors []*cursor
	r.mu.Lock()
	for at, e := range r.entries {
		if c := e.cursor.Load(); c != nil && of(at) {
			cursors = append(cursors, c)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(cursors, func(a, b *cursor) int { return a.id.compare(b.id) })
	out := make([]CursorStats, 0, len(cursors))
	for _, c := range cursors {
		out = append(out, c.stats(r.o.NodeID, r.o.Frontier))
	}
	return out
}
