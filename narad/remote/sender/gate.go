package sender

import (
	"sync"
	"time"

	"narad.example/narad/wire"
)

// readTurn is how long the cursor that may read a slab behind its check has until it comes back with a chunk. After it the check
// alone is the probe: there was nothing to read.
const readTurn = time.Second

// gate stands before everything that goes from this node to one remote under one credential version (GAT-01 to GAT-06). Open,
// it lets everyone through and counts transient failures in a row. Closed, it lets one request through per backoff, the
// probe, whoever's turn it is. A new gate is closed with no wait and no failure, which DEC-27 calls half open.
//
// A probe begins with a check of the target, and the chunk follows it (RUN-06, RUN-07); a cursor without a chunk reads one slab in
// between (DEC-24). done is told the outcome of the whole.
//
// It has no goroutine: a timer fires at the end of a wait while somebody waits, and at the end of a read turn.
type gate struct {
	remote  string
	observe func(remote string, wait time.Duration) // narad_remote_gate_backoff_seconds; 0 is open

	mu      sync.Mutex // guards the fields below; nobody waits while holding it
	open    bool
	era     int // counts openings and closings, so that an answer is known to come from before one
	row     int // transient failures in a row
	backoff backoff
	until   time.Time      // closed: the probe may go
	probing bool           // closed: the probe is out, or its lane is on the way to the wire
	state   wire.LinkState // closed: why; running when nothing failed yet
	status  int            // closed: of the answer that closed it, 0 without one
	reader  *Cursor        // closed: its check is done and it may read a slab, until readBy
	readBy  time.Time
	checked verdict // of the reader's check
	waiting turns
	timer   *time.Timer
	news    chan struct{} // closed and replaced when state changes, so that those who wait show it
	retired bool          // replaced by a fresh gate; nothing touches the metric any more
}

func newGate(d *dice, remote string, observe func(string, time.Duration)) *gate {
	return &gate{remote: remote, observe: observe, backoff: backoff{dice: d, ceiling: gateCeiling}, state: wire.Running, news: make(chan struct{})}
}

// pass is the right to send one request, as the probe a check and what follows it. The outcome goes to done, exactly once.
type pass struct {
	gate    *gate
	probe   bool
	era     int
	checked *verdict // of the probe's check, when the cursor's reader made it already
}

// join asks for a pass; a reader at an open gate needs none and may read. The ticket's grant is closed when it is given; until
// then, or when the waiter no longer wants it, leave must be called.
func (g *gate) join(c *Cursor, to errand) *ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := &ticket{cursor: c, errand: to, grant: make(chan struct{})}
	if g.reader == c && to == toRead {
		g.unread() // it is back for another read: it found nothing
	}
	if g.open {
		k.granted = true
		close(k.grant)
		return k
	}
	g.waiting.join(k)
	g.serve()
	return k
}

// take turns a granted lane's ticket into a pass. False when the gate closed meanwhile: the lane joins again.
func (g *gate) take(k *ticket) (pass, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if k.probe {
		return pass{g, true, g.era, k.checked}, true
	}
	return pass{g, false, g.era, nil}, g.open
}

// read lets the cursor whose check was the probe so far read a slab, and come back with a chunk (DEC-24).
func (g *gate) read(c *Cursor, v *verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
	g.reader, g.readBy, g.checked = c, time.Now().Add(readTurn), *v
	g.serve()
}

// unread ends a read turn that brought no chunk: its check was the whole probe.
func (g *gate) unread() {
	v := g.checked
	g.reader = nil
	g.probed(&v)
}

// leave gives up a ticket. A turn that it had goes to the next one at once (DEC-25).
func (g *gate) leave(k *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !k.granted:
		g.waiting.leave(k)
	case k.probe:
		g.probing = false
		if k.checked != nil {
			g.probed(k.checked)
		}
	}
	g.serve()
}

// forget takes back what a cursor that ends may still have: its turn to read.
func (g *gate) forget(c *Cursor) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reader == c {
		g.unread()
	}
	g.serve()
}

// notice is what those who wait at a closed gate show.
type notice struct {
	closed bool
	state  wire.LinkState // that closed it; running when nothing has failed yet
	status int            // of the answer that closed it, 0 without one
	era    int
	news   <-chan struct{} // closed when this changes; take it before reading
}

// trouble is what a cursor shows that waits at the gate; none while it is open.
func (n notice) trouble() trouble {
	if !n.closed || n.state == wire.Running {
		return trouble{}
	}
	return trouble{n.state, n.status}
}

func (g *gate) notice() notice {
	g.mu.Lock()
	defer g.mu.Unlock()
	return notice{!g.open, g.state, g.status, g.era, g.news}
}

// tell sets what the notice says.
func (g *gate) tell(state wire.LinkState, status int) {
	if g.state == state {
		return
	}
	g.state, g.status = state, status
	g.renew()
}

func (g *gate) renew() {
	close(g.news)
	g.news = make(chan struct{})
}

