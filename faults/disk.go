package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"narad.example/harness/cluster"
)

// Disk breaks a node's disk while it lasts: it is full, its syncs fail or are slow, bits of its files are others.
type Disk struct {
	Label string
	Node  string
	Disk  cluster.DiskFault

	broken cluster.Broken
}

// Name is the label, or what the fault is.
func (d *Disk) Name() string { return label(d.Label, d.Disk.Kind+" on the disk of "+d.Node) }

func (d *Disk) about() (kind, on string) { return d.Disk.Kind, d.Node }

// Applies checks that the node's disk can be broken.
func (d *Disk) Applies(rig cluster.Rig) error {
	_, err := diskOf(rig, d.Node)
	return err
}

// Inject breaks the disk. Only bits that changed can be seen at once.
func (d *Disk) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	disk, err := diskOf(rig, d.Node)
	if err != nil {
		return false, nil, err
	}
	if d.broken, err = disk.Damage(ctx, d.Disk); err != nil {
		return false, nil, err
	}
	return false, Evidence{"files": d.Disk.Files}, nil
}

// Heal mends the disk. The evidence is how many operations met it.
func (d *Disk) Heal(ctx context.Context, _ cluster.Rig) (bool, Evidence, error) {
	if d.broken == nil {
		return false, nil, nil
	}
	hits := d.broken.Hits()
	return hits > 0, Evidence{"met_by": hits}, d.broken.Mend(ctx)
}

func diskOf(rig cluster.Rig, node string) (cluster.Disk, error) {
	n, err := rig.Node(node)
	if err != nil {
		return nil, err
	}
	disk, ok := n.(cluster.Disk)
	if !ok {
		return nil, fmt.Errorf("%w: the disk of %s cannot be broken", cluster.ErrUnsupported, node)
	}
	return disk, nil
}

// Power cuts a node's power: it dies, and what was not synced is gone from its disk. Torn keeps some sectors of that. With a flap it
// is cut and back in turn, at times that are rolled.
type Power struct {
	Label string
	Node  string
	Torn  bool
	Flap  *Flap
	Dying Dying // of each cut

	flapping *flapping
	lost     int
}

// Name is the label, or what the fault is.
func (p *Power) Name() string { return label(p.Label, p.kind()+" on "+p.Node) }

func (p *Power) kind() string {
	if p.Torn {
		return cluster.TornWrite
	}
	return cluster.PowerLoss
}

func (p *Power) about() (kind, on string) { return p.kind(), p.Node }

// Applies checks that the node runs and that its power can be cut.
func (p *Power) Applies(rig cluster.Rig) error {
	if _, err := diskOf(rig, p.Node); err != nil {
		return err
	}
	n, err := rig.Node(p.Node)
	if err != nil {
		return err
	}
	if !n.Running() {
		return fmt.Errorf("%s does not run", p.Node)
	}
	return p.Flap.check()
}

// Inject cuts the power, and shows that the node is gone.
func (p *Power) Inject(ctx context.Context, rig cluster.Rig, rnd *rand.Rand) (bool, Evidence, error) {
	if p.Flap == nil {
		landed, err := p.cut(ctx, rig, rnd)
		return landed && p.lost > 0, Evidence{"files_that_lost_something": p.lost}, err
	}
	p.flapping = p.Flap.start(ctx, rnd, func(ctx context.Context) (bool, error) { return p.cut(ctx, rig, rnd) },
		func(ctx context.Context) error { return p.back(ctx, rig) })
	return false, nil, nil
}

// cut ends the node once. What lands is that it is gone; how much was lost is known over all cuts.
func (p *Power) cut(ctx context.Context, rig cluster.Rig, rnd *rand.Rand) (bool, error) {
	disk, err := diskOf(rig, p.Node)
	if err != nil {
		return false, err
	}
	n, err := rig.Node(p.Node)
	if err != nil {
		return false, err
	}
	ended := p.Dying.before(ctx, false)
	var pick func(int) int
	if p.Torn {
		pick = rnd.IntN
	}
	lost, err := disk.CutPower(ctx, pick)
	if err != nil {
		return false, err
	}
	ended()
	p.lost += lost
	return silence(ctx, n) != nil && !n.Running(), nil
}

func (p *Power) back(ctx context.Context, rig cluster.Rig) error {
	n, err := rig.Node(p.Node)
	if err != nil {
		return err
	}
	if !n.Running() {
		if err = n.Start(ctx); err != nil {
			return fmt.Errorf("%s is not back: %w", p.Node, err)
		}
	}
	return answers(ctx, n)
}

// Heal brings the node back, and asks it something. A loss of power that took nothing has tested no more than a kill, so that it
// did not land.
func (p *Power) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	landed, e, flapErr := p.flapping.stop()
	if e == nil {
		e = Evidence{}
	}
	e["files_that_lost_something"] = p.lost
	return landed && p.lost > 0, e, errors.Join(flapErr, p.back(ctx, rig))
}
