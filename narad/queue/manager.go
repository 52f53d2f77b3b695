package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"narad.example/narad/partition"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

// Manager is the queue of one node.
type Manager struct {
	o       Options
	log     *slog.Logger
	metrics Metrics
	done    chan struct{} // closed by Close
	changed chan struct{} // has one element while soiled is not empty
	slabs   sync.Pool     // of *partition.Slab, for replays: one that goes forward finds its place at once

	// mu guards what follows.
	mu     sync.Mutex
	topics map[string]*topicQueue // by topic ID
	soiled map[*partitionQueue]struct{}
	closed bool
}

// NewManager makes a Manager; Run has to run for its frontiers to become durable.
func NewManager(o Options) *Manager {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.CommitInterval <= 0 {
		o.CommitInterval = syncAfter
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Manager{
		o: o, log: log, metrics: o.Metrics, done: make(chan struct{}), changed: make(chan struct{}, 1),
		topics: map[string]*topicQueue{}, soiled: map[*partitionQueue]struct{}{},
	}
}

// Consume leases up to most records, of one partition or of any (nil), each in its turn, and waits at most wait while there
// are none; none is no error. Problems: NotFound, Invalid (a partition that the topic has not), Unavailable (not owned
// here, or closing), all before anything was leased.
func (m *Manager) Consume(ctx context.Context, topic string, index *int, most int, wait time.Duration) ([]wire.Delivery, error) {
	var deadline <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		deadline = timer.C
	}
	wish := anyPartition
	if index != nil {
		wish = *index
	}
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		info, t, err := m.find(topic)
		if err != nil {
			return nil, err
		}
		list, err := info.choose(index)
		if err != nil {
			return nil, err
		}
		var w *waiter
		if wait > 0 {
			w = t.enlist(wish) // before looking, so that nothing comes unseen in between
		}
		out, again, err := t.take(info, list, max(most, 1))
		if len(out) > 0 || err != nil || again || wait <= 0 {
			if w != nil {
				t.leave(w, info.Settings)
			}
			if again && err == nil && len(out) == 0 {
				continue
			}
			return out, err
		}
		select {
		case <-w.came:
			continue
		case <-deadline:
			t.leave(w, info.Settings)
			return nil, nil
		case <-ctx.Done():
			t.leave(w, info.Settings)
			return nil, context.Cause(ctx)
		case <-m.done:
			return nil, errClosing()
		}
	}
}

// take tries the partitions of a topic, beginning where it is their turn. again means that nothing was found but it is worth
// looking again at once.
func (t *topicQueue) take(info TopicInfo, list []int, most int) (out []wire.Delivery, again bool, err error) {
	a := &answer{info: info, max: most}
	start := 0
	if len(list) > 1 {
		start = int(t.turn.Add(1) % uint64(len(list)))
	}
	var left []int
	for i := range list {
		if !a.room() {
			break
		}
		index := list[(start+i)%len(list)]
		before, bytes := len(a.out), a.bytes
		more, tookErr := t.takeFrom(a, index)
		switch {
		case errors.Is(tookErr, errReleased):
			again = true
		case tookErr != nil:
			err = errors.Join(err, tookErr)
		}
		if more {
			left = append(left, index)
		}
		if n := len(a.out) - before; n > 0 {
			t.m.metrics.Consumed(info.Name, index, n, a.bytes-bytes)
		}
	}
	if len(a.out) == 0 {
		return nil, again || len(left) > 0, err
	}
	for _, index := range left {
		t.wake(index)
	}
	return a.out, false, nil
}

func (t *topicQueue) takeFrom(a *answer, index int) (more bool, err error) {
	q, err := t.part(index)
	if err == nil {
		more, err = q.take(a)
	}
	return more, away(err)
}

// away turns the error of a log that was closed, since its partition moves or the node stops, into what a client may know.
func away(err error) error {
	if errors.Is(err, partition.ErrClosed) || errors.Is(err, errHeld) {
		return wire.Refuse(wire.Unavailable, "the partition is being moved or the node is stopping").After(time.Second)
	}
	return err
}

// find looks a topic up and returns its queue.
func (m *Manager) find(topic string) (TopicInfo, *topicQueue, error) {
	info, err := m.o.Topics.Lookup(topic)
	if err != nil {
		return info, nil, err
	}
	info.Settings = info.Settings.filled()
	t, err := m.queueOf(info.ID)
	return info, t, err
}

func (m *Manager) queueOf(topicID string) (*topicQueue, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosing()
	}
	t := m.topics[topicID]
	if t == nil {
		t = &topicQueue{m: m, id: topicID, parts: map[int]*partitionQueue{}, busy: map[int]chan struct{}{}, held: map[int]bool{}}
		m.topics[topicID] = t
	}
	return t, nil
}

func errClosing() error {
	return wire.Refuse(wire.Unavailable, "this node is stopping").After(time.Second)
}

// choose lists the partitions that a consume looks at.
func (i TopicInfo) choose(index *int) ([]int, error) {
	if index != nil {
		if err := i.owns(*index); err != nil {
			return nil, err
		}
		return []int{*index}, nil
	}
	if i.Owned != nil {
		return i.Owned, nil
	}
	all := make([]int, i.Partitions)
	for p := range all {
		all[p] = p
	}
	return all, nil
}

