package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
	"narad.example/harness/run"
)

// The text of two scenarios: of the second one a look expects what is not so.
const (
	soundText = `name: sound
covers: [HAR-04]
topics: {orders: {partitions: 3}}
links: [{parent: orders, child: orders-to-b}]
load: [{topic: orders, rate: 20/s, for: 5s, keys: 5}]
expect: {drained: 30s}
`
	wrongText = `name: wrong
covers: [HAR-04]
topics: {orders: {partitions: 3}}
links: [{parent: orders, child: orders-to-b}]
load: [{topic: orders, rate: 20/s, for: 5s, keys: 5}]
steps: [{at: 4s, action: look, link: orders-to-b, shows: {state: paused}}]
expect: {drained: 30s}
`
)

// played runs the scenarios of a folder in virtual time and returns the run folder.
func played(t *testing.T, texts ...string) (folder string, err error) {
	t.Helper()
	from, out := t.TempDir(), t.TempDir()
	for _, text := range texts {
		name, _, _ := strings.Cut(text, "\n")
		require.NoError(t, os.WriteFile(filepath.Join(from, strings.TrimPrefix(name, "name: ")+".yaml"), []byte(text), 0o600))
	}
	_, err = chaos(t, "run", "--backend", "sim", "--seed", "3", "--out", out, from)
	require.NoError(t, os.RemoveAll(from)) // what is played again is what was played
	folder, linkErr := filepath.EvalSymlinks(filepath.Join(out, run.LatestName))
	require.NoError(t, linkErr, "%v", err)
	return folder, err
}

// covers: HAR-04
func TestReplay(t *testing.T) {
	folder, err := played(t, soundText, wrongText)
	require.Equal(t, run.ExitViolation, code(err))
	again := t.TempDir()
	out, err := chaos(t, "replay", "--times", "2", "--out", again, folder)
	require.Equal(t, run.ExitViolation, code(err))
	require.Contains(t, out, "seed 3, of the run of ")
	require.Contains(t, out, "\nwrong: failed in 2 of 2, the run said fail; looks as expected in 2\nFAIL: ")
	require.NotContains(t, out, "sound", "it passed")
	require.NotContains(t, out, "not what was tested then")
	before, err := ledger.ReadJSON[ledger.Run](filepath.Join(folder, ledger.RunName))
	require.NoError(t, err)
	heads, err := filepath.Glob(filepath.Join(again, "*", "wrong", "0?", ledger.RunName))
	require.NoError(t, err)
	require.Len(t, heads, 2)
	for _, file := range heads {
		head, readErr := ledger.ReadJSON[ledger.Run](file)
		require.NoError(t, readErr)
		require.Equal(t, before.Scenarios[1].Seed, head.Scenarios[0].Seed)
		require.Equal(t, before.Scenarios[1].Counts.Acknowledged, head.Scenarios[0].Counts.Acknowledged)
	}

	text, err := os.ReadFile(filepath.Join(folder, "sound", ledger.ScenarioName)) // a folder with both is a run's
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, ledger.ScenarioName), text, 0o600))
	out, err = chaos(t, "replay", "--out", again, filepath.Join(folder, "sound"))
	require.NoError(t, err)
	require.Contains(t, out, "\nsound: failed in 0 of 1, the run said pass\nPASS: ")

	before.Versions["chaos"] = "another"
	require.NoError(t, ledger.WriteJSON(filepath.Join(folder, ledger.RunName), before))
	out, err = chaos(t, "replay", "--out", again, "--only", "sound", folder)
	require.NoError(t, err)
	require.Contains(t, out, "not what was tested then: chaos was another and is unknown\n")
	require.Contains(t, out, "(chaos was another and is unknown)\n")
}

// What is no run folder, or not whole, is refused with what is wrong and where.
//
// covers: HAR-04
func TestReplayOfWhatIsNoRun(t *testing.T) {
	folder, err := played(t, soundText)
	require.NoError(t, err)
	refused := func(want string, args ...string) {
		t.Helper()
		_, wrong := chaos(t, append([]string{"replay", "--out", t.TempDir()}, args...)...)
		require.ErrorContains(t, wrong, want)
		require.Equal(t, run.ExitInvalid, code(wrong))
	}
	refused("replay wants a run folder", filepath.Join(folder, "none"))
	refused("replay wants a run folder", t.TempDir())
	refused("no scenario of this run that was played", "--only", "another", folder)
	refused("--times wants 0 at least", "--times", "-1", folder)
	head := filepath.Join(folder, ledger.RunName)
	text, err := os.ReadFile(head)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "sound", ledger.ScenarioName), []byte("name: sound\ncolour: red\n"), 0o600))
	refused("scenario.yaml:2:1: colour: unknown field", folder)
	require.NoError(t, os.Remove(filepath.Join(folder, "sound", ledger.ScenarioName)))
	refused("is not whole: it has no scenario.yaml of \"sound\"", folder)
	require.NoError(t, os.WriteFile(head, text[:len(text)/2], 0o600))
	refused("is no whole run.json", folder)
	require.NoError(t, os.WriteFile(head, []byte("{}"), 0o600))
	refused("names no backend or no scenario", folder)
}
