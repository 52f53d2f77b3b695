package link

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"narad.example/narad/wire"
)

// Rates are how often this node does what costs others something. A zero member is its default.
type Rates struct {
	RemoteWrites int           // of remotes a minute, 10 (WRT-09)
	ChildWrites  int           // of remote children a minute, 60 (WRT-09)
	CheckEvery   time.Duration // least time between the starts of two checks of one remote, 5 s (TGT-13)
}

func (r Rates) filled() Rates {
	r.RemoteWrites = cmp.Or(r.RemoteWrites, 10)
	r.ChildWrites = cmp.Or(r.ChildWrites, 60)
	r.CheckEvery = cmp.Or(r.CheckEvery, 5*time.Second)
	return r
}

// window lets so many through in any minute.
type window struct {
	most int

	mu   sync.Mutex  // guards past
	past []time.Time // those let through, oldest first, at most `most`
}

// take counts one in, or refuses with Throttled and the time until the oldest is a minute old.
func (w *window) take() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if len(w.past) >= w.most {
		if wait := time.Minute - now.Sub(w.past[0]); wait > 0 {
			return wire.Refuse(wire.Throttled, "this node has taken %d such writes within a minute; try again", w.most).After(wait)
		}
		w.past = append(w.past[:0], w.past[1:]...)
	}
	w.past = append(w.past, now)
	return nil
}

// spacing keeps the checks of one remote apart. Test, dry run, attach and resume count together (DEC-48).
type spacing struct {
	every time.Duration

	mu   sync.Mutex // guards last
	last map[string]time.Time
}

// takeSoon is take for a check that another member asks for: what is left of the spacing is waited for up to patience, since two clocks that
// measure one spacing differ by what the calls took.
func (s *spacing) takeSoon(ctx context.Context, remote string, patience time.Duration) error {
	err := s.take(remote)
	var p *wire.Problem
	if !errors.As(err, &p) || p.RetryAfter > patience {
		return err
	}
	select {
	case <-ctx.Done():
		return err
	case <-time.After(p.RetryAfter):
		return s.take(remote)
	}
}

// take lets a check of the remote begin, or refuses with Throttled.
func (s *spacing) take(remote string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for name, at := range s.last {
		if now.Sub(at) >= s.every {
			delete(s.last, name) // also of remotes that are gone
		}
	}
	if at, ok := s.last[remote]; ok {
		return wire.Refuse(wire.Throttled, "the remote was checked a moment ago; try again").After(s.every - now.Sub(at))
	}
	s.last[remote] = now
	return nil
}
