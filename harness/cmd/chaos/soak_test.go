package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/reports"
)

// covers: HAR-12
func TestSoakSaysWhatIsWrongWithItsFlags(t *testing.T) {
	for wrong, says := range map[string][]string{
		"soak wants --for":                     {},
		"with a time above 0":                  {"--for=-1h"},
		"--count wants 0 at least":             {"--for=1h", "--count=-1"},
		"--first 1 at least":                   {"--for=1h", "--first=0"},
		"--round 10s; allowed: 40s to 15m0s":   {"--for=1h", "--round=10s"},
		"--round 1h0m0s; allowed: 40s to 15m":  {"--for=1h", "--round=1h"},
		"--keep-free-mib wants 0 at least":     {"--for=1h", "--keep-free-mib=-1"},
		"allowed: auto, container, process, s": {"--for=1h", "--backend=vm"},
	} {
		_, err := chaos(t, append([]string{"soak", "--out", t.TempDir()}, says...)...)
		require.ErrorContains(t, err, wrong)
		require.Equal(t, run.ExitInvalid, code(err), wrong)
	}
	help, err := chaos(t, "soak", "--help")
	require.NoError(t, err)
	require.Contains(t, help, "the folder of a round that passed goes")
	require.Contains(t, help, "--keep-free-mib")
}

func TestSoakNamesTheCommandThatMakesItAgain(t *testing.T) {
	f := soakFlags{limit: 8 * time.Hour, round: 2 * time.Minute, seed: 7, first: 3, count: 9}
	require.Equal(t, "bin/chaos soak --backend process --seed 7 --round 2m0s --first 3 --for 8h0m0s --count 9", f.again(backendProcess))
}

// covers: HAR-12
func TestSoakEndsWithCodeTwoWhenThereIsNoRoom(t *testing.T) {
	out := t.TempDir()
	said, err := chaos(t, "soak", "--backend=sim", "--count=1", "--seed=4", "--keep-free-mib=1000000000", "--out", out)
	require.Equal(t, run.ExitInconclusive, code(err))
	require.Contains(t, said, "seed 4\nbackend sim\nreport ")
	require.Contains(t, said, "INCONCLUSIVE: the disk under ")
	read, err := ledger.ReadJSON[ledger.Soak](filepath.Join(out, "latest", ledger.SoakName))
	require.NoError(t, err)
	require.Equal(t, ledger.Inconclusive, read.Verdict)
	page := filepath.Join(out, "latest", reports.HTMLName)
	require.NoError(t, os.Remove(page))
	_, err = chaos(t, "report", filepath.Join(out, "latest"))
	require.NoError(t, err)
	require.FileExists(t, page)
}
