package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
)

// Kinds of a fault on a node.
const (
	Kill    = "kill"    // SIGKILL; healed by a start
	Stop    = "stop"    // a graceful end; healed by a start
	Start   = "start"   // of a node that is down; nothing to heal
	Restart = "restart" // a graceful end, healed by a start as Stop is; it never stays down
	Pause   = "pause"   // SIGSTOP; healed by a resume
)

// Process is a fault on one node.
type Process struct {
	Label string
	Kind  string
	Node  string
	Stay  bool          // kill and stop: the node stays down, a start elsewhere brings it back
	Slow  time.Duration // how long the node stands still once it is started

	Unaudited bool // kill: not before the node has committed a remote write, and then before its audit line
	Dying     Dying
}

// Name is the label, or what the fault is.
func (p *Process) Name() string { return label(p.Label, p.Kind+" on "+p.Node) }

func (p *Process) about() (kind, on string) { return p.Kind, p.Node }

// Applies checks that the node is there and in the state that the fault needs.
func (p *Process) Applies(rig cluster.Rig) error {
	n, err := rig.Node(p.Node)
	if err != nil {
		return err
	}
	if _, can := n.(cluster.Unaudited); p.Unaudited && !can {
		return fmt.Errorf("%w: a kill between a commit and its audit line", cluster.ErrUnsupported)
	}
	switch p.Kind {
	case Kill, Stop, Restart, Pause:
		if !n.Running() {
			return fmt.Errorf("%s does not run", p.Node)
		}
	case Start:
		if n.Running() {
			return fmt.Errorf("%s runs already", p.Node)
		}
	default:
		return fmt.Errorf("kind %q is none of %s, %s, %s, %s, %s", p.Kind, Kill, Stop, Start, Restart, Pause)
	}
	return nil
}

// Inject does it, and shows that the node is gone, silent, or back.
func (p *Process) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	n, err := rig.Node(p.Node)
	if err != nil {
		return false, nil, err
	}
	begin := time.Now()
	if p.Unaudited {
		return p.unaudited(ctx, n)
	}
	switch p.Kind {
	case Kill:
		ended := p.Dying.before(ctx, false)
		err = n.Kill(ctx)
		ended()
	case Stop, Restart:
		err = p.stop(ctx, n)
	case Start:
		return p.started(ctx, n, begin)
	case Pause:
		if err = n.Pause(ctx); err != nil {
			return false, nil, err
		}
		silent := silence(ctx, n)
		return silent != nil && n.Running(), Evidence{"request": errText(silent), "running": n.Running()}, nil
	}
	if err != nil {
		return false, nil, err
	}
	landed, e := p.gone(ctx, n)
	e["took_ms"] = ms(time.Since(begin))
	return landed, e, nil
}

// stop ends the node as it is meant to.
func (p *Process) stop(ctx context.Context, n cluster.Node) error {
	ended := p.Dying.before(ctx, true)
	defer ended()
	return n.Stop(ctx)
}

// commitLimit is how long an unaudited kill waits for the write that it is meant for.
const commitLimit = 30 * time.Second

// unaudited shows which change the node committed last: its line is owed by the others.
func (p *Process) unaudited(ctx context.Context, n cluster.Node) (bool, Evidence, error) {
	soon, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	ended := Dying(nil).before(ctx, false)
	request, index, err := n.(cluster.Unaudited).KillUnaudited(soon, func(ctx context.Context) { ended = p.Dying.before(ctx, false) })
	if err != nil {
		return false, nil, err
	}
	ended()
	landed, e := p.gone(ctx, n)
	e[ledger.CommittedRequest], e[ledger.CommittedIndex] = request, index
	return landed && request != "", e, nil
}

// gone measures a node that must have ended.
func (p *Process) gone(ctx context.Context, n cluster.Node) (bool, Evidence) {
	silent := silence(ctx, n)
	running := n.Running()
	return silent != nil && !running, Evidence{"request": errText(silent), "running": running}
}

func (p *Process) started(ctx context.Context, n cluster.Node, begin time.Time) (bool, Evidence, error) {
	if err := p.start(ctx, n); err != nil {
		return false, nil, err
	}
	answer := answers(ctx, n)
	took := time.Since(begin)
	return answer == nil && took >= p.Slow, Evidence{"answers": answer == nil, "took_ms": ms(took)}, nil
}

// start starts the node, slowly when it is asked to.
func (p *Process) start(ctx context.Context, n cluster.Node) error {
	if p.Slow <= 0 {
		return n.Start(ctx)
	}
	slow, ok := n.(cluster.Slow)
	if !ok {
		return fmt.Errorf("%w: a slow start of %s", cluster.ErrUnsupported, p.Node)
	}
	return slow.StartSlowly(ctx, p.Slow)
}

// silence asks the node something until it does not answer, and returns that error; nil when it still answers after within.
func silence(ctx context.Context, n cluster.Node) error {
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for soon.Err() == nil {
		if err := answers(soon, n); err != nil {
			return err
		}
	}
	return nil
}

func answers(ctx context.Context, n cluster.Node) error {
	_, err := n.Metrics(ctx)
	return err
}

// Heal brings the node back, and asks it something.
func (p *Process) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	n, err := rig.Node(p.Node)
	if err != nil {
		return false, nil, err
	}
	begin := time.Now()
	switch {
	case p.Kind == Pause:
		err = n.Resume(ctx)
	case p.Stay && (p.Kind == Kill || p.Kind == Stop):
		return false, nil, nil // a start of its own brings it back
	case !n.Running():
		err = p.start(ctx, n)
	}
	if err == nil {
		err = answers(ctx, n)
	}
	if err == nil && !n.Running() {
		err = errors.New("the node answers and does not run")
	}
	if err != nil {
		return false, nil, fmt.Errorf("%s is not back: %w", p.Node, err)
	}
	return false, Evidence{"healed_in_ms": ms(time.Since(begin))}, nil
}
