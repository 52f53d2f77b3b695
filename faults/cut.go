package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"narad.example/harness/cluster"
)

// within is how soon a break must show, on new connections and on those that are there (BR-34, BR-37).
const within = time.Second

// Cut takes the link down: open connections end, new ones are refused. With a flap it goes down and up in turn.
type Cut struct {
	Label string
	Flap  *Flap

	flapping *flapping
}

// Name is the label, or what the fault is.
func (c *Cut) Name() string { return label(c.Label, "cut on "+theLink) }

func (c *Cut) about() (kind, on string) { return "cut", theLink }

// Applies checks the flap.
func (c *Cut) Applies(cluster.Rig) error { return c.Flap.check() }

// Inject cuts, and shows that a connection which was open ends and that a new one is refused.
func (c *Cut) Inject(ctx context.Context, rig cluster.Rig, rnd *rand.Rand) (bool, Evidence, error) {
	link := rig.Link()
	if c.Flap != nil {
		c.flapping = c.Flap.start(ctx, rnd, func(ctx context.Context) (bool, error) {
			landed, _, err := cutNow(ctx, link)
			return landed, err
		}, link.Enable)
		return false, nil, nil
	}
	return cutNow(ctx, link)
}

func cutNow(ctx context.Context, link cluster.Link) (bool, Evidence, error) {
	held, err := link.Hold(ctx)
	if err != nil {
		return false, nil, fmt.Errorf("the link is down before it is cut: %w", err)
	}
	defer func() { _ = held.Close() }() // it is meant to be cut already
	if _, err = held.Ping(ctx, 1); err != nil {
		return false, nil, fmt.Errorf("the link is down before it is cut: %w", err)
	}
	if err = link.Disable(ctx); err != nil {
		return false, nil, err
	}
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, open := held.Ping(soon, 1)
	_, fresh := link.Probe(soon, 1)
	return open != nil && fresh != nil, Evidence{"open_connection": errText(open), "new_connection": errText(fresh)}, nil
}

// Heal brings the link up and probes it.
func (c *Cut) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	landed, e, flapErr := c.flapping.stop()
	if err := rig.Link().Enable(ctx); err != nil {
		return landed, e, errors.Join(flapErr, err)
	}
	return landed, e, errors.Join(flapErr, open(ctx, rig.Link()))
}

// open verifies that the link is up and carries bytes.
func open(ctx context.Context, link cluster.Link) error {
	enabled, _, err := link.State(ctx)
	if err != nil {
		return err
	}
	if !enabled {
		return errors.New("the link does not show that it is up")
	}
	if _, err = link.Probe(ctx, 1); err != nil {
		return fmt.Errorf("the link is up and carries nothing: %w", err)
	}
	return nil
}

func label(given, otherwise string) string {
	if given != "" {
		return given
	}
	return otherwise
}
