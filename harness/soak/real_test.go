package soak

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/cluster"
	"narad.example/harness/cluster/sim"
	"narad.example/harness/explore"
	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/harness/workload"
	"narad.example/reports"
	"narad.example/scenarios"
)

// overheard is a backend that notes the secrets of its rigs.
type overheard struct {
	cluster.Backend
	secrets *[]string
}

func (o overheard) Start(ctx context.Context, spec cluster.Spec) (cluster.Rig, error) {
	rig, err := o.Backend.Start(ctx, spec)
	if err == nil {
		*o.secrets = append(*o.secrets, rig.Secrets()...)
	}
	return rig, err
}

// TestTwoRealRoundsInVirtualTime plays two short rounds with real nodes, real judges and real pages.
//
// covers: HAR-12
func TestTwoRealRoundsInVirtualTime(t *testing.T) {
	for range 2 {
		runtime.GC() // empties pools: what one bubble left in them must not meet another one
	}
	var secrets, said []string
	dir := filepath.Join(t.TempDir(), "this")
	const seed = 20 // one node to one, and to three, with a fault each
	synctest.Test(t, func(t *testing.T) {
		done, err := Run(t.Context(), Options{
			Seed: seed, Count: 2, First: 1, Dir: dir, Say: func(line string) { said = append(said, line) },
			Ground: explore.Ground{Virtual: true, Parted: true, Length: explore.ShortestRound},
			Head:   ledger.Soak{Backend: "sim", Commit: "abc"},
			Room:   Room{Keep: 1, Paths: []string{dir}},
			Play: func(ctx context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun {
				backend := overheard{&sim.Backend{Random: sim.SeededSecrets(workload.Seed(seed, s.Name))}, &secrets}
				return run.Scenario(ctx, s, run.Options{Backend: backend, Seed: seed, Dir: dir, Virtual: true})
			},
		})
		require.NoError(t, err)
		require.Equal(t, ledger.Pass, done.Verdict, "%s %v", done.Says, said)
	})
	read := onDisk(t, dir)
	require.Len(t, read.Rounds, 2)
	for _, r := range read.Rounds {
		require.Equal(t, 1, r.Tries)
		require.GreaterOrEqual(t, r.DurationMS, explore.ShortestRound.Milliseconds())
		require.Positive(t, r.Counts.Acknowledged)
		require.NotEmpty(t, r.Recoveries)
	}
	require.Positive(t, read.Totals.Replicated)
	require.NotEmpty(t, read.Totals.Faults)
	require.Positive(t, read.Totals.WorstLag)
	require.Positive(t, read.Totals.Slowest.MS)
	require.Less(t, time.Duration(read.Totals.Slowest.MS)*time.Millisecond, 5*time.Minute)
	require.NotEmpty(t, secrets)
	for _, file := range []string{reports.HTMLName, reports.MarkdownName, ledger.SoakName} {
		body := text(t, dir, file)
		for _, secret := range secrets {
			require.NotContains(t, body, secret, file)
		}
	}
}
