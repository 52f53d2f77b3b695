package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"narad.example/harness/cluster"
	"narad.example/harness/explore"
	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/harness/spawn"
	"narad.example/reports"
	"narad.example/scenarios"
)

// failingTimes is how often a schedule that did not pass is played again in virtual time: a seed repeats what the harness does, not what
// the Go scheduler does.
const failingTimes = 20

type replayFlags struct {
	times            int
	only, out, narad string
	patience         time.Duration
}

func replayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use: "replay <run folder>", Args: cobra.ExactArgs(1), Short: "Play again what a run folder holds: the same scenario text, seed and backend",
		Long: "Plays again what did not pass in a run, or all of it when everything passed; or one scenario, given its folder. The text of a scenario is\n" +
			"taken from the run folder, as it was played, with the run's seed and its backend. In virtual time it runs on one processor, and what\n" +
			fmt.Sprintf("did not pass is played %d times; the last lines say in how many it failed, and by which judges. Each time has a run folder of its own.\n\n", failingTimes) +
			"The binaries are those of now: when they are of another version than the run's, the verdict says so.\n\n" +
			"Exit codes: 0 every time passed, 1 a time failed, 2 none failed and one was inconclusive, or harness trouble, 3 not a run folder.",
		RunE: func(c *cobra.Command, args []string) error {
			if f.times < 0 || f.patience <= 0 {
				return exit{run.ExitInvalid, "--times wants 0 at least, --patience a time above 0"}
			}
			return replaying(c.Context(), c.OutOrStdout(), f, args[0])
		},
	}
	c.Flags().IntVar(&f.times, "times", 0, fmt.Sprintf("how often each scenario is played (default: %d in virtual time for one that did not pass, else once)", failingTimes))
	c.Flags().StringVar(&f.only, "only", "", "only scenarios that have these words in their name")
	c.Flags().StringVar(&f.out, "out", filepath.Join("reports", "out"), "where run folders go")
	c.Flags().StringVar(&f.narad, "narad", "", "the narad binary (default: beside this one)")
	c.Flags().DurationVar(&f.patience, "patience", spawn.Patience, "as for run")
	return c
}

// replaying reads top to bottom: read the folder, compare the versions, play, say in how many it failed.
func replaying(ctx context.Context, out io.Writer, f replayFlags, folder string) error {
	past, err := readPast(folder, f.only)
	if err != nil {
		return err
	}
	say(out, "seed %d, of the run of %s\n", past.head.Seed, past.head.Started)
	other := changed(past.head.Versions, versions())
	if other != "" {
		say(out, "not what was tested then: %s\n", other)
	}
	starter := spawn.New()
	defer starter.Close()
	r := &replay{past: past, f: f, out: out, starter: starter, backends: map[string]rig{}, root: filepath.Join(f.out, fmt.Sprintf("%s-replay-seed-%d", time.Now().UTC().Format("20060102-150405"), past.head.Seed))}
	var sums []string
	verdict := ledger.Pass
	for _, p := range past.played {
		t, err := r.play(ctx, p)
		if err != nil {
			return err
		}
		sums, verdict = append(sums, t.String()), ledger.Worst(verdict, t.verdict)
	}
	if ctx.Err() != nil {
		verdict = ledger.Worst(verdict, ledger.Inconclusive)
	}
	say(out, "%s\n", strings.Join(sums, "\n"))
	if other != "" {
		other = " (" + other + ")"
	}
	say(out, "%s: %s%s\n", strings.ToUpper(verdict), r.root, other)
	if c := run.ExitCode(verdict); c != run.ExitPass {
		return exit{code: c}
	}
	return nil
}

// replay plays scenarios of a past run again.
type replay struct {
	past    pastRun
	f       replayFlags
	out     io.Writer
	starter *spawn.Spawner
	root    string // of this replay's run folders

	backends map[string]rig // by name, ready when first needed
}

// rig is a backend that is ready; backend is nil in virtual time.
type rig struct {
	backend cluster.Backend
	files   cluster.Binaries
}

func (r *replay) rig(ctx context.Context, name string) (rig, error) {
	if g, ok := r.backends[name]; ok {
		return g, nil
	}
	backend, _, files, err := ready(ctx, r.out, name, r.f.narad)
	if err != nil {
		return rig{}, err
	}
	r.backends[name] = rig{backend, files}
	return r.backends[name], nil
}

// play plays one scenario as often as it is due, or until ctx ends, each time into a run folder of its own.
func (r *replay) play(ctx context.Context, p pastScenario) (*tally, error) {
	g, err := r.rig(ctx, p.row.Backend)
	if err != nil {
		return nil, err
	}
	times := r.f.times
	if times == 0 {
		times = 1
		if g.backend == nil && p.row.Verdict != ledger.Pass {
			times = failingTimes
		}
	}
	events := newScreen(r.out)
	virtual := &workers{
		command: []string{g.files.Chaos, simWorker}, env: []string{explore.OneProcessor}, starter: r.starter, seed: r.past.head.Seed, patience: r.f.patience,
		events: events,
	}
	t := &tally{name: p.row.Name, was: p.row.Verdict, judges: map[string]int{}, verdict: ledger.Pass}
	for n := 1; n <= times && ctx.Err() == nil; n++ {
		root := filepath.Join(r.root, p.row.Folder, fmt.Sprintf("%02d", n))
		head := ledger.Run{Seed: r.past.head.Seed, Commit: version, Backend: p.row.Backend, Versions: versions()}
		batch := []run.Batch{{Scenarios: []*scenarios.Scenario{p.scenario}, AtOnce: 1}}
		done, err := run.All(ctx, batch, head, root, func(ctx context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun {
			if g.backend == nil {
				return virtual.run(ctx, s, dir)
			}
			return run.Scenario(ctx, s, run.Options{Backend: g.backend, Binaries: g.files, Seed: r.past.head.Seed, Dir: dir, Events: events})
		})
		if err != nil {
			return nil, err
		}
		if err = reports.Write(root); err != nil {
			return nil, err
		}
		t.add(&done.Scenarios[0])
	}
	return t, nil
}

// tally counts how one scenario ended.
type tally struct {
	name, was     string
	times, failed int
	judges        map[string]int // by the judge's name: in how many it failed
	verdict       string         // the worst
}

func (t *tally) add(r *ledger.ScenarioRun) {
	t.verdict = ledger.Worst(t.verdict, r.Verdict)
	if r.Verdict == ledger.NotRun {
		return // it was ended before it began
	}
	t.times++
	if r.Verdict != ledger.Fail {
		return
	}
	t.failed++
	for _, v := range r.Invariants {
		if v.Verdict == ledger.Fail {
			t.judges[v.Name]++
		}
	}
}

// String is the line of a scenario.
func (t *tally) String() string {
	text := fmt.Sprintf("%s: failed in %d of %d, the run said %s", t.name, t.failed, t.times, strings.ReplaceAll(t.was, "_", " "))
	for _, name := range slices.Sorted(maps.Keys(t.judges)) {
		text += fmt.Sprintf("; %s in %d", name, t.judges[name])
	}
	return text
}
