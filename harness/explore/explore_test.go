package explore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// pretend is a Runner that asks a predicate instead of a worker.
type pretend struct {
	verdict func(Job) (judge, verdict string)
	ran     int
	err     error
}

func (p *pretend) Run(ctx context.Context, jobs <-chan Job, done func(Outcome)) error {
	for job := range jobs {
		if p.err != nil || ctx.Err() != nil {
			return p.err
		}
		p.ran++
		o := Outcome{Job: job, Real: time.Second, Result: &ledger.ScenarioRun{Verdict: ledger.Pass, DurationMS: 60_000}}
		o.Result.Counts.Acknowledged = 100
		if judge, verdict := p.verdict(job); judge != "" {
			o.Result.Verdict = verdict
			o.Result.Invariants = []ledger.Verdict{{Name: judge, Verdict: verdict, Says: "what broke"}}
		}
		done(o)
	}
	return nil
}

func (p *pretend) explore(t *testing.T, count int) (Summary, string) {
	t.Helper()
	var said strings.Builder
	s, err := Run(t.Context(), Options{Seed: 5, Count: count, First: 1, Out: t.TempDir(), MinimizeFor: time.Hour, Runner: p, Say: &said})
	require.NoError(t, err)
	return s, said.String()
}

func fine(Job) (string, string) { return "", "" }

func TestAllPass(t *testing.T) {
	p := &pretend{verdict: fine}
	s, said := p.explore(t, 12)
	require.Equal(t, 12, s.Ran)
	require.Equal(t, 12*time.Minute, s.Virtual)
	require.EqualValues(t, 1200, s.Records)
	require.Empty(t, s.Failures)
	require.False(t, s.TooManyDoubts())
	require.Empty(t, said)
}

