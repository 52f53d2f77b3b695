package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"

	"narad.example/harness/cluster/sim"
	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/harness/workload"
	"narad.example/scenarios"
)

// event is one line from a worker: exactly one member is set.
type event struct {
	Phase    string              `json:"phase,omitempty"`
	Progress *run.Progress       `json:"progress,omitempty"`
	Result   *ledger.ScenarioRun `json:"result,omitempty"`
}

// workerLog is where a worker's own output goes, a panic of a simulated node too.
const workerLog = "worker.log"

func workerCommand() *cobra.Command {
	var file, as, dir string
	var seed uint64
	c := &cobra.Command{
		Use: "sim-worker", Hidden: true, Args: cobra.NoArgs, Short: "Run one scenario in virtual time; the harness starts this itself",
		RunE: func(*cobra.Command, []string) error {
			s, err := scenarios.Load(file)
			if err != nil {
				return err
			}
			s.File = as
			work(s, dir, seed)
			return nil
		},
	}
	c.Flags().StringVar(&file, "file", "", "the scenario")
	c.Flags().StringVar(&as, "as", "", "the file that the scenario comes from")
	c.Flags().StringVar(&dir, "dir", "", "its folder")
	c.Flags().Uint64Var(&seed, "seed", 0, "the run's seed")
	return c
}

// work enters a bubble of virtual time, which only package testing can make, and never returns: testing.Main ends the process. What still runs
// when the bubble ends is a panic and another exit status, after the result was written.
func work(s *scenarios.Scenario, dir string, seed uint64) {
	events := os.NewFile(3, "events")
	out := &sender{enc: json.NewEncoder(events)}
	stepBack()
	own := workload.Seed(seed, s.Name)
	os.Args = os.Args[:1]
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "scenario", F: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := run.Scenario(t.Context(), s, run.Options{
				Backend: &sim.Backend{Random: sim.SeededSecrets(own)}, Seed: seed, Dir: dir, Virtual: true, Events: out,
			})
			out.send(event{Result: &r})
		})
	}}}, nil, nil)
}

// sender is the worker's end of run.Events.
type sender struct {
	run.Silent
	enc *json.Encoder
}

func (s *sender) send(e event) { _ = s.enc.Encode(e) } // a parent that is gone takes the worker with it

// Phase passes the phase on.
func (s *sender) Phase(_, phase string) { s.send(event{Phase: phase}) }

// Progress passes the progress on.
func (s *sender) Progress(p run.Progress) { s.send(event{Progress: &p}) }

// inWorker runs a scenario in a worker process and returns what the worker found.
func inWorker(ctx context.Context, s *scenarios.Scenario, dir string, seed uint64, events run.Events) ledger.ScenarioRun {
	own := workload.Seed(seed, s.Name)
	events.Started(s.Name, s.File, "sim", own)
	r, err := startWorker(ctx, s, dir, seed, events)
	if r == nil {
		r = &ledger.ScenarioRun{
			Name: s.Name, File: s.File, Folder: filepath.Base(dir), Backend: "sim", Seed: own, Covers: s.Covers, Cell: s.Cell, Verdict: ledger.Inconclusive,
			Faults: []ledger.Fault{}, Invariants: []ledger.Verdict{}, Says: "the worker ended without a result, see " + workerLog,
		}
	}
	left := ledger.Verdict{Name: "no goroutine left", Verdict: ledger.Pass, Says: "the bubble ended empty"}
	if err != nil {
		left.Verdict, left.Says = ledger.Inconclusive, fmt.Sprintf("the worker ended with %v, see %s", err, workerLog)
	}
	r.Invariants = append(r.Invariants, left)
	r.Verdict = ledger.Worst(r.Verdict, left.Verdict)
	events.Ended(*r)
	return *r
}

func startWorker(ctx context.Context, s *scenarios.Scenario, dir string, seed uint64, events run.Events) (*ledger.ScenarioRun, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, workerLog))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	file := filepath.Join(dir, ledger.ScenarioName) // not s.File, which may hold a matrix
	text, err := scenarios.Marshal(s)
	if err != nil {
		return nil, err
	}
	if err = os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "sim-worker", "--file", file, "--as", s.File, "--dir", dir, "--seed", strconv.FormatUint(seed, 10))
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{to}
	err = cmd.Start()
	_ = to.Close()
	if err != nil {
		return nil, err
	}
	var result *ledger.ScenarioRun
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch {
		case e.Result != nil:
			result = e.Result
		case e.Progress != nil:
			events.Progress(*e.Progress)
		default:
			events.Phase(s.Name, e.Phase)
		}
	}
	return result, cmd.Wait()
}
