package run

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// covers: HAR-16
func TestADayIsLookedAtLessOften(t *testing.T) {
	o := Options{Virtual: true}
	require.Equal(t, time.Second, o.sampleLoad(time.Hour))
	require.Equal(t, 43*time.Second, o.sampleLoad(24*time.Hour))
}

// A source that takes longer to start again than the load lasts still has its records after that, in real time. A virtual run keeps to
// the scenario's times.
//
// covers: HAR-05
func TestALoadGoesOnUntilALateFaultHasItsTraffic(t *testing.T) {
	text := calm + "faults: [{at: 6s, kill: target-1}, {at: 10s, start: target-1}, {at: 8s, kill: source-1}, {at: 12s, start: source-1}]\n"
	play := func(virtual bool) (out ledger.ScenarioRun) {
		s, err := scenarios.Parse("x.yaml", []byte(text))
		require.NoError(t, err)
		dir := filepath.Join(t.TempDir(), "by-hand")
		synctest.Test(t, func(t *testing.T) {
			slow := func(r *memRig) { r.starts = 30 * time.Second }
			out = Scenario(t.Context(), s, Options{Backend: memBackend{slow}, Seed: 7, Dir: dir, Virtual: virtual})
		})
		return out
	}
	out := play(false)
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Equal(t, ledger.Inconclusive, play(true).Verdict)
}
