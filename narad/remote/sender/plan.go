package sender

import (
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// This file is what to send next. It is pure: no time, no lock, no network; a lane's queue is touched by its lane alone.

// Bounds of a request (seed: Remote replication constants).
const (
	maxMessages  = target.MaxMessages
	fewMessages  = target.FewMessages
	maxBodyBytes = 960 << 10 // the cap of a lane's request bodies
	minBodyBytes = 64 << 10
	raiseAfter   = 20 // accepted requests in a row double the cap
)

// laneOf places a record: a keyed one by the FNV-32a hash of its key, a keyless one by its parent offset, so that a key always
// travels on one lane (SND-01). An empty key is none.
func laneOf(r *Record, lanes int) int {
	if len(r.Key) == 0 {
		return int(r.Offset % int64(lanes))
	}
	h := uint32(2166136261)
	for _, c := range r.Key {
		h = (h ^ uint32(c)) * 16777619
	}
	return int(h % uint32(lanes))
}

// queue is what one lane still has to send of the slab in work: places in the slab, in offset order.
type queue struct {
	recs  []Record
	order []int32 // of this lane
	mark  int64   // of this lane when the slab began
	next  int     // place in order of the first record that is neither accepted nor passed

	few   int   // when above 0, at most so many records in a request ...
	until int   // ... while next is before this place (a cut holds until its records are accepted, DEC-07)
	plain int64 // offset of the record that goes as base64, because the target refused it raw; -1 for none
	named int64 // offset of the record that the target named, which does not go with those before it (ANS-02); -1 for none
}

// begin takes a slab, of which split then adds this lane's part. The memory of order is used again.
func (q *queue) begin(recs []Record, mark int64) {
	*q = queue{recs: recs, order: q.order[:0], mark: mark, plain: -1, named: -1}
}

// split gives each lane its records above its mark, in order. What is at or below the mark is on the target already, or an admin
// skipped it (CUR-07).
func split(recs []Record, lanes []*queue) {
	for i := range recs {
		q := lanes[laneOf(&recs[i], len(lanes))]
		if recs[i].Offset > q.mark {
			q.order = append(q.order, int32(i))
		}
	}
}

// drop forgets the slab, whose memory belongs to the reader again.
func (q *queue) drop() { *q = queue{order: q.order[:0], plain: -1, named: -1} }

// size is what a copy of the records that are not on the target counts in the held budget.
func (q *queue) size() int64 {
	n := int64(0)
	for _, at := range q.order[q.next:] {
		n += int64(len(q.recs[at].Key)+len(q.recs[at].Payload)) + recordOverhead
	}
	return n
}

// keep copies those records, and nothing of the slab is read any more.
func (q *queue) keep() {
	left := q.order[q.next:]
	bytes := 0
	for _, at := range left {
		bytes += len(q.recs[at].Key) + len(q.recs[at].Payload)
	}
	recs, mem := make([]Record, len(left)), make([]byte, 0, bytes)
	own := func(b []byte) []byte {
		mem = append(mem, b...)
		return mem[len(mem)-len(b) : len(mem) : len(mem)]
	}
	for i, at := range left {
		r := &q.recs[at]
		recs[i] = Record{Offset: r.Offset, Key: own(r.Key), Payload: own(r.Payload)}
	}
	q.order = q.order[:len(left)]
	for i := range q.order {
		q.order[i] = int32(i)
	}
	q.recs, q.until, q.next = recs, max(0, q.until-q.next), 0
}

func (q *queue) empty() bool { return q.next >= len(q.order) }

// first is the lane's first record that is not on the target.
func (q *queue) first() *Record { return &q.recs[q.order[q.next]] }

// chunk is one request's worth of records.
type chunk struct {
	records int
	last    int64 // offset of the last one
	bytes   int   // of the body
	raw     bool  // the first record went raw, so base64 is still a way to send it
}

// cut encodes the next chunk into dst: the lane's next records in order, as many as the bounds allow and at least one, which goes
// alone when it is larger than the cap (SND-05, SND-06). It ends before a record that an admin skipped: such a one is passed when
// the lane reaches it with no request of its own on the wire (DEC-35). Caps count the plain body (DEC-42).
func (q *queue) cut(dst []byte, most, bytes int, skips func(int64) bool) ([]byte, chunk) {
	if q.few > 0 && q.next < q.until {
		most = min(most, q.few)
	}
	var c chunk
	dst = wire.AppendBatchOpen(dst)
	for _, at := range q.order[q.next:min(len(q.order), q.next+most)] {
		r := &q.recs[at]
		if c.records > 0 && (skips != nil && skips(r.Offset) || r.Offset == q.named) {
			break
		}
		whole := len(dst)
		out, raw := wire.AppendMessage(dst, c.records == 0, r.Key, r.Payload, r.Offset == q.plain || r.Offset == q.named)
		if len(out)+len("]}") > bytes && c.records > 0 {
			dst = out[:whole]
			break
		}
		dst = out
		if c.records == 0 {
			c.raw = raw
		}
		c.records, c.last = c.records+1, r.Offset
		if r.Offset == q.named {
			break
		}
	}
	dst = wire.AppendBatchClose(dst)
	c.bytes = len(dst)
	return dst, c
}

// accepted moves past the records of a chunk.
func (q *queue) accepted(c chunk) {
	q.next += c.records
	if q.next >= q.until {
		q.few = 0
	}
	if c.last >= q.plain {
		q.plain = -1
	}
	if c.last >= q.named {
		q.named = -1
	}
}

// pass moves past the first record unsent, because an admin skipped it.
func (q *queue) pass() { q.accepted(chunk{records: 1, last: q.first().Offset}) }

// halve makes the next chunks half of c, until all of c is accepted. False when c is one record and cannot be less. A cut for
// its size (narrower false) also holds as long as the one before it; one that narrows down to a single record does not, or
// everything behind that record would go one by one.
func (q *queue) halve(c chunk, narrower bool) bool {
	if c.records < 2 {
		return false
	}
	until := q.next + c.records
	if !narrower && q.few > 0 {
		until = max(until, q.until)
	}
	q.few, q.until = c.records/2, until
	return true
}

// alone makes the first record go by itself.
func (q *queue) alone() { q.few, q.until = 1, q.next+1 }

// sendPlain makes the first record, which the target refused raw, go alone as base64.
func (q *queue) sendPlain() {
	q.alone()
	q.plain = q.first().Offset
}

// name marks the n-th record of a refused chunk as the one that the target named: those before it go without it, then it goes
// alone, as base64 whatever it went as (ANS-02). A lane blocks only on a record that was refused alone: the target may have named one
// that it takes.
func (q *queue) name(n int) {
	q.named = q.recs[q.order[q.next+n]].Offset
	if n > 0 {
		q.few, q.until = n, q.next+n
	}
}

// blocked prepares the retry of the first record: alone, and from its first form on.
func (q *queue) blocked() {
	q.alone()
	q.plain, q.named = -1, -1
}
