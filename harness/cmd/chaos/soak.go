package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"narad.example/harness/cluster"
	"narad.example/harness/explore"
	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/harness/soak"
	"narad.example/harness/spawn"
	"narad.example/reports"
	"narad.example/scenarios"
)

type soakFlags struct {
	limit, round        time.Duration
	seed                uint64
	count, first        int
	backend, out, narad string
	keepFree            int // MiB
}

func soakCommand() *cobra.Command {
	var f soakFlags
	c := &cobra.Command{
		Use: "soak", Args: cobra.NoArgs, Short: "Play random rounds on real clusters for hours and stop at the first violation",
		Long: "Plays one random round after the other, each on clusters of its own and with all judges at its end, until the time is over. The row of rounds\n" +
			"follows from the seed. The report in its folder (index.html, summary.md, soak.json) is replaced after every round, and so whole at any time.\n\n" +
			"It keeps one row of every round; the folder of a round that passed goes. It stops at the first violation, and keeps that round whole: scenario\n" +
			"file, ledgers, node logs, page, and the commands that play it again. A round that proved nothing is played once more; of such tries the last ten\n" +
			"folders stay. Before a round begins the disks of its folder and of the nodes' data must have --keep-free-mib free, or it ends with\n" +
			"exit code 2.\n\n" +
			"Exit codes: 0 every promise held for the whole time, 1 a violation, 2 ended early, no room, more than one round in ten proved nothing twice or five\n" +
			"in a row, or harness trouble, 3 a flag that makes no sense.",
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("seed") {
				var b [8]byte
				_, _ = rand.Read(b[:]) // never fails
				f.seed = binary.BigEndian.Uint64(b[:]) >> 16
			}
			return soaking(c.Context(), c.OutOrStdout(), &f)
		},
	}
	c.Flags().DurationVar(&f.limit, "for", 0, "no round begins after this time; the last one is played to its end")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "the seed of every choice (default: a new one)")
	c.Flags().DurationVar(&f.round, "round", 2*time.Minute, fmt.Sprintf("how long a round breaks things, %s to %s; starting, draining and judging come on top", explore.ShortestRound, explore.LongestRound))
	c.Flags().IntVar(&f.first, "first", 1, "the number of the first round, to go on where an earlier soak of the seed ended")
	c.Flags().IntVar(&f.count, "count", 0, "rounds at most (default: no limit)")
	c.Flags().StringVar(&f.backend, "backend", backendAuto, "auto, container, process or sim; auto takes containers when an engine answers, else processes")
	c.Flags().StringVar(&f.out, "out", filepath.Join("reports", "out", "soak"), "where soaks go, each into a folder of its own; the report shows trends over those that are there")
	c.Flags().IntVar(&f.keepFree, "keep-free-mib", soak.KeepFree>>20, "MiB that must be free on the disks before a round begins")
	c.Flags().StringVar(&f.narad, "narad", "", "the narad binary (default: beside this one)")
	return c
}

// check says what is wrong with the flags.
func (f *soakFlags) check() error {
	wrong := ""
	switch {
	case f.limit < 0 || f.limit == 0 && f.count == 0:
		wrong = "soak wants --for with a time above 0, such as --for 8h, or --count"
	case f.count < 0 || f.first < 1:
		wrong = "--count wants 0 at least, --first 1 at least"
	case f.round < explore.ShortestRound || f.round > explore.LongestRound:
		wrong = fmt.Sprintf("--round %s; allowed: %s to %s", f.round, explore.ShortestRound, explore.LongestRound)
	case f.keepFree < 0:
		wrong = "--keep-free-mib wants 0 at least"
	}
	if wrong != "" {
		return exit{run.ExitInvalid, wrong}
	}
	return nil
}

// soaking reads top to bottom: check, choose the backend, sweep, play.
func soaking(ctx context.Context, out io.Writer, f *soakFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	backend, name, files, err := ready(ctx, out, f.backend, f.narad)
	if err != nil {
		return err
	}
	dir := filepath.Join(f.out, fmt.Sprintf("%s-seed-%d", time.Now().UTC().Format("20060102-150405"), f.seed))
	say(out, "seed %d\nbackend %s\nreport %s\n", f.seed, name, filepath.Join(dir, reports.HTMLName))
	events := newScreen(out)
	starter := spawn.New()
	defer starter.Close()
	done, err := soak.Run(ctx, soak.Options{
		Seed: f.seed, For: f.limit, Count: f.count, First: f.first, Dir: dir, Say: events.say,
		Ground: explore.Ground{Virtual: backend == nil, Parted: name != backendProcess || runtime.GOOS == "linux", Length: f.round},
		Head:   ledger.Soak{Backend: name, Commit: version, Versions: f.versions(backend, files.Narad), Command: f.again(name)},
		Room:   soak.Room{Keep: uint64(f.keepFree) << 20, Paths: []string{dir, os.TempDir()}},
		Play: func(ctx context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun {
			if backend != nil {
				return run.Scenario(ctx, s, run.Options{Backend: backend, Binaries: files, Seed: f.seed, Dir: dir, Events: events})
			}
			virtual := &workers{command: []string{files.Chaos, simWorker}, starter: starter, seed: f.seed, patience: spawn.Patience, events: events}
			return virtual.run(ctx, s, dir)
		},
	})
	if err != nil {
		return err
	}
	say(out, "%s: %s: %s\n", strings.ToUpper(done.Verdict), done.Says, filepath.Join(dir, reports.HTMLName))
	if v := done.Violation; v != nil {
		say(out, "round %d: %s: %s\nkept in %s; again:\n  %s\n", v.Round, v.Judge, v.Says, filepath.Join(dir, v.Folder), strings.Join(v.Replay, "\n  "))
	}
	if c := run.ExitCode(done.Verdict); c != run.ExitPass {
		return exit{code: c}
	}
	return nil
}

// versions says what is tested. The sum of the broker's binary tells builds of one commit apart; in virtual time the broker is in this binary.
func (*soakFlags) versions(backend cluster.Backend, narad string) map[string]string {
	v := versions()
	if backend == nil {
		return v
	}
	if text, err := os.ReadFile(narad); err == nil {
		sum := sha256.Sum256(text)
		v["narad sha256"] = hex.EncodeToString(sum[:8])
	}
	return v
}

// again is the command that makes the same row of rounds.
func (f *soakFlags) again(backend string) string {
	command := fmt.Sprintf("bin/chaos soak --backend %s --seed %d --round %s --first %d", backend, f.seed, f.round, f.first)
	if f.limit > 0 {
		command += " --for " + f.limit.String()
	}
	if f.count > 0 {
		command += fmt.Sprintf(" --count %d", f.count)
	}
	return command
}
