package fanout

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	self   = "n1"
	epoch1 = "e000000000000001"
	epoch2 = "e000000000000002"
)

// fakeMeta is metadata that a test can put into any state, also those that only another node's entries lead to.
type fakeMeta struct {
	mu      sync.Mutex // guards the rest
	topics  map[string]meta.Topic
	changed chan struct{}
}

func newMeta(topics ...meta.Topic) *fakeMeta {
	m := &fakeMeta{topics: map[string]meta.Topic{}, changed: make(chan struct{})}
	for _, t := range topics {
		m.put(t)
	}
	return m
}

func (m *fakeMeta) change(f func(map[string]meta.Topic)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m.topics)
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *fakeMeta) put(t meta.Topic) { m.change(func(all map[string]meta.Topic) { all[t.Name] = t }) }

func (m *fakeMeta) remove(name string) {
	m.change(func(all map[string]meta.Topic) { delete(all, name) })
}

func (m *fakeMeta) Topic(name string) (meta.Topic, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.topics[name]
	return t, ok
}

func (m *fakeMeta) TopicByID(id string) (meta.Topic, bool) {
	for _, t := range m.Topics() {
		if t.ID == id {
			return t, true
		}
	}
	return meta.Topic{}, false
}

func (m *fakeMeta) Topics() []meta.Topic {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []meta.Topic
	for _, t := range m.topics {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b meta.Topic) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (m *fakeMeta) Children(parent string) []meta.Topic {
	return slices.DeleteFunc(m.Topics(), func(t meta.Topic) bool { return t.Parent != parent })
}

func (m *fakeMeta) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// shipment is one slab that a fake sink got.
type shipment struct {
	child      string
	partition  int
	from, next int64
	at         time.Time
	outcome    Outcome
}

// fakeTarget opens fake sinks and keeps what they were given.
type fakeTarget struct {
	mu     sync.Mutex // guards the rest
	ships  []shipment
	values map[string][]string                                        // payloads of committed slabs by child/partition
	opened []([]int64)                                                // marks that each sink was opened with
	ship   func(ctx context.Context, s *fakeSink, slab *Slab) Outcome // nil commits at once
	wait   func(ctx context.Context) error
}

func (f *fakeTarget) open(child meta.Topic, p int, marks []int64) (Sink, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &fakeSink{target: f, child: child.Name, partition: p, closing: make(chan struct{})}
	s.status = SinkStatus{State: wire.Running}
	f.opened = append(f.opened, marks)
	return s, nil
}

func (f *fakeTarget) script(ship func(ctx context.Context, s *fakeSink, slab *Slab) Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ship = ship
}

// waitAfter lets n shipments go and holds every later one until the gate is closed. Set it before the cursors start.
func (f *fakeTarget) waitAfter(n int, gate <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		if len(f.shipments()) < n {
			return nil
		}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fakeTarget) shipments() []shipment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ships)
}

func (f *fakeTarget) got(child string, p int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.values[fmt.Sprintf("%s/%d", child, p)])
}

type fakeSink struct {
	target    *fakeTarget
	child     string
	partition int
	closing   chan struct{}
	once      sync.Once

	mu     sync.Mutex // guards the rest
	marks  []int64
	status SinkStatus
}

func (s *fakeSink) Wait(ctx context.Context) error {
	s.target.mu.Lock()
	wait := s.target.wait
	s.target.mu.Unlock()
	if wait != nil {
		return wait(ctx)
	}
	return ctx.Err()
}

func (s *fakeSink) Ship(ctx context.Context, slab *Slab) Outcome {
	s.target.mu.Lock()
	ship := s.target.ship
	s.target.mu.Unlock()
	started := shipment{child: s.child, partition: s.partition, from: slab.Records[0].Offset, next: slab.Next, at: time.Now()}
	var values []string
	for _, r := range slab.Records {
		values = append(values, string(r.Payload))
	}
	outcome := Committed
	if ship != nil {
		outcome = ship(ctx, s, slab)
	}
	started.outcome = outcome
	s.target.mu.Lock()
	defer s.target.mu.Unlock()
	s.target.ships = append(s.target.ships, started)
	if outcome == Committed {
		if s.target.values == nil {
			s.target.values = map[string][]string{}
		}
		at := fmt.Sprintf("%s/%d", s.child, s.partition)
		s.target.values[at] = append(s.target.values[at], values...)
	}
	return outcome
}

func (s *fakeSink) Marks() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.marks)
}

