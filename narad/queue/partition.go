package queue

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"narad.example/narad/partition"
	"narad.example/narad/wire"
)

// errReleased says that a partition's state was let go while a caller was about to use it; the caller looks again.
var errReleased = errors.New("the partition was released")

// errHeld says that a partition may not be opened until Unhold.
var errHeld = errors.New("the partition is held")

// partitionQueue is the state of one partition with its records and its file.
type partitionQueue struct {
	m      *Manager
	topic  *topicQueue
	index  int
	log    *partition.Partition
	unwant func() // ends the watch on log

	// mu guards what follows; the log and the frontier file are read under it, never written or synced.
	mu     sync.Mutex
	state  *state
	slab   partition.Slab
	timer  *time.Timer // runs while there are leases
	closed bool
	dirty  bool // the state differs from what was last written

	// filing holds one value while the file is written or synced, and guards what follows. It is taken before mu. It is a channel, since
	// whoever has it waits for the disk.
	filing chan struct{}
	file   *frontierFile
	gone   bool // nothing may be written any more
}

// openQueue opens a partition and restores its state.
func openQueue(t *topicQueue, index int) (*partitionQueue, error) {
	m := t.m
	log, err := m.o.Store.Open(t.id, index)
	if err != nil {
		return nil, fmt.Errorf("open partition %d of topic %s: %w", index, t.id, err)
	}
	file, s, found, torn, err := openFrontier(m.o.FS, log.Dir())
	if err != nil {
		return nil, fmt.Errorf("partition %d of topic %s: %w", index, t.id, err)
	}
	if torn {
		m.log.Error("the frontier file has no whole slot; records are given again from the oldest one on", "topic_id", t.id, "partition", index)
	}
	q := &partitionQueue{m: m, topic: t, index: index, log: log, file: file, filing: make(chan struct{}, 1)}
	high := log.HighWatermark()
	if found && s.frontier > high {
		m.log.Error("the frontier lay above the high watermark and was set back to it", "topic_id", t.id, "partition", index, "frontier", s.frontier, "high_watermark", high)
		s.frontier = high
	}
	for len(s.acked) > 0 && s.acked[len(s.acked)-1] >= high {
		s.acked = s.acked[:len(s.acked)-1]
	}
	if !found {
		s.frontier = log.Oldest()
	}
	q.state = newState(s.frontier, s.acked)
	q.unwant = log.Watch(func() { t.wake(index) })
	return q, nil
}

// settle brings the state up to date with the clock and with retention. mu is held.
func (q *partitionQueue) settle(now time.Time) error {
	if q.closed {
		return errReleased
	}
	q.state.expire(now)
	before := q.state.frontier
	if dropped := q.state.trim(q.log.Oldest()); dropped > 0 {
		q.m.metrics.Dropped(q.topic.id, q.index, dropped)
	}
	if q.state.frontier != before {
		q.spoil()
	}
	return nil
}

// spoil has the state written soon. mu is held.
func (q *partitionQueue) spoil() {
	if !q.dirty {
		q.dirty = true
		q.m.spoiled(q)
	}
}

// left tells whether a consumer could take something now. mu is held.
func (q *partitionQueue) left(s Settings) bool {
	if q.closed || len(q.state.leases) >= s.MaxInFlight {
		return false
	}
	return len(q.state.ready) > 0 || q.state.next < q.state.fresh(q.log.HighWatermark(), s.MaxAckedAhead)
}

// more is left for callers without the lock.
func (q *partitionQueue) more(s Settings) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left(s)
}

// take leases up to as many records as the answer has room for. more tells whether some are left.
func (q *partitionQueue) take(a *answer) (more bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err = q.settle(time.Now()); err != nil {
		return false, err
	}
	scan := scanBytes
	for a.room() && scan > 0 && q.left(a.info.Settings) {
		var fits bool
		if len(q.state.ready) > 0 {
			fits, err = q.again(a, &scan)
		} else {
			fits, err = q.fresh(a, &scan)
		}
		if errors.Is(err, partition.ErrTrimmed) {
			if err = q.settle(time.Now()); err == nil {
				continue
			}
		}
		if err != nil || !fits {
			break
		}
	}
	if q.slab.Size() > keepBytes {
		q.slab.Free()
	}
	q.arm()
	return q.left(a.info.Settings), err
}

// again leases the lowest record that was given before. mu is held.
func (q *partitionQueue) again(a *answer, scan *int) (fits bool, err error) {
	if err = q.log.Read(q.state.ready[0], 1, 1, &q.slab); err != nil {
		return false, err
	}
	if len(q.slab.Records) == 0 {
		return false, fmt.Errorf("partition %d of topic %s does not hold offset %d", q.index, q.topic.id, q.state.ready[0])
	}
	r := q.slab.Records[0]
	*scan -= len(r.Key) + len(r.Payload)
	if !a.fits(r) {
		return false, nil
	}
	q.state.takeReady()
	q.lend(a, r)
	return true, nil
}