// done is told the answer to a request. It returns whether the gate is closed now, and whether the answer came late: to a request from
// before the gate last opened or closed, whose wait is then no wait for that answer.
func (g *gate) done(p pass, v *verdict) (closed, late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.serve()
	switch late = !p.probe && p.era != g.era; {
	case p.probe:
		g.probing = false
		g.probed(v)
	case late:
		g.late(v)
	default:
		g.counted(v)
	}
	return !g.open, late
}

// refused is the answer to a check that did not pass the gate (DEC-48).
func (g *gate) refused(v *verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		g.shut(v, g.wait(v))
	} else {
		g.late(v)
	}
	g.serve()
}

// counted is an answer at the open gate that its request passed.
func (g *gate) counted(v *verdict) {
	switch v.effect {
	case aboutAccepted:
		g.row = 0
		g.backoff.reset()
	case aboutRecord:
		g.row = 0
	case aboutTransient:
		if g.row++; g.row >= tripAfter {
			g.shut(v, g.backoff.next())
		}
	case aboutRemote:
		g.shut(v, g.wait(v))
	case aboutNothing:
	}
}

// probed is the answer to the probe (GAT-03). An answer about its topic or record opens the gate too, but only a 202 starts the
// backoff over.
func (g *gate) probed(v *verdict) {
	switch v.effect {
	case aboutAccepted:
		g.backoff.reset()
		g.unlock()
	case aboutRecord:
		g.unlock()
	case aboutTransient:
		g.shut(v, g.backoff.next())
	case aboutRemote:
		g.shut(v, g.wait(v))
	case aboutNothing:
		if v.landed { // a probe that was sent counts, whoever it belonged to (DEC-25)
			g.until = later(g.until, time.Now().Add(g.backoff.again()))
		}
	}
}

// late is the answer to a request from before the gate closed. On a closed gate it can lengthen the wait and show a worse state;
// it never opens it, never doubles the backoff, and touches an opened one only by ending a row of failures (DEC-26).
func (g *gate) late(v *verdict) {
	if v.effect != aboutTransient && v.effect != aboutNothing {
		g.row = 0
	}
	if g.open || v.effect == aboutAccepted || v.effect == aboutRecord || v.effect == aboutNothing {
		return
	}
	g.tell(wire.Worse(v.state, g.state), v.status)
	if wait := fixedWait(v); wait > 0 {
		g.until = later(g.until, time.Now().Add(wait))
		g.show()
	}
}

// wait is how long a refusal of the remote as a whole closes the gate (GAT-02).
func (g *gate) wait(v *verdict) time.Duration {
	if fixed := fixedWait(v); fixed > 0 {
		return fixed
	}
	return g.backoff.next()
}

// fixedWait is a wait that is not the backoff's: 30 s for auth_failed, the target's Retry-After. 0 when there is none.
func fixedWait(v *verdict) time.Duration {
	if v.state == wire.AuthFailed {
		return authWait
	}
	return v.retryAfter
}

func (g *gate) shut(v *verdict, wait time.Duration) {
	if g.open {
		g.open = false
		g.era++
		g.until = time.Time{}
	}
	g.row, g.reader = 0, nil
	g.tell(v.state, v.status)
	g.until = later(g.until, time.Now().Add(wait))
	g.show()
}

func (g *gate) unlock() {
	g.open = true
	g.era++
	g.row, g.reader = 0, nil
	g.state, g.status = wire.Running, 0
	g.renew()
	for _, k := range g.waiting.all() {
		k.granted = true
		close(k.grant)
	}
	g.show()
}

func (g *gate) show() {
	switch {
	case g.retired:
	case g.open:
		g.observe(g.remote, 0)
	default:
		g.observe(g.remote, max(0, time.Until(g.until)))
	}
}

// serve gives the turn of a closed gate to whoever has it, and sets the timer for what is due later.
func (g *gate) serve() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	now := time.Now()
	if !g.open && !g.probing && g.reader != nil {
		if now.Before(g.readBy) {
			if k := g.waiting.lane(g.reader); k != nil {
				v := g.checked
				k.checked, g.reader = &v, nil
				g.probe(k)
				return
			}
			g.wakeAt(g.readBy)
			return
		}
		g.unread()
	}
	if g.open || g.probing || g.waiting.empty() {
		return
	}
	if now.Before(g.until) {
		g.wakeAt(g.until)
		return
	}
	g.probe(g.waiting.next())
}

func (g *gate) probe(k *ticket) {
	g.probing = true
	k.granted, k.probe = true, true
	close(k.grant)
}

func (g *gate) wakeAt(at time.Time) {
	g.timer = time.AfterFunc(time.Until(at), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.serve()
	})
}

// retire ends a gate whose credential version is over. Answers that still come touch nothing that anyone waits for (DEC-27);
// whoever waits is told by Remotes.Changed and joins the fresh one.
func (g *gate) retire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.retired = true
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
