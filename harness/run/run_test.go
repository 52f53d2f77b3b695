package run

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/fakes"
	"narad.example/harness/cluster"
	"narad.example/harness/invariant"
	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const calm = `
name: by hand
covers: [HAR-05]
topics: {orders: }
links: [{parent: orders, child: orders-to-b}]
load: [{topic: orders, rate: 50/s, for: 20s, keys: 20, batch: 10, payload: {json: 50%, text: 30%, binary: 20%, size: 1B..2KiB}}]
`

// play runs a scenario on a rig in memory, in virtual time.
func playIn(t *testing.T, text string, spoil func(*memRig)) (ledger.ScenarioRun, *ledger.Scenario) {
	t.Helper()
	s, err := scenarios.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "by-hand")
	var out ledger.ScenarioRun
	synctest.Test(t, func(t *testing.T) {
		out = Scenario(t.Context(), s, Options{Backend: memBackend{spoil}, Seed: 7, Dir: dir, Virtual: true})
	})
	folder, err := ledger.Load(dir)
	require.NoError(t, err)
	return out, folder
}

func verdictOf(t *testing.T, out ledger.ScenarioRun, name string) ledger.Verdict {
	t.Helper()
	i := slices.IndexFunc(out.Invariants, func(v ledger.Verdict) bool { return v.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s: %+v", name, out)
	return out.Invariants[i]
}

func TestACalmRunPasses(t *testing.T) {
	out, folder := playIn(t, calm, nil)
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Equal(t, int64(1000), out.Counts.Acknowledged)
	require.Equal(t, int64(1000), out.Counts.OnTarget)
	require.Empty(t, folder.Problems)
	require.Len(t, folder.Parent, 1000)
	require.Len(t, folder.Verdicts, len(out.Invariants))
	require.NotEmpty(t, folder.Facts.Links[0].StartOffsets)
	require.FileExists(t, filepath.Join(folder.Dir, "nodes", "source-1.log"))
	again, err := scenarios.Load(filepath.Join(folder.Dir, ledger.ScenarioName))
	require.NoError(t, err)
	require.Equal(t, "by hand", again.Name)
}

// A fault may come with the first record; what the link was before is in the ledger all the same.
//
// covers: HAR-10
func TestTheLoadBeginsOnceEveryLinkShowsAState(t *testing.T) {
	_, folder := playIn(t, calm, func(r *memRig) { r.dark = 3 })
	var states []string
	for _, s := range folder.Samples {
		if s.Child != "" && s.At <= folder.Facts.Phases.LoadStart {
			states = append(states, s.State)
		}
	}
	require.Contains(t, states, "unknown")
	require.Equal(t, "running", states[len(states)-1], "%v", states)
}

func TestFaultsLandAndHeal(t *testing.T) {
	out, folder := playIn(t, calm+`
faults:
  - {at: 3s, for: 2s, between: [source, target], cut: true}
  - {at: 6s, for: 3s, between: [source, target], toxic: {type: reset_peer}, flap: {on: 300ms, off: 700ms}}
  - {at: 10s, kill: target-1}
  - {at: 12s, start: target-1}
  - {at: 14s, for: 2s, pause: source-1}
expect: {states: {orders-to-b: [running, unavailable, running]}}
`, nil)
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Len(t, folder.Faults, 5)
	for _, f := range folder.Faults {
		require.True(t, f.Landed, "%+v", f)
	}
	i := slices.IndexFunc(folder.Faults, func(f ledger.Fault) bool { return f.Kind == "kill" })
	require.InDelta(t, 2000, folder.Faults[i].End-folder.Faults[i].Start, 100, "a kill lasts until the start")
	j := slices.IndexFunc(folder.Faults, func(f ledger.Fault) bool { return f.Kind == "reset_peer" })
	require.Greater(t, folder.Faults[j].Evidence["times_landed"], 1.0)
}

// covers: HAR-14
func TestBrokenProductsFail(t *testing.T) {
	for judge, spoil := range map[string]func(*memRig){
		invariant.NameGap:        func(r *memRig) { r.skip = ledger.NewID(1<<40 | 235) },
		invariant.NameSecret:     func(r *memRig) { r.leak = true },
		invariant.NameAudit:      func(r *memRig) { r.silent = true },
		invariant.NameDuplicates: func(r *memRig) { r.repeats = true },
		invariant.NameLeft:       func(r *memRig) { r.left = []string{"process 7 of source-1"} },
	} {
		t.Run(judge, func(t *testing.T) {
			out, folder := playIn(t, calm, spoil)
			require.Equal(t, ledger.Fail, out.Verdict)
			require.Equal(t, ledger.Fail, verdictOf(t, out, judge).Verdict)
			i := slices.IndexFunc(folder.Verdicts, func(v ledger.Verdict) bool { return v.Name == judge })
			require.NotEmpty(t, folder.Verdicts[i].IDs)
			require.Equal(t, ExitViolation, ExitCode(out.Verdict))
		})
	}
}

func TestAFaultThatDoesNothingIsInconclusive(t *testing.T) {
	out, _ := playIn(t, calm+"faults: [{at: 3s, for: 2s, between: [source, target], toxic: {type: reset_peer}}]\n", func(r *memRig) { r.link.useless = true })
	require.Equal(t, ledger.Inconclusive, out.Verdict)
	require.Contains(t, verdictOf(t, out, invariant.NameProof).Says, "nothing proves that reset_peer on source>target at 3s landed")
	require.Equal(t, ExitInconclusive, ExitCode(out.Verdict))
}

// A start waits for a kill that is slow to answer: before, the kill found the node running again and had proved nothing.
//
// covers: HAR-05
func TestAStartWaitsForTheKill(t *testing.T) {
	faults := "faults: [{at: 3s, kill: target-1}, {at: 5s, start: target-1}]\n"
	out, folder := playIn(t, calm+faults, func(r *memRig) { r.kills = 4 * time.Second })
	require.Len(t, folder.Faults, 2)
	for _, f := range folder.Faults {
		require.True(t, f.Landed, "%+v of %+v", f, out)
	}
}

// covers: HAR-05, HAR-09
func TestADeathIsOverWhenTheKillIs(t *testing.T) {
	_, folder := playIn(t, calm+"faults: [{at: 3s, for: 8s, kill: source-1}]\n", func(r *memRig) { r.kills = 4 * time.Second })
	require.Len(t, folder.Facts.Deaths, 1)
	d := folder.Facts.Deaths[0]
	require.InDelta(t, 4000, d.Over()-d.At, 50, "%+v", d)
	require.False(t, d.Graceful)
}

func TestATargetThatStaysAwayIsNamed(t *testing.T) {
	out, folder := playIn(t, calm+"expect: {drained: 30s}\n", func(r *memRig) { r.link.enabled, r.next = true, map[int]int{0: 1 << 30} })
	require.Equal(t, ledger.Fail, out.Verdict)
	require.NotZero(t, folder.Facts.Phases.Deadline)
	_ = verdictOf(t, out, invariant.NameGap)
}

func TestStepsAndWhatCannotStart(t *testing.T) {
	out, folder := playIn(t, calm+"steps: [{at: 1s, action: target_password, to: other}, {at: 2s, action: target_password, to: recorded}]\n", nil)
	require.Equal(t, ledger.Pass, out.Verdict, "%s %+v", out.Says, out.Invariants)
	require.Contains(t, verdictOf(t, out, invariant.NameSteps).Says, "2 actions")
	n := 0
	for _, op := range folder.Operations {
		if op.Action == "user.password" {
			n++
			require.Equal(t, 204, op.Status)
		}
	}
	require.Equal(t, 2, n)

	out, _ = playIn(t, "source: {nodes: 3}"+calm, nil)
	require.Equal(t, ledger.Inconclusive, out.Verdict)
	require.Contains(t, out.Says, "the rig did not start")

	s, err := scenarios.Parse("x.yaml", []byte("backends: {only: [container], reason: it wants an engine}"+calm))
	require.NoError(t, err)
	out = Scenario(t.Context(), s, Options{Backend: memBackend{}, Dir: filepath.Join(t.TempDir(), "none")})
	require.Equal(t, ledger.NotRun, out.Verdict)
	require.Equal(t, "it wants an engine", out.Says)
}

func TestAnAbortSavesWhatThereIs(t *testing.T) {
	s, err := scenarios.Parse("x.yaml", []byte(calm))
	require.NoError(t, err)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		out := Scenario(ctx, s, Options{Backend: memBackend{}, Seed: 7, Dir: dir, Virtual: true})
		require.Equal(t, ledger.Inconclusive, out.Verdict)
		require.Contains(t, out.Says, "the run was ended")
	})
	folder, err := ledger.Load(dir)
	require.NoError(t, err)
	require.Empty(t, folder.Problems)
	require.NotEmpty(t, folder.Operations)
	require.NotEmpty(t, folder.Parent)
}

