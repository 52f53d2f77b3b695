package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"
)

// Options of a run. Narad and Chaos are paths of the two binaries; Chaos must know FloorTargetName and FloorSourceName.
type Options struct {
	Rounds  int // default 3
	Records int // of one drain, default 200,000
	Narad   string
	Chaos   string
	Out     io.Writer     // progress and the table
	JSON    string        // file of the Result, or empty
	Only    []string      // rows, or empty for all
	Profile string        // existing folder for CPU profiles of the nodes, or empty
	Curves  bool          // measure how the cost of a drain grows, too
	Outage  time.Duration // of PRF-12, default 2 minutes
}

const (
	defaultRounds  = 3
	defaultRecords = 200_000
	defaultOutage  = 2 * time.Minute
)

// Rows names all rows in the order of the table.
func Rows() []string {
	var ids []string
	for _, g := range goals {
		ids = append(ids, g.id)
	}
	return ids
}

// Run measures every wanted row once in each round, prints a table of medians and writes the JSON. No figure is ever an error;
// a row that could not be measured is one that names it, after the other rows were measured and reported. When ctx ends it
// stops at once. All processes are gone and all data is removed when it returns.
func Run(ctx context.Context, o Options) (err error) {
	if o.Rounds == 0 {
		o.Rounds = defaultRounds
	}
	if o.Records == 0 {
		o.Records = defaultRecords
	}
	if o.Outage == 0 {
		o.Outage = defaultOutage
	}
	if err = o.check(); err != nil {
		return err
	}
	s, err := newStand(o)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() {
		if closeErr := s.close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("bench: %w", closeErr))
		}
	}()
	before := loadAverage()
	samples, failed := s.rounds(ctx)
	curves, err := s.curves(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r := Result{Curves: curves, Rounds: o.Rounds, Records: o.Records, CPUs: runtime.NumCPU(), LoadBefore: before, LoadAfter: loadAverage(), Rows: []Row{}}
	return errors.Join(o.report(&r, samples, failed), failed.err(), err)
}

func (o *Options) check() error {
	if o.Rounds < 1 || o.Records < 1 {
		return errors.New("bench: rounds and records must be at least 1")
	}
	for _, id := range o.Only {
		if !slices.Contains(Rows(), id) {
			return fmt.Errorf("bench: no row %q, there are %v", id, Rows())
		}
	}
	for _, path := range []string{o.Narad, o.Chaos} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("bench: binary: %w", err)
		}
	}
	return nil
}

// failures are the rows that could not be measured, each with its first error.
type failures map[string]error

func (f failures) err() error {
	var all []error
	for _, id := range slices.Sorted(maps.Keys(f)) {
		all = append(all, fmt.Errorf("%s could not be measured: %w", id, f[id]))
	}
	return errors.Join(all...)
}

// rounds interleaves the measurements. One that failed is not tried again.
func (s *stand) rounds(ctx context.Context) (map[string][]sample, failures) {
	samples, failed := map[string][]sample{}, failures{}
	for s.round = 1; s.round <= s.o.Rounds && ctx.Err() == nil; s.round++ {
		for _, m := range measurements {
			if ctx.Err() != nil || !m.wanted(s.o.Only) || failed[m.rows[0]] != nil || m.once && s.round > 1 {
				continue
			}
			start := time.Now()
			got, err := m.run(ctx, s)
			if err != nil {
				for _, id := range m.rows {
					failed[id] = err
				}
				s.say("round %d  %v failed: %v", s.round, m.rows, err)
				continue
			}
			for _, id := range m.rows {
				samples[id] = append(samples[id], got[id])
				against := ""
				if got[id].reference != 0 {
					against = "  reference " + figure(got[id].reference)
				}
				s.say("round %d  %-10s  ours %s%s  (%s)", s.round, id, figure(got[id].ours), against, time.Since(start).Round(100*time.Millisecond))
			}
		}
	}
	return samples, failed
}

// say prints a progress line. A terminal that is gone ends no measurement: the table's own error tells.
func (s *stand) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.o.Out, format+"\n", args...)
}

// report prints and writes the rows that were wanted and measured in every round.
func (o *Options) report(r *Result, samples map[string][]sample, failed failures) error {
	for _, g := range goals {
		if len(o.Only) > 0 && !slices.Contains(o.Only, g.id) {
			delete(failed, g.id)
			continue
		}
		if failed[g.id] == nil {
			r.Rows = append(r.Rows, summarize(g, samples[g.id]))
		}
	}
	if err := r.table(o.Out); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if o.JSON == "" {
		return nil
	}
	if err := r.write(o.JSON); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}
