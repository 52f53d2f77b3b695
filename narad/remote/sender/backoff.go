package sender

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Bounds of the waits (seed: Remote replication constants; DEC-44).
const (
	backoffFloor = 250 * time.Millisecond
	backoffFirst = 500 * time.Millisecond // the first ceiling, which doubles
	gateCeiling  = 30 * time.Second
	laneCeiling  = 2 * time.Second
	authWait     = 30 * time.Second // ANS-08
	stallWait    = 30 * time.Second // a stall, and a blocked record, are tried again after it
	tripAfter    = 3                // transient failures in a row close the gate
)

// dice is a random source that many goroutines use.
type dice struct {
	mu sync.Mutex // guards r
	r  *rand.Rand
}

// between is uniform from backoffFloor to ceiling (full jitter, DEC-44).
func (d *dice) between(ceiling time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return backoffFloor + time.Duration(d.r.Int64N(int64(ceiling-backoffFloor)+1))
}

// fraction is uniform from 0 to 1.
func (d *dice) fraction() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64()
}

// id is a fresh request ID: 16 hex (SND-14).
func (d *dice) id() string {
	d.mu.Lock()
	n := d.r.Uint64()
	d.mu.Unlock()
	const hex = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = hex[n>>60]
		n <<= 4
	}
	return string(b[:])
}

// backoff draws waits whose ceiling doubles from failure to failure. It is not safe for concurrent use.
type backoff struct {
	dice    *dice
	ceiling time.Duration // the highest that the ceiling grows to
	present time.Duration // the ceiling of the last wait; 0 before the first
}

// next doubles the ceiling and draws a wait.
func (b *backoff) next() time.Duration {
	b.present = min(b.ceiling, max(backoffFirst, 2*b.present))
	return b.dice.between(b.present)
}

// again draws a wait under the present ceiling.
func (b *backoff) again() time.Duration { return b.dice.between(max(backoffFirst, b.present)) }

// reset starts over.
func (b *backoff) reset() { b.present = 0 }
