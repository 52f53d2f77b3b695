package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"narad.example/harness/cluster"
)

// Pacing slows what nodes say to others of their side.
type Pacing struct {
	Label string
	Kind  string // of the toxic
	Pace  cluster.Pace

	pacing cluster.Pacing
	showed bool
}

// paceOf is what a toxic comes to between nodes.
func paceOf(t cluster.Toxic, among cluster.Cut) cluster.Pace {
	p := cluster.Pace{From: among.From, To: among.To, Carries: among.Carries}
	a := t.Attributes
	p.Latency = time.Duration(a["latency"]) * time.Millisecond
	p.Rate, p.Slice = a["rate"]<<10, int(a["average_size"])
	if t.Type == "slicer" {
		p.Pause = time.Duration(a["delay"]) * time.Microsecond
	}
	return p
}

// Name is the label, or what the fault is.
func (f *Pacing) Name() string { return label(f.Label, f.Kind+" of "+f.on()) }

func (f *Pacing) about() (kind, on string) { return f.Kind, f.on() }

func (f *Pacing) on() string {
	return strings.Join(f.Pace.From, ",") + ">" + strings.Join(f.Pace.To, ",")
}

// Applies checks that the rig's nodes can be slowed, and that the toxic is one that slows.
func (f *Pacing) Applies(rig cluster.Rig) error {
	_, paced := rig.(cluster.Paced)
	_, parted := rig.(cluster.Parted)
	switch {
	case !paced || !parted:
		return fmt.Errorf("%w: what the nodes of this rig say to each other cannot be slowed", cluster.ErrUnsupported)
	case len(f.Pace.From) == 0 || len(f.Pace.To) == 0:
		return errors.New("a toxic between nodes has two parties")
	case f.expected() <= 0:
		return fmt.Errorf("a %s between nodes slows nothing: wants a latency, a rate, or pieces with a delay", f.Kind)
	}
	return nil
}

// probeBytes is how much a probe says: a piece as large as any.
func (f *Pacing) probeBytes() int {
	var b cluster.Beat
	b.Add(f.Pace)
	return max(len(nonsense), min(b.Piece(mostBytes), 64<<10))
}

// expected is how late the first piece of a probe is; whoever hears it ends the connection.
func (f *Pacing) expected() time.Duration {
	var b cluster.Beat
	b.Add(f.Pace)
	return b.Latency + b.Takes(b.Piece(f.probeBytes()))
}

// paths are the ways on which From dials To, of those that run.
func (f *Pacing) paths(rig cluster.Rig) []path {
	cut := Parting{Cut: cluster.Cut{From: f.Pace.From, To: f.Pace.To, Carries: f.Pace.Carries, OneWay: true}}
	return cut.paths(rig)
}

// Inject slows, and shows on every way that a connection which was open is late, and that new ones are.
func (f *Pacing) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	parted, paths, want := rig.(cluster.Parted), f.paths(rig), f.expected()
	tries := 8 // on a busy machine the best of a few is still far from what the way alone takes
	if want >= 250*time.Millisecond {
		tries = 3
	}
	base := make([]time.Duration, len(paths))
	held := make([]net.Conn, len(paths))
	defer func() {
		for _, c := range held {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	err := each(paths, func(i int, w path) (err error) {
		if base[i], err = f.fastest(ctx, parted, w, tries); err == nil {
			held[i], err = reach(ctx, parted, w)
		}
		return err
	})
	if err != nil {
		return false, nil, fmt.Errorf("before the fault: %w", err)
	}
	if f.pacing, err = rig.(cluster.Paced).Pace(ctx, f.Pace); err != nil {
		return false, nil, err
	}
	open, fresh := make([]time.Duration, len(paths)), make([]time.Duration, len(paths))
	err = each(paths, func(i int, w path) (err error) {
		if open[i], err = f.timed(held[i]); err == nil {
			fresh[i], err = f.fastest(ctx, parted, w, tries)
		}
		return err
	})
	e := Evidence{"ways": len(paths), "carries": f.Pace.Carries, "expected_ms": ms(want)}
	f.showed = err == nil && len(paths) > 0
	for i := range paths {
		if i == 0 || fresh[i] < base[i]+want*3/4 || open[i] < want*3/4 {
			e["before_ms"], e["open_ms"], e["new_ms"] = ms(base[i]), ms(open[i]), ms(fresh[i])
		}
		f.showed = f.showed && fresh[i] >= base[i]+want*3/4 && open[i] >= want*3/4
	}
	return false, e, err // the nodes must meet it too, which shows at the end
}

// each does something on all ways at once.
func each(paths []path, do func(i int, w path) error) error {
	errs := make([]error, len(paths))
	var all sync.WaitGroup
	for i, w := range paths {
		all.Go(func() { errs[i] = do(i, w) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// fastest is the best of some probes on connections of their own.
func (f *Pacing) fastest(ctx context.Context, parted cluster.Parted, w path, tries int) (best time.Duration, err error) {
	for i := range tries {
		c, err := reach(ctx, parted, w)
		if err != nil {
			return 0, fmt.Errorf("%s does not reach %s: %w", w.from, w.to, err)
		}
		took, err := f.timed(c)
		_ = c.Close()
		if err != nil {
			return 0, fmt.Errorf("%s is not heard by %s: %w", w.from, w.to, err)
		}
		if i == 0 || took < best {
			best = took
		}
	}
	return best, nil
}

// timed says nonsense and measures until the other end has ended the connection, in whatever way: it may not have read all.
func (f *Pacing) timed(c net.Conn) (time.Duration, error) {
	begin := time.Now()
	err := said(c, strings.Repeat("\xff", f.probeBytes()), begin.Add(5*time.Second+3*f.expected()))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	return time.Since(begin), nil
}

// Heal takes the pace back, shows that every way passes, and counts what of the nodes' own went at it.
func (f *Pacing) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	if f.pacing == nil {
		return false, nil, nil
	}
	met := f.pacing.Met()
	e := Evidence{"bytes_of_the_nodes": met}
	landed := f.showed && met > 0
	if err := f.pacing.Mend(ctx); err != nil {
		return landed, e, err
	}
	return landed, e, each(f.paths(rig), func(_ int, w path) error {
		_, err := f.fastest(ctx, rig.(cluster.Parted), w, 1)
		return err
	})
}
