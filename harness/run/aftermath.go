package run

import (
	"sync"
	"time"
)

// Traffic that a slow machine still owes to its faults.
const (
	afterEach = 10                // records acknowledged after the last fault
	lateMost  = 120 * time.Second // a load goes on for it so long at most
)

// aftermath is what real time may hold up: a node that takes long to start again ends its fault after the load, and the run would
// prove nothing. The load that ends last goes on until each fault has had its traffic, and as much longer as the timeline is late. In virtual
// time a scenario's times are exact, and nothing is owed.
type aftermath struct {
	mu     sync.Mutex    // guards what follows
	faults int           // that have not ended
	steps  int           // that are planned before the load's end and have not come
	last   int64         // when the last one did that has ended, in milliseconds of the run
	owed   int           // records acknowledged after that
	late   time.Duration // by how much the timeline is late
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

func (a *aftermath) came() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steps--
}

func (a *aftermath) delayed(late time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.late = late
}

// open tells whether a load that has been over for so long is still wanted.
func (a *aftermath) open(over time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.faults > 0 || a.steps > 0 || a.owed > 0 || over < a.late
}

// owes tells whether a load that is over at end, since the start of all, goes on.
func (p *play) owes(end time.Duration) bool {
	last := p.lastLoad()
	over := time.Since(p.loadStart) - last
	return !p.o.Virtual && end >= last && over < lateMost && p.after.open(over)
}

// lastLoad is when the last load ends that has a time, since the start of all.
func (p *play) lastLoad() (last time.Duration) {
	for i := range p.s.Load {
		if l := &p.s.Load[i]; l.For > 0 {
			last = max(last, l.At.D()+l.For.D())
		}
	}
	return last
}
