package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
)

// Evidence is what a fault measured, for the ledger: plain values that JSON can hold.
type Evidence map[string]any

// Fault is one thing that can be broken and mended.
type Fault interface {
	// Name tells it from its like, with its parameters.
	Name() string
	// Applies says why the fault cannot be injected on this rig, or would leave no evidence there; nil when it can.
	Applies(rig cluster.Rig) error
	// Inject breaks it and measures. landed is true when the measurement shows the break. An error is the harness's.
	Inject(ctx context.Context, rig cluster.Rig, rnd *rand.Rand) (landed bool, e Evidence, err error)
	// Heal mends it, and verifies that. It may add evidence: a flap lands over its whole time. It may be called after an
	// Inject that failed, and undoes what that left.
	Heal(ctx context.Context, rig cluster.Rig) (landed bool, e Evidence, err error)
}

// healLimit bounds a heal with its verification.
const healLimit = 90 * time.Second

// Do injects f, holds it for hold, heals it and returns its line of the ledger. When ctx ends early it is healed at once. The
// error is trouble of the harness; the line is valid beside it, and not landed when there was any doubt.
func Do(ctx context.Context, rig cluster.Rig, f Fault, hold time.Duration, epoch time.Time, rnd *rand.Rand) (ledger.Fault, error) {
	line := ledger.Fault{Name: f.Name(), Kind: kind(f), On: on(f), Start: since(epoch), Evidence: map[string]any{}}
	if err := f.Applies(rig); err != nil {
		line.End = since(epoch)
		line.Evidence["refused"] = err.Error()
		return line, fmt.Errorf("%s: %w", f.Name(), err)
	}
	landed, e, err := f.Inject(ctx, rig, rnd)
	line.Landed = landed
	maps.Copy(line.Evidence, e)
	if err == nil {
		sleep(ctx, hold)
	}
	healing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healLimit)
	defer cancel()
	later, e, healErr := f.Heal(healing, rig)
	line.Landed = (landed || later) && err == nil
	maps.Copy(line.Evidence, e)
	line.End = since(epoch)
	if healErr != nil {
		healErr = fmt.Errorf("heal: %w", healErr)
	}
	if err = errors.Join(err, healErr); err != nil {
		return line, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return line, nil
}

// Dying is called before a fault ends a node, and what it returns when the node has ended; on a loaded machine that takes a while, in which the node
// goes on. Graceful says that the node is told to end. A nil one does nothing.
type Dying func(ctx context.Context, graceful bool) (ended func())

func (d Dying) before(ctx context.Context, graceful bool) (ended func()) {
	if d == nil {
		return func() {}
	}
	return d(ctx, graceful)
}

// described is what the ledger wants to know of a fault beside its name.
type described interface{ about() (kind, on string) }

func kind(f Fault) string {
	if d, ok := f.(described); ok {
		k, _ := d.about()
		return k
	}
	return f.Name()
}

func on(f Fault) string {
	if d, ok := f.(described); ok {
		_, o := d.about()
		return o
	}
	return ""
}

// theLink is the name of the link in the ledger.
const theLink = cluster.Source + ">" + cluster.Target

func since(epoch time.Time) int64 { return time.Since(epoch).Milliseconds() }

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

// errText is an error in the ledger's evidence, "" for none.
func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
