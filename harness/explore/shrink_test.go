package explore

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/workload"
	"narad.example/scenarios"
)

// full is a schedule with everything in it that a predicate of these tests asks for.
func full(t *testing.T, has func(s *scenarios.Scenario) bool) *scenarios.Scenario {
	t.Helper()
	for n := range 5000 {
		if s := Schedule(3, n); has(s) {
			return s
		}
	}
	t.Fatal("no schedule has what is asked for")
	return nil
}

func killsTarget(s *scenarios.Scenario) bool {
	return slices.ContainsFunc(s.Faults, func(f scenarios.Fault) bool { return f.Kill == targetNode })
}

func lanes(s *scenarios.Scenario, atLeast int) bool {
	return slices.ContainsFunc(s.Links, func(l scenarios.Link) bool { return l.Lanes >= atLeast })
}

// covers: HAR-15
func TestShrinkKeepsOnlyWhatMatters(t *testing.T) {
	bug := func(s *scenarios.Scenario) bool { return killsTarget(s) && lanes(s, 3) }
	start := full(t, func(s *scenarios.Scenario) bool {
		return bug(s) && len(s.Links) == 2 && len(s.Faults) >= 4 && len(s.Steps) >= 2 && len(s.Source.Config) > 0
	})
	before, err := scenarios.Marshal(start)
	require.NoError(t, err)
	out, err := Shrink(t.Context(), start, 1000, func(_ context.Context, s *scenarios.Scenario) (bool, error) { return bug(s), nil })
	require.NoError(t, err)
	require.True(t, out.Smallest)
	s := out.Scenario
	require.True(t, bug(s))
	require.Len(t, s.Links, 1)
	require.Equal(t, 3, s.Links[0].Lanes, "two lanes do not fail")
	require.Zero(t, s.Links[0].Delay)
	require.Len(t, s.Topics, 1)
	require.Len(t, s.Load, 1)
	require.Empty(t, s.Steps)
	require.Empty(t, s.Source.Config)
	require.Equal(t, 3, s.Topics[s.Links[0].Parent].Partitions)
	require.LessOrEqual(t, len(s.Faults), 2, "the kill, and the start that ends it")
	require.Equal(t, targetNode, s.Faults[0].Kill)
	require.Equal(t, head, s.Faults[0].At, "no more records before the kill than it takes")
	require.EqualValues(t, 1, s.Load[0].Rate)
	require.LessOrEqual(t, s.Load[0].For, s.Faults[len(s.Faults)-1].At+s.Faults[0].For+tail)
	require.Equal(t, 1, s.Load[0].Batch)
	require.LessOrEqual(t, s.Load[0].Keys, 1)
	after, err := scenarios.Marshal(start)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "what was given stays as it was")
}

// covers: HAR-15
func TestShrinkKeepsAnAnswerOfTheScript(t *testing.T) {
	bug := func(s *scenarios.Scenario) bool {
		return s.Target.Fake != nil && slices.ContainsFunc(s.Target.Fake.Steps, func(st scenarios.FakeStep) bool { return st.Answer == "503" && st.Times >= 2 })
	}
	start := full(t, func(s *scenarios.Scenario) bool { return bug(s) && len(s.Target.Fake.Steps) >= 3 && len(s.Faults) > 0 })
	out, err := Shrink(t.Context(), start, 1000, func(_ context.Context, s *scenarios.Scenario) (bool, error) { return bug(s), nil })
	require.NoError(t, err)
	require.Len(t, out.Scenario.Target.Fake.Steps, 1)
	require.Equal(t, "503", out.Scenario.Target.Fake.Steps[0].Answer)
	require.Empty(t, out.Scenario.Faults)
}

// TestShrinkOfAnythingIsValid lets runs fail at random, and wants every scenario that is run to be valid and the last one to fail.
func TestShrinkOfAnythingIsValid(t *testing.T) {
	for seed := range uint64(25) {
		d := dice{workload.Source(seed, "what fails")}
		start := Schedule(seed, 1)
		last := start
		out, err := Shrink(t.Context(), start, 20, func(_ context.Context, s *scenarios.Scenario) (bool, error) {
			text, err := scenarios.Marshal(s)
			require.NoError(t, err)
			_, err = scenarios.Parse("x.yaml", text)
			require.NoError(t, err)
			fails := d.percent(50)
			if fails {
				last = s
			}
			return fails, nil
		})
		require.NoError(t, err)
		require.Same(t, last, out.Scenario)
		require.LessOrEqual(t, out.Tried, 20)
	}
}

func TestShrinkEnds(t *testing.T) {
	start := Schedule(1, 1)
	always := func(context.Context, *scenarios.Scenario) (bool, error) { return true, nil }
	out, err := Shrink(t.Context(), start, 3, always)
	require.NoError(t, err)
	require.Equal(t, 3, out.Tried)
	require.False(t, out.Smallest)

	out, err = Shrink(t.Context(), start, 1000, always)
	require.NoError(t, err)
	require.True(t, out.Smallest, "a bug that is always there ends with nothing left to take")
	require.Empty(t, out.Scenario.Faults)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	out, err = Shrink(ended, start, 1000, always)
	require.NoError(t, err)
	require.Zero(t, out.Tried)
	require.Same(t, start, out.Scenario)

	broken := errors.New("no process")
	_, err = Shrink(t.Context(), start, 1000, func(context.Context, *scenarios.Scenario) (bool, error) { return false, broken })
	require.ErrorIs(t, err, broken)
}
