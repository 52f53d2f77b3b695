package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"narad.example/narad/wire"
)

// Curve is how a drain grows with one thing, all else as in PRF-01. Each point is one drain.
type Curve struct {
	Over   string  `json:"over"`
	Points []Point `json:"points"`
}

// Point is one drain of a curve.
type Point struct {
	X       int     `json:"x"`
	Records int     `json:"records"` // copied, all links together
	Rate    float64 `json:"rate"`    // records/s
	MiBs    float64 `json:"mib_s"`   // of payloads
	Micros  float64 `json:"cpu_us"`  // of both nodes, per record
}

// curveBytes is about what a drain over record sizes copies.
const curveBytes = 100 << 20

// shape is one curve: a drain for each x.
type shape struct {
	over string
	xs   []int
	at   func(ctx context.Context, x int) (copied, int, error) // and the bytes of a record
}

// drainOf is a point whose backlog differs from the plain one's.
func (s *stand) drainOf(change func(b *backlog, x int)) func(context.Context, int) (copied, int, error) {
	return func(ctx context.Context, x int) (copied, int, error) {
		k := copying{of: s.plain(), lanes: 1, remote: remoteName}
		change(&k.of, x)
		c, err := s.drain(ctx, k)
		if err == nil && k.of != s.plain() {
			err = s.drop(ctx, s.pair, k.of)
		}
		return c, k.of.size, err
	}
}

func (s *stand) shapes() []shape {
	return []shape{
		{"partitions", []int{1, 3, 12, 48}, s.drainOf(func(b *backlog, x int) { b.partitions = x })},
		{"links of one parent", []int{1, 2, 4, 8, 16}, s.drainLinks},
		{"bytes of a record", []int{64, 256, 1 << 10, 16 << 10, 256 << 10, 1000 << 10}, s.drainOf(func(b *backlog, x int) {
			b.size, b.records = x, min(s.o.Records, curveBytes/x)
		})},
		{"records of backlog", []int{10_000, 100_000, 1_000_000}, s.drainOf(func(b *backlog, x int) { b.records = x })},
	}
}

// writesWindow is over which a node counts the writes on links that it takes (WRT-09); the resumes must find it empty.
const writesWindow = time.Minute

// drainLinks is a quarter of the plain backlog that x links of one parent drain at once: they are paused until it is there. Each has a
// remote of its own, since a resume checks its remote and the checks of one are limited in rate.
func (s *stand) drainLinks(ctx context.Context, x int) (copied, int, error) {
	p, err := s.direct(ctx)
	if err != nil {
		return copied{}, 0, err
	}
	of := s.plain()
	of.records = max(1, of.records/4)
	topic, err := s.topic(ctx, p.source, "links")
	if err != nil {
		return copied{}, 0, err
	}
	remotes, err := s.remotesOf(ctx, p, x)
	if err != nil {
		return copied{}, 0, err
	}
	children, err := tie(ctx, p.source, p.target, topic, remotes)
	if err != nil {
		return copied{}, 0, err
	}
	for _, child := range children {
		err = patient(ctx, "pause", func(ctx context.Context) error {
			_, failed := p.source.client.Pause(ctx, topic, child, "until the backlog is there")
			return failed
		})
		if err != nil {
			return copied{}, 0, err
		}
	}
	if err = errors.Join(of.produce(ctx, p.source, topic), pause(ctx, writesWindow)); err != nil {
		return copied{}, 0, err
	}
	before, err := p.cpu()
	if err != nil {
		return copied{}, 0, err
	}
	start := time.Now()
	for _, child := range children {
		if _, err = p.source.client.Resume(ctx, topic, child, false); err != nil {
			return copied{}, 0, fmt.Errorf("resume: %w", err)
		}
	}
	if err = noLag(ctx, p.source, topic, children...); err != nil {
		return copied{}, 0, err
	}
	c := copied{took: time.Since(start), records: of.records * x}
	for _, child := range children {
		if err = stored(ctx, p.target, child, of.records); err != nil {
			return copied{}, 0, err
		}
	}
	after, err := p.cpu()
	c.cpu = after - before
	return c, of.size, errors.Join(err, untie(ctx, p.source, p.target, topic, children))
}

func (s *stand) remotesOf(ctx context.Context, p *pair, n int) (names []string, err error) {
	for i := range n {
		name := fmt.Sprintf("%s-%d", remoteName, i)
		if names = append(names, name); i < s.remotes {
			continue
		}
		if err = s.remote(ctx, p.source, p.password, wire.CreateRemote{Name: name, URL: "https://" + p.target.addr}); err != nil {
			return nil, err
		}
		s.remotes = i + 1
	}
	return names, nil
}

// curves measures them when they were asked for.
func (s *stand) curves(ctx context.Context) (all []Curve, err error) {
	if !s.o.Curves {
		return nil, nil
	}
	for _, shape := range s.shapes() {
		c := Curve{Over: shape.over}
		for _, x := range shape.xs {
			d, size, err := shape.at(ctx, x)
			if err != nil {
				return all, fmt.Errorf("curve over %s at %d: %w", shape.over, x, err)
			}
			c.Points = append(c.Points, Point{
				X: x, Records: d.records, Rate: d.rate(), MiBs: d.rate() * float64(size) / (1 << 20), Micros: d.micros(),
			})
			s.say("curve over %s at %d: %s records/s, %s us", shape.over, x, figure(d.rate()), figure(d.micros()))
		}
		all = append(all, c)
	}
	return all, nil
}

// drawCurves prints them in columns.
func drawCurves(out io.Writer, curves []Curve) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range curves {
		if _, err := fmt.Fprintf(w, "drain over %s\trecords\trecords/s\tMiB/s\tCPU us a record\t\n", c.Over); err != nil {
			return err
		}
		for _, p := range c.Points {
			if _, err := fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t\n", p.X, p.Records, figure(p.Rate), figure(p.MiBs), figure(p.Micros)); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}