// fresh leases records that were never given, as many as one read finds. mu is held.
func (q *partitionQueue) fresh(a *answer, scan *int) (fits bool, err error) {
	want := min(a.max-len(a.out), a.info.Settings.MaxInFlight-len(q.state.leases))
	want = int(min(int64(want), q.state.fresh(q.log.HighWatermark(), a.info.Settings.MaxAckedAhead)-q.state.next))
	if err = q.log.Read(q.state.next, want, *scan, &q.slab); err != nil {
		return false, err
	}
	for _, r := range q.slab.Records {
		*scan -= len(r.Key) + len(r.Payload)
		if _, done := q.state.acked[r.Offset]; !done {
			if !a.fits(r) {
				return false, nil
			}
			q.lend(a, r)
		}
		q.state.next = r.Offset + 1
	}
	return len(q.slab.Records) > 0, nil
}

// lend leases r and puts it into the answer. mu is held.
func (q *partitionQueue) lend(a *answer, r partition.Record) {
	h := Handle{Partition: q.index, Offset: r.Offset, Nonce: newNonce()}
	q.state.lend(r.Offset, h.Nonce, time.Now().Add(a.info.Settings.VisibilityTimeout))
	a.add(q.index, r, h.String())
}

// arm has the timer ring when the earliest lease ends. mu is held.
func (q *partitionQueue) arm() {
	if q.timer != nil || len(q.state.ends) == 0 || q.closed {
		return
	}
	q.timer = time.AfterFunc(time.Until(q.state.ends[0].until), q.ring)
}

// ring gives back what has run out and wakes a consumer for it.
func (q *partitionQueue) ring() {
	q.mu.Lock()
	q.timer = nil
	if q.closed {
		q.mu.Unlock()
		return
	}
	q.state.expire(time.Now())
	q.arm()
	some := len(q.state.ready) > 0
	q.mu.Unlock()
	if some {
		q.topic.wake(q.index)
	}
}

// verb is what a consumer wants with a lease.
type verb uint8

const (
	ack verb = iota
	nack
	extend
)

// settleLease does what v says with the lease that h names, or answers Gone.
func (q *partitionQueue) settleLease(v verb, h Handle, s Settings) error {
	q.mu.Lock()
	now := time.Now()
	if err := q.settle(now); err != nil {
		q.mu.Unlock()
		return err
	}
	l := q.state.find(h.Offset, h.Nonce)
	if l == nil {
		q.mu.Unlock()
		return errGone()
	}
	switch v {
	case ack:
		q.state.ack(l)
		q.spoil()
	case nack:
		q.state.giveBack(l)
	case extend:
		q.state.extend(l, now.Add(s.VisibilityTimeout))
	}
	// A lease less may have made room below a cap that consumers wait for.
	some := v != extend && q.left(s)
	q.mu.Unlock()
	if some {
		q.topic.wake(q.index)
	}
	return nil
}

// frontier is the offset below which everything is acked.
func (q *partitionQueue) frontier() (int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.settle(time.Now()); err != nil {
		return 0, err
	}
	return q.state.frontier, nil
}

// fileAlone takes filing; what it returns gives it back.
func (q *partitionQueue) fileAlone() (leave func()) {
	q.filing <- struct{}{}
	return func() { <-q.filing }
}

// save writes the state to the page cache, if it has changed.
func (q *partitionQueue) save() error {
	defer q.fileAlone()()
	q.mu.Lock()
	if !q.dirty || q.gone {
		q.mu.Unlock()
		return nil
	}
	frontier, acked := q.state.frontier, q.state.ahead()
	q.dirty = false
	q.mu.Unlock()
	if err := q.file.write(frontier, acked); err != nil {
		q.mu.Lock()
		q.dirty = true
		q.mu.Unlock()
		return err
	}
	return nil
}

// sync puts what save wrote on the disk.
func (q *partitionQueue) sync() error {
	defer q.fileAlone()()
	return q.file.sync()
}

// release ends the state; with keep the file is brought up to date first. A second call does nothing.
func (q *partitionQueue) release(keep bool) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	q.mu.Unlock()
	q.unwant()
	var err error
	if keep {
		err = errors.Join(q.save(), q.sync())
	}
	defer q.fileAlone()()
	q.gone = true
	return errors.Join(err, q.file.close())
}

// answer gathers what one consume returns.
type answer struct {
	info  TopicInfo
	max   int
	bytes int
	out   []wire.Delivery
}

func (a *answer) room() bool { return len(a.out) < a.max && a.bytes < answerBytes }

// fits tells whether the record may go too; the first always does.
func (a *answer) fits(r partition.Record) bool {
	return len(a.out) == 0 || a.bytes+len(r.Key)+len(r.Payload) <= answerBytes
}

// add copies the record out of the slab.
func (a *answer) add(index int, r partition.Record, handle string) {
	a.bytes += len(r.Key) + len(r.Payload)
	a.out = append(a.out, deliver(a.info.Name, index, r, handle))
}

func deliver(topic string, index int, r partition.Record, handle string) wire.Delivery {
	own := append(append(make([]byte, 0, len(r.Key)+len(r.Payload)), r.Key...), r.Payload...)
	d := wire.Delivery{
		Topic: topic, Partition: index, Offset: r.Offset, Payload: own[len(r.Key):],
		Committed: time.UnixMilli(r.CommitMS), Handle: handle,
	}
	if len(r.Key) > 0 {
		d.Key = own[:len(r.Key):len(r.Key)]
	}
	return d
}
