package fanout

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/wire"
)

const (
	minBucketRetry = 50 * time.Millisecond
	maxBucketRetry = 5 * time.Second
	keepBuckets    = 512 // records that an idle cursor may keep room for
)

// localSink commits to the partitions of a local child (BRK-10).
type localSink struct {
	id     identity
	meta   Meta
	commit Committer

	log *slog.Logger
	now func() time.Time // the wall clock

	closing   chan struct{}
	closeOnce sync.Once
	shipping  chan struct{}        // holds a token while a Ship runs
	buckets   [][]partition.Record // by child partition, kept for their memory

	mu   sync.Mutex // guards last
	last time.Time  // of the last committed slab
}

func newLocalSink(id identity, m Meta, c Committer, log *slog.Logger, now func() time.Time) *localSink {
	return &localSink{
		id: id, meta: m, commit: c, log: log, now: now, closing: make(chan struct{}), shipping: make(chan struct{}, 1),
	}
}

func (l *localSink) Wait(ctx context.Context) error { return ctx.Err() }

func (l *localSink) Marks() []int64 { return nil }

func (l *localSink) Status() SinkStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return SinkStatus{State: wire.Running, LastSuccess: l.last}
}

// Close ends the retries and waits for the commits in flight.
func (l *localSink) Close(ctx context.Context) {
	l.closeOnce.Do(func() { close(l.closing) })
	select {
	case l.shipping <- struct{}{}:
		<-l.shipping
	case <-ctx.Done():
	}
}

// Ship groups the slab by child partition and commits the groups beside each other, each again alone until it is committed.
func (l *localSink) Ship(ctx context.Context, s *Slab) Outcome {
	l.shipping <- struct{}{}
	defer func() { <-l.shipping }()
	child, ok := l.meta.Topic(l.id.child)
	if !ok || child.AttachEpoch != l.id.epoch || child.Partitions < 1 {
		return Stopped
	}
	parent, ok := l.meta.TopicByID(l.id.parentID)
	if !ok {
		return Stopped
	}
	l.group(s, parent, child)
	defer l.forget()
	results := make([]bool, len(l.buckets))
	var wg sync.WaitGroup
	for p, recs := range l.buckets {
		if results[p] = len(recs) == 0; results[p] {
			continue
		}
		wg.Go(func() { results[p] = l.commitBucket(ctx, child.ID, p, recs) })
	}
	wg.Wait()
	for _, done := range results {
		if !done {
			return Stopped
		}
	}
	l.mu.Lock()
	l.last = l.now()
	l.mu.Unlock()
	return Committed
}

// group re-keys: a keyed record by the child's partitioner; a keyless one keeps its partition index when the counts match, else
// goes by its offset.
func (l *localSink) group(s *Slab, parent, child meta.Topic) {
	for len(l.buckets) < child.Partitions {
		l.buckets = append(l.buckets, nil)
	}
	l.buckets = l.buckets[:child.Partitions]
	for p := range l.buckets {
		l.buckets[p] = l.buckets[p][:0]
	}
	for i := range s.Records {
		r := &s.Records[i]
		p := s.Partition
		switch {
		case len(r.Key) > 0:
			p = partition.ForKey(r.Key, child.Partitions)
		case parent.Partitions != child.Partitions:
			p = int((r.Offset + int64(s.Partition)) % int64(child.Partitions))
		}
		l.buckets[p] = append(l.buckets[p], partition.Record{Key: r.Key, Payload: r.Payload})
	}
}

// forget drops the pointers into the slab, and much memory too: an idle cursor holds little.
func (l *localSink) forget() {
	total := 0
	for _, b := range l.buckets {
		total += cap(b)
		clear(b)
	}
	if total > keepBuckets {
		l.buckets = nil
	}
}

func (l *localSink) commitBucket(ctx context.Context, childID string, p int, recs []partition.Record) bool {
	for retry := minBucketRetry; ; retry = min(2*retry, maxBucketRetry) {
		err := l.commit.Commit(ctx, childID, p, recs)
		if err == nil {
			return true
		}
		if retry == minBucketRetry {
			l.log.Warn("commit to a local child failed, tried again until it is done", "child_partition", p, "error", err)
		}
		t := time.NewTimer(retry)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return false
		case <-l.closing:
			t.Stop()
			return false
		}
	}
}
