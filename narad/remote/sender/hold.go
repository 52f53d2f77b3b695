package sender

import (
	"sync"
	"time"
)

// This file is what becomes of a slab's records while its lanes wait (GAT-07, GAT-08, GAT-10, DEC-39): a lane that waits longer
// than holdAfter copies what it has not sent, as far as the node's budget goes, and the slab's memory goes back to the reader once
// no lane needs it. Where the budget is full the cursor keeps nothing, and reads the slab again after the wait.

const (
	holdAfter      = time.Second // a shorter wait leaves the records where the reader put them
	recordOverhead = 64          // bytes counted for a held record beside key and payload
)

// budget is the memory that a node's waiting lanes may hold records in, first come first served.
type budget struct {
	limit    int64 // 0 holds nothing
	observer Observer

	mu      sync.Mutex // guards the fields below
	used    int64
	holders []*shipment // those with a share
	freed   chan struct{}
}

func newBudget(limit int64, o Observer) *budget {
	return &budget{limit: limit, observer: o, freed: make(chan struct{})}
}

// share is what a shipment has of the budget; the budget's lock guards it.
type share struct {
	bytes   int64
	paused  time.Time // since when its link is paused; zero when it is not
	evicted bool      // it was told to give back
}

// take asks for n bytes. Without room, the cursor that is paused the longest is told to give its share back, and freed is closed when
// any share was; a nil freed is a refusal.
func (b *budget) take(s *shipment, n int64) (ok bool, freed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case n > b.limit:
		return false, nil
	case b.used+n <= b.limit:
		if s.share.bytes == 0 {
			b.holders = append(b.holders, s)
		}
		s.share.bytes += n
		b.used += n
		b.observer.Held(b.used)
		return true, nil
	}
	var longest *shipment
	for _, h := range b.holders {
		switch {
		case h == s || h.share.paused.IsZero():
		case h.share.evicted:
			return false, b.freed // on its way
		case longest == nil || h.share.paused.Before(longest.share.paused):
			longest = h
		}
	}
	if longest == nil {
		return false, nil
	}
	longest.share.evicted = true
	longest.giveUp()
	return false, b.freed
}

// give gives bytes back.
func (b *budget) give(s *shipment, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if s.share.bytes -= n; s.share.bytes == 0 {
		for i, h := range b.holders {
			if h == s {
				b.holders = append(b.holders[:i], b.holders[i+1:]...)
				break
			}
		}
	}
	b.observer.Held(b.used)
	close(b.freed)
	b.freed = make(chan struct{})
}

// pause notes whether the link of a shipment is paused.
func (b *budget) pause(s *shipment, paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !paused:
		s.share.paused = time.Time{}
	case s.share.paused.IsZero():
		s.share.paused = time.Now()
	}
}

// slabUse is which lanes of a shipment still need the slab's own memory.
type slabUse struct {
	release func() // gives the memory back; nil leaves it until Ship returns

	mu      sync.Mutex // guards the fields below
	running int        // lanes
	reading int        // lanes that have no copy
}

// begin counts the lanes.
func (u *slabUse) begin(lanes int) { u.running, u.reading = lanes, lanes }

// copied is a lane that has a copy now; ended is one that runs no more. The memory goes back when nobody reads it and somebody runs.
func (u *slabUse) copied(r *remote, c *Cursor) { u.leave(r, c, 0) }

func (u *slabUse) ended(r *remote, c *Cursor, hasCopy bool) {
	if hasCopy {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.running--
		return
	}
	u.leave(r, c, 1)
}

func (u *slabUse) leave(r *remote, c *Cursor, ended int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.running -= ended
	if u.reading--; u.reading == 0 && u.running > 0 && u.release != nil {
		u.release()
		r.leaveRoom(c)
	}
}

// giveUp ends the shipment so that its slab is read again: nothing starts any more, requests on the wire end. True the first time.
func (s *shipment) giveUp() bool {
	if s.again.Swap(true) {
		return false
	}
	close(s.halt)
	return true
}

// hold copies what the lane has not sent, once it has waited for long enough. It returns when the lane has to look again (zero:
// nothing is due) and, while others make room, what tells that they did. When there is no room the shipment is given up.
func (l *lane) hold(s *shipment) (until time.Time, freed <-chan struct{}) {
	if l.kept {
		return time.Time{}, nil
	}
	now := time.Now()
	if l.since.IsZero() {
		l.since = now
	}
	if due := l.since.Add(holdAfter); now.Before(due) {
		return due, nil
	}
	n := l.queue.size()
	ok, freed := l.c.senders.held.take(s, n)
	switch {
	case ok:
		l.queue.keep()
		l.kept, l.share = true, n
		s.use.copied(l.c.remote, l.c)
	case freed == nil:
		if s.giveUp() && l.c.senders.held.limit > 0 {
			l.c.board.noRoom()
		}
	}
	return time.Time{}, freed
}

// settle ends what the lane has of the slab and of the budget.
func (l *lane) settle(s *shipment) {
	s.use.ended(l.c.remote, l.c, l.kept)
	if l.kept {
		l.c.senders.held.give(s, l.share)
	}
	l.kept, l.share, l.since = false, 0, time.Time{}
}

// takeRoom asks for one of the places of cursors with a slab that is not held, as many as the remote may have requests (GAT-10). What
// it returns is closed when the cursor has one.
func (c *Cursor) takeRoom() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room == nil {
		c.room = c.remote.rooms.ask()
	}
	return c.room.grant
}

// leaveRoom gives it back: the slab is committed, dropped or held.
func (r *remote) leaveRoom(c *Cursor) {
	c.mu.Lock()
	room := c.room
	c.room = nil
	c.mu.Unlock()
	if room != nil {
		r.rooms.giveUp(room)
	}
}
