package run

import "sync"

// Traffic that a slow machine still owes to its faults.
const (
	afterEach = 10      // records acknowledged after the last fault
	lateMost  = 120_000 // milliseconds that a load goes on for it
)

// aftermath is what real time may hold up: a node that takes long to start again ends its fault after the load, and the run would
// prove nothing. A load goes on until each fault has had its traffic. In virtual time a scenario's times are exact, and nothing is owed.
type aftermath struct {
	mu     sync.Mutex // guards what follows
	faults int        // that have not ended
	last   int64      // when the last one did that has ended, in milliseconds of the run
	owed   int        // records acknowledged after that
}

func (a *aftermath) ended(now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults--
	a.last, a.owed = now, afterEach
}

func (a *aftermath) acknowledged(at int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at > a.last {
		a.owed--
	}
}

func (a *aftermath) open() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.faults > 0 || a.owed > 0
}

// owes tells whether a load that is over by its length goes on; over is how many milliseconds the longest load has been over.
func (p *play) owes(over int64) bool { return !p.o.Virtual && over < lateMost && p.after.open() }
