package explore

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/run"
	"narad.example/scenarios"
)

// covers: HAR-15
func TestEverySeedGivesAValidScheduleAndTheSameTwice(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(2001) {
		number := 1 + int(seed%50)
		s := Schedule(seed, number)
		require.Equal(t, s, Schedule(seed, number))
		text, err := scenarios.Marshal(s)
		require.NoError(t, err)
		read, err := scenarios.Parse("x.yaml", text)
		require.NoError(t, err, "seed %d schedule %d\n%s", seed, number, text)
		_, err = run.Script(read)
		require.NoError(t, err, "seed %d schedule %d\n%s", seed, number, text)
		require.False(t, seen[string(text)], "two schedules are the same: seed %d schedule %d", seed, number)
		seen[string(text)] = true
		owesOnlyWhatIsOwed(t, s)
		if seed%20 != 0 {
			continue
		}
		for _, same := range []*scenarios.Scenario{Schedule(seed, number), read} { // read: every default is filled
			again, merr := scenarios.Marshal(same)
			require.NoError(t, merr)
			require.Equal(t, string(text), string(again), "seed %d schedule %d", seed, number)
		}
	}
}

// owesOnlyWhatIsOwed holds what makes a schedule able to pass.
func owesOnlyWhatIsOwed(t *testing.T, s *scenarios.Scenario) {
	t.Helper()
	down := map[string]bool{}
	var end scenarios.Duration
	for _, l := range s.Load {
		end = max(end, l.For)
		if len(s.Faults) > 0 {
			require.GreaterOrEqual(t, int(l.Rate), 8, "traffic within every second of a fault")
		}
		require.LessOrEqual(t, l.Batch, int(l.Rate), "a request within every second")
	}
	require.GreaterOrEqual(t, end, 20*second)
	require.LessOrEqual(t, end, 240*second)
	for _, f := range s.Faults {
		require.GreaterOrEqual(t, f.At, 5*second, "traffic before the first fault")
		require.LessOrEqual(t, f.At+f.For+3*second, end, "traffic after the last fault")
		switch {
		case f.Start != "":
			down[f.Start] = false
		case f.For == 0:
			down[f.Node()] = true
		}
	}
	for node, is := range down {
		require.False(t, is, "%s comes back", node)
	}
	for _, st := range s.Steps {
		require.LessOrEqual(t, st.At+3*second, end)
		for _, f := range s.Faults {
			shut := st.Action == "target_password" && st.To == "recorded" && f.At > st.At && f.At < st.At+gateShut
			require.False(t, shut, "%s at %s meets no traffic: the gate was closed at %s", f.Kind(), f.At, st.At)
		}
	}
}

// TestSchedulesDiffer wants every kind of thing that the generator can do within a few hundred schedules.
func TestSchedulesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for n := range 600 {
		s := Schedule(7, n)
		for _, f := range s.Faults {
			seen["fault "+f.Kind()] = true
			seen["flap"] = seen["flap"] || f.Flap != nil
		}
		for _, st := range s.Steps {
			seen["step "+st.Action] = true
		}
		for _, l := range s.Links {
			seen["from "+l.From] = true
			seen["attach "+l.Attach] = true
		}
		if s.Target.Fake != nil {
			for _, st := range s.Target.Fake.Steps {
				seen["answer "+st.Answer] = true
			}
		}
	}
	want := []string{"flap", "from attach", "from unconsumed", "from earliest", "attach before", "attach after", "attach step"}
	for _, f := range []string{"latency", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer", "limit_data", "cut", "kill", "stop", "start", "pause",
		"clock", "slow_fsync", "full", "power_loss", "torn"} {
		want = append(want, "fault "+f)
	}
	for _, a := range []string{"attach", "detach", "pause", "resume", "skip", "set_limits", "target_password", "rotate_password"} {
		want = append(want, "step "+a)
	}
	for _, a := range slices.Concat(soft, hard) {
		want = append(want, "answer "+a)
	}
	for _, w := range want {
		require.True(t, seen[w], w)
	}
}