// owns refuses a partition that the topic has not, or that is not owned here.
func (i TopicInfo) owns(index int) error {
	if index < 0 || index >= i.Partitions {
		return wire.Refuse(wire.Invalid, "partition %d is out of range: the topic has %d", index, i.Partitions)
	}
	if i.Owned != nil && !slices.Contains(i.Owned, index) {
		return wire.Refuse(wire.Unavailable, "partition %d is owned by another node", index).After(time.Second)
	}
	return nil
}

// Replay returns the record at an offset without a lease, nil past the end. Problems: NotFound, Invalid, Unavailable, and Gone
// for an offset that retention has taken, with the oldest retained one in its text.
func (m *Manager) Replay(ctx context.Context, topic string, index int, offset int64) (*wire.Delivery, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	info, err := m.o.Topics.Lookup(topic)
	if err != nil {
		return nil, err
	}
	if err = info.owns(index); err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, wire.Refuse(wire.Invalid, "offset must not be negative")
	}
	log, err := m.o.Store.Open(info.ID, index)
	if err != nil {
		return nil, away(fmt.Errorf("replay: %w", err))
	}
	s := m.slab()
	defer m.giveBack(s)
	err = log.Read(offset, 1, 1, s)
	var trimmed *partition.Trimmed
	if errors.As(err, &trimmed) {
		return nil, wire.Refuse(wire.Gone, "offset %d has aged out of retention (oldest retained: %d)", offset, trimmed.Oldest)
	}
	if err != nil {
		return nil, away(fmt.Errorf("replay: %w", err))
	}
	if len(s.Records) == 0 {
		return nil, nil
	}
	d := deliver(info.Name, index, s.Records[0], "")
	return &d, nil
}

// keepSlab is the most memory that a slab of the pool holds on to.
const keepSlab = 256 << 10

func (m *Manager) slab() *partition.Slab {
	if s, ok := m.slabs.Get().(*partition.Slab); ok {
		return s
	}
	return new(partition.Slab)
}

func (m *Manager) giveBack(s *partition.Slab) {
	if s.Size() <= keepSlab {
		m.slabs.Put(s)
	}
}

// Ack ends a lease for good. Problems: Invalid (no handle), NotFound, Gone (the lease, also by another topic's handle), Unavailable.
func (m *Manager) Ack(ctx context.Context, topic, handle string) error {
	_, err := m.settle(ctx, ack, topic, handle)
	return err
}

// Nack gives a leased record back, to be given again at once. Problems are those of Ack.
func (m *Manager) Nack(ctx context.Context, topic, handle string) error {
	name, err := m.settle(ctx, nack, topic, handle)
	if err == nil {
		m.metrics.Nacked(name)
	}
	return err
}

// Extend begins the visibility timeout of a lease anew. Problems are those of Ack.
func (m *Manager) Extend(ctx context.Context, topic, handle string) error {
	name, err := m.settle(ctx, extend, topic, handle)
	if err == nil {
		m.metrics.Extended(name)
	}
	return err
}

func (m *Manager) settle(ctx context.Context, v verb, topic, handle string) (name string, err error) {
	if err = context.Cause(ctx); err != nil {
		return "", err
	}
	h, err := ParseHandle(handle)
	if err != nil {
		return "", err
	}
	for {
		info, t, err := m.find(topic)
		if err != nil {
			return "", err
		}
		if h.Partition >= info.Partitions {
			return "", errGone()
		}
		if err = info.owns(h.Partition); err != nil {
			return "", err
		}
		q, err := t.part(h.Partition)
		if err == nil {
			err = q.settleLease(v, h, info.Settings)
		}
		if !errors.Is(err, errReleased) {
			return info.Name, away(err)
		}
	}
}

// Frontier is the offset below which all records of a partition are acked, -1 when it cannot be known because the partition
// does not open, which is logged, or is held.
func (m *Manager) Frontier(topicID string, index int) int64 {
	for {
		t, err := m.queueOf(topicID)
		if err != nil {
			return -1
		}
		q, err := t.part(index)
		var frontier int64
		if err == nil {
			frontier, err = q.frontier()
		}
		switch {
		case err == nil:
			return frontier
		case errors.Is(err, errHeld):
			return -1
		case !errors.Is(err, errReleased):
			m.log.Error("the frontier is not known", "topic_id", topicID, "partition", index, "error", err)
			return -1
		}
	}
}

// Stats describes the state of one partition.
type Stats struct {
	Frontier   int64
	InFlight   int // leases
	AckedAhead int // acks above the frontier
	Ready      int // to be given again
}

// Stats describes the partitions of a topic that were used since the start, by partition.
func (m *Manager) Stats(topicID string) map[int]Stats {
	m.mu.Lock()
	t := m.topics[topicID]
	m.mu.Unlock()
	if t == nil {
		return nil
	}
	t.opening.RLock()
	defer t.opening.RUnlock()
	stats := make(map[int]Stats, len(t.parts))
	for index, q := range t.parts {
		q.mu.Lock()
		stats[index] = Stats{Frontier: q.state.frontier, InFlight: len(q.state.leases), AckedAhead: len(q.state.acked), Ready: len(q.state.ready)}
		q.mu.Unlock()
	}
	return stats
}
