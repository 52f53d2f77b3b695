package sim

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"narad.example/harness/cluster"
)

// pacing is a pace in force between hosts.
type pacing struct {
	net  *Network
	pace cluster.Pace
	met  atomic.Int64
}

// carriedBy is what connections to a port carry.
func carriedBy(port uint16) string {
	switch port {
	case raftPort:
		return cluster.CarriesRaft
	case rpcPort:
		return cluster.CarriesRPC
	}
	return ""
}

// beatOf is at what pace a host speaks to another; mu must be held.
func (n *Network) beatOf(from, to *Host, port uint16) (b cluster.Beat, met []*atomic.Int64) {
	for _, p := range n.paces {
		if p.pace.Slows(from.name, to.name, carriedBy(port)) {
			b.Add(p.pace)
			met = append(met, &p.met)
		}
	}
	return b, met
}

// Pace slows what nodes say to others (cluster.Paced).
func (r *rig) Pace(_ context.Context, p cluster.Pace) (cluster.Pacing, error) {
	for _, name := range slices.Concat(p.From, p.To) {
		if _, err := r.Node(name); err != nil {
			return nil, err
		}
	}
	made := &pacing{net: r.net, pace: p}
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	r.net.paces = append(r.net.paces, made)
	r.net.settle()
	return made, nil
}

// Pacings is how many paces are in force (cluster.Paced).
func (r *rig) Pacings() int {
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	return len(r.net.paces)
}

// Met is what went at the pace (cluster.Pacing).
func (p *pacing) Met() int64 { return p.met.Load() }

// Mend takes it back, and what waits for no other pace arrives at once (cluster.Pacing).
func (p *pacing) Mend(context.Context) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.paces = slices.DeleteFunc(p.net.paces, func(q *pacing) bool { return q == p })
	p.net.settle()
	return nil
}

// late is what one end of a connection has said and the other does not hear yet.
type late struct {
	queue []piece
	bytes int
	free  time.Time // when the way is free for the next piece
	beat  cluster.Beat
	met   []*atomic.Int64
	timer *time.Timer
}

type piece struct {
	b   []byte // none is the end
	due time.Time
}

// say puts bytes on their way, at the pace of the half; mu must be held.
func (h *half) say(p []byte, own bool) {
	if len(h.late.met) == 0 && len(h.late.queue) == 0 {
		h.buf = append(h.buf, p...)
		return
	}
	for len(p) > 0 {
		n := h.late.beat.Piece(len(p))
		h.put(slices.Clone(p[:n]), own)
		p = p[n:]
	}
}

// end puts the end on its way; mu must be held.
func (h *half) end() {
	if len(h.late.met) > 0 || len(h.late.queue) > 0 {
		h.put(nil, true)
	}
}

func (h *half) put(b []byte, own bool) {
	l := &h.late
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(l.beat.Takes(len(b)))
	l.queue, l.bytes = append(l.queue, piece{b, l.free.Add(l.beat.Latency)}), l.bytes+len(b)
	if !own {
		for _, m := range l.met {
			m.Add(int64(len(b)))
		}
	}
	h.await()
}

// await wakes when the first piece is due; mu must be held.
func (h *half) await() {
	l := &h.late
	if len(l.queue) == 0 || l.timer != nil {
		return
	}
	var mine *time.Timer
	mine = time.AfterFunc(max(0, time.Until(l.queue[0].due)), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if l.timer == mine {
			l.timer = nil
			h.arrive(time.Now())
			h.await()
		}
	})
	l.timer = mine
}

// arrive lets the reader have what is due; mu must be held.
func (h *half) arrive(now time.Time) {
	l := &h.late
	for len(l.queue) > 0 && !l.queue[0].due.After(now) {
		h.buf, l.bytes = append(h.buf, l.queue[0].b...), l.bytes-len(l.queue[0].b)
		l.queue = l.queue[1:]
	}
	h.cond.Broadcast()
}

// lose drops what is on its way; mu must be held.
func (h *half) lose() {
	h.late.queue, h.late.bytes = nil, 0
	if h.late.timer != nil {
		h.late.timer.Stop()
		h.late.timer = nil
	}
}

// pace changes the pace of what this end says. Without one, what is on its way arrives.
func (c *conn) pace(b cluster.Beat, met []*atomic.Int64) {
	c.out.change(func() {
		l := &c.out.late
		l.beat, l.met = b, met
		if len(met) == 0 && len(l.queue) > 0 {
			c.out.arrive(l.queue[len(l.queue)-1].due)
			c.out.lose()
		}
	})
}
