package fanout

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"narad.example/narad/partition"
	"narad.example/narad/slots"
	"narad.example/narad/wire"
)

const (
	closeWait  = 5 * time.Second  // for the request on the wire at a graceful stop (DEC-09)
	faultRetry = 30 * time.Second // DEC-10
	stopRetry  = time.Second      // before a slab that a sink stopped unasked is read again
)

// cursor copies one parent partition to one child. One goroutine runs it; the atomics are read by Stats.
type cursor struct {
	id       identity
	src      *source
	sink     Sink
	file     *slots.File
	log      *slog.Logger
	observer Observer
	detached *atomic.Bool // set before the cursor is stopped: its position is of no use any more

	next   atomic.Int64
	faulty atomic.Bool // DEC-10: the state is unknown, the error is logged

	durable int64      // what the file holds, synced
	marked  bool       // the file holds lane marks
	syncing chan error // the sync in the background, nil when none
	sentTo  int64      // what that sync writes
	sent    sentLanes  // of a slab that is read again
	syncers sync.WaitGroup
}

// run ships slabs until ctx ends, or until the partition was closed under it; then it ends the sink gracefully and writes
// position and marks.
func (c *cursor) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Ship gets a context that outlives ctx by the time that Close gives to the request on the wire.
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		grace, cancel := context.WithTimeout(hard, closeWait)
		defer cancel()
		c.sink.Close(grace)
		cut()
	})
	for ctx.Err() == nil {
		if errors.Is(c.step(ctx, hard), partition.ErrClosed) {
			stop()
		}
	}
	<-closed
	c.finish()
}

// step ships at most one slab. The error is partition.ErrClosed, or nil.
func (c *cursor) step(ctx, hard context.Context) error {
	next := c.next.Load()
	if err := c.src.await(ctx, next, c.syncing); err != nil {
		if i, ok := errors.AsType[*interrupted](err); ok {
			c.synced(ctx, i.err)
		}
		return nil
	}
	if err := c.sink.Wait(ctx); err != nil {
		sleep(ctx, stopRetry)
		return nil //nolint:nilerr // Wait only fails when the cursor is being stopped, and run looks at ctx itself
	}
	slab, err := c.src.take(next)
	switch {
	case errors.Is(err, partition.ErrClosed):
		return err
	case errors.Is(err, partition.ErrTrimmed):
		c.dropBehind(ctx)
	case err != nil:
		c.fault("the parent's log cannot be read", err)
		sleep(ctx, faultRetry)
	case slab != nil:
		c.recovered()
		c.ship(ctx, hard, slab)
	}
	return nil
}

// ship hands a slab to the sink, while the next one is read, and acts on the answer (CUR-06).
func (c *cursor) ship(ctx, hard context.Context, slab *Slab) {
	c.src.startAhead(slab.Next)
	records, bytes := measure(slab)
	outcome := c.sink.Ship(hard, slab)
	if outcome == Committed {
		slab.giveBack()
		c.observer.Shipped(c.id.parent, c.id.child, c.id.partition, records, bytes)
		c.advance(ctx, slab.Next)
		return
	}
	slab.Release()
	c.src.dropAhead()
	c.sent = slab.sent
	if outcome == ReadAgain {
		c.observer.Reread(c.id.parent, c.id.child, c.id.partition)
		return
	}
	sleep(ctx, stopRetry)
}

func measure(s *Slab) (records int, bytes int64) {
	for i := range s.Records {
		bytes += int64(len(s.Records[i].Key) + len(s.Records[i].Payload))
	}
	return len(s.Records), bytes
}

// advance moves the position past a committed slab. The position of the slab before it must be durable first; its own is synced
// while the next slab ships, so the cursor is never more than two slabs ahead of its durable position (DEC-34).
func (c *cursor) advance(ctx context.Context, to int64) {
	c.next.Store(to)
	c.sent = sentLanes{}
	if c.syncing != nil {
		if !c.synced(ctx, <-c.syncing) {
			return
		}
	}
	done := make(chan error, 1)
	c.syncing, c.sentTo = done, to
	c.syncers.Go(func() { done <- storePosition(c.file, position{epoch: c.id.epoch, next: to}) })
}

