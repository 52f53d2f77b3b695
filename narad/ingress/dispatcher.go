package ingress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"narad.example/narad/partition"
	"narad.example/narad/seglog"
)

// Bounds of the dispatcher (broker.md, Produce; BRK-02).
const (
	MaxCommits   = 16              // commits in flight, over all destinations
	MaxMemory    = 64 << 20        // bytes of records read and not committed; then reading stops
	RerouteAfter = 3 * time.Second // of failures of one destination
	readRetry    = time.Second     // after the log could not be read
	minBackoff   = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second

	maxCommitBytes = 8 << 20
	chunkBytes     = 1 << 20
	chunkFrames    = 8192
	smallChunk     = chunkBytes / 4
	freeChunks     = 16
)

// dispatcher moves records from the log to their partitions.
type dispatcher struct {
	o       Options
	log     *seglog.Log
	backlog *backlog
	keeper  *keeper
	slots   chan struct{} // one token a commit in flight
	room    chan struct{} // signalled when memory was given back
	workers sync.WaitGroup

	mu      sync.Mutex // guards the rest, and the fields of queues and chunks
	topics  map[string]*topicQueues
	failing map[*queue]struct{} // their items are in memory of their own whenever mu is free
	tracker tracker
	mem     int64
	free    [][]byte // memory of chunks to use again, each of chunkBytes
}

func newDispatcher(o Options, log *seglog.Log, b *backlog, k *keeper) *dispatcher {
	return &dispatcher{
		o: o, log: log, backlog: b, keeper: k,
		slots: make(chan struct{}, MaxCommits), room: make(chan struct{}, 1),
		topics: map[string]*topicQueues{}, failing: map[*queue]struct{}{}, tracker: newTracker(k.synced),
	}
}

func (d *dispatcher) run(ctx context.Context) error {
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var keeper sync.WaitGroup
	keeper.Go(func() { d.keeper.run(keeping, d.checkpoint) })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := d.read(ctx, d.keeper.synced)
	if err != nil {
		cancel()
	}
	d.workers.Wait()
	stop()
	keeper.Wait()
	return err
}

func (d *dispatcher) checkpoint() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tracker.checkpoint()
}

// read is the reader: it hands every durable record to its queue, once, until ctx ends.
func (d *dispatcher) read(ctx context.Context, pos int64) error {
	var buf seglog.Buffer
	failing := false
	for ctx.Err() == nil {
		durable := d.log.Durable()
		if pos >= d.log.Next() {
			if !wait(ctx, durable) {
				return nil
			}
			continue
		}
		if !d.waitRoom(ctx) {
			return nil
		}
		frames, err := d.log.Read(pos, chunkFrames, chunkBytes, &buf)
		if err != nil || len(frames) == 0 {
			if err != nil && !failing {
				failing = true
				d.o.Logger.Error("the ingress log cannot be read, tried again every second", "sequence", pos, "error", err)
			}
			if !pause(ctx, readRetry) {
				return nil
			}
			continue
		}
		failing = false
		if err = d.enqueue(ctx, frames); err != nil {
			return err
		}
		pos = frames[len(frames)-1].Seq + 1
	}
	return nil
}

// chunk copies the frames' memory: the read buffer is used again at once. A few records get memory of their own size, so that
// they never hold a whole chunk. The caller holds mu.
func (d *dispatcher) chunk(frames []seglog.Frame) *chunk {
	total := 0
	for i := range frames {
		total += len(frames[i].Body)
	}
	c := &chunk{refs: 1}
	switch n := len(d.free); {
	case total < smallChunk || total > chunkBytes:
		c.mem = make([]byte, 0, total)
	case n > 0:
		c.mem, d.free = d.free[n-1], d.free[:n-1]
	default:
		c.mem = make([]byte, 0, chunkBytes)
	}
	d.mem += int64(cap(c.mem))
	return c
}

// enqueue puts the frames into their queues and starts the workers that are needed.
func (d *dispatcher) enqueue(ctx context.Context, frames []seglog.Frame) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.chunk(frames)
	mem := c.mem
	for _, f := range frames {
		var body []byte
		mem, body = keep(mem, f.Body)
		r, err := decode(body)
		if err != nil {
			return fmt.Errorf("%w: sequence %d", err, f.Seq)
		}
		c.refs++
		q := d.queue(r.topicID, r.topic, r.partition)
		q.items = append(q.items, item{seq: f.Seq, key: r.key, payload: r.payload, mem: c, movable: r.flags == 0})
		d.activate(ctx, q)
	}
	for q := range d.failing {
		q.own(d.release, d.took)
	}
	d.release(c)
	return nil
}

// queue finds or makes the destination. The caller holds mu.
func (d *dispatcher) queue(id, name []byte, p int) *queue {
	t := d.topics[string(id)]
	if t == nil {
		t = &topicQueues{id: string(id), name: string(name)}
		d.topics[t.id] = t
	}
	return t.queue(p)
}

func (t *topicQueues) queue(p int) *queue {
	for len(t.queues) <= p {
		t.queues = append(t.queues, nil)
	}
	if t.queues[p] == nil {
		t.queues[p] = &queue{topic: t, partition: p}
	}
	return t.queues[p]
}

