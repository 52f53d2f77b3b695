package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/harness/spawn"
	"narad.example/scenarios"
)

// asWorker is set in a process that a test starts as a worker; its value says what the worker does.
const asWorker = "CHAOS_TEST_WORKER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(asWorker); kind != "" {
		scripted(kind)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == simWorker { // this binary is the one that a run in virtual time starts
		_ = root().Execute() // it ends the process, or the run finds no result
		return
	}
	goleak.VerifyTestMain(m)
}

// scripted is a worker that ends, or never does.
func scripted(kind string) {
	enc := json.NewEncoder(os.NewFile(3, "events"))
	_ = enc.Encode(event{Phase: run.PhaseDrain})
	_ = enc.Encode(event{Progress: &run.Progress{Phase: run.PhaseDrain, At: 90 * time.Second}})
	if kind != "hangs" {
		_ = enc.Encode(event{Result: &ledger.ScenarioRun{Name: "calm", Verdict: ledger.Pass}})
	}
	switch kind {
	case "dies":
		panic("planted")
	case "litters":
		orphan := exec.Command("sleep", "3600") // without a context: it must outlive this process
		syscall.CloseOnExec(3)
		_ = orphan.Start()
	case "hangs", "lingers":
		if exec.Command("sh", "-c", "trap '' QUIT; exec sleep 3600").Start() == nil { // without a context: it must outlive every one of this process
			select {}
		}
	}
}

func playWorker(t *testing.T, kind string, patience time.Duration) (r ledger.ScenarioRun, dir string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(asWorker, kind)
	starter := spawn.New()
	defer starter.Close()
	w := &workers{command: []string{self}, starter: starter, seed: 7, patience: patience, events: run.Silent{}}
	s, err := scenarios.Load(filepath.Join(files, "basic", "calm.yaml"))
	require.NoError(t, err)
	dir = filepath.Join(t.TempDir(), "calm")
	return w.run(t.Context(), s, dir), dir
}

// TestOnlyAStrideIsFurther: a worker that takes ever smaller steps of virtual time counts as hung all the same.
func TestOnlyAStrideIsFurther(t *testing.T) {
	var told bytes.Buffer
	enc := json.NewEncoder(&told)
	require.NoError(t, enc.Encode(event{Phase: run.PhaseFaults}))
	for _, at := range []time.Duration{time.Second, 59 * time.Second, time.Minute, time.Minute + time.Nanosecond, 119 * time.Second, 3 * time.Minute} {
		require.NoError(t, enc.Encode(event{Progress: &run.Progress{Phase: run.PhaseFaults, At: at}}))
	}
	times := 0
	w := &workers{events: run.Silent{}}
	end := w.follow(&scenarios.Scenario{}, &told, func() { times++ })
	require.Equal(t, 3, times, "the phase, the first minute and the third")
	require.Equal(t, 3*time.Minute, end.at)
}

func TestAWorkerThatEnds(t *testing.T) {
	r, _ := playWorker(t, "ends", spawn.Patience)
	require.Equal(t, ledger.Pass, r.Verdict, "%+v", r)
	require.Len(t, r.Invariants, 1)
}

func TestAWorkerThatLeavesAProcessFails(t *testing.T) {
	r, _ := playWorker(t, "litters", spawn.Patience)
	require.Equal(t, ledger.Fail, r.Verdict)
	require.Contains(t, r.Invariants[0].Says, "left processes")
}

func TestAWorkerThatDiesProvesNothing(t *testing.T) {
	r, dir := playWorker(t, "dies", spawn.Patience)
	require.Equal(t, ledger.Inconclusive, r.Verdict)
	require.Contains(t, r.Invariants[0].Says, "exit status 2")
	log, err := os.ReadFile(filepath.Join(dir, workerLog))
	require.NoError(t, err)
	require.Contains(t, string(log), "panic: planted")
}

// A worker that never ends holds no run: it dies with its children, and its verdict says where to look. That it returns at all is the proof that
// the child is gone, which holds the pipe.
func TestAWorkerThatHangsIsKilled(t *testing.T) {
	r, dir := playWorker(t, "hangs", 2*time.Second)
	require.Equal(t, ledger.Inconclusive, r.Verdict)
	log := filepath.Join(dir, workerLog)
	for _, want := range []string{"got no further within 2s of real time and was killed", `last seen in phase "drain" after 1m30s`, log, `--seed 7 --only "calm"`, "--patience"} {
		require.Contains(t, r.Says, want)
	}
	stacks, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(stacks), "SIGQUIT")
	require.Contains(t, string(stacks), ".scripted(")

	r, _ = playWorker(t, "lingers", 2*time.Second)
	require.Equal(t, ledger.Inconclusive, r.Verdict, "with a result that passed")
	require.Empty(t, r.Says)
	require.Contains(t, r.Invariants[0].Says, "its result was there already")
}
