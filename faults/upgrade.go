package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"narad.example/harness/cluster"
)

// Upgraded is the kind of a fault that restarts a node of an older release with the present one.
const Upgraded = "upgrade"

// Upgrade stops a node that poses as an older release, and starts it as the present one.
type Upgrade struct {
	Process

	was bool // it answered as an older release before
}

// Applies checks that the node runs and poses.
func (u *Upgrade) Applies(rig cluster.Rig) error {
	n, err := rig.Node(u.Node)
	if err != nil {
		return err
	}
	old, ok := n.(cluster.Upgradable)
	switch {
	case !ok || !old.Older():
		return fmt.Errorf("%s is of no older release", u.Node)
	case !n.Running():
		return fmt.Errorf("%s does not run", u.Node)
	}
	return nil
}

// Inject shows that the node answers as an older release, and stops it.
func (u *Upgrade) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	n, err := rig.Node(u.Node)
	if err != nil {
		return false, nil, err
	}
	if u.was, err = cluster.IsOlder(ctx, n); err != nil {
		return false, nil, err
	}
	if err = u.stop(ctx, n); err != nil {
		return false, nil, err
	}
	gone, e := u.gone(ctx, n)
	e["was_older"] = u.was
	u.was = u.was && gone
	return false, e, nil // it lands when the present release answers
}

// Heal starts the node and shows that it knows remotes.
func (u *Upgrade) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	n, err := rig.Node(u.Node)
	if err != nil {
		return false, nil, err
	}
	old, ok := n.(cluster.Upgradable)
	if !ok {
		return false, nil, cluster.ErrUnsupported
	}
	begin := time.Now()
	if !n.Running() {
		if err = old.Upgrade(ctx); err == nil {
			err = u.start(ctx, n)
		}
		if err != nil {
			return false, nil, fmt.Errorf("%s is not back: %w", u.Node, err)
		}
	}
	older, err := cluster.IsOlder(ctx, n)
	return u.was && !older && err == nil, Evidence{"is_older": older, "healed_in_ms": ms(time.Since(begin))}, err
}
