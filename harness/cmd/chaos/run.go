package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/harness/spawn"
	"narad.example/reports"
	"narad.example/scenarios"
)

// Names of the backends.
const (
	backendAuto      = "auto"
	backendContainer = "container"
	backendProcess   = "process"
	backendSim       = "sim"
)

type runFlags struct {
	backend, only, out, narad string
	matrix                    string
	seed                      uint64
	parallel, retries         int
	patience                  time.Duration
}

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "run [files or folders]", Short: "Run scenarios and write a run folder with its report",
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("seed") {
				var b [8]byte
				_, _ = rand.Read(b[:]) // never fails
				f.seed = binary.BigEndian.Uint64(b[:]) >> 16
			}
			if f.patience <= 0 {
				return exit{run.ExitInvalid, "--patience wants a time above 0"}
			}
			if f.retries < 0 {
				return exit{run.ExitInvalid, "--retry-inconclusive wants 0 at least"}
			}
			return runAll(c.Context(), c.OutOrStdout(), f, args)
		},
	}
	c.Flags().StringVar(&f.backend, "backend", backendAuto, "auto, container, process or sim; auto takes containers when an engine answers, else processes, and sim for clusters of several nodes and what runs nowhere else")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "the seed of every choice (default: a new one)")
	c.Flags().StringVar(&f.only, "only", "", "only scenarios that cover this requirement row, or have these words in their name")
	c.Flags().StringVar(&f.matrix, "matrix", matrixSome, "some runs each answer at each place once, with the other values in turn; all runs every combination")
	c.Flags().StringVar(&f.out, "out", filepath.Join("reports", "out"), "where run folders go")
	c.Flags().IntVar(&f.parallel, "parallel", 0, "how many scenarios run at once (default: 4 on real clusters, which mostly wait; one a core in virtual time)")
	c.Flags().IntVar(&f.retries, "retry-inconclusive", 0, "how often a scenario on real clusters that was inconclusive (a loaded machine gave a fault no traffic) is played once more, after all others and half as many at a time; one that failed is never played again, and the folder of every try stays")
	c.Flags().DurationVar(&f.patience, "patience", spawn.Patience, "real time in which a scenario in virtual time must get a minute further, or its worker is killed and it counts as inconclusive")
	c.Flags().StringVar(&f.narad, "narad", "", "the narad binary (default: beside this one)")
	return c
}

// runAll reads top to bottom: read the files, choose the backend, sweep, run, report.
func runAll(ctx context.Context, out io.Writer, f runFlags, args []string) error {
	list, excepted, err := loadAll(args)
	if err != nil {
		return err
	}
	table := tableOf(list, excepted)
	if list, err = chosen(list, f.matrix, f.only); err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(s *scenarios.Scenario) bool {
		return f.only != "" && !slices.Contains(s.Covers, f.only) && !strings.Contains(s.Name, f.only)
	})
	if len(list) == 0 {
		return exit{run.ExitInvalid, "no scenario matches --only " + f.only}
	}
	say(out, "seed %d\n", f.seed)
	backend, name, binaries, err := ready(ctx, out, f.backend, f.narad)
	if err != nil {
		return err
	}
	say(out, "backend %s\n", name)
	events := newScreen(out)
	starter := spawn.New()
	defer starter.Close()
	virtual := &workers{command: []string{binaries.Chaos, simWorker}, starter: starter, seed: f.seed, patience: f.patience, events: events}
	root := filepath.Join(f.out, fmt.Sprintf("%s-seed-%d", time.Now().UTC().Format("20060102-150405"), f.seed))
	head := ledger.Run{
		Seed: f.seed, Commit: version, Backend: name, Matrix: table,
		Versions: versions(),
	}
	inSim := func(s *scenarios.Scenario) bool {
		return backend == nil || (f.backend == backendAuto && runsOn(s, backendSim) && (!runsOn(s, name) || large(s)))
	}
	done, runErr := run.All(ctx, batches(list, &f, inSim), head, root, func(ctx context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun {
		switch {
		case !inSim(s):
			return run.Scenario(ctx, s, run.Options{Backend: backend, Binaries: binaries, Seed: f.seed, Dir: dir, Events: events})
		case runsOn(s, backendSim):
			return virtual.run(ctx, s, dir)
		}
		return skipped(s, dir, events)
	})
	if err = errors.Join(runErr, reports.Write(root)); err != nil {
		return err
	}
	sayTries(out, &done)
	say(out, "%s: %s\n", strings.ToUpper(strings.ReplaceAll(done.Verdict, "_", " ")), filepath.Join(root, reports.HTMLName))
	if c := run.ExitCode(done.Verdict); c != run.ExitPass {
		say(out, "again: bin/chaos replay %s\n", root)
		return exit{code: c}
	}
	return nil
}

