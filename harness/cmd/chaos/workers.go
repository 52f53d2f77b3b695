package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/harness/spawn"
	"narad.example/harness/workload"
	"narad.example/scenarios"
)

// workerLog is where a worker's own output goes, a panic of a simulated node too.
const workerLog = "worker.log"

// workers runs scenarios in virtual time, each in a process of its own.
type workers struct {
	command  []string // starts one
	env      []string // that it has beside this process's
	starter  *spawn.Spawner
	seed     uint64        // the run's
	patience time.Duration // real time in which a scenario must get further
	events   run.Events
}

// run returns what the worker found. One that dies or that must be ended proves nothing, and what it says tells why.
func (w *workers) run(ctx context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun {
	own := workload.Seed(w.seed, s.Name)
	w.events.Started(s.Name, s.File, backendSim, own)
	began := time.Now()
	end, err := w.work(ctx, s, dir)
	left := ledger.Verdict{Name: "no goroutine left", Verdict: ledger.Pass, Says: "the bubble ended empty"}
	why := "the worker ended without a result, see " + workerLog
	switch {
	case end.late:
		left.Verdict, left.Says = ledger.Inconclusive, w.tooLate(s, &end, dir)
		why = left.Says
	case err != nil:
		left.Verdict, left.Says = ledger.Inconclusive, fmt.Sprintf("the worker ended with %v, see %s", err, workerLog)
	}
	r := end.result
	if r == nil {
		r = &ledger.ScenarioRun{
			Name: s.Name, File: s.File, Folder: filepath.Base(dir), Backend: backendSim, Seed: own, Covers: s.Covers, Cell: s.Cell, Verdict: ledger.Inconclusive,
			Faults: []ledger.Fault{}, Invariants: []ledger.Verdict{}, Says: why, DurationMS: time.Since(began).Milliseconds(),
		}
	}
	if len(end.left) > 0 {
		left.Verdict, left.Says = ledger.Fail, fmt.Sprintf("the worker left processes %v behind", end.left)
	}
	r.Invariants = append(r.Invariants, left)
	r.Verdict = ledger.Worst(r.Verdict, left.Verdict)
	w.events.Ended(*r)
	return *r
}

// tooLate says what a worker that had to be ended was at, where its log is and what to do.
func (w *workers) tooLate(s *scenarios.Scenario, end *ending, dir string) string {
	at := fmt.Sprintf("last seen in phase %q after %s of virtual time", cmp.Or(end.phase, "none"), end.at.Round(time.Second))
	if end.result != nil {
		at = "its result was there already"
	}
	return fmt.Sprintf("the worker got no further within %s of real time and was killed, %s; the stacks of its goroutines are in %s; "+
		"run it alone (chaos run --backend %s --seed %d --only %q), with a longer --patience if the machine was busy: one that hangs again has found a loop or a lock in what is tested",
		w.patience, at, filepath.Join(dir, workerLog), backendSim, w.seed, s.Name)
}

// ending is what is known of a worker that is gone.
type ending struct {
	result *ledger.ScenarioRun // nil when there was none
	phase  string              // the last one that it entered
	at     time.Duration       // of virtual time, the last one that it told
	late   bool                // it had to be ended
	left   []int               // processes that it started and that outlived it
}

// work starts a worker and follows it to its end.
func (w *workers) work(ctx context.Context, s *scenarios.Scenario, dir string) (ending, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return ending{}, err
	}
	log, err := os.Create(filepath.Join(dir, workerLog))
	if err != nil {
		return ending{}, err
	}
	defer func() { _ = log.Close() }()
	from, to, err := os.Pipe()
	if err != nil {
		return ending{}, err
	}
	defer func() { _ = from.Close() }()
	file := filepath.Join(dir, ledger.ScenarioName) // not s.File, which may hold a matrix
	text, err := scenarios.Marshal(s)
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		_ = to.Close()
		return ending{}, err
	}
	args := append(w.command[1:len(w.command):len(w.command)], "--file", file, "--as", s.File, "--dir", dir, "--seed", strconv.FormatUint(w.seed, 10))
	cmd := exec.CommandContext(ctx, w.command[0], args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{to}
	cmd.Env = append(os.Environ(), w.env...)
	err = w.starter.Start(cmd)
	_ = to.Close()
	if err != nil {
		return ending{}, err
	}
	leash := spawn.Hold(cmd.Process, w.patience)
	end := w.follow(s, from, leash.Renew)
	err = cmd.Wait()
	end.late = leash.Release() && ctx.Err() == nil
	if !end.late { // of one that had to be ended the whole group was killed, and the dying are still members for a moment
		end.left = spawn.Members(cmd.Process.Pid)
	}
	_ = spawn.KillGroup(cmd.Process.Pid) // mostly nobody is there
	return end, err
}

// stride is how much virtual time further a worker must be to count as not hung. What turns in a circle may take a tiny step each time.
const stride = time.Minute

// follow passes on what a worker tells, until it or the last of its children closes the pipe, and calls further at each phase and stride.
func (w *workers) follow(s *scenarios.Scenario, from io.Reader, further func()) (end ending) {
	told := time.Duration(0)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch {
		case e.Result != nil:
			end.result = e.Result
		case e.Progress != nil:
			end.at = e.Progress.At
			if end.at >= told+stride {
				told = end.at
				further()
			}
			w.events.Progress(*e.Progress)
		default:
			further()
			end.phase = e.Phase
			w.events.Phase(s.Name, e.Phase)
		}
	}
	return end
}
