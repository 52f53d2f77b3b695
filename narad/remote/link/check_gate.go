package link

import (
	"context"
	"sync"
	"time"

	"narad.example/narad/wire"
)

// checkEvery is the least time between the starts of two checks of one parent (UNS-04).
const checkEvery = 10 * time.Second

// checkGate lets checks of one parent run one at a time and shares their answers with those who may have them (UNS-05).
type checkGate struct {
	mu      sync.Mutex // guards parents and everything in them
	parents map[string]*parentChecks
}

// parentChecks is the history of one parent's checks. Checks are numbered from 1.
type parentChecks struct {
	begun   int       // number of the last check that began
	started time.Time // when it did
	running chan struct{}
	ended   int             // number of the last check that ended
	last    unshippedReport // its answer
	waiting int
}

func newCheckGate() *checkGate { return &checkGate{parents: map[string]*parentChecks{}} }

// check returns the answer of a check that began after this call, its own or one that it shares. When none runs and the last
// one began a moment ago it refuses with Throttled; force takes the last answer then, since it decides nothing.
func (g *checkGate) check(ctx context.Context, parent string, force bool, read func() unshippedReport) (unshippedReport, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.enter(parent)
	defer func() { p.waiting-- }()
	seen, waited := p.begun, false
	for {
		wait := checkEvery - time.Since(p.started)
		switch {
		case p.ended > seen:
			return p.last, nil
		case p.running != nil:
			waited = true
			if err := g.pause(ctx, p.running, -1); err != nil {
				return unshippedReport{}, err
			}
		case wait <= 0 || p.begun == 0:
			g.run(p, read)
			return p.last, nil
		case force:
			return p.last, nil
		case !waited:
			return unshippedReport{}, wire.Refuse(wire.Throttled, "the parent was checked a moment ago; try again").After(wait)
		default: // it came while an older check ran, and waits for the next one
			if err := g.pause(ctx, nil, wait); err != nil {
				return unshippedReport{}, err
			}
		}
	}
}

// enter counts a caller in, and drops parents that nobody asks for any more.
func (g *checkGate) enter(parent string) *parentChecks {
	for name, p := range g.parents {
		if p.waiting == 0 && time.Since(p.started) > checkEvery {
			delete(g.parents, name)
		}
	}
	p := g.parents[parent]
	if p == nil {
		p = &parentChecks{}
		g.parents[parent] = p
	}
	p.waiting++
	return p
}

// run reads without the lock and wakes those who wait.
func (g *checkGate) run(p *parentChecks, read func() unshippedReport) {
	p.begun++
	p.started, p.running = time.Now(), make(chan struct{})
	number := p.begun
	g.mu.Unlock()
	report := read()
	g.mu.Lock()
	p.ended, p.last = number, report
	close(p.running)
	p.running = nil
}

// pause waits without the lock for a check to end, or for a time.
func (g *checkGate) pause(ctx context.Context, ended <-chan struct{}, d time.Duration) error {
	g.mu.Unlock()
	defer g.mu.Lock()
	var due <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ended:
	case <-due:
	case <-ctx.Done():
		return wire.Refuse(wire.Unavailable, "the check of what is unshipped did not end in time; try again").After(retrySoon)
	}
	return nil
}
