package sender

import (
	"sync"
	"time"

	"narad.example/narad/wire"
)

const (
	errorWait     = 30 * time.Second // an errored check is made again after it, or after check_interval_ms when that is shorter
	checkJitter   = 0.2              // of check_interval_ms, up and down
	unverifiedFor = 10 * time.Minute // without a good check flag a link (LST-08)
)

// checks is when a cursor checks its target (RUN-01, RUN-02): at its start, after a resume, under each new gate (a credential
// version has its own) and after each opening of it, and every interval. A check that one of these asks for is owed: no chunk goes
// before it was answered or, beside an open gate, errored (DEC-23). What a stall asks for stands in stall.go.
type checks struct {
	dice *dice
	now  func() time.Time // the wall clock that good checks are stamped by

	mu     sync.Mutex // guards the fields below
	gate   *gate      // that the last check passed
	era    int        // of that gate, for which the check counts
	wanted int        // grows with each resume, and each answer that asks for a check
	met    int        // wanted at the beginning of the last check
	last   time.Time  // the last check ended
	failed bool       // it errored
	factor float64    // of the interval until the next one
	good   time.Time  // the last good one
	since  time.Time  // unverified counts from here: the start, or the last good one
	wake   chan struct{}
}

func newChecks(d *dice, now func() time.Time) *checks {
	return &checks{dice: d, now: now, factor: 1, since: time.Now(), wake: make(chan struct{})}
}

// changed returns a channel that is closed when a check ended or is asked for; take it before asking anything.
func (k *checks) changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wake
}

// owe asks for a check before the next chunk.
func (k *checks) owe() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wanted == k.met {
		k.broadcast()
	}
	k.wanted++
}

// owed tells whether a check goes before the cursor's next chunk through this gate in this era.
func (k *checks) owed(g *gate, era int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.isOwed(g, era)
}

func (k *checks) isOwed(g *gate, era int) bool {
	return k.gate != g || k.era != era || k.met != k.wanted
}

// due is when the next check is due at this gate; the zero time is now.
func (k *checks) due(g *gate, era int, interval time.Duration) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.isOwed(g, era):
		return time.Time{}
	case k.failed:
		return k.last.Add(min(errorWait, interval))
	}
	return k.last.Add(time.Duration(k.factor * float64(interval)))
}

// begin is called before a check is sent; what it returns goes to ended.
func (k *checks) begin() (wanted int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wanted
}

// answered records a check that was answered: it counts for the era of its pass, the probe's for the one that follows.
func (k *checks) answered(p pass, wanted int, good bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gate, k.era, k.met = p.gate, p.era, wanted
	if p.probe {
		k.era++
	}
	k.last, k.failed = time.Now(), false
	k.factor = 1 + checkJitter*(2*k.dice.fraction()-1)
	if good {
		k.good, k.since = k.now(), k.last
	}
	k.broadcast()
}

// errored records a check without a usable answer. Beside an open gate it holds nothing any more; the probe's stays owed (RUN-07).
func (k *checks) errored(p pass, wanted int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !p.probe {
		k.gate, k.era, k.met = p.gate, p.era, wanted
	}
	k.last, k.failed = time.Now(), true
	k.broadcast()
}

// verified is the time of the last good check, and whether none came for 10 minutes.
func (k *checks) verified() (good time.Time, unverified bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.good, time.Since(k.since) >= unverifiedFor
}

func (k *checks) broadcast() {
	close(k.wake)
	k.wake = make(chan struct{})
}

// interval is check_interval_ms of a remote.
func interval(l wire.Limits) time.Duration {
	if l.CheckIntervalMS < 1 {
		l = wire.DefaultLimits()
	}
	return time.Duration(l.CheckIntervalMS) * time.Millisecond
}
