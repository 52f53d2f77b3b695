package main

import (
	"encoding/json"
	"os"
	"regexp"
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

// simWorker is the hidden command that starts a worker.
const simWorker = "sim-worker"

func workerCommand() *cobra.Command {
	var file, as, dir string
	var seed uint64
	c := &cobra.Command{
		Use: simWorker, Hidden: true, Args: cobra.NoArgs, Short: "Run one scenario in virtual time; the harness starts this itself",
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
