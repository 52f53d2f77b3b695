package sender

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// LinkLive is what may change on a link while its cursor runs.
type LinkLive struct {
	Paused   bool
	Skips    func(offset int64) bool // whether an admin skipped the record; nil when nothing is skipped on this partition
	TargetID string                  // the recorded ID; empty leaves LinkConfig's
}

// LinkConfig describes one cursor of a link.
type LinkConfig struct {
	Parent, Child, Remote string
	TargetTopic           string
	TargetID              string // sent with every chunk (RUN-12); empty sends none
	Epoch                 string
	Partition             int
	Lanes                 int                    // 1 to 8, fixed for the life of the link (DEC-49)
	Marks                 []int64                // by lane, from the cursor file (DEC-09); missing ones are none
	Live                  func() LinkLive        // must not block; nil is never paused, nothing skipped
	Changed               func() <-chan struct{} // closed when Live may answer differently; nil is never
}

// Cursor sends one partition of a link. Ship and Wait are called by the one fan-out cursor that owns it, Wait also while a Ship
// runs (it reads ahead); Marks, Status and Close by anyone.
type Cursor struct {
	senders *Senders
	cfg     LinkConfig
	path    string // of the batch route, escaped
	remote  *remote
	board   *signboard
	stall   stall
	checks  *checks
	lanes   []*lane
	queues  []*queue      // of the lanes
	sent    atomic.Int64  // requests begun, which numbers them
	plain   atomic.Bool   // the target refused a compressed chunk; until the next good check (DEC-42)
	hungry  atomic.Bool   // there is something to send: from Wait until its slab is committed
	closed  chan struct{} // closed by Close: nothing starts any more
	life    lifetime

	mu       sync.Mutex  // guards the fields below
	shipping *shipment   // nil while no Ship runs
	room     *slotTicket // for a slab that is not held
	blocked  []*lane     // all that a slab to be read again waits for; nil when anything else is left of it
	ended    bool        // closed is closed
}

// lifetime is from Open to Close.
type lifetime struct {
	ctx     context.Context    // of checks outside a Ship
	end     context.CancelFunc // ends it
	watched chan struct{}      // closed when the cursor's goroutine has ended
}

func newLifetime() lifetime {
	ctx, end := context.WithCancel(context.Background())
	return lifetime{ctx, end, make(chan struct{})}
}

// Open makes the cursor of one partition of a link and begins to check its target. It must be closed.
func (s *Senders) Open(cfg LinkConfig) *Cursor {
	cfg.Lanes = max(1, cfg.Lanes)
	if cfg.Live == nil {
		cfg.Live = func() LinkLive { return LinkLive{} }
	}
	if cfg.Changed == nil {
		cfg.Changed = func() <-chan struct{} { return nil }
	}
	c := &Cursor{
		senders: s, cfg: cfg, path: "/v1/topics/" + url.PathEscape(cfg.TargetTopic) + "/produce/batch",
		remote: s.remote(cfg.Remote), stall: stall{wake: make(chan struct{})}, checks: newChecks(s.dice, s.now),
		closed: make(chan struct{}), life: newLifetime(),
	}
	c.board = newSignboard(s.logger, s.observer, &c.cfg, s.now)
	for i := range cfg.Lanes {
		l := &lane{c: c, index: i, cap: maxBodyBytes, backoff: backoff{dice: s.dice, ceiling: laneCeiling}}
		l.way = crossing{c: c, errand: toSend}
		l.queue.drop()
		l.mark.Store(-1)
		if i < len(cfg.Marks) {
			l.mark.Store(cfg.Marks[i])
		}
		c.lanes, c.queues = append(c.lanes, l), append(c.queues, &l.queue)
		c.remote.recap(0, l.cap)
	}
	go c.watch()
	return c
}

// live is the link at this moment.
func (c *Cursor) live() LinkLive {
	v := c.cfg.Live()
	if v.TargetID == "" {
		v.TargetID = c.cfg.TargetID
	}
	return v
}

// signals are what a waiter is woken by. They are taken before anything is read, so that no change is missed.
type signals struct{ link, remotes, stall, checks <-chan struct{} }

// moment is everything that a waiter looks at before it does the next thing.
type moment struct {
	signals
	halt <-chan struct{} // of a lane's shipment
	live LinkLive
	view view
}

// moment reads everything anew. Whoever sees the link paused asks for the check that a resume owes.
func (c *Cursor) moment() moment {
	m := moment{signals: signals{c.cfg.Changed(), c.senders.remotes.Changed(), c.stall.changed(), c.checks.changed()}}
	m.live, m.view = c.live(), c.remote.look()
	c.board.pause(m.live.Paused)
	if m.live.Paused {
		c.checks.owe()
		c.stall.hasten()
	}
	return m
}