// synced takes the result of the sync in the background. After an error it stays until the position is durable (DEC-10); false
// when ctx ended before.
func (c *cursor) synced(ctx context.Context, err error) bool {
	c.syncing = nil
	if err == nil {
		c.durable, c.marked = c.sentTo, false
		return true
	}
	return c.store(ctx, err)
}

// store writes the position in the foreground, again every faultRetry while it fails. first, when not nil, is a failure that
// was met already.
func (c *cursor) store(ctx context.Context, first error) bool {
	err := first
	for {
		if err == nil {
			next := c.next.Load()
			if err = storePosition(c.file, position{epoch: c.id.epoch, next: next}); err == nil {
				c.durable, c.marked = next, false
				c.recovered()
				return true
			}
		}
		c.fault("the cursor file cannot be written", err)
		err = nil
		if !sleep(ctx, faultRetry) {
			return false
		}
	}
}

// dropBehind moves the cursor past what retention took (CUR-10): the only loss there is, counted and logged.
func (c *cursor) dropBehind(ctx context.Context) {
	from, to := c.next.Load(), c.src.part.Oldest()
	if to <= from {
		return
	}
	if n := c.sent.unsent(from, to, c.sink.Marks()); n > 0 {
		c.observer.Dropped(c.id.parent, c.id.child, c.id.partition, n)
		c.log.Error("records dropped, retention passed the cursor", "from", from, "to", to-1, "records", n)
	}
	c.src.dropAhead()
	c.next.Store(to)
	if c.syncing != nil {
		c.synced(ctx, <-c.syncing)
	}
	c.store(ctx, nil)
}

// finish makes the position durable at a graceful stop, with the marks of a slab that is partly at the target (DEC-09).
func (c *cursor) finish() {
	c.src.dropAhead()
	c.src.readers.Wait()
	if c.syncing != nil {
		if err := <-c.syncing; err == nil {
			c.durable, c.marked = c.sentTo, false
		}
		c.syncing = nil
	}
	c.syncers.Wait()
	p := position{epoch: c.id.epoch, next: c.next.Load(), marks: aheadOf(c.sink.Marks(), c.next.Load())}
	if !c.detached.Load() && (p.next != c.durable || p.marks != nil || c.marked) {
		if err := storePosition(c.file, p); err != nil {
			c.log.Error("the cursor file could not be written at the stop, the last slabs are sent again", "error", err)
		}
	}
	if err := c.file.Close(); err != nil {
		c.log.Error("the cursor file could not be closed", "error", err)
	}
}

// aheadOf returns a copy of the marks with those below next cleared; nil when none is left.
func aheadOf(marks []int64, next int64) []int64 {
	var kept []int64
	for i, m := range marks {
		if m < next {
			continue
		}
		if kept == nil {
			kept = noMarks(len(marks))
		}
		kept[i] = m
	}
	return kept
}

func noMarks(n int) []int64 {
	m := make([]int64, n)
	for i := range m {
		m[i] = -1
	}
	return m
}

// fault shows the state unknown and logs the error, once until recovered.
func (c *cursor) fault(what string, err error) {
	if !c.faulty.Swap(true) {
		c.log.Error(what+", tried again every 30 s", "error", err)
	}
}

func (c *cursor) recovered() {
	if c.faulty.Swap(false) {
		c.log.Info("the cursor goes on")
	}
}

// status is the sink's, unknown while the cursor itself cannot go on.
func (c *cursor) status() SinkStatus {
	s := c.sink.Status()
	if c.faulty.Load() {
		s.State = wire.UnknownState
	}
	return s
}

// sleep waits for d; false when ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool { return sleepUntil(ctx, nil, d, nil) == nil }
