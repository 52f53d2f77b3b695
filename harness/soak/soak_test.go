package soak

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/harness/explore"
	"narad.example/harness/ledger"
	"narad.example/reports"
	"narad.example/scenarios"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pretend is a player whose rounds come to what a test says.
type pretend struct {
	takes   time.Duration
	verdict func(played int) string // of the nth time that anything was played, from 1
	before  func(played int)
	played  int
	said    []string
}

func passes(int) string { return ledger.Pass }

func (p *pretend) play(ctx context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun {
	p.played++
	if p.before != nil {
		p.before(p.played)
	}
	r := ledger.ScenarioRun{
		Name: s.Name, File: s.File, Folder: filepath.Base(dir), Backend: "sim", Verdict: p.verdict(p.played),
		Counts: ledger.Counts{Acknowledged: 1000, OnWire: 1010, Duplicates: 10, Resent: 12},
		Faults: []ledger.Fault{
			{Name: "kill on source-1 at 5s", Kind: "kill", Start: 5000, End: 9000, Landed: true},
			{Name: "cut on source>target at 20s", Kind: "cut", Start: 20_000, End: 25_000, Landed: p.played%2 == 0},
		},
		Invariants: []ledger.Verdict{{Name: "drained", Verdict: ledger.Pass}},
	}
	if r.Verdict != ledger.Pass {
		r.Invariants = append(r.Invariants, ledger.Verdict{Name: "no gap", Verdict: r.Verdict, Says: "what broke"})
	}
	slow := int64(10_000 + 100*p.played) // later rounds recover later
	samples := []ledger.Sample{{At: 4000, Child: "c", State: "running", Lag: 3}, {At: 8000, Child: "c", State: "unavailable", Lag: 70}, {At: slow, Child: "c", State: "running"}, {At: 25_500, Child: "c", State: "running"}}
	if errors.Join(ledger.Write(filepath.Join(dir, ledger.LinksName), samples),
		ledger.WriteJSON(filepath.Join(dir, ledger.FactsName), ledger.Facts{Phases: ledger.Phases{Healed: 30_000, Drained: 30_600, End: 31_000}})) != nil {
		r.Verdict = ledger.Inconclusive
	}
	select {
	case <-time.After(p.takes):
	case <-ctx.Done():
		r.Verdict = ledger.Inconclusive
	}
	return r
}

func (p *pretend) options(t *testing.T) Options {
	t.Helper()
	if p.verdict == nil {
		p.verdict = passes
	}
	return Options{
		Seed: 5, First: 1, Dir: filepath.Join(t.TempDir(), "this"), Play: p.play, Say: func(line string) { p.said = append(p.said, line) },
		Ground: explore.Ground{Virtual: true, Parted: true, Length: explore.ShortestRound},
		Head:   ledger.Soak{Backend: "sim", Commit: "abc", Command: "bin/chaos soak --seed 5", Versions: map[string]string{"chaos": "abc"}},
	}
}

// soakIn runs a soak in virtual time and reads what it left.
func (p *pretend) soak(t *testing.T, o Options) (done, read ledger.Soak, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { done, err = Run(t.Context(), o) })
	return done, onDisk(t, o.Dir), err
}

func onDisk(t *testing.T, dir string) ledger.Soak {
	t.Helper()
	read, err := ledger.ReadJSON[ledger.Soak](filepath.Join(dir, ledger.SoakName))
	require.NoError(t, err)
	return read
}

func text(t *testing.T, elems ...string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(elems...))
	require.NoError(t, err)
	return string(body)
}

// covers: HAR-12
func TestHoursAreAddedUpAndTheWholeTimePasses(t *testing.T) {
	p := &pretend{takes: 25 * time.Minute}
	o := p.options(t)
	o.For = 3 * time.Hour
	done, read, err := p.soak(t, o)
	require.NoError(t, err)
	require.Equal(t, done, read)
	require.Equal(t, ledger.Pass, read.Verdict)
	require.Equal(t, 8, read.Totals.Rounds, "rounds begin at 0, 25, ... 175 minutes, and the last one is played to its end")
	var rounds []int
	for _, h := range read.Hours {
		rounds = append(rounds, h.Rounds)
	}
	require.Equal(t, []int{3, 2, 3}, rounds)
	second := read.Hours[1]
	require.Equal(t, 2, second.Hour)
	require.EqualValues(t, 2000, second.Acknowledged)
	require.EqualValues(t, 2000, second.Replicated)
	require.EqualValues(t, 20, second.Duplicates)
	require.EqualValues(t, 70, second.WorstLag)
	require.Equal(t, map[string]int{"kill": 2, "cut": 1}, second.Faults, "what did not land is not counted")
	require.Equal(t, ledger.Recovery{Round: 5, Fault: "kill on source-1 at 5s", Kind: "kill", MS: 1500}, second.Slowest)
	require.EqualValues(t, 8000, read.Totals.Acknowledged)
	require.Equal(t, 8, read.Slowest[0].Round)
	page := text(t, o.Dir, reports.HTMLName)
	require.Contains(t, page, "1.5 s after kill on source-1 at 5s, round 5")
	require.Contains(t, text(t, o.Dir, reports.MarkdownName), "| 2 | 2 | 0 | 2,000 | 2,000 | 20 | 70 | 1.5 s after kill on source-1 at 5s | 2 kill, 1 cut |")
	require.Equal(t, "round 1: pass after 25m0s; in all 25m0s of 3h0m0s, 1 rounds, 1000 records, 1 faults, 0 inconclusive", p.said[0])
	left, err := os.ReadDir(filepath.Join(o.Dir, ledger.RoundsName))
	require.NoError(t, err)
	require.Empty(t, left, "what passed is pruned")
	latest, err := os.Readlink(filepath.Join(filepath.Dir(o.Dir), "latest"))
	require.NoError(t, err)
	require.Equal(t, "this", latest)
}

