package sender

import (
	"slices"
	"sync"
)

// slots are the requests that a remote may have on the wire from this node (max_in_flight), first come first served, resized
// live (SND-12, DEC-28). After the limit was lowered, requests on the wire end and none starts until fewer are out.
type slots struct {
	mu    sync.Mutex // guards the fields below; nobody waits while holding it
	limit int
	out   int
	queue []*slotTicket
}

type slotTicket struct{ grant chan struct{} } // closed once the slot is taken

func (s *slots) resize(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.serve()
}

// ask queues for a slot.
func (s *slots) ask() *slotTicket {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &slotTicket{grant: make(chan struct{})}
	s.queue = append(s.queue, t)
	s.serve()
	return t
}

// giveUp leaves the queue, or gives back the slot when it was granted meanwhile.
func (s *slots) giveUp(t *slotTicket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, t); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		return
	}
	s.out--
	s.serve()
}

// release gives a slot back after its request.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out--
	s.serve()
}

func (s *slots) serve() {
	for len(s.queue) > 0 && s.out < s.limit {
		t := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		s.out++
		close(t.grant)
	}
}
