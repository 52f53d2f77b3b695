package run

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/cluster"
	"narad.example/harness/invariant"
	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// playReal runs a scenario on a rig in memory as on a real cluster: its times may be held up.
func playReal(t *testing.T, text string, spoil func(*memRig)) (ledger.ScenarioRun, *ledger.Scenario) {
	t.Helper()
	s, err := scenarios.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "by-hand")
	var out ledger.ScenarioRun
	synctest.Test(t, func(t *testing.T) {
		out = Scenario(t.Context(), s, Options{Backend: memBackend{spoil}, Seed: 7, Dir: dir})
	})
	folder, err := ledger.Load(dir)
	require.NoError(t, err)
	return out, folder
}

func slowStarts(d time.Duration) func(*memRig) { return func(r *memRig) { r.starts = d } }

// asks are the times of the steps that the ledger has, in milliseconds of the load.
func asks(folder *ledger.Scenario) (at []int64) {
	for _, o := range folder.Operations {
		if o.Kind == ledger.KindAdmin && o.Expect != 0 {
			at = append(at, o.At-folder.Facts.Phases.LoadStart)
		}
	}
	return at
}

// faultsBegin are the times at which the faults began, in milliseconds of the load.
func faultsBegin(folder *ledger.Scenario) (at []int64) {
	for _, f := range folder.Faults {
		at = append(at, f.Start-folder.Facts.Phases.LoadStart)
	}
	slices.Sort(at)
	return at
}

const twoRestarts = `
faults: [{at: 3s, for: 1s, restart: target-1}, {at: 9s, for: 1s, restart: target-1}]
steps: [{at: 8s, action: target_password, to: other}, {at: 8500ms, action: target_password, to: recorded}]
`

// A restart that takes ten seconds longer than planned does not run into the steps and the fault that come after it: they come as much later,
// with the time between them that was planned. The first of them leaves the node two seconds, as far as it was planned to.
//
// covers: HAR-05
func TestATimelineWaitsForAFaultThatOverruns(t *testing.T) {
	out, folder := playReal(t, calm+twoRestarts, slowStarts(10*time.Second))
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Equal(t, []int64{16_000, 16_500}, asks(folder))
	require.Equal(t, []int64{3000, 17_000}, faultsBegin(folder))
	require.Equal(t, []ledger.Late{
		{At: 8000, By: 8000, Why: "restart on target-1 at 3s was not over when target_password at 8s was due"},
	}, folder.Facts.Late)
	last := slices.MaxFunc(folder.Operations, func(a, b ledger.Operation) int { return cmp.Compare(a.At, b.At) }).At
	require.InDelta(t, 28_000+10_000/50, last-folder.Facts.Phases.LoadStart, 1000, "the second restart is over at 28 s, and has its traffic")
	require.Contains(t, verdictOf(t, out, invariant.NameProof).Says, "up to 8000 ms later than planned")
}

// The load that ends last has as much time after the last step as was planned, and another load ends as ever.
//
// covers: HAR-05
func TestALoadIsAsLateAsTheTimeline(t *testing.T) {
	_, folder := playReal(t, strings.Replace(calm, "load: [", "load: [{topic: orders, rate: 10/s, for: 4s}, ", 1)+`
faults: [{at: 3s, for: 1s, restart: target-1}]
steps: [{at: 16s, action: target_password, to: recorded}]
`, slowStarts(20*time.Second))
	require.Equal(t, []int64{26_000}, asks(folder))
	ends := map[int]int64{} // by the number of keys, which tells the loads apart
	for _, o := range folder.Operations {
		if o.Kind == ledger.KindProduce {
			ends[min(1, len(o.Key))] = max(ends[min(1, len(o.Key))], o.At-folder.Facts.Phases.LoadStart)
		}
	}
	require.InDelta(t, 30_000, ends[1], 500)
	require.InDelta(t, 4000, ends[0], 500)
}

// With nothing late, and in virtual time, the scenario's own times hold.
//
// covers: HAR-05
func TestATimelineKeepsItsTimes(t *testing.T) {
	out, folder := playReal(t, calm+twoRestarts, nil)
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Equal(t, []int64{8000, 8500}, asks(folder))
	require.Equal(t, []int64{3000, 9000}, faultsBegin(folder))
	require.Empty(t, folder.Facts.Late)

	out, folder = playIn(t, calm+twoRestarts, slowStarts(10*time.Second))
	require.Equal(t, ledger.Inconclusive, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Equal(t, []int64{8000, 8500}, asks(folder))
	require.Empty(t, folder.Facts.Late)
}

// A fault does not come into a step that was planned before it.
//
// covers: HAR-05
func TestAFaultWaitsForTheAnswerToAStep(t *testing.T) {
	out, folder := playReal(t, calm+`
faults: [{at: 3s, for: 5s, pause: target-1}, {at: 6s, for: 1s, restart: source-1}]
steps: [{at: 4s, action: target_password, to: recorded}]
`, nil)
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Equal(t, []int64{4000}, asks(folder))
	i := slices.IndexFunc(folder.Operations, func(o ledger.Operation) bool { return o.Expect != 0 })
	answered := folder.Operations[i].Done - folder.Facts.Phases.LoadStart
	require.Greater(t, answered, int64(8000))
	require.Equal(t, []int64{3000, answered}, faultsBegin(folder))
}

// A machine on which nothing ends proves nothing, whatever the steps would have been answered.
//
// covers: HAR-05
func TestATimelineThatIsTooLateIsGivenUp(t *testing.T) {
	out, folder := playReal(t, calm+`
faults: [{at: 3s, for: 1s, restart: target-1}, {at: 10s, for: 1s, restart: target-1}]
steps: [{at: 20s, action: target_password, to: recorded}]
expect: {states: {orders-to-b: [paused]}}
`, slowStarts(60*time.Second))
	require.Equal(t, ledger.Inconclusive, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Contains(t, out.Says, "the timeline was given up: restart on target-1 at 10s was not over when target_password at 20s was due, nor 1m30s later")
	require.Empty(t, asks(folder))
	require.True(t, folder.Facts.Aborted)
}

// A step of an admin goes to a node that runs and that no fault is at.
//
// covers: HAR-05
func TestAStepGoesToANodeThatCanAnswer(t *testing.T) {
	r := threeClaimants()
	r.list[0].up = false
	p := &play{rig: r}
	require.Equal(t, "source-2", p.asked(p.sources()).Name())
	p.doom("source-2", true)
	require.Equal(t, "source-3", p.asked(p.sources()).Name())
	p.doom("source-3", true)
	require.Equal(t, "source-2", p.asked(p.sources()).Name(), "as far as there is one")
	p.doom("source-2", false)
	require.Equal(t, "source-2", p.asked(p.sources()).Name())
	require.Equal(t, cluster.Source, p.asked(p.sources()).Side())
}