// A soak that is killed leaves the report of all rounds before, and it is not green.
//
// covers: HAR-12
func TestTheReportIsWholeWhileARoundRuns(t *testing.T) {
	p := &pretend{takes: time.Minute}
	o := p.options(t)
	o.Count = 4
	p.before = func(played int) {
		read := onDisk(t, o.Dir)
		require.Len(t, read.Rounds, played-1)
		require.Equal(t, played, read.Playing)
		require.Equal(t, ledger.Inconclusive, read.Verdict)
		require.Empty(t, read.Ended)
		page := text(t, o.Dir, reports.HTMLName)
		require.Contains(t, page, "it has not ended: it runs, or it was killed (in round ")
		require.Equal(t, played-1, strings.Count(page, `<tr id="r`))
		require.Contains(t, text(t, o.Dir, reports.MarkdownName), "## Chaos soak: inconclusive")
		require.FileExists(t, filepath.Join(o.Dir, ledger.RoundsName, "000"+string(rune('0'+played)), fileName), "what it was at can be played again")
	}
	_, read, err := p.soak(t, o)
	require.NoError(t, err)
	require.Equal(t, ledger.Pass, read.Verdict)
	require.Zero(t, read.Playing)
}

// covers: HAR-12
func TestTheFirstViolationEndsItWithEverythingToReplayIt(t *testing.T) {
	p := &pretend{takes: time.Minute, verdict: func(n int) string {
		if n >= 3 {
			return ledger.Fail
		}
		return ledger.Pass
	}}
	o := p.options(t)
	o.For = time.Hour
	_, read, err := p.soak(t, o)
	require.NoError(t, err)
	require.Equal(t, ledger.Fail, read.Verdict)
	require.Equal(t, 3, p.played, "one that failed is not played again, and none comes after it")
	file := filepath.Join(o.Dir, "rounds", "0003", fileName)
	require.Equal(t, &ledger.SoakViolation{
		Round: 3, Judge: "no gap", Says: "what broke", Folder: "rounds/0003", File: "rounds/0003/round.yaml",
		Replay: []string{"bin/chaos run --backend sim --seed 5 " + file, "bin/chaos soak --backend sim --seed 5 --round 40s --first 3 --count 1"},
	}, read.Violation)
	require.Contains(t, text(t, file), "# Play it again: bin/chaos run --backend sim --seed 5 "+file)
	again, err := scenarios.Load(file)
	require.NoError(t, err)
	same, err := scenarios.Marshal(explore.Round(5, 3, o.Ground))
	require.NoError(t, err)
	written, err := scenarios.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, string(same), string(written))
	head, err := ledger.ReadJSON[ledger.Run](filepath.Join(o.Dir, "rounds", "0003", ledger.RunName))
	require.NoError(t, err)
	require.Equal(t, ledger.Fail, head.Verdict)
	require.Equal(t, map[string]string{"chaos": "abc"}, head.Versions)
	require.FileExists(t, filepath.Join(o.Dir, "rounds", "0003", ledger.Slug(again.Name), ledger.LinksName))
	require.Contains(t, text(t, o.Dir, "rounds", "0003", reports.HTMLName), "--seed 5 "+file)
	page := text(t, o.Dir, reports.HTMLName)
	for _, want := range []string{"Round 3 broke a promise: no gap", `href="rounds/0003/index.html"`, `href="rounds/0003/round.yaml"`, "--first 3 --count 1", `<span class="fail">`} {
		require.Contains(t, page, want)
	}
	require.Contains(t, text(t, o.Dir, reports.MarkdownName), "**Round 3 broke a promise**: no gap: what broke")
	left, err := os.ReadDir(filepath.Join(o.Dir, ledger.RoundsName))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// covers: HAR-12
func TestAnInterruptEndsTheRoundAndReports(t *testing.T) {
	p := &pretend{takes: time.Minute}
	o := p.options(t)
	o.For = time.Hour
	var read ledger.Soak
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p.before = func(played int) {
			if played == 2 {
				time.AfterFunc(20*time.Second, cancel)
			}
		}
		done, err := Run(ctx, o)
		require.NoError(t, err)
		read = onDisk(t, o.Dir)
		require.Equal(t, done, read)
	})
	require.Equal(t, ledger.Inconclusive, read.Verdict)
	require.Equal(t, endedEarly, read.Says)
	require.NotEmpty(t, read.Ended)
	require.Len(t, read.Rounds, 2)
	require.True(t, read.Rounds[1].Cut)
	require.EqualValues(t, 20_000, read.Rounds[1].DurationMS)
	require.Zero(t, read.Totals.Inconclusive, "a round that was cut accuses nobody")
	require.Equal(t, 2, p.played, "and is not played again")
	require.Contains(t, text(t, o.Dir, reports.HTMLName), "(cut)")
}
