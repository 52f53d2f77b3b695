package soak

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
	"narad.example/reports"
)

// covers: HAR-12
func TestARoundThatProvedNothingIsPlayedOnceMore(t *testing.T) {
	p := &pretend{takes: time.Minute, verdict: func(n int) string {
		if n == 2 {
			return ledger.Inconclusive
		}
		return ledger.Pass
	}}
	o := p.options(t)
	o.Count = 3
	_, read, err := p.soak(t, o)
	require.NoError(t, err)
	require.Equal(t, ledger.Pass, read.Verdict)
	require.Equal(t, 4, p.played)
	require.Equal(t, 2, read.Rounds[1].Tries)
	require.EqualValues(t, 120_000, read.Rounds[1].DurationMS)
	require.Contains(t, p.said[1], "round 2 proved nothing and is played once more: no gap: what broke")
	require.Equal(t, []ledger.Try{{Folder: "rounds/0002", Verdict: ledger.Inconclusive, Says: "no gap: what broke"}}, read.Rounds[1].Earlier)
	require.FileExists(t, filepath.Join(o.Dir, "rounds", "0002", reports.HTMLName), "why it proved nothing can be looked at")
	require.NoDirExists(t, filepath.Join(o.Dir, "rounds", "0002.try-2"))
	require.Contains(t, text(t, o.Dir, reports.HTMLName), `before it, inconclusive</span> (<a href="rounds/0002/index.html">kept</a>): no gap: what broke`)
	require.Contains(t, text(t, o.Dir, reports.MarkdownName), "**Round 2**, try 1 of 2: inconclusive no gap: what broke")
}

func TestMoreThanOneInTenThatProvedNothing(t *testing.T) {
	after := func(many int) ledger.Soak {
		p := &pretend{takes: time.Minute, verdict: func(n int) string {
			if n <= 2*many {
				return ledger.Inconclusive
			}
			return ledger.Pass
		}}
		o := p.options(t)
		o.Count = 20
		_, read, err := p.soak(t, o)
		require.NoError(t, err)
		require.Equal(t, many, read.Totals.Inconclusive)
		require.DirExists(t, filepath.Join(o.Dir, read.Rounds[0].Folder))
		require.Equal(t, "rounds/0001.try-2", read.Rounds[0].Folder)
		return read
	}
	require.Equal(t, ledger.Pass, after(2).Verdict)
	bad := after(3)
	require.Equal(t, ledger.Inconclusive, bad.Verdict)
	require.Equal(t, "3 of 20 rounds proved nothing, which is more than one in ten", bad.Says)
}

func TestSeveralInARowEndIt(t *testing.T) {
	p := &pretend{takes: time.Second, verdict: func(int) string { return ledger.NotRun }}
	o := p.options(t)
	o.For = 100 * time.Hour
	_, read, err := p.soak(t, o)
	require.NoError(t, err)
	require.Equal(t, ledger.Inconclusive, read.Verdict)
	require.Equal(t, doubtsInRow, read.Totals.Rounds)
	require.Contains(t, read.Says, "5 rounds in a row proved nothing, the last one because ")
}

func TestOfThoseThatProvedNothingTheLastFewStay(t *testing.T) {
	p := &pretend{takes: time.Second, verdict: func(n int) string {
		if n%3 == 0 {
			return ledger.Pass // every other round: two tries, then one
		}
		return ledger.Inconclusive
	}}
	o := p.options(t)
	o.Count = 30
	_, read, err := p.soak(t, o)
	require.NoError(t, err)
	require.Equal(t, 15, read.Totals.Inconclusive)
	left, err := os.ReadDir(filepath.Join(o.Dir, ledger.RoundsName))
	require.NoError(t, err)
	require.Len(t, left, keptDoubts)
	kept := 0
	for _, r := range read.Rounds {
		if r.Folder != "" {
			kept++
			require.DirExists(t, filepath.Join(o.Dir, r.Folder))
			require.Contains(t, r.Replay, r.Folder)
		}
		for _, e := range r.Earlier {
			if e.Folder != "" {
				kept++
				require.DirExists(t, filepath.Join(o.Dir, e.Folder))
			}
		}
	}
	require.Equal(t, keptDoubts, kept)
}