// activate gives a queue a worker. The caller holds mu.
func (d *dispatcher) activate(ctx context.Context, q *queue) {
	if q.active {
		return
	}
	q.active = true
	q.topic.active++
	d.workers.Go(func() { d.work(ctx, q) })
}

func (d *dispatcher) took(n int64) { d.mem += n }

// release gives one reference up. The caller holds mu.
func (d *dispatcher) release(c *chunk) {
	if c.refs--; c.refs > 0 {
		return
	}
	d.mem -= int64(cap(c.mem))
	if cap(c.mem) == chunkBytes && len(d.free) < freeChunks {
		d.free = append(d.free, c.mem[:0])
	}
	select {
	case d.room <- struct{}{}:
	default:
	}
}

// waitRoom waits until less than MaxMemory waits.
func (d *dispatcher) waitRoom(ctx context.Context) bool {
	for {
		d.mu.Lock()
		full := d.mem+chunkBytes > MaxMemory
		d.mu.Unlock()
		if !full {
			return true
		}
		if !wait(ctx, d.room) {
			return false
		}
	}
}

// work is the worker of one queue: it commits from the front until the queue is empty or ctx ends.
func (d *dispatcher) work(ctx context.Context, q *queue) {
	var recs []partition.Record
	var retry backoff
	var since time.Time // of the first failure in a row that counts toward RerouteAfter
	for {
		d.mu.Lock()
		recs = q.head(recs)
		if len(recs) == 0 {
			d.retire(q)
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		select {
		case d.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		begun := time.Now()
		err := d.commit(ctx, q, recs)
		<-d.slots
		if err == nil {
			d.done(q, len(recs))
			retry, since = backoff{}, time.Time{}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		switch {
		case errors.Is(err, ErrFrozen):
			since = time.Time{} // the owner lives and has said when it goes on: no failure, and none before it counts any more
		case since.IsZero():
			since = begun // an owner that says nothing has failed for as long as it was waited for
		}
		d.failed(ctx, q, err, retry.last == 0, !since.IsZero() && time.Since(since) >= RerouteAfter)
		if !pause(ctx, retry.next()) {
			return
		}
	}
}

// commit commits the records, or finds out that their topic incarnation is gone.
func (d *dispatcher) commit(ctx context.Context, q *queue, recs []partition.Record) error {
	if _, ok := d.o.State.TopicByID(q.topic.id); !ok && d.o.Gone != nil {
		gone, err := d.o.Gone.Gone(ctx, q.topic.id)
		if err != nil {
			return fmt.Errorf("ingress: confirm that the topic is gone: %w", err)
		}
		if gone {
			d.o.Logger.Warn("records dropped, their topic was deleted", "topic", q.topic.name, "topic_id", q.topic.id,
				"partition", q.partition, "records", len(recs))
			d.o.Observer.Dropped(q.topic.name, len(recs))
			return nil
		}
	}
	if err := d.o.Commit.Commit(ctx, q.topic.id, q.partition, recs); err != nil {
		return err
	}
	d.o.Observer.Committed(q.topic.name, q.partition, len(recs))
	return nil
}

// done takes n records off the queue, the backlog and the memory, and lets the checkpoint follow.
func (d *dispatcher) done(q *queue, n int) {
	d.mu.Lock()
	for k := range n {
		d.tracker.done(q.items[k].seq)
		d.release(q.items[k].mem)
	}
	q.drop(n)
	delete(d.failing, q)
	d.mu.Unlock()
	d.backlog.leave(q.topic.id, int64(n))
	d.keeper.moved()
}

// retire ends the life of an empty queue's worker, and of the topic's entry with its last. The caller holds mu.
func (d *dispatcher) retire(q *queue) {
	q.active = false
	delete(d.failing, q)
	if q.topic.active--; q.topic.active == 0 {
		delete(d.topics, q.topic.id)
	}
}

// failed copies the queue's records out of the read buffers and reroutes those that may go elsewhere.
func (d *dispatcher) failed(ctx context.Context, q *queue, err error, first, late bool) {
	if first {
		d.o.Logger.Warn("commit failed, tried again until it is done", "topic", q.topic.name, "partition", q.partition,
			slog.Any("error", err))
	}
	sibling, ok := 0, false
	if d.o.Reroute != nil && (late || errors.Is(err, ErrOwnerDead)) {
		sibling, ok = d.o.Reroute.Sibling(q.topic.id, q.partition)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing[q] = struct{}{}
	q.own(d.release, d.took) // before the reroute: the sibling may be failing, and its items must be owned
	if ok && sibling != q.partition {
		d.reroute(ctx, q, q.topic.queue(sibling))
	}
}

// reroute moves the movable records, in their order, to the end of a sibling's queue. The caller holds mu.
func (d *dispatcher) reroute(ctx context.Context, from, to *queue) {
	stay := from.items[:0]
	for _, it := range from.items {
		if it.movable {
			to.items = append(to.items, it)
		} else {
			stay = append(stay, it)
		}
	}
	clear(from.items[len(stay):])
	from.items = stay
	if len(to.items) > 0 {
		d.activate(ctx, to)
	}
}

// wait returns when the channel is closed or signalled; false when ctx ended first.
func wait(ctx context.Context, ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits for d; false when ctx ended first.
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
