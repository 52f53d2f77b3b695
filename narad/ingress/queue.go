package ingress

import (
	"time"

	"narad.example/narad/partition"
)

// chunk is memory that items point into; its capacity counts against MaxMemory. The dispatcher's mutex guards refs.
type chunk struct {
	mem  []byte // length 0
	refs int    // items that point into it
	own  bool   // only items of one failing queue point into it
}

// item is one record on its way.
type item struct {
	seq          int64
	key, payload []byte
	mem          *chunk
	movable      bool // keyless and not pinned: a sibling partition will do
}

func (it *item) bytes() int { return len(it.key) + len(it.payload) }

// topicQueues are the destinations of one topic incarnation that have records.
type topicQueues struct {
	id, name string
	queues   []*queue // by partition, nil where there is none
	active   int      // queues with a worker
}

// queue is one destination: one partition of a topic incarnation. The dispatcher's mutex guards its fields; a worker owns it
// while it has one, which is exactly while it has items.
type queue struct {
	topic     *topicQueues
	partition int
	items     []item // the worker commits from the front, the reader and reroutes append
	active    bool
}

// head copies the records at the front, at most maxCommitBytes of them but always one, into recs.
func (q *queue) head(recs []partition.Record) []partition.Record {
	recs = recs[:0]
	bytes := 0
	for n := range q.items {
		it := &q.items[n]
		if bytes += it.bytes(); bytes > maxCommitBytes && n > 0 {
			break
		}
		recs = append(recs, partition.Record{Key: it.key, Payload: it.payload})
	}
	return recs
}

// drop forgets the first n items; the others stay where they are until half of the slice is free.
func (q *queue) drop(n int) {
	clear(q.items[:n])
	if n == len(q.items) {
		q.items = q.items[:0]
		return
	}
	q.items = q.items[n:]
}

// own copies the items that are not copied yet into one piece of memory, so that they pin nothing of other queues. None of
// those items may be in a commit in flight.
func (q *queue) own(release func(*chunk), taken func(int64)) {
	total := 0
	for n := range q.items {
		if !q.items[n].mem.own {
			total += q.items[n].bytes()
		}
	}
	if total == 0 {
		return
	}
	c := &chunk{mem: make([]byte, 0, total), own: true}
	mem := c.mem
	for n := range q.items {
		it := &q.items[n]
		if it.mem.own {
			continue
		}
		from := it.mem
		if it.key != nil {
			mem, it.key = keep(mem, it.key)
		}
		mem, it.payload = keep(mem, it.payload)
		it.mem = c
		c.refs++
		release(from)
	}
	taken(int64(total))
}

func keep(mem, b []byte) (grown, kept []byte) {
	at := len(mem)
	mem = append(mem, b...)
	return mem, mem[at:len(mem):len(mem)]
}

// backoff doubles from minBackoff to maxBackoff.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, minBackoff), maxBackoff)
	return b.last
}
