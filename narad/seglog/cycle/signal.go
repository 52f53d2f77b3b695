package cycle

import "sync"

// Signal tells any number of waiters that something changed. The zero value is ready.
type Signal struct {
	// mu guards ch.
	mu sync.Mutex
	ch chan struct{} // nil while nobody waits
}

// Wait returns a channel that the next Fire closes. Take it before reading what it is about, else a change may be missed.
func (s *Signal) Wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// Fire wakes all who wait.
func (s *Signal) Fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
