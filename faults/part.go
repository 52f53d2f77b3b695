package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"narad.example/harness/cluster"
)

// Part is the kind of a cut between nodes.
const Part = "part"

// Parting parts nodes from each other, or a node of the source from the target.
type Parting struct {
	Label string
	Cut   cluster.Cut

	parting cluster.Parting
	showed  bool
	own     int // connections and dials of the fault itself that met it
}

// Name is the label, or what the fault is.
func (f *Parting) Name() string { return label(f.Label, Part+" of "+f.on()) }

func (f *Parting) about() (kind, on string) { return Part, f.on() }

func (f *Parting) on() string {
	way := "<>"
	if f.Cut.OneWay {
		way = ">"
	}
	return strings.Join(f.Cut.From, ",") + way + strings.Join(f.Cut.To, ",")
}

// Applies checks that the rig's nodes can be parted, and that these are there.
func (f *Parting) Applies(rig cluster.Rig) error {
	if _, err := partedOf(rig); err != nil {
		return err
	}
	if len(f.Cut.From) == 0 || len(f.Cut.To) == 0 {
		return errors.New("a cut has two parties")
	}
	return nil
}

func partedOf(rig cluster.Rig) (cluster.Parted, error) {
	parted, ok := rig.(cluster.Parted)
	if !ok {
		return nil, fmt.Errorf("%w: the nodes of this rig cannot be parted", cluster.ErrUnsupported)
	}
	return parted, nil
}

// path is one way that a probe takes.
type path struct{ from, to, carries string }

// paths are all ways that the cut meets. Loud and one-way it meets one direction of dials only.
func (f *Parting) paths(rig cluster.Rig) []path {
	var out []path
	carries := []string{cluster.CarriesRaft, cluster.CarriesRPC}
	if f.Cut.Carries == cluster.CarriesRaft || f.Cut.Carries == cluster.CarriesRPC {
		carries = []string{f.Cut.Carries}
	}
	up := func(name string) bool {
		n, err := rig.Node(name)
		return err == nil && n.Running()
	}
	for _, from := range f.Cut.From {
		for _, to := range f.Cut.To {
			switch {
			case to == cluster.Target:
				out = append(out, path{from, to, ""})
				continue
			case !up(from) || !up(to):
				continue
			}
			for _, c := range carries {
				out = append(out, path{from, to, c})
				if !f.Cut.OneWay || f.Cut.Silent {
					out = append(out, path{to, from, c})
				}
			}
		}
	}
	return out
}

// Inject cuts, and shows on every way that a connection which was open ends, or is silent, and that no new one comes about.
func (f *Parting) Inject(ctx context.Context, rig cluster.Rig, _ *rand.Rand) (bool, Evidence, error) {
	parted, err := partedOf(rig)
	if err != nil {
		return false, nil, err
	}
	paths := f.paths(rig)
	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close() // most are cut already
		}
	}()
	for _, w := range paths {
		c, derr := reach(ctx, parted, w)
		if derr != nil {
			return false, nil, fmt.Errorf("%s does not reach %s before the cut: %w", w.from, w.to, derr)
		}
		held = append(held, c)
	}
	if f.parting, err = parted.Part(ctx, f.Cut); err != nil {
		return false, nil, err
	}
	e := Evidence{"ways": len(paths), "silent": f.Cut.Silent, "one_way": f.Cut.OneWay, "carries": f.Cut.Carries}
	f.showed = len(paths) > 0
	for i, m := range f.look(ctx, parted, paths, held) {
		if m.fresh == nil || m.open == nil || errors.Is(m.open, os.ErrDeadlineExceeded) != f.Cut.Silent {
			f.showed = false
			w := paths[i]
			e["passed"] = fmt.Sprintf("%s to %s %s: open %q, new %q", w.from, w.to, w.carries, errText(m.open), errText(m.fresh))
		}
		e["open_connection"], e["new_connection"] = errText(m.open), errText(m.fresh)
	}
	f.own = 2 * len(paths)
	return false, e, nil // the nodes must meet it too, which shows at the end
}

// meeting is what a connection that was open and a new one met on a way.
type meeting struct{ open, fresh error }

// look tries all ways at once.
func (f *Parting) look(ctx context.Context, parted cluster.Parted, paths []path, held []net.Conn) []meeting {
	out := make([]meeting, len(paths))
	var all sync.WaitGroup
	for i, w := range paths {
		all.Go(func() {
			if until := time.Now().Add(within); f.Cut.Silent {
				out[i].open = answered(held[i], until)
			} else {
				out[i].open = ended(held[i], until)
			}
		})
		all.Go(func() {
			c, err := reach(ctx, parted, w)
			if out[i].fresh = err; err == nil {
				_ = c.Close()
			}
		})
	}
	all.Wait()
	return out
}

// reach opens a connection and leaves it silent.
func reach(ctx context.Context, parted cluster.Parted, w path) (net.Conn, error) {
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return parted.Reach(soon, w.from, w.to, w.carries)
}

// nonsense is what no port of a node takes: whoever hears it ends the connection.
const nonsense = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"

// answered says nonsense and waits for the end of the connection: nil when the other end ended it as it does in peace, else how it was cut or that
// nobody answered.
func answered(c net.Conn, until time.Time) error { return said(c, nonsense, until) }

// said says something that no port takes, as answered does.
func said(c net.Conn, what string, until time.Time) error {
	if err := c.SetDeadline(until); err != nil {
		return err
	}
	if _, err := c.Write([]byte(what)); err != nil {
		return err
	}
	buf := make([]byte, 256)
	for {
		_, err := c.Read(buf)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// errEnded says that a connection ended in order.
var errEnded = errors.New("the connection ended, though nobody had said anything on it")

// ended waits for the end of a connection on which nothing is said, which no node ends so soon: how it ended, nil when it did not. In containers the
// engine stands between, which makes an end in order of a reset.
func ended(c net.Conn, until time.Time) error {
	if err := c.SetDeadline(until); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c)
	switch {
	case err == nil:
		return errEnded
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	}
	return err
}

// Heal mends the cut, shows that every way passes again, and counts what met it. It landed when the probes showed it and the nodes met it.
func (f *Parting) Heal(ctx context.Context, rig cluster.Rig) (bool, Evidence, error) {
	if f.parting == nil {
		return false, nil, nil
	}
	parted, err := partedOf(rig)
	if err != nil {
		return false, nil, err
	}
	met := f.parting.Met()
	others := met.Ended + met.Dials - f.own
	e := Evidence{"connections_met": met.Ended, "dials_met": met.Dials, "of_the_nodes": others}
	landed := f.showed && others > 0
	if err = f.parting.Mend(ctx); err != nil {
		return landed, e, err
	}
	if parted.Partings() > 0 {
		return landed, e, nil // another cut is in force: its heal probes
	}
	for _, w := range f.paths(rig) {
		c, derr := reach(ctx, parted, w)
		if derr != nil {
			return landed, e, fmt.Errorf("%s does not reach %s after the cut: %w", w.from, w.to, derr)
		}
		derr = answered(c, time.Now().Add(within))
		_ = c.Close()
		if derr != nil {
			return landed, e, fmt.Errorf("%s is not heard by %s after the cut: %w", w.from, w.to, derr)
		}
	}
	return landed, e, nil
}