func TestAllWritesTheRunAndPointsLatest(t *testing.T) {
	root := filepath.Join(t.TempDir(), "out", "run-1")
	a, b := &scenarios.Scenario{Name: "a"}, &scenarios.Scenario{Name: "b c"}
	run, err := All(t.Context(), []Batch{{Scenarios: []*scenarios.Scenario{a}, AtOnce: 2}, {Scenarios: []*scenarios.Scenario{b}}}, ledger.Run{Seed: 7, Backend: "sim"}, root, func(_ context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun {
		return ledger.ScenarioRun{Name: s.Name, Folder: filepath.Base(dir), Verdict: map[string]string{"a": ledger.Pass, "b c": ledger.NotRun}[s.Name]}
	})
	require.NoError(t, err)
	require.Equal(t, ledger.Pass, run.Verdict)
	read, err := ledger.ReadJSON[ledger.Run](filepath.Join(root, "..", LatestName, ledger.RunName))
	require.NoError(t, err)
	require.Equal(t, run, read)
	require.Equal(t, "b-c", read.Scenarios[1].Folder)
	require.Equal(t, ledger.NotRun, Fold(read.Scenarios[1:]))
	require.Equal(t, ExitInconclusive, ExitCode(ledger.NotRun))

	_, err = All(t.Context(), []Batch{{Scenarios: []*scenarios.Scenario{a, a}, AtOnce: 1}}, ledger.Run{}, root, nil)
	require.ErrorContains(t, err, "taken")
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(root), LatestName)))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(root), LatestName), nil, 0o600))
	_, err = All(t.Context(), nil, ledger.Run{}, root, nil)
	require.ErrorContains(t, err, "is no link")
}