// sayTries names what was played more than once.
func sayTries(out io.Writer, done *ledger.Run) {
	for i := range done.Scenarios {
		if r := &done.Scenarios[i]; len(r.Earlier) > 0 {
			say(out, "%s: %s after %d tries, the others were inconclusive\n", r.Name, r.Verdict, r.Tries)
		}
	}
}

// say writes a line for the person who runs this; a screen that is gone stops no run.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

func runsOn(s *scenarios.Scenario, backend string) bool {
	_, ok := run.RunsOn(s, backend)
	return ok
}

// large tells whether a scenario has more than one node on a side: half a dozen of them, four scenarios at a time, are more than a machine of two
// cores starts in the time that a scenario has. Who names a backend gets it.
func large(s *scenarios.Scenario) bool { return s.Source.Nodes > 1 || s.Target.Nodes > 1 }

// batches are the scenarios on real clusters, and beside them those in virtual time, one for each core: their workers step back for
// the clusters. What proves nothing in virtual time would prove nothing again.
func batches(list []*scenarios.Scenario, f *runFlags, inSim func(*scenarios.Scenario) bool) []run.Batch {
	var clusters, virtual []*scenarios.Scenario
	for _, s := range list {
		if inSim(s) {
			virtual = append(virtual, s)
		} else {
			clusters = append(clusters, s)
		}
	}
	waiting, computing := f.parallel, f.parallel
	if f.parallel == 0 {
		waiting, computing = 4, runtime.NumCPU()
	}
	return []run.Batch{{Scenarios: clusters, AtOnce: waiting, Retries: f.retries}, {Scenarios: virtual, AtOnce: computing}}
}

// skipped reports a scenario that does not run in virtual time.
func skipped(s *scenarios.Scenario, dir string, events run.Events) ledger.ScenarioRun {
	reason, _ := run.RunsOn(s, backendSim)
	r := ledger.ScenarioRun{
		Name: s.Name, File: s.File, Folder: filepath.Base(dir), Backend: backendSim, Covers: s.Covers, Verdict: ledger.NotRun, Says: reason,
		Faults: []ledger.Fault{}, Invariants: []ledger.Verdict{},
	}
	events.Ended(r)
	return r
}

// ready chooses a backend and finds the binaries, and takes away what an earlier run left. The backend is nil for sim.
func ready(ctx context.Context, out io.Writer, wanted, narad string) (backend cluster.Backend, name string, files cluster.Binaries, err error) {
	if backend, err = choose(ctx, out, wanted); err != nil {
		return nil, "", files, err
	}
	if files, err = binaries(narad); err != nil {
		return nil, "", files, err
	}
	if backend == nil {
		return nil, backendSim, files, nil
	}
	if err = backend.Sweep(ctx); err != nil {
		err = fmt.Errorf("sweeping what an earlier run left: %w", err)
	}
	return backend, backend.Name(), files, err
}

// versions says what is tested, as far as it is in this binary.
func versions() map[string]string {
	return map[string]string{"chaos": version, "go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH}
}

// choose returns the backend of that name, nil for sim, which lives in worker processes.
func choose(ctx context.Context, out io.Writer, name string) (cluster.Backend, error) {
	containers := cluster.Containers()
	switch name {
	case backendSim:
		return nil, nil // sim has no backend in this process
	case backendProcess:
		return cluster.Processes(), nil
	case backendContainer:
		if err := containers.Available(ctx); err != nil {
			return nil, fmt.Errorf("no container engine answers: %w", err)
		}
		return containers, nil
	case backendAuto:
		if err := containers.Available(ctx); err != nil {
			say(out, "no container engine answers (%v), so processes are taken\n", err)
			return cluster.Processes(), nil
		}
		return containers, nil
	}
	return nil, exit{run.ExitInvalid, fmt.Sprintf("backend %q; allowed: auto, container, process, sim", name)}
}

// binaries are this one and narad, which lies beside it unless it is named, with its chaos build.
func binaries(narad string) (cluster.Binaries, error) {
	self, err := os.Executable()
	if err != nil {
		return cluster.Binaries{}, fmt.Errorf("this binary: %w", err)
	}
	if narad == "" {
		narad = filepath.Join(filepath.Dir(self), "narad")
	}
	if narad, err = filepath.Abs(narad); err != nil {
		return cluster.Binaries{}, fmt.Errorf("the narad binary: %w", err)
	}
	return cluster.Binaries{Narad: narad, Chaos: self, Older: filepath.Join(filepath.Dir(narad), "narad-chaos")}, nil
}
