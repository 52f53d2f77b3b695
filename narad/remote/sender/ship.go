package sender

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// This file is who waits for whom: Ship owns a goroutine for each lane that has something to send and waits for all of them.

// Outcome is what became of a slab (CUR-06).
type Outcome uint8

// The outcomes.
const (
	Committed Outcome = iota + 1 // every record is on the target or was skipped: the cursor advances past the slab
	Stopped                      // the context ended or the cursor was closed: the cursor does not advance
	ReadAgain                    // the records could not be kept over a wait: the same slab again, from the unadvanced position
)

// shipment is one Ship on its way.
type shipment struct {
	stop <-chan struct{}    // closed when the context ended: nothing starts any more
	wire context.Context    // of the requests; ends when they are cut
	cut  context.CancelFunc // ends wire
	done chan struct{}      // closed when every lane has returned

	again atomic.Bool   // its records could not be kept: the slab is read again
	halt  chan struct{} // closed then
	use   slabUse       // of the slab's memory
	share share         // of the held budget, which guards it
}

// Ship sends the records of one slab, which are in offset order, and returns when every lane is done (Committed), none may go on
// (Stopped), or lanes that have to wait find no room for their records (ReadAgain; what they wait for, Wait waits for). It waits as
// long as it takes: through backoffs, stalls, pauses and blocked records. release, which may be nil, is called at most once, from
// any goroutine, when no lane needs recs any more although Ship goes on, and recs is not read after that, nor after Ship returned.
// After ctx ended a request on the wire has 5 s to end by itself.
//
// A slab that was stopped half way and is given again goes on where each lane was; one Ship runs at a time.
func (c *Cursor) Ship(ctx context.Context, recs []Record, release func()) Outcome {
	onWire, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	s := &shipment{stop: ctx.Done(), wire: onWire, cut: cut, done: make(chan struct{}), halt: make(chan struct{})}
	s.use.release = release
	defer close(s.done)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return Stopped
	}
	c.shipping, c.blocked = s, nil
	c.mu.Unlock()
	c.hungry.Store(true)
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.shipping = nil
	}()
	defer c.remote.leaveRoom(c)
	graceOver := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(graceOver)
		t := time.NewTimer(stopGrace)
		defer t.Stop()
		select {
		case <-t.C:
			cut()
		case <-onWire.Done():
		}
	})
	committed := c.lanesRun(s, recs)
	cut()
	if !unwatch() {
		<-graceOver
	}
	if committed {
		c.hungry.Store(false)
		return Committed
	}
	if s.again.Load() && ctx.Err() == nil && !closed(c.closed) {
		return ReadAgain
	}
	return Stopped
}

// lanesRun runs every lane that has something to send and waits for all. It tells whether all are done.
func (c *Cursor) lanesRun(s *shipment, recs []Record) bool {
	var busy []*lane
	for _, l := range c.lanes {
		l.queue.begin(recs, l.mark.Load())
		defer l.queue.drop()
	}
	split(recs, c.queues)
	for _, l := range c.lanes {
		if l.begin() {
			busy = append(busy, l)
		}
	}
	if len(busy) == 0 {
		return true
	}
	s.use.begin(len(busy))
	done := make([]bool, len(busy))
	var wg sync.WaitGroup
	for i, l := range busy[1:] {
		wg.Go(func() { done[i+1] = l.run(s) })
	}
	done[0] = busy[0].run(s) // one lane at a time needs no goroutine, and many links have one lane
	wg.Wait()
	var blocked []*lane
	left := 0
	for i, l := range busy {
		if done[i] {
			continue
		}
		if left++; time.Now().Before(l.stuck) {
			blocked = append(blocked, l)
		}
	}
	if left > 0 && len(blocked) == left {
		c.mu.Lock()
		c.blocked = blocked
		c.mu.Unlock()
	}
	return left == 0
}