// The scenario language and the fakes' catalogue name the same answers with the same parameters.
// covers: HAR-04
func TestTheLanguageKnowsTheCatalogue(t *testing.T) {
	require.Len(t, scenarios.Answers, len(fakes.Catalogue))
	for _, e := range fakes.Catalogue {
		takes, known := scenarios.Answers[e.Name]
		require.True(t, known, e.Name)
		require.ElementsMatch(t, e.Takes, takes, e.Name)
	}
	for _, judge := range scenarios.Judges {
		require.Contains(t, []string{
			invariant.NameGap, invariant.NameOrder, invariant.NameBytes, invariant.NameDuplicates, invariant.NameStates, invariant.NameAudit,
			invariant.NameSecret, invariant.NameDrained,
		}, judge)
	}
}

// covers: HAR-04
func TestTheCatalogueCanBePlayed(t *testing.T) {
	files, err := scenarios.Find([]string{filepath.Join("..", "..", "scenarios")})
	require.NoError(t, err)
	for _, f := range files {
		all, err := scenarios.LoadAll(f)
		require.NoError(t, err)
		for _, s := range all.Scenarios {
			_, err = Script(s)
			require.NoError(t, err, f)
			for _, ft := range s.Faults {
				if ft.Toxic != nil {
					require.NoError(t, (&cluster.Toxic{Name: "x", Type: ft.Toxic.Type, Stream: ft.Toxic.Stream, Attributes: ft.Toxic.Attributes()}).Check(), f)
				}
			}
		}
	}
}

func TestReadMetrics(t *testing.T) {
	m := readMetrics(strings.Join([]string{
		"# HELP narad_remote_resent_records_total x", `narad_remote_resent_records_total{remote="b c"} 12`, `narad_remote_request_seconds_bucket{le="1"} 3`,
		"narad_ingress_dispatch_backlog_records 4", "go_goroutines 9", `narad_remote_rtt_seconds{remote="b"} 1e-3`,
	}, "\n"))
	require.Equal(t, map[string]float64{`narad_remote_resent_records_total{remote="b c"}`: 12, backlogMetric: 4, `narad_remote_rtt_seconds{remote="b"}`: 0.001}, m)
}

func TestReadLog(t *testing.T) {
	epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	audit, drops := readLog("source-1", epoch, []byte(`{"time":"2026-01-02T03:04:06Z","level":"INFO","msg":"audit","component":"audit","event":"remote.create","actor":"admin","target":"b","outcome":"committed","request_id":"r1","index":7,"replayed":true}
{"time":"2026-01-02T03:04:06Z","level":"INFO","msg":"audit","component":"audit","event":"remote.create","actor":"admin","target":"b","outcome":"ok","status":201,"request_id":"r1"}
panic: boom
{"time":"2026-01-02T03:04:07Z","level":"ERROR","msg":"records dropped, retention passed the cursor","parent":"orders","partition":2,"child":"c","from":3,"to":9,"records":7}
`))
	require.Equal(t, []ledger.AuditLine{
		{Node: "source-1", At: 1000, Event: "remote.create", Actor: "admin", Target: "b", Outcome: "committed", RequestID: "r1", Stage: "leader", Index: 7, Replayed: true},
		{Node: "source-1", At: 1000, Event: "remote.create", Actor: "admin", Target: "b", Outcome: "ok", Status: 201, RequestID: "r1", Stage: "ingress"},
	}, audit)
	require.Equal(t, []ledger.Drop{{Parent: "orders", Child: "c", Partition: 2, From: 3, To: 9, Records: 7}}, drops)
}
