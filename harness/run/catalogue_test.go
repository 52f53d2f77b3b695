package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// plays answers each try of a scenario with the next verdict of its name and remembers the folders in their order.
type plays struct {
	verdicts map[string][]string

	mu      sync.Mutex // guards verdicts and folders
	folders []string
}

func (p *plays) one(_ context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.folders = append(p.folders, filepath.Base(dir))
	v := p.verdicts[s.Name][0]
	p.verdicts[s.Name] = p.verdicts[s.Name][1:]
	r := ledger.ScenarioRun{Name: s.Name, Folder: filepath.Base(dir), Verdict: v, DurationMS: 7}
	if v == ledger.Inconclusive {
		r.Invariants = []ledger.Verdict{{Name: "the run", Verdict: v, Says: "no traffic met the fault"}}
	}
	return r
}

func named(names ...string) (list []*scenarios.Scenario) {
	for _, n := range names {
		list = append(list, &scenarios.Scenario{Name: n})
	}
	return list
}

// Only what proved nothing is played again, after all others, and the last try counts.
func TestWhatProvedNothingIsPlayedAgain(t *testing.T) {
	root := filepath.Join(t.TempDir(), "out", "run-1")
	p := &plays{verdicts: map[string][]string{
		"good": {ledger.Pass}, "bad": {ledger.Fail}, "skipped": {ledger.NotRun},
		"second": {ledger.Inconclusive, ledger.Pass}, "third": {ledger.Inconclusive, ledger.Inconclusive, ledger.Fail},
		"never": {ledger.Inconclusive, ledger.Inconclusive, ledger.Inconclusive}, "virtual": {ledger.Inconclusive},
	}}
	done, err := All(t.Context(), []Batch{
		{Scenarios: named("second", "good", "never", "bad", "third", "skipped"), AtOnce: 1, Retries: 2},
		{Scenarios: named("virtual"), AtOnce: 1},
	}, ledger.Run{}, root, p.one)
	require.NoError(t, err)
	require.Equal(t, []string{"second.try-2", "never.try-2", "third.try-2", "never.try-3", "third.try-3"}, p.folders[7:], "after all others")
	read, err := ledger.ReadJSON[ledger.Run](filepath.Join(root, ledger.RunName))
	require.NoError(t, err)
	require.Equal(t, done, read)

	tries, verdicts := map[string]int{}, map[string]string{}
	for _, r := range read.Scenarios {
		tries[r.Name], verdicts[r.Name] = r.Tries, r.Verdict
		require.Len(t, r.Earlier, max(0, r.Tries-1), r.Name)
	}
	require.Equal(t, map[string]int{"second": 2, "good": 1, "never": 3, "bad": 1, "third": 3, "skipped": 0, "virtual": 1}, tries)
	require.Equal(t, []string{ledger.Pass, ledger.Fail, ledger.Inconclusive}, []string{verdicts["second"], verdicts["third"], verdicts["never"]})
	require.Equal(t, ledger.Fail, read.Verdict)
	require.Equal(t, "second", read.Scenarios[0].Name, "results stand in the order of the batches")
	require.Equal(t, []ledger.Try{
		{Folder: "never", Verdict: ledger.Inconclusive, Says: "the run: no traffic met the fault", DurationMS: 7},
		{Folder: "never.try-2", Verdict: ledger.Inconclusive, Says: "the run: no traffic met the fault", DurationMS: 7},
	}, read.Scenarios[2].Earlier)
}

func TestNothingIsPlayedAgainOnceTheRunIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &plays{verdicts: map[string][]string{"a": {ledger.Inconclusive}}}
	done, err := All(ctx, []Batch{{Scenarios: named("a", "b"), AtOnce: 1, Retries: 9}}, ledger.Run{}, filepath.Join(t.TempDir(), "x", "y"),
		func(ctx context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun {
			cancel()
			return p.one(ctx, s, dir)
		})
	require.NoError(t, err)
	require.Equal(t, ledger.Inconclusive, done.Verdict)
	require.Equal(t, []int{1, 0}, []int{done.Scenarios[0].Tries, done.Scenarios[1].Tries})
	require.Equal(t, ledger.NotRun, done.Scenarios[1].Verdict)
}

func TestHalfAsManyAtATimeThenOneByOne(t *testing.T) {
	first := queue{atOnce: 4, places: []*place{{retries: 3, result: &ledger.ScenarioRun{Verdict: ledger.Inconclusive}}}}
	second := again(t.Context(), []queue{first})
	third := again(t.Context(), second)
	fourth := again(t.Context(), third)
	require.Equal(t, []int{2, 1, 1}, []int{second[0].atOnce, third[0].atOnce, fourth[0].atOnce})
	require.Empty(t, again(t.Context(), fourth))
}

// Runs that begin at once beside each other, such as one on processes and one on containers, all get their link.
//
// covers: HAR-11
func TestRunsThatBeginAtOnceAllPointLatest(t *testing.T) {
	out := t.TempDir()
	var pointing sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		pointing.Go(func() {
			for again := 0; again < 200 && errs[i] == nil; again++ {
				errs[i] = PointLatest(filepath.Join(out, fmt.Sprintf("run-%d", i)))
			}
		})
	}
	pointing.Wait()
	require.NoError(t, errors.Join(errs...))
	all, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, all, 1, "nothing but the link is left")
	to, err := os.Readlink(filepath.Join(out, LatestName))
	require.NoError(t, err)
	require.Regexp(t, `^run-\d+$`, to)
}