// Wait returns nil when it is worth reading a slab: the link is not paused, the remote can be sent to, no stall waits for its check,
// and the gate is open or it is this cursor's turn to read one behind its check (GAT-04, DEC-24). It is called when there is a
// record to read; a turn that brings no chunk within a second is over. It returns ctx's error, or ErrClosed after Close.
func (c *Cursor) Wait(ctx context.Context) error {
	c.hungry.Store(true)
	x := crossing{c: c, errand: toRead}
	defer x.standDown()
	for {
		m := c.moment()
		select {
		case <-ctx.Done():
			c.board.wait(trouble{})
			return ctx.Err()
		case <-c.closed:
			return ErrClosed
		default:
		}
		until, holds := c.holdsReading(m)
		if holds {
			x.standDown()
			c.remote.leaveRoom(c)
			c.rest(m, ctx.Done(), until, nil, nil)
			continue
		}
		n := m.view.gate.notice()
		if n.closed {
			c.board.wait(n.trouble())
		}
		if room := c.takeRoom(); !closed(room) {
			x.standDown()
			c.rest(m, ctx.Done(), time.Time{}, room, n.news)
			continue
		}
		if x.granted(m.view) && !x.ticket.probe {
			if c.stall.stands() { // the check that opened the gate found it
				x.standDown()
				continue
			}
			if !n.closed { // at a closed gate the cursor's next 202 ends what it shows
				c.board.wait(trouble{})
			}
			return nil
		}
		p, on, ok := x.step(m.view)
		switch {
		case ok:
			if c.checkToRead(ctx, &x, m, p) {
				return nil
			}
		case on != nil:
			c.rest(m, ctx.Done(), time.Time{}, on, n.news)
		}
	}
}

// holdsReading tells whether something other than the gate holds the cursor back from reading, and until when (zero: a change).
func (c *Cursor) holdsReading(m moment) (until time.Time, holds bool) {
	switch {
	case m.live.Paused:
		return time.Time{}, true
	case m.view.State != "":
		c.board.wait(trouble{state: m.view.State})
		return time.Time{}, true
	case c.stall.stands():
		c.board.wait(trouble{})
		return time.Time{}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.blocked { // a slab that could not be held is read again for a lane that may try
		free := l.stuck.IsZero() || l.under != seen{m.view.Remote, m.live.TargetID} || m.live.Skips != nil && m.live.Skips(l.stuckOn)
		if free || !time.Now().Before(l.stuck) {
			return time.Time{}, false
		}
		if until.IsZero() || l.stuck.Before(until) {
			until = l.stuck
		}
	}
	return until, !until.IsZero()
}

// checkToRead makes the check of a probe that has no chunk in memory, and tells whether a slab may be read for it.
func (c *Cursor) checkToRead(ctx context.Context, x *crossing, m moment, p pass) bool {
	ctx, cancel := both(ctx, c.life.ctx)
	defer cancel()
	v, onwards := c.check(ctx, m, p, nil)
	if onwards {
		p.gate.read(c, &v)
		x.landed()
		return true
	}
	p.gate.done(p, &v)
	x.landed()
	if v.row == target.RowCut {
		c.rest(m, ctx.Done(), time.Now().Add(backoffFloor), nil, nil)
	}
	return false
}

// Marks returns, per lane, the offset of the last record of the slab in work that the target accepted or that an admin skipped;
// -1 before the first. A record at or below its lane's mark is not sent again (CUR-07).
func (c *Cursor) Marks() []int64 {
	marks := make([]int64, len(c.lanes))
	for i, l := range c.lanes {
		marks[i] = l.mark.Load()
	}
	return marks
}

// Status returns what the cursor shows.
func (c *Cursor) Status() Status {
	live := c.live()
	c.board.pause(live.Paused)
	s := c.board.status(live.Skips)
	s.LastCheck, s.Unverified = c.checks.verified()
	return s
}

// Close ends the cursor: nothing starts any more, a running Ship returns Stopped. It waits for the requests on the wire until ctx
// ends, then cuts them, and their records count as resent (DEC-09). Marks may be read after it. A second Close waits like the
// first.
func (c *Cursor) Close(ctx context.Context) {
	c.mu.Lock()
	if !c.ended {
		c.ended = true
		close(c.closed)
		c.life.end()
	}
	s := c.shipping
	c.mu.Unlock()
	if s != nil {
		select {
		case <-s.done:
		case <-ctx.Done():
			s.cut()
			<-s.done
		}
	}
	<-c.life.watched
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room != nil {
		c.remote.rooms.giveUp(c.room)
		c.room = nil
	}
	if c.board.finish() {
		c.remote.forget(c)
		for _, l := range c.lanes {
			c.remote.recap(l.cap, 0)
		}
	}
}

// stalled begins a stall of the whole cursor.
func (c *Cursor) stalled(now seen, state wire.LinkState, status int) {
	c.stall.enter(now, false)
	c.board.hold(trouble{state, status}, c.sent.Load())
}

// stopGrace is how long a Ship whose context ended waits for its requests on the wire (DEC-09).
const stopGrace = 5 * time.Second
