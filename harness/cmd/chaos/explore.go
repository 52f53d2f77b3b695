package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"narad.example/harness/explore"
	"narad.example/harness/run"
)

type exploreFlags struct {
	limit, minimize       time.Duration
	seed                  uint64
	count, first, workers int
	out                   string
}

// exploreWorker is the hidden command that starts a worker.
const exploreWorker = "explore-worker"

func exploreCommand() *cobra.Command {
	var f exploreFlags
	c := &cobra.Command{
		Use: "explore", Args: cobra.NoArgs, Short: "Run random schedules in virtual time and shrink what fails",
		Long: "Runs random schedules in virtual time until the time or the count is reached. A schedule that fails is made as small as it can be and\n" +
			"written as a scenario file. Exit codes: 0 all passed, 1 a schedule failed, 2 more than one in ten proved nothing, or it was ended early.",
		RunE: func(c *cobra.Command, _ []string) error { return exploring(c.Context(), c.OutOrStdout(), f) },
	}
	c.Flags().DurationVar(&f.limit, "for", 0, "no schedule begins after this time")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "the seed of every choice")
	c.Flags().IntVar(&f.count, "count", 0, "schedules at most")
	c.Flags().IntVar(&f.first, "first", 1, "the number of the first schedule")
	c.Flags().IntVar(&f.workers, "workers", runtime.NumCPU(), "worker processes at a time (default: one a core)")
	c.Flags().StringVar(&f.out, "out", "", "where failures go (default reports/out/explore/<seed>)")
	c.Flags().DurationVar(&f.minimize, "minimize-for", 2*time.Minute, "how long one failure may be shrunk")
	return c
}

func exploring(ctx context.Context, out io.Writer, f exploreFlags) error {
	if f.limit <= 0 && f.count <= 0 {
		return exit{run.ExitInvalid, "explore wants --for or --count"}
	}
	if f.workers < 1 || f.count < 0 || f.first < 0 {
		return exit{run.ExitInvalid, "--workers wants 1 at least, --count and --first 0 at least"}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this binary: %w", err)
	}
	if f.out == "" {
		f.out = filepath.Join("reports", "out", "explore", fmt.Sprint(f.seed))
	}
	say(out, "seed %d, into %s\n", f.seed, f.out)
	workers := &explore.Workers{Command: []string{self, exploreWorker}, Count: f.workers, Dir: filepath.Join(f.out, "workers")}
	s, err := explore.Run(ctx, explore.Options{
		Seed: f.seed, For: f.limit, Count: f.count, First: f.first, Out: f.out, MinimizeFor: f.minimize, Runner: workers, Say: out,
	})
	summarize(out, &s)
	if rerr := os.RemoveAll(workers.Dir); err == nil {
		err = rerr
	}
	switch {
	case err != nil:
		return err
	case len(s.Failures) > 0:
		return exit{code: run.ExitViolation}
	case s.Ended:
		return exit{run.ExitInconclusive, "it was ended early"}
	case s.TooManyDoubts():
		return exit{run.ExitInconclusive, "more than one schedule in ten proved nothing"}
	case s.Ran == 0:
		return exit{run.ExitInconclusive, "no schedule was run"}
	}
	return nil
}

// summarize reports what ran, also when it was ended early.
func summarize(out io.Writer, s *explore.Summary) {
	ran := time.Duration(max(s.Ran, 1))
	say(out, "%d schedules in %s (%.0f a minute), %.1f hours of virtual time, %d records; a schedule took %s (%s of processor time), the slowest %s\n",
		s.Ran, s.Took.Round(time.Second), float64(s.Ran)/max(s.Took.Minutes(), 1e-9), s.Virtual.Hours(), s.Records,
		(s.Real / ran).Round(time.Millisecond), (s.CPU / ran).Round(time.Millisecond), s.Slowest.Round(time.Millisecond))
	say(out, "%d failed, %d inconclusive\n", len(s.Failures), len(s.Doubts))
	for _, d := range s.Doubts {
		say(out, "  inconclusive: schedule %d: %s (%s)\n", d.Number, d.Says, d.Dir)
	}
	for i := range s.Failures {
		f := &s.Failures[i]
		say(out, "  FAILED: schedule %d: %s: %s\n", f.Number, f.Judge, f.File)
	}
}

// exploreWorkerCommand is what explore starts; nobody types it.
func exploreWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: exploreWorker, Hidden: true, Args: cobra.NoArgs, Short: "Run schedules in virtual time; explore starts this itself",
		RunE: func(*cobra.Command, []string) error {
			explore.Work(os.Stdin, os.NewFile(3, "answers"))
			return nil
		},
	}
}
