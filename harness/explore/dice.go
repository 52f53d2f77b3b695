package explore

import (
	"math/rand/v2"
	"time"

	"narad.example/scenarios"
)

// dice is a random source with the few throws that a generator makes.
type dice struct{ *rand.Rand }

// between is a number from low to high, both included.
func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }

// percent is true in p of 100 throws.
func (d dice) percent(p int) bool { return d.IntN(100) < p }

// tenths is a time between two numbers of tenths of a second.
func (d dice) tenths(low, high int) scenarios.Duration {
	return scenarios.Duration(d.between(low, high)) * tenth
}

// millis is a time between two numbers of milliseconds.
func (d dice) millis(low, high int) scenarios.Duration {
	return scenarios.Duration(d.between(low, high)) * scenarios.Duration(time.Millisecond)
}

// pick is one of several.
func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

const (
	tenth  = scenarios.Duration(100 * time.Millisecond)
	second = scenarios.Duration(time.Second)
)
