package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
	"narad.example/harness/run"
)

var files = filepath.Join("..", "..", "..", "scenarios")

func chaos(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := root()
	c.SetOut(&out)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// covers: HAR-04
func TestLintAndList(t *testing.T) {
	out, err := chaos(t, "lint", files)
	require.NoError(t, err)
	require.Contains(t, out, "scenarios, no mistakes")

	out, err = chaos(t, "list", files)
	require.NoError(t, err)
	require.Contains(t, out, "resets in the middle of uploads\n")
	require.Contains(t, out, "HAR-05")

	out, err = chaos(t, "list", "--uncovered", files)
	require.NoError(t, err)
	require.NotContains(t, out, "HAR-05")
	require.Contains(t, out, "UNS-01")

	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, []byte("name: x\ncolour: red\n"), 0o600))
	_, err = chaos(t, "lint", wrong)
	require.ErrorContains(t, err, "wrong.yaml:2:1: colour: unknown field")
	require.Equal(t, run.ExitInvalid, code(err))
	_, err = chaos(t, "lint", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, run.ExitInvalid, code(err))

	two := t.TempDir()
	same, err := os.ReadFile(filepath.Join(files, "basic", "calm.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(two, "a.yaml"), same, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(two, "b.yaml"), same, 0o600))
	_, err = chaos(t, "lint", two)
	require.ErrorContains(t, err, `"calm" is the name of`)
}

func TestExitCodes(t *testing.T) {
	require.Equal(t, 0, code(nil))
	require.Equal(t, 1, code(exit{code: run.ExitViolation}))
	require.Equal(t, 2, code(errors.New("the engine went away")))
	_, err := chaos(t, "run", "--backend", "vm", files)
	require.Equal(t, run.ExitInvalid, code(err))
	for _, wrong := range []string{"--patience=0s", "--retry-inconclusive=-1"} {
		_, err = chaos(t, "run", wrong, files)
		require.Equal(t, run.ExitInvalid, code(err), wrong)
	}
	_, err = chaos(t, "run", "--only", "no such scenario", files)
	require.Equal(t, run.ExitInvalid, code(err))
	require.Equal(t, []int{0, 1, 2, 2}, []int{
		run.ExitCode(ledger.Pass), run.ExitCode(ledger.Fail), run.ExitCode(ledger.Inconclusive), run.ExitCode(ledger.NotRun),
	})
}

func TestALogGetsPlainLines(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.Started("calm", "calm.yaml", "sim", 7)
	s.Phase("calm", run.PhaseDrain)
	s.Progress(run.Progress{Scenario: "calm", Phase: run.PhaseDrain, At: 12 * time.Second, Produced: 5, Links: []run.LinkProgress{{Child: "c", State: "running", Lag: 2}}, Faults: []string{"cut"}})
	s.Progress(run.Progress{Produced: 6})
	s.Ended(ledger.ScenarioRun{Verdict: ledger.Fail, Says: "why", Invariants: []ledger.Verdict{{Name: "no gap", Verdict: ledger.Fail, Says: "gone"}, {Verdict: ledger.Pass, Says: "fine"}}})
	require.Contains(t, out.String(), "== calm (calm.yaml) on sim, seed 7\n   calm: drain\n")
	require.Contains(t, out.String(), "produced 5, on the wire 0, on the target 0; c running lag 2; now: cut\n")
	require.NotContains(t, out.String(), "produced 6", "a log gets a line every ten seconds")
	require.Contains(t, out.String(), "FAIL")
	require.Contains(t, out.String(), "no gap: fail: gone")
	require.NotContains(t, out.String(), "fine")
	require.NotContains(t, out.String(), "\033")
}