// covers: HAR-12
func TestTooLittleRoomEndsItBeforeARound(t *testing.T) {
	p := &pretend{takes: time.Minute}
	o := p.options(t)
	o.For = time.Hour
	asked := 0
	o.Room = Room{Keep: 100 << 20, Paths: []string{"x"}, Free: func(string) (uint64, error) {
		asked++
		return uint64(103-asked) << 20, nil
	}}
	_, read, err := p.soak(t, o)
	require.NoError(t, err)
	require.Equal(t, ledger.Inconclusive, read.Verdict)
	require.Equal(t, 3, p.played)
	require.Equal(t, "the disk under x has 99 MiB free and a soak leaves 100 MiB: make room and begin again with --first", read.Says)
	free, err := Free(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, free)
	_, err = Free(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTroubleOfTheHarnessIsAnErrorAndInTheReport(t *testing.T) {
	broken := errors.New("no such disk")
	p := &pretend{takes: time.Minute}
	o := p.options(t)
	o.For = time.Hour
	o.Room = Room{Paths: []string{"x"}, Free: func(string) (uint64, error) {
		if p.played == 2 {
			return 0, broken
		}
		return 1, nil
	}}
	_, read, err := p.soak(t, o)
	require.ErrorIs(t, err, broken)
	require.Equal(t, ledger.Inconclusive, read.Verdict)
	require.Equal(t, "harness trouble: no such disk", read.Says)
	require.Len(t, read.Rounds, 2)
}

func TestASoakWantsAnEndAndAFolderOfItsOwn(t *testing.T) {
	p := &pretend{takes: time.Minute}
	o := p.options(t)
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "a time or a count")
	o.Count = 1
	_, _, err = p.soak(t, o)
	require.NoError(t, err)
	_, err = Run(t.Context(), o)
	require.ErrorContains(t, err, "holds a soak already")
}

// covers: HAR-12
func TestTrendsOverPastSoaks(t *testing.T) {
	p := &pretend{takes: 30 * time.Minute}
	o := p.options(t)
	o.Count = 2
	out := filepath.Dir(o.Dir)
	for i, past := range []ledger.Soak{
		{Seed: 71, Started: "1999-12-02T00:00:00Z", Verdict: ledger.Fail, Commit: "older"}, {Seed: 72, Started: "1999-12-01T00:00:00Z", Verdict: ledger.Pass, Commit: "<oldest>"},
	} {
		past.Rounds = []ledger.SoakRound{{Number: 1, AtMS: 0, DurationMS: 7_200_000}}
		past.Totals = ledger.SoakTotals{Rounds: 1, Acknowledged: 4000, Replicated: 4000, Duplicates: 6}
		require.NoError(t, ledger.WriteJSON(filepath.Join(out, []string{"b", "a"}[i], ledger.SoakName), past))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(out, "torn"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(out, "torn", ledger.SoakName), []byte(`{"seed": 7`), 0o600))
	_, _, err := p.soak(t, o)
	require.NoError(t, err)
	page, err := reports.LoadSoak(o.Dir)
	require.NoError(t, err)
	require.Len(t, page.Trends, 3)
	require.Equal(t, []uint64{72, 71, 5}, []uint64{page.Trends[0].Seed, page.Trends[1].Seed, page.Trends[2].Seed}, "the oldest first")
	require.EqualValues(t, 2000, page.Trends[0].RecordsAnHour())
	require.Equal(t, "1.5", page.Trends[0].DuplicatesOfThousand())
	require.True(t, page.Trends[2].This)
	html := text(t, o.Dir, reports.HTMLName)
	for _, want := range []string{`<a href="../a/index.html">`, `<a href="../b/index.html">`, "&lt;oldest&gt;", "No soak could be read in: torn", `<tr class="this">`} {
		require.Contains(t, html, want)
	}
	for _, never := range []string{"<script", "<oldest>", "http://", "https://"} {
		require.NotContains(t, html, never)
	}
	require.Contains(t, text(t, o.Dir, reports.MarkdownName), "| 1999-12-02T00:00:00Z | fail | 71 |  | older | 2 h 00 min | 1 | 0 | 2,000 | 1.5 |")
}
