package fanout

import (
	"context"
	"sort"
	"sync"
	"time"

	"narad.example/narad/partition"
)

// Bounds of slabs and waits (broker.md, Fan-out engine; SND-03).
const (
	laneRecords = 500
	laneBytes   = 1 << 20

	// maxDelaySleep bounds a sleep of the delay gate: a clock that was set forward is noticed within it (CUR-11, DEC-40).
	maxDelaySleep = 30 * time.Second
	// keepAhead is how long a slab that was read ahead is kept while the one before it does not ship. A link that waits out an
	// outage must not hold memory that no budget counts.
	keepAhead = time.Second
)

// bounds of a slab.
type bounds struct {
	records, bytes int
	linger         time.Duration // how long a local child's slab that is not full waits for more after it began; 0 for a remote child
	// apart is how long after the slab before it a slab of a remote child that keeps up is taken, so that a steady trickle does not cost a request
	// and two syncs a record. The first record after a pause goes at once, and a backlog waits for nothing. 0 for a local child.
	apart time.Duration
}

// source reads the parent partition for one cursor: slabs, read ahead, the delay gate.
type source struct {
	part      *partition.Partition
	partition int
	lanes     int // 0 for a local child
	delay     time.Duration
	now       func() time.Time // the wall clock, which due times follow (DEC-40)
	bounds    bounds
	pool      *sync.Pool // of *partition.Slab, shared by all cursors, so that an idle cursor holds none

	began  time.Time // when the last slab was taken
	behind bool      // it left records that were there

	mu       sync.Mutex // guards the two below: the commit time of a record that was seen lately
	headAt   int64
	headTime int64

	ahead     chan *Slab // nil when nothing is read ahead; else it gets the slab, or is closed without
	aheadFrom int64
	readers   sync.WaitGroup
}

// read reads a slab of due records; nil when the first one is not due or not there.
func (s *source) read(from int64) (*Slab, error) {
	mem := s.pool.Get().(*partition.Slab)
	high := s.part.HighWatermark()
	if err := s.part.Read(from, s.bounds.records, s.bounds.bytes, mem); err != nil {
		s.pool.Put(mem)
		return nil, err
	}
	recs, next := mem.Records, mem.Next
	if s.delay > 0 {
		limit := s.now().Add(-s.delay).UnixMilli()
		due := sort.Search(len(recs), func(i int) bool { return recs[i].CommitMS > limit }) // commit times never decrease
		if due < len(recs) {
			next = recs[due].Offset
		}
		recs = recs[:due]
	}
	if len(recs) == 0 {
		s.pool.Put(mem)
		return nil, nil
	}
	s.saw(recs[0])
	return &Slab{Partition: s.partition, Records: recs, Next: next, mem: mem, pool: s.pool, lanes: s.lanes, left: next < high}, nil
}

func (s *source) saw(r partition.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headAt, s.headTime = r.Offset, r.CommitMS
}

// commitTime is the commit time in ms of the record at offset, or of the oldest retained one when retention took it; false
// when it cannot be read.
func (s *source) commitTime(offset int64) (int64, bool) {
	offset = max(offset, s.part.Oldest())
	s.mu.Lock()
	at, ms := s.headAt, s.headTime
	s.mu.Unlock()
	if at == offset && ms > 0 {
		return ms, true
	}
	mem := s.pool.Get().(*partition.Slab)
	defer s.pool.Put(mem)
	if err := s.part.Read(offset, 1, laneBytes, mem); err != nil || len(mem.Records) == 0 {
		return 0, false
	}
	s.saw(mem.Records[0])
	return mem.Records[0].CommitMS, true
}

// startAhead reads the slab after the one that ships now, when that one left records.
func (s *source) startAhead(from int64) {
	if s.part.HighWatermark() <= from || s.bounds.apart > 0 && !s.behind {
		return
	}
	ch := make(chan *Slab)
	s.ahead, s.aheadFrom = ch, from
	s.readers.Go(func() {
		defer close(ch)
		slab, err := s.read(from)
		if err != nil || slab == nil {
			return // the cursor reads there itself and meets the error
		}
		t := time.NewTimer(keepAhead)
		defer t.Stop()
		select {
		case ch <- slab:
		case <-t.C:
			slab.giveBack()
		}
	})
}

// take returns the slab at from, read ahead or read now.
func (s *source) take(from int64) (*Slab, error) {
	slab := s.takeAhead()
	if slab != nil && s.aheadFrom != from {
		slab.giveBack()
		slab = nil
	}
	var err error
	if slab == nil {
		slab, err = s.read(from)
	}
	if slab != nil {
		s.began, s.behind = time.Now(), slab.left
	}
	return slab, err
}

func (s *source) takeAhead() *Slab {
	if s.ahead == nil {
		return nil
	}
	slab := <-s.ahead
	s.ahead = nil
	return slab
}

// dropAhead forgets what was read ahead.
func (s *source) dropAhead() {
	if slab := s.takeAhead(); slab != nil {
		slab.giveBack()
	}
}

// await returns nil once a due record stands at from, or one that retention took stood there. interrupt, which may be nil, ends
// it with errInterrupted.
func (s *source) await(ctx context.Context, from int64, interrupt <-chan error) error {
	idle := false
	for {
		grown := s.part.Grown()
		if s.part.HighWatermark() > from {
			break
		}
		idle = true
		if err := sleepUntil(ctx, grown, 0, interrupt); err != nil {
			return err
		}
	}
	if s.bounds.linger > 0 && s.delay == 0 && idle {
		if err := s.fill(ctx, from, time.Now().Add(s.bounds.linger), nil); err != nil {
			return err
		}
	}
	if s.bounds.apart > 0 && s.delay == 0 && !s.behind {
		if err := s.fill(ctx, from, s.began.Add(s.bounds.apart), interrupt); err != nil {
			return err
		}
	}
	return s.awaitDue(ctx, from, interrupt)
}

// fill gives a slab the time until end to become as long as it may be.
func (s *source) fill(ctx context.Context, from int64, end time.Time, interrupt <-chan error) error {
	for {
		grown := s.part.Grown()
		left := time.Until(end)
		if left <= 0 || s.part.HighWatermark()-from >= int64(s.bounds.records) {
			return nil
		}
		if err := sleepUntil(ctx, grown, left, interrupt); err != nil {
			return err
		}
	}
}

// awaitDue is the delay gate (CUR-11).
func (s *source) awaitDue(ctx context.Context, from int64, interrupt <-chan error) error {
	for s.delay > 0 {
		committed, ok := s.commitTime(from)
		if !ok {
			return nil // the cursor reads there next and meets the error, which it knows how to handle
		}
		left := time.UnixMilli(committed).Add(s.delay).Sub(s.now())
		if left <= 0 {
			return nil
		}
		if err := sleepUntil(ctx, nil, min(left, maxDelaySleep), interrupt); err != nil {
			return err
		}
	}
	return nil
}

// sleepUntil returns nil when ch is closed or d, unless 0, is over.
func sleepUntil(ctx context.Context, ch <-chan struct{}, d time.Duration, interrupt <-chan error) error {
	var over <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-ch:
		return nil
	case <-over:
		return nil
	case err := <-interrupt:
		return &interrupted{err}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// interrupted carries the result of a sync that ended while the cursor waited.
type interrupted struct{ err error }

func (i *interrupted) Error() string { return "fanout: interrupted" }
