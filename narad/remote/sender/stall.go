package sender

import (
	"sync"
	"time"
)

// seen is what a hold depends on: when it differs, whatever held is tried again at once (ANS-09, RUN-11).
type seen struct {
	remote   Remote
	targetID string
}

// stall holds all lanes of a cursor after an answer that the cursor as a whole must wait out. After 30 s, or at once when the remote
// changed, the target is checked (RUN-01). A stall that a check began ends with the next good check; one that a chunk began lets
// one lane try again, and the others wait for what it hears. It decides who waits, the signboard what is shown.
type stall struct {
	mu      sync.Mutex // guards the fields below
	holds   bool
	byCheck bool // a check began it
	checked bool // since the wait was over, so a lane may try
	until   time.Time
	under   seen
	trial   *lane
	wake    chan struct{} // closed and replaced when the others may look again
}

// changed returns a channel that is closed when the stall lets others look again; take it before asking.
func (s *stall) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wake
}

// enter begins a stall, or begins it anew after a trial or a check that met it again. A chunk's answer does not take the place of
// what a check found.
func (s *stall) enter(now seen, byCheck bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds && s.byCheck && !byCheck {
		return
	}
	s.holds, s.byCheck, s.checked, s.until, s.under, s.trial = true, byCheck, false, time.Now().Add(stallWait), now, nil
	s.broadcast()
}

// due is when a check is due before the stall is tried again, the zero time at once; false when no stall waits for one.
func (s *stall) due(now seen) (at time.Time, stands bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.holds || s.checked:
		return time.Time{}, false
	case s.under != now:
		return time.Time{}, true
	}
	return s.until, true
}

// stands tells whether everything of the cursor waits for a check.
func (s *stall) stands() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds && !s.checked
}

// hasten makes the check before the retry due at once: the link was paused.
func (s *stall) hasten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked, s.until = false, time.Time{}
}

// verified is a good check.
func (s *stall) verified() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.holds {
		return
	}
	if s.checked = true; s.byCheck {
		s.holds, s.trial = false, nil
	}
	s.broadcast()
}

// unverified is a check that errored. It tells whether records may go on: a chunk's stall may be tried, what a check found stands.
func (s *stall) unverified(now seen, interval time.Duration) (onwards bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.holds:
	case s.byCheck:
		s.until, s.under = time.Now().Add(min(errorWait, interval)), now
		s.broadcast()
		return false
	default:
		s.checked = true
		s.broadcast()
	}
	return true
}

// ask tells a lane whether it may go on. The first to ask after the check becomes the trial.
func (s *stall) ask(l *lane) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.holds || s.trial == l:
		return true
	case s.trial != nil || !s.checked:
		return false
	}
	s.trial = l
	return true
}

// heard ends a lane's trial: with any answer but another stall nobody is held any more. What is shown stays until a 202.
func (s *stall) heard(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds && s.trial == l {
		s.holds, s.trial = false, nil
		s.broadcast()
	}
}

// withdraw gives up a trial that a lane could not make.
func (s *stall) withdraw(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trial == l {
		s.trial = nil
		s.broadcast()
	}
}

func (s *stall) broadcast() {
	close(s.wake)
	s.wake = make(chan struct{})
}
