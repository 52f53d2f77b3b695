package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/explore"
	"narad.example/harness/ledger"
)

// covers: HAR-12
func TestARecoveryLastsUntilEveryLinkIsSound(t *testing.T) {
	at := func(ms int64, child, state string) ledger.Sample {
		return ledger.Sample{At: ms, Child: child, State: state}
	}
	silent := ledger.Sample{At: 1500, Child: "a", Silent: true}
	for name, c := range map[string]struct {
		samples []ledger.Sample
		want    int64
	}{
		"both":             {[]ledger.Sample{at(900, "a", "running"), at(1200, "a", "running"), at(1200, "b", "unavailable"), at(3000, "b", "running"), at(4000, "b", "unavailable")}, 2000},
		"never":            {[]ledger.Sample{at(1200, "a", "running"), at(1200, "b", "auth_failed"), at(3000, "b", "auth_failed")}, 8000},
		"paused by admin":  {[]ledger.Sample{at(1400, "a", "paused")}, 400},
		"nobody answers":   {[]ledger.Sample{silent, at(2500, "a", "running")}, 1500},
		"a node's samples": {[]ledger.Sample{{At: 5000, Node: "source-1"}}, 0},
		"gone":             {[]ledger.Sample{at(900, "a", "unavailable")}, 0},
	} {
		require.Equal(t, c.want, recovery(1000, c.samples, 9000), name)
	}
	faults := []ledger.Fault{{Name: "x", Kind: "cut", End: 1000}, {Name: "open", Kind: "kill"}, {Name: "y", Kind: "kill", End: 1100}}
	got := recoveries(7, faults, []ledger.Sample{at(1150, "a", "running")}, &ledger.Phases{Healed: 2000, Drained: 2600, End: 9000})
	require.Equal(t, []ledger.Recovery{
		{Round: 7, Fault: "from the healing until drained", Kind: "drain", MS: 600}, {Round: 7, Fault: "x", Kind: "cut", MS: 150}, {Round: 7, Fault: "y", Kind: "kill", MS: 50},
	}, got)
}

func TestWorstLagIsOfAllLinksTogether(t *testing.T) {
	lag := func(child string, n int64) ledger.Sample { return ledger.Sample{Child: child, Lag: n} }
	require.EqualValues(t, 50, worstLag([]ledger.Sample{lag("a", 10), lag("b", 40), {Child: "a", Lag: 900, Silent: true}, lag("a", 0), lag("b", 45), {Node: "source-1", Lag: 99}}))
}

func TestARowWithoutAFolderLeavesOutWhatItLacks(t *testing.T) {
	s := explore.Round(1, 1, explore.Ground{Length: 2 * time.Minute})
	row := rowOf(1, s, &ledger.ScenarioRun{Verdict: ledger.Inconclusive, Says: "the rig did not start"}, t.TempDir())
	require.Equal(t, ledger.SoakRound{Number: 1, Clusters: clusters(s), Verdict: ledger.Inconclusive, Says: "the rig did not start", Faults: map[string]int{}}, row)
}