// covers: HAR-15
func TestAFailureIsShrunkAndWritten(t *testing.T) {
	bug := func(j Job) (string, string) {
		switch {
		case killsTarget(j.Scenario) && lanes(j.Scenario, 2):
			return "no gap", ledger.Fail
		case killsTarget(j.Scenario):
			return "order per key", ledger.Fail // another bug, which shrinking must not slip into
		}
		return "", ""
	}
	s, said := (&pretend{verdict: bug}).explore(t, 25)
	require.NotEmpty(t, s.Failures)
	f := s.Failures[0]
	require.Equal(t, "no gap", f.Judge)
	require.Equal(t, Repeats, f.Again)
	require.Equal(t, Repeats, f.Failed)
	require.Contains(t, said, "FAILED: no gap: what broke")
	text, err := os.ReadFile(f.File)
	require.NoError(t, err)
	for _, want := range []string{"# Found by chaos explore: seed 5, schedule ", "# Judge: no gap: what broke", "# Run it: GOMAXPROCS=1 chaos run --backend sim --seed 5 " + f.File} {
		require.Contains(t, string(text), want)
	}
	read, err := scenarios.Load(f.File)
	require.NoError(t, err)
	judge, _ := bug(Job{Scenario: read})
	require.Equal(t, "no gap", judge)
	require.Len(t, read.Links, 1)
	require.Equal(t, 2, read.Links[0].Lanes)
	require.Equal(t, Schedule(5, f.Number).Name, read.Name, "the name derives the random sources of a replay")
	_, err = os.Stat(filepath.Join(filepath.Dir(f.File), "shrinking"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAFailureThatDoesNotComeBackIsWrittenAsItWas(t *testing.T) {
	once := false
	s, _ := (&pretend{verdict: func(j Job) (string, string) {
		if j.Number == 3 && !once {
			once = true
			return "no gap", ledger.Fail
		}
		return "", ""
	}}).explore(t, 5)
	require.Len(t, s.Failures, 1)
	require.Zero(t, s.Failures[0].Failed)
	require.Equal(t, Repeats, s.Failures[0].Again)
	read, err := scenarios.Load(s.Failures[0].File)
	require.NoError(t, err)
	require.Len(t, read.Faults, len(Schedule(5, 3).Faults))
}

func TestDoubtsAreCounted(t *testing.T) {
	doubt := func(many int) Summary {
		s, _ := (&pretend{verdict: func(j Job) (string, string) {
			if j.Number <= many {
				return "the run proved something", ledger.Inconclusive
			}
			return "", ""
		}}).explore(t, 20)
		require.Len(t, s.Doubts, many)
		require.Empty(t, s.Failures)
		return s
	}
	few, many := doubt(2), doubt(3)
	require.False(t, few.TooManyDoubts())
	require.True(t, many.TooManyDoubts())
	require.Equal(t, "the run proved something: what broke", few.Doubts[0].Says)
}

func TestEnoughFailuresEndIt(t *testing.T) {
	s, _ := (&pretend{verdict: func(Job) (string, string) { return "no gap", ledger.Fail }}).explore(t, 100_000)
	require.GreaterOrEqual(t, s.Ran, mostFailures)
	require.Less(t, s.Ran, 1000, "those that were on their way may end, and no more begin")
}

func TestTimeEndsIt(t *testing.T) {
	s, err := Run(t.Context(), Options{Seed: 5, For: time.Nanosecond, Out: t.TempDir(), Runner: &pretend{verdict: fine}, Say: &strings.Builder{}})
	require.NoError(t, err)
	require.False(t, s.Ended)
	_, err = Run(t.Context(), Options{Runner: &pretend{}, Say: &strings.Builder{}})
	require.ErrorContains(t, err, "a time or a count")
}

func TestAnInterruptReportsWhatRan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Run(ctx, Options{Seed: 5, Count: 100, Out: t.TempDir(), Say: &strings.Builder{}, Runner: &pretend{verdict: func(j Job) (string, string) {
		if j.Number == 4 {
			cancel()
		}
		return "", ""
	}}})
	require.NoError(t, err)
	require.True(t, s.Ended)
	require.Equal(t, 5, s.Ran)
}

func TestWithoutTimeAFailureIsWrittenAsItWas(t *testing.T) {
	p := &pretend{verdict: func(Job) (string, string) { return "no gap", ledger.Fail }}
	s, err := Run(t.Context(), Options{Seed: 5, Count: 1, Out: t.TempDir(), Runner: p, Say: &strings.Builder{}})
	require.NoError(t, err)
	require.Len(t, s.Failures, 1)
	require.Zero(t, s.Failures[0].Again)
	text, err := os.ReadFile(s.Failures[0].File)
	require.NoError(t, err)
	require.Contains(t, string(text), "time ended before it had run again")
}

func TestTroubleOfTheHarnessIsAnError(t *testing.T) {
	broken := errors.New("no process")
	_, err := Run(t.Context(), Options{Seed: 5, Count: 100, Out: t.TempDir(), Say: &strings.Builder{}, Runner: &pretend{err: broken}})
	require.ErrorIs(t, err, broken)
}

func TestJudgeOfAnOutcome(t *testing.T) {
	fails := &ledger.ScenarioRun{Verdict: ledger.Fail, Invariants: []ledger.Verdict{
		{Name: "drained", Verdict: ledger.Inconclusive}, {Name: "no gap", Verdict: ledger.Fail, Says: "a"}, {Name: "order per key", Verdict: ledger.Fail},
	}}
	for name, c := range map[string]struct {
		o    Outcome
		want string
	}{
		"judge":        {Outcome{Result: fails}, "no gap"},
		"died":         {Outcome{Died: "panic: x"}, WorkerDied},
		"left":         {Outcome{Died: "panic: x", Result: fails}, GoroutineLeft},
		"pass":         {Outcome{Result: &ledger.ScenarioRun{Verdict: ledger.Pass}}, ""},
		"inconclusive": {Outcome{Result: &ledger.ScenarioRun{Verdict: ledger.Inconclusive}}, ""},
	} {
		judge, _ := c.o.Judge()
		require.Equal(t, c.want, judge, name)
		if c.want != "" {
			require.Equal(t, ledger.Fail, c.o.Verdict(), name)
		}
	}
}