func (s *fakeSink) set(f func(*fakeSink)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *fakeSink) Status() SinkStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *fakeSink) Close(context.Context) { s.once.Do(func() { close(s.closing) }) }

// counts is an Observer.
type counts struct {
	mu                       sync.Mutex // guards the rest
	shipped, dropped, reread int64
}

func (c *counts) Shipped(_, _ string, _, records int, _ int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shipped += int64(records)
}

func (c *counts) Dropped(_, _ string, _ int, records int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped += records
}

func (c *counts) Reread(string, string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reread++
}

// logged collects log lines.
type logged struct {
	mu  sync.Mutex // guards out
	out strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// rig is a node: files, metadata, partitions, a runner and a fake target.
type rig struct {
	t      *testing.T
	files  *vfs.Mem
	meta   *fakeMeta
	store  *partition.Store
	target *fakeTarget
	counts *counts
	log    *logged
	opts   RunnerOptions
	runner *Runner
	stop   func()
}

func newRig(t *testing.T, topics ...meta.Topic) *rig {
	g := &rig{t: t, files: vfs.NewMem(), meta: newMeta(topics...), target: &fakeTarget{}, counts: &counts{}, log: &logged{}}
	g.opts = RunnerOptions{
		Meta: g.meta, NodeID: self, FS: g.files, OpenRemote: g.target.open, Observer: g.counts,
		Logger: slog.New(slog.NewTextHandler(g.log, nil)),
	}
	g.openStore()
	return g
}

func (g *rig) openStore() {
	g.store = partition.NewStore(partition.StoreOptions{FS: g.files, Dir: "topics", SegmentBytes: 16 << 10})
	g.opts.Store = g.store
	g.opts.Commit = storeCommits{g.store}
}

// start runs the runner; stop ends it gracefully.
func (g *rig) start() {
	g.runner = NewRunner(g.opts)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	runner := g.runner
	wg.Go(func() { _ = runner.Run(ctx) })
	g.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
}

// reopen is a new life of the process: stop must have been called.
func (g *rig) reopen() {
	_ = g.store.Close() // fails after a freeze
	g.openStore()
	g.start()
}

func (g *rig) end() {
	g.stop()
	_ = g.store.Close()
}

func (g *rig) partition(topicID string, p int) *partition.Partition {
	part, err := g.store.Open(topicID, p)
	require.NoError(g.t, err)
	return part
}

// listing is the listing from the cursors of this node.
func (g *rig) listing(parent string) (wire.Children, error) {
	return List(g.opts.Meta, parent, true, g.runner.Stats, g.runner.o.Now())
}

// commit appends records whose payloads are their offsets.
func (g *rig) commit(t meta.Topic, p, n int) {
	part := g.partition(t.ID, p)
	first := part.HighWatermark()
	recs := make([]partition.Record, n)
	for i := range recs {
		recs[i] = partition.Record{Key: fmt.Appendf(nil, "k%d", i%7), Payload: fmt.Appendf(nil, "%d", first+int64(i))}
	}
	_, err := part.Commit(g.t.Context(), recs)
	require.NoError(g.t, err)
}

func (g *rig) cursorFile(t meta.Topic, p int, child string) string {
	return fileName(g.store.Dir(t.ID, p), child)
}

// storeCommits commits to partitions of this node.
type storeCommits struct{ store *partition.Store }

func (s storeCommits) Commit(ctx context.Context, topicID string, p int, recs []partition.Record) error {
	part, err := s.store.Open(topicID, p)
	if err != nil {
		return err
	}
	_, err = part.Commit(ctx, recs)
	return err
}

func orders(partitions int) meta.Topic {
	t := meta.Topic{Name: "orders", ID: "aaaaaaaaaaaaaaaa", Partitions: partitions}
	for range partitions {
		t.Nodes = append(t.Nodes, self)
	}
	return t
}

func link(lanes int, offsets ...int64) meta.Topic {
	return meta.Topic{
		Name: "copy", ID: "bbbbbbbbbbbbbbbb", Parent: "orders", AttachEpoch: epoch1, AttachOffsets: offsets,
		Remote: &meta.RemoteLink{Remote: "east", Topic: "orders", Lanes: lanes},
	}
}

func local(partitions int, offsets ...int64) meta.Topic {
	return meta.Topic{
		Name: "audit", ID: "cccccccccccccccc", Partitions: partitions, Parent: "orders", AttachEpoch: epoch1, AttachOffsets: offsets,
	}
}

func numbers(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}
