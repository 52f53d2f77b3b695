package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Flap switches a whole fault on and off in turn. Each time is rolled between half and one and a half of what is named.
type Flap struct{ On, Off time.Duration }

func (f *Flap) check() error {
	if f != nil && (f.On <= 0 || f.Off <= 0) {
		return errors.New("a flap needs on and off, both above 0")
	}
	return nil
}

// flapping is a flap at work: one goroutine, ended by stop. A nil flapping is none.
type flapping struct {
	end  context.CancelFunc
	done sync.WaitGroup

	// What follows is the goroutine's until done.
	schedule []map[string]int64
	landed   int
	err      error
}

// start runs the flap until stop: apply switches the fault on and tells whether that shows, undo switches it off.
func (f *Flap) start(ctx context.Context, rnd *rand.Rand, apply func(context.Context) (bool, error), undo func(context.Context) error) *flapping {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &flapping{end: cancel}
	g.done.Go(func() {
		begin := time.Now()
		for ctx.Err() == nil {
			on, off := roll(rnd, f.On), roll(rnd, f.Off)
			g.schedule = append(g.schedule, map[string]int64{"at_ms": ms(time.Since(begin)), "on_ms": ms(on), "off_ms": ms(off)})
			upTo := time.Now().Add(on)
			landed, err := apply(ctx)
			if landed {
				g.landed++
			}
			if err != nil && ctx.Err() == nil {
				g.err = errors.Join(g.err, err)
				return
			}
			sleep(ctx, time.Until(upTo))
			// The undo is not cut short by stop: half of it would be neither on nor off.
			if err = undo(context.WithoutCancel(ctx)); err != nil {
				g.err = errors.Join(g.err, err)
				return
			}
			sleep(ctx, off)
		}
	})
	return g
}

// stop ends the flap and tells whether it showed at least every other time.
func (g *flapping) stop() (bool, Evidence, error) {
	if g == nil {
		return false, nil, nil
	}
	g.end()
	g.done.Wait()
	return g.landed > 0 && 2*g.landed >= len(g.schedule), Evidence{"schedule": g.schedule, "times_on": len(g.schedule), "times_landed": g.landed}, g.err
}

func roll(rnd *rand.Rand, d time.Duration) time.Duration {
	return d/2 + time.Duration(rnd.Int64N(int64(d)))
}
