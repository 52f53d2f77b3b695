package explore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/run"
	"narad.example/scenarios"
)

func grounds() []Ground {
	return []Ground{
		{Parted: true, Length: 2 * time.Minute}, {Parted: true, Length: ShortestRound}, {Length: LongestRound},
		{Virtual: true, Parted: true, Length: 3 * time.Minute},
	}
}

// covers: HAR-12
func TestEveryRoundIsValidAndTheSameTwice(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(240) {
		number, on := 1+int(seed%60), grounds()[seed%4]
		s := Round(seed, number, on)
		require.Equal(t, s, Round(seed, number, on))
		text, err := scenarios.Marshal(s)
		require.NoError(t, err)
		read, err := scenarios.Parse("x.yaml", text)
		require.NoError(t, err, "seed %d round %d\n%s", seed, number, text)
		_, err = run.Script(read)
		require.NoError(t, err)
		again, err := scenarios.Marshal(read)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again), "every default is filled")
		require.False(t, seen[string(text)], "two rounds are the same: seed %d round %d", seed, number)
		seen[string(text)] = true
		roundOwesOnlyWhatIsOwed(t, s, on)
	}
}

func roundOwesOnlyWhatIsOwed(t *testing.T, s *scenarios.Scenario, on Ground) {
	t.Helper()
	require.Equal(t, on.Virtual, s.Backends != nil, "what is made for real clusters may be played anywhere")
	records := 0
	var end scenarios.Duration
	for _, l := range s.Load {
		require.GreaterOrEqual(t, int(l.Rate), 8)
		require.LessOrEqual(t, l.Batch, int(l.Rate))
		records += int(l.Rate) * int(l.For/second)
		end = max(end, l.For)
	}
	require.LessOrEqual(t, records, 2*mostRecords)
	require.GreaterOrEqual(t, time.Duration(end), on.Length)
	require.LessOrEqual(t, time.Duration(end), on.Length+5*time.Minute, "a script and an open window alone make it longer")
	for _, f := range s.Faults {
		require.GreaterOrEqual(t, f.At, 5*second, "traffic before the first fault")
		require.LessOrEqual(t, f.At+f.For+5*second, end, "traffic after the last fault")
		require.Positive(t, max(f.For, 0)+f.At)
		if !on.Parted {
			require.False(t, f.Parts() || f.Paces(), f.Name())
		}
		if !on.Virtual {
			require.True(t, f.Disk == nil && f.Clock == nil, f.Name())
		}
	}
	for _, st := range s.Steps {
		require.LessOrEqual(t, st.At+3*second, end)
	}
}

func TestRoundsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for n := range 400 {
		s := Round(7, n, grounds()[3])
		seen[map[bool]string{true: "fake", false: "real"}[s.Target.Fake != nil]] = true
		for _, f := range s.Faults {
			seen["fault "+f.Kind()] = true
			seen["parts"] = seen["parts"] || f.Parts()
			seen["paces"] = seen["paces"] || f.Paces()
			_, found := scenarios.Alias(f.Node())
			seen["found"] = seen["found"] || found
		}
		for _, st := range s.Steps {
			seen["step "+st.Action] = true
		}
	}
	for _, w := range []string{
		"fake", "real", "parts", "paces", "found", "fault latency", "fault bandwidth", "fault slow_close", "fault timeout", "fault reset_peer", "fault slicer",
		"fault limit_data", "fault cut", "fault kill", "fault stop", "fault restart", "fault rolling", "fault transfer", "fault pause", "fault full",
		"fault slow_fsync", "fault power_loss", "fault torn", "fault clock", "step attach", "step detach", "step pause", "step resume", "step skip", "step move",
		"step set_limits", "step target_password", "step rotate_password",
	} {
		require.True(t, seen[w], w)
	}
}
