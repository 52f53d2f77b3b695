package sender

import (
	"sync/atomic"
	"time"
)

// lane sends its records of a slab in order, one request at a time (SND-02). Everything but mark belongs to the goroutine that
// runs the lane, and between two Ships to the next one.
type lane struct {
	c     *Cursor
	index int
	queue queue
	mark  atomic.Int64 // the last offset accepted or skipped, -1 for none

	cap     int  // of request bodies, in bytes
	streak  int  // accepted requests in a row
	plain   bool // the next chunk is one that the target refused compressed (ANS-22)
	backoff backoff
	resumes time.Time // the lane's backoff ends
	stuck   time.Time // the blocked record is tried again; zero when none is blocked
	stuckOn int64     // the blocked record
	under   seen      // what the block was heard under

	way crossing

	since time.Time // the lane waits
	kept  bool      // its records are copies, in the held budget
	share int64     // bytes of that
}

// begin looks at the lane's part of a slab and tells whether there is anything to send. A block is kept over a slab that is read
// again, unless its record is gone.
func (l *lane) begin() (busy bool) {
	if l.queue.empty() {
		l.stuck = time.Time{}
		l.c.board.clear(l.index)
		return false
	}
	if !l.stuck.IsZero() {
		if l.queue.first().Offset == l.stuckOn {
			l.queue.alone()
			return true
		}
		l.stuck = time.Time{}
		l.c.board.unblock(l.index)
	}
	return true
}

// run sends until nothing is left (true) or the shipment stops (false). Each turn of the loop reads everything anew and then waits
// at most once, for the first thing that holds the lane; so a change of any of it is acted on wherever the lane waits.
func (l *lane) run(s *shipment) bool {
	defer l.c.stall.withdraw(l)
	defer l.settle(s)
	defer l.way.standDown()
	for {
		m := l.c.moment()
		m.halt = s.halt
		if l.kept {
			l.c.senders.held.pause(s, m.live.Paused)
		}
		if s.stopped(l.c) {
			return false
		}
		l.passSkipped(m.live.Skips)
		if l.queue.empty() {
			l.c.board.clear(l.index)
			return true
		}
		if m.live.Paused {
			l.way.standDown()
			l.c.stall.withdraw(l)
			l.longWait(s, m, time.Time{}, nil, nil)
			continue
		}
		if m.view.State != "" {
			l.way.standDown()
			l.c.board.fail(l.index, trouble{state: m.view.State})
			l.longWait(s, m, time.Time{}, nil, nil)
			continue
		}
		if until, held := l.held(seen{m.view.Remote, m.live.TargetID}); held {
			l.way.standDown()
			if until.Equal(l.resumes) && !until.IsZero() {
				l.wait(s, m, until, nil, nil)
			} else {
				l.longWait(s, m, until, nil, nil)
			}
			continue
		}
		if p, ok := l.admit(s, m); ok {
			l.exchange(s, m, p)
		}
	}
}

func (s *shipment) stopped(c *Cursor) bool {
	select {
	case <-s.stop:
		return true
	case <-c.closed:
		return true
	case <-s.halt:
		return true
	default:
		return false
	}
}

// passSkipped moves past records that an admin skipped and that are next in order. It is called with no request of the lane on
// the wire (DEC-35).
func (l *lane) passSkipped(skips func(int64) bool) {
	passed := 0
	for skips != nil && !l.queue.empty() && skips(l.queue.first().Offset) {
		l.mark.Store(l.queue.first().Offset)
		l.queue.pass()
		passed++
	}
	if passed == 0 {
		return
	}
	if !l.stuck.IsZero() {
		l.stuck = time.Time{}
		l.c.board.unblock(l.index)
	}
	l.c.senders.observer.Skipped(l.c.cfg.Parent, l.c.cfg.Child, passed)
}

// held tells whether the lane itself has a reason to wait, and until when: a blocked record, its backoff, a stall of its cursor. A
// blocked record and a stall are tried again at once when the remote or the recorded target changed.
func (l *lane) held(now seen) (until time.Time, held bool) {
	if time.Now().Before(l.stuck) && l.under == now {
		return l.stuck, true
	}
	if time.Now().Before(l.resumes) {
		return l.resumes, true
	}
	return time.Time{}, !l.c.stall.ask(l)
}

// admit takes one step towards the wire: the check that is owed (DEC-23), the gate, a slot. False means that it waited, or that
// something changed: the lane looks at everything again.
func (l *lane) admit(s *shipment, m moment) (pass, bool) {
	n := m.view.gate.notice()
	if !n.closed && l.c.checks.owed(m.view.gate, n.era) {
		l.way.standDown()
		l.wait(s, m, time.Time{}, nil, n.news)
		return pass{}, false
	}
	p, on, ok := l.way.step(m.view)
	switch {
	case !ok && on == nil:
	case !ok:
		if t := n.trouble(); t.state != "" {
			l.c.board.fail(l.index, t)
		}
		if n.closed && l.way.slot == nil {
			l.longWait(s, m, time.Time{}, on, n.news)
		} else {
			l.wait(s, m, time.Time{}, on, n.news)
		}
	case !p.probe && (l.c.checks.owed(p.gate, p.era) || !l.c.stall.ask(l)): // the gate closed and opened since it was asked above
		l.way.landed()
		ok = false
	}
	return p, ok
}

// longWait is a wait over which the lane's records do not stay in the slab (GAT-07).
func (l *lane) longWait(s *shipment, m moment, until time.Time, grant, news <-chan struct{}) {
	at, freed := l.hold(s)
	if l.kept {
		l.c.senders.held.pause(s, m.live.Paused)
	}
	if !at.IsZero() && (until.IsZero() || at.Before(until)) {
		until = at
	}
	if freed != nil { // paused cursors make room; it is asked for again then, and nothing else has come up
		select {
		case <-freed:
		case <-s.stop:
		case <-s.halt:
		case <-l.c.closed:
		}
		return
	}
	l.wait(s, m, until, grant, news)
}

// wait waits until a time (zero: none), a grant, or anything that may have changed.
func (l *lane) wait(s *shipment, m moment, until time.Time, grant, news <-chan struct{}) {
	l.c.rest(m, s.stop, until, grant, news)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
