package ingress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

const dir = "data/ingress"

// fakeState is the metadata of a test.
type fakeState struct {
	mu     sync.Mutex // guards topics
	topics map[string]meta.Topic
}

func newState(topics ...meta.Topic) *fakeState {
	s := &fakeState{topics: map[string]meta.Topic{}}
	for _, t := range topics {
		s.put(t)
	}
	return s
}

func (s *fakeState) put(t meta.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topics[t.Name] = t
}

func (s *fakeState) Topic(name string) (meta.Topic, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.topics[name]
	return t, ok
}

func (s *fakeState) TopicByID(id string) (meta.Topic, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.topics {
		if t.ID == id {
			return t, true
		}
	}
	return meta.Topic{}, false
}

// fakeCommits keeps what was committed per destination, and can refuse.
type fakeCommits struct {
	mu      sync.Mutex // guards the rest
	stored  map[string][]string
	now     map[string]int // commits in flight per destination
	total   int
	most    int // in flight at once
	biggest int // bytes of one commit
	calls   int
	took    time.Duration // of each commit
	refuse  func(topicID string, partition int) error
	broken  error // a promise that the dispatcher broke
}

func newCommits() *fakeCommits {
	return &fakeCommits{stored: map[string][]string{}, now: map[string]int{}}
}

func destination(topicID string, p int) string { return fmt.Sprintf("%s/%d", topicID, p) }

func (c *fakeCommits) Commit(ctx context.Context, topicID string, p int, recs []partition.Record) error {
	at := destination(topicID, p)
	c.mu.Lock()
	c.calls++
	c.now[at]++
	c.total++
	c.most = max(c.most, c.total)
	if c.now[at] > 1 {
		c.broken = errors.New("two commits in flight for " + at)
	}
	size := 0
	for _, r := range recs {
		size += len(r.Key) + len(r.Payload)
	}
	c.biggest = max(c.biggest, size)
	refuse, took := c.refuse, c.took
	c.mu.Unlock()
	if took > 0 {
		time.Sleep(took)
	}
	var err error
	if refuse != nil {
		err = refuse(topicID, p)
	}
	if err == nil {
		err = ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[at]--
	c.total--
	if err == nil {
		for _, r := range recs {
			c.stored[at] = append(c.stored[at], string(r.Key)+"="+string(r.Payload))
		}
	}
	return err
}

func (c *fakeCommits) of(topicID string, p int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.stored[destination(topicID, p)]...)
}

func (c *fakeCommits) refusing(f func(topicID string, p int) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = f
}

// node is one life of an ingress.
type node struct {
	*Ingress
	stop func()
}

func start(t require.TestingT, o Options) *node {
	o.Dir = dir
	i, err := Open(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var runErr error
	wg.Go(func() { runErr = i.Run(ctx) })
	return &node{Ingress: i, stop: sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		require.NoError(t, runErr)
		_ = i.Close() // fails when the file system is frozen
	})}
}

// memory is what the dispatcher counts against MaxMemory.
func (n *node) memory() int64 {
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	return n.d.mem
}

// destinations counts the topics that have a queue.
func (n *node) destinations() int {
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	return len(n.d.topics)
}

func orders(partitions int) meta.Topic {
	return meta.Topic{Name: "orders", ID: "aaaaaaaaaaaaaaaa", Partitions: partitions}
}

func keyed(key, payload string) wire.NewRecord {
	return wire.NewRecord{Key: []byte(key), Payload: []byte(payload), Partition: -1}
}

func plain(payload string) wire.NewRecord {
	return wire.NewRecord{Payload: []byte(payload), Partition: -1}
}

func pinned(p int, payload string) wire.NewRecord {
	return wire.NewRecord{Payload: []byte(payload), Partition: p}
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

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func options(files vfs.FS, s State, c Committer) Options {
	return Options{FS: files, State: s, Commit: c}
}

// keyOf finds a key of a partition.
func keyOf(p, partitions int) string {
	for i := 0; ; i++ {
		if k := fmt.Sprintf("k%d", i); partition.ForKey([]byte(k), partitions) == p {
			return k
		}
	}
}
