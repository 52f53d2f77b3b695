package queue

import (
	"container/heap"
	"maps"
	"slices"
	"time"
)

// state is what is known about the records of one partition: which are acked, leased, to be given again, or not yet given.
// It does no reading and knows no clock; the caller serializes.
type state struct {
	frontier int64              // everything below is acked
	acked    map[int64]struct{} // above the frontier
	next     int64              // from here on nothing was given since the start
	top      int64              // above the acks of before the start; records below may be given although too many are acked ahead
	ready    offsets            // below next: neither acked nor leased
	leases   map[int64]*lease
	ends     leases
}

// lease is one record in a consumer's hands.
type lease struct {
	offset int64
	nonce  string
	until  time.Time
	index  int // in ends
}

// newState begins at a frontier with acks ahead of it.
func newState(frontier int64, acked []int64) *state {
	s := &state{frontier: frontier, next: frontier, acked: map[int64]struct{}{}, leases: map[int64]*lease{}}
	for _, offset := range acked {
		if offset >= frontier {
			s.acked[offset] = struct{}{}
			s.top = max(s.top, offset+1)
		}
	}
	s.absorb()
	return s
}

// lend leases the record at offset. The caller took it from ready or from next.
func (s *state) lend(offset int64, nonce string, until time.Time) {
	l := &lease{offset: offset, nonce: nonce, until: until}
	s.leases[offset] = l
	heap.Push(&s.ends, l)
}

// fresh is up to where records that were never given may be leased, with the log ending at high.
func (s *state) fresh(high int64, maxAhead int) int64 {
	if len(s.acked) >= maxAhead {
		return min(s.top, high)
	}
	return high
}

// find returns the lease that a handle names, nil when it is gone.
func (s *state) find(offset int64, nonce string) *lease {
	if l := s.leases[offset]; l != nil && l.nonce == nonce {
		return l
	}
	return nil
}

// end takes a lease away.
func (s *state) end(l *lease) {
	delete(s.leases, l.offset)
	heap.Remove(&s.ends, l.index)
}

// ack ends a lease for good.
func (s *state) ack(l *lease) {
	s.end(l)
	s.acked[l.offset] = struct{}{}
	s.absorb()
}

// giveBack ends a lease and has its record given again.
func (s *state) giveBack(l *lease) {
	s.end(l)
	heap.Push(&s.ready, l.offset)
}

// extend moves the end of a lease.
func (s *state) extend(l *lease, until time.Time) {
	l.until = until
	heap.Fix(&s.ends, l.index)
}

// expire gives back what has run out by now.
func (s *state) expire(now time.Time) {
	for len(s.ends) > 0 && !s.ends[0].until.After(now) {
		s.giveBack(s.ends[0])
	}
}

// absorb moves the frontier over the acks that it has reached.
func (s *state) absorb() {
	for {
		if _, ok := s.acked[s.frontier]; !ok {
			break
		}
		delete(s.acked, s.frontier)
		s.frontier++
	}
	s.next = max(s.next, s.frontier)
}

// trim forgets everything below oldest, which retention took, and returns how many of it were not acked.
func (s *state) trim(oldest int64) (dropped int64) {
	if oldest <= s.frontier {
		return 0
	}
	dropped = oldest - s.frontier
	for offset := range s.acked {
		if offset < oldest {
			delete(s.acked, offset)
			dropped--
		}
	}
	for offset, l := range s.leases {
		if offset < oldest {
			s.end(l)
		}
	}
	for len(s.ready) > 0 && s.ready[0] < oldest {
		heap.Pop(&s.ready)
	}
	s.frontier = oldest
	s.absorb()
	return dropped
}

// ahead lists the acks above the frontier in order.
func (s *state) ahead() []int64 { return slices.Sorted(maps.Keys(s.acked)) }

// offsets is a heap, the lowest first.
type offsets []int64

func (o offsets) Len() int           { return len(o) }
func (o offsets) Less(i, j int) bool { return o[i] < o[j] }
func (o offsets) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o *offsets) Push(x any)        { *o = append(*o, x.(int64)) }
func (o *offsets) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// leases is a heap, the one that ends first at the front.
type leases []*lease

func (l leases) Len() int           { return len(l) }
func (l leases) Less(i, j int) bool { return l[i].until.Before(l[j].until) }
func (l leases) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}
func (l *leases) Push(x any) {
	x.(*lease).index = len(*l)
	*l = append(*l, x.(*lease))
}
func (l *leases) Pop() any {
	n := len(*l) - 1
	last := (*l)[n]
	(*l)[n] = nil
	*l = (*l)[:n]
	return last
}

// takeReady removes the lowest offset that is to be given again.
func (s *state) takeReady() { heap.Pop(&s.ready) }
