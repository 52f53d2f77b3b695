package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"narad.example/harness/cluster"
)

// Toxic puts one toxic on the link. With a flap it is there and gone in turn.
type Toxic struct {
	Label string
	Toxic cluster.Toxic // its name is set by the fault when empty
	Flap  *Flap

	flapping *flapping
}

// Name is the label, or what the fault is.
func (f *Toxic) Name() string { return label(f.Label, f.Toxic.Type+" on "+theLink) }

func (f *Toxic) about() (kind, on string) { return f.Toxic.Type, theLink }

// toxic is the toxic with a name.
func (f *Toxic) toxic() cluster.Toxic {
	t := f.Toxic
	if t.Name == "" {
		t.Name = t.Type + "_" + t.Stream
	}
	return t
}

// Applies checks the toxic and the flap, and refuses what no probe can see.
func (f *Toxic) Applies(cluster.Rig) error {
	t := f.toxic()
	if err := errors.Join(t.Check(), f.Flap.check()); err != nil {
		return err
	}
	switch {
	case t.Type == "slow_close" && t.Stream == cluster.Upstream:
		return errors.New("slow_close of the upstream leaves no evidence: only the far end sees when it closes")
	case t.Type == "slicer" && t.Attributes["delay"] == 0:
		return errors.New("a slicer without a delay leaves no evidence: the pieces come together again")
	}
	return nil
}

// Inject adds the toxic and shows what a fresh connection meets.
func (f *Toxic) Inject(ctx context.Context, rig cluster.Rig, rnd *rand.Rand) (bool, Evidence, error) {
	link, t := rig.Link(), f.toxic()
	p := planFor(t)
	base, err := p.before(ctx, link)
	if err != nil {
		return false, nil, fmt.Errorf("the link carries nothing before the fault: %w", err)
	}
	if f.Flap == nil {
		return f.add(ctx, link, t, p, base)
	}
	// A probe must not make the fault last much longer than it is meant to; one alone must then do.
	p.probes, p.again, p.limit = 1, 0, min(p.limit, max(f.Flap.On, 3*base+100*time.Millisecond))
	f.flapping = f.Flap.start(ctx, rnd, func(ctx context.Context) (bool, error) {
		landed, _, aerr := f.add(ctx, link, t, p, base)
		return landed, aerr
	}, func(ctx context.Context) error { return link.Remove(ctx, t.Name) })
	return false, Evidence{"before_ms": ms(base)}, nil
}

// add puts the toxic there and probes. Every connection must meet it, so the fastest of the probes counts: on a busy machine a
// slow one alone proves nothing.
func (f *Toxic) add(ctx context.Context, link cluster.Link, t cluster.Toxic, p plan, base time.Duration) (bool, Evidence, error) {
	// The end of a flap cuts the probes short, not this: a toxic that is perhaps there cannot be taken back.
	if err := link.Add(context.WithoutCancel(ctx), t); err != nil {
		return false, nil, err
	}
	e := Evidence{"before_ms": ms(base), "probe_bytes": p.bytes, "attributes": t.Attributes, "stream": t.Stream}
	var fastest time.Duration
	for i := range p.probes {
		rtt, late, err := p.probe(ctx, link)
		if err != nil {
			e["probe_error"] = err.Error()
			return p.breaks || late, e, nil // one that ran out of time shows a slow link as well as a broken one
		}
		if i == 0 || rtt < fastest {
			fastest = rtt
		}
		if p.breaks || rtt < base+p.slower*3/4 {
			break // this one did not meet it
		}
	}
	e["during_ms"], e["expected_ms"] = ms(fastest), ms(p.slower)
	return !p.breaks && fastest >= base+p.slower*3/4, e, nil
}

// probe goes once over the link. One that must come back and breaks on the way has met another fault of the same time, and goes again
// until that lets it pass.
func (p plan) probe(ctx context.Context, link cluster.Link) (rtt time.Duration, late bool, err error) {
	for try := 0; ; try++ {
		soon, cancel := context.WithTimeout(ctx, p.limit)
		rtt, err = link.Probe(soon, p.bytes)
		late = errors.Is(soon.Err(), context.DeadlineExceeded)
		cancel()
		if err == nil || late || p.breaks || p.again <= try {
			return rtt, late, err
		}
		select {
		case <-time.After(probeWait):
		case <-ctx.Done():
			return rtt, late, err
		}
	}
}

// Heal removes the toxic, reads that back and probes.
func (f *Toxic) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	landed, e, flapErr := f.flapping.stop()
	link, name := rig.Link(), f.toxic().Name
	_, there, err := link.State(ctx)
	if err != nil {
		return landed, e, errors.Join(flapErr, err)
	}
	if slices.Contains(there, name) {
		if err = link.Remove(ctx, name); err != nil {
			return landed, e, errors.Join(flapErr, err)
		}
	}
	if len(there) > 1 || len(there) == 1 && there[0] != name {
		return landed, e, flapErr // another fault holds the link: its heal probes
	}
	return landed, e, errors.Join(flapErr, open(ctx, link))
}

// plan is what a probe through a toxic must meet.
type plan struct {
	bytes  int
	breaks bool          // the probe must fail
	slower time.Duration // or take so much longer
	limit  time.Duration // of one probe
	probes int
	again  int // times that one which another fault broke is repeated
}

// most bounds what a plan sends and waits for.
const (
	mostBytes = 1 << 20
	mostWait  = 20 * time.Second
	probeWait = 200 * time.Millisecond
)

// planFor sizes a probe so that the toxic must show. A probe crosses the link several times (TCP, TLS, HTTP), so that what
// follows is a lower bound.
func planFor(t cluster.Toxic) plan {
	a := t.Attributes
	p := plan{bytes: 1, again: 20}
	switch t.Type {
	case "latency":
		p.slower = time.Duration(a["latency"]) * time.Millisecond
	case "bandwidth":
		p.bytes = min(max(int(a["rate"])<<10/2, 4<<10), mostBytes) // half a second's worth
		p.slower = time.Duration(int64(p.bytes)*1000/(a["rate"]<<10)) * time.Millisecond
	case "slow_close":
		p.slower = time.Duration(a["delay"]) * time.Millisecond
	case "slicer":
		p.bytes = 4 << 10
		p.slower = time.Duration(int64(p.bytes)/a["average_size"]+1) * time.Duration(a["delay"]) * time.Microsecond
	case "limit_data":
		p.bytes, p.breaks = int(min(a["bytes"]+1, 8<<20)), true
	default: // timeout, reset_peer
		p.breaks = true
	}
	p.slower = min(p.slower, mostWait)
	p.probes, p.limit = 1, min(3*time.Second+3*p.slower, mostWait)
	if !p.breaks && p.slower < time.Second {
		p.probes = 3
	}
	if !p.breaks && p.slower < 250*time.Millisecond {
		p.probes = 8 // on a busy machine the best of a few is still far from what the link alone takes
	}
	return p
}

// before is how long a probe takes without the toxic, at best.
func (p plan) before(ctx context.Context, link cluster.Link) (time.Duration, error) {
	var fastest time.Duration
	p.breaks = false
	for i := range p.probes {
		rtt, _, err := p.probe(ctx, link)
		if err != nil {
			return 0, err
		}
		if i == 0 || rtt < fastest {
			fastest = rtt
		}
	}
	return fastest, nil
}
