package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"narad.example/harness/cluster"
)

// Clock moves a node's wall clock: by a step, and by a drift in each second.
type Clock struct {
	Label string
	Node  string
	Step  time.Duration
	Drift time.Duration

	began  time.Time
	showed bool // the step, at once
}

// exact is how far a reported time may be from the asked one, beside the second to which it is cut (BR-32).
const exact = time.Second

// Name is the label, or what the fault is.
func (c *Clock) Name() string { return label(c.Label, "clock of "+c.Node) }

func (c *Clock) about() (kind, on string) { return "clock", c.Node }

// Applies checks that the node's clock can be moved.
func (c *Clock) Applies(rig cluster.Rig) error {
	_, err := clockOf(rig, c.Node)
	return err
}

func clockOf(rig cluster.Rig, node string) (cluster.Clocked, error) {
	n, err := rig.Node(node)
	if err != nil {
		return nil, err
	}
	clock, ok := n.(cluster.Clocked)
	if !ok {
		return nil, fmt.Errorf("%w: the clock of %s cannot be moved", cluster.ErrUnsupported, node)
	}
	return clock, nil
}

// Inject moves the clock and asks the node for the time before and after.
func (c *Clock) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	clock, err := clockOf(rig, c.Node)
	if err != nil {
		return false, nil, err
	}
	before, err := apart(ctx, clock)
	if err != nil {
		return false, nil, fmt.Errorf("the time of %s before the fault: %w", c.Node, err)
	}
	if !near(before, 0) {
		return false, nil, fmt.Errorf("the clock of %s is %s off before the fault", c.Node, before)
	}
	c.began = time.Now()
	if err = clock.SetClock(ctx, c.Step, c.Drift); err != nil {
		return false, nil, err
	}
	after, err := apart(ctx, clock)
	if err != nil {
		return false, nil, fmt.Errorf("the time of %s: %w", c.Node, err)
	}
	e := Evidence{"before_ms": ms(before), "asked_ms": ms(c.Step), "after_ms": ms(after)}
	c.showed = near(after, c.Step)
	return false, e, nil // it must show to the end, and a drift shows there only
}

// Heal reads the time once more, sets the clock right and reads it again.
func (c *Clock) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	clock, err := clockOf(rig, c.Node)
	if err != nil {
		return false, nil, err
	}
	e := Evidence{}
	landed := false
	if !c.began.IsZero() {
		late, terr := apart(ctx, clock)
		asked := c.Step + time.Duration(float64(c.Drift)*time.Since(c.began).Seconds())
		e["asked_at_the_end_ms"], e["at_the_end_ms"] = ms(asked), ms(late)
		landed = c.showed && terr == nil && near(late, asked) && max(asked, -asked) > 2*exact
	}
	if err = clock.SetClock(ctx, 0, 0); err != nil {
		return landed, e, err
	}
	left, err := apart(ctx, clock)
	if err == nil && !near(left, 0) {
		err = fmt.Errorf("the clock of %s is still %s off", c.Node, left)
	}
	e["healed_ms"] = ms(left)
	return landed, e, err
}

// apart is how far the node's own time is from the harness'.
func apart(ctx context.Context, clock cluster.Clocked) (time.Duration, error) {
	told, err := clock.ReportedTime(ctx)
	if err != nil {
		return 0, err
	}
	return told.Sub(time.Now().Round(0)), nil
}

// near tells whether a time that is cut to the second is the asked one.
func near(got, want time.Duration) bool {
	return got-want <= exact && want-got <= exact
}
