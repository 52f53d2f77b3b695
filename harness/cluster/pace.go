package cluster

import (
	"context"
	"slices"
	"time"
)

// Pace slows what the nodes From say to the nodes To, on connections that either dialled.
type Pace struct {
	From, To []string
	Carries  string
	Latency  time.Duration // every piece is so late
	Rate     int64         // bytes a second; 0 is as many as there are
	Slice    int           // bytes of a piece; 0 is as they come
	Pause    time.Duration // before each piece
}

// Slows tells whether the pace is of what one node says to the other.
func (p *Pace) Slows(from, to, carries string) bool {
	return slices.Contains(p.From, from) && slices.Contains(p.To, to) && (p.Carries == "" || p.Carries == CarriesAll || p.Carries == carries)
}

// Paced is a rig in which what nodes say to each other can be slowed.
type Paced interface {
	// Pace begins to slow.
	Pace(ctx context.Context, p Pace) (Pacing, error)
	// Pacings is how many paces are in force.
	Pacings() int
}

// Pacing is a pace in force.
type Pacing interface {
	// Met is how many bytes of the nodes went at it so far, those of the harness' probes apart.
	Met() int64
	// Mend takes it back. What waits goes at once, or with the little that it has to wait yet.
	Mend(ctx context.Context) error
}

// Beat is what the paces in force on one direction of a connection come to.
type Beat struct {
	Latency, pause time.Duration
	rate           int64
	slice          int
}

// Add lays a pace over the others: delays add up, the lowest rate and the smallest piece win.
func (b *Beat) Add(p Pace) {
	b.Latency += p.Latency
	b.pause += p.Pause
	if p.Rate > 0 && (b.rate == 0 || p.Rate < b.rate) {
		b.rate = p.Rate
	}
	if p.Slice > 0 && (b.slice == 0 || p.Slice < b.slice) {
		b.slice = p.Slice
	}
}

// Piece is how many of n bytes go as one: no more than a tenth of a second's worth.
func (b *Beat) Piece(n int) int {
	if b.slice > 0 {
		n = min(n, b.slice)
	}
	if b.rate > 0 {
		n = min(n, max(1, int(b.rate/10)))
	}
	return n
}

// Takes is how long a piece of n bytes is on the way, latency apart: the next one comes after it.
func (b *Beat) Takes(n int) time.Duration {
	d := b.pause
	if b.rate > 0 {
		d += time.Duration(int64(n) * int64(time.Second) / b.rate)
	}
	return d
}
