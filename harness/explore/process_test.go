package explore

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/harness/ledger"
)

// asWorker is set in a process that this test starts as a worker.
const asWorker = "EXPLORE_TEST_WORKER"

func TestMain(m *testing.M) {
	switch os.Getenv(asWorker) {
	case "real":
		Work(os.Stdin, os.NewFile(3, "answers"))
	case "script":
		scripted()
		return
	}
	goleak.VerifyTestMain(m)
}

// scripted is a worker that does what the name of the folder says.
func scripted() {
	enc := json.NewEncoder(os.NewFile(3, "answers"))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var o order
		if json.Unmarshal(lines.Bytes(), &o) != nil {
			return
		}
		switch name := filepath.Base(o.Dir); {
		case strings.HasPrefix(name, "dies"):
			panic("planted")
		case strings.HasPrefix(name, "hangs"):
			select {}
		case strings.HasPrefix(name, "leaves"):
			_ = enc.Encode(answer{Result: &ledger.ScenarioRun{Verdict: ledger.Pass}})
			panic("deadlock: main bubble goroutine has exited but blocked goroutines remain")
		}
		_ = enc.Encode(answer{Result: &ledger.ScenarioRun{Verdict: ledger.Pass}})
		_ = enc.Encode(answer{Ended: true, RealMS: 5, CPUMS: 3})
	}
}

func workers(t *testing.T, kind string, count int) *Workers {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(asWorker, kind)
	return &Workers{Command: []string{self}, Count: count, Dir: t.TempDir()}
}

func hand(names []string, dir string) <-chan Job {
	jobs := make(chan Job, len(names))
	for i, n := range names {
		jobs <- Job{Number: i, Scenario: Schedule(1, i), Dir: filepath.Join(dir, n)}
	}
	close(jobs)
	return jobs
}

func TestAWorkerThatDiesIsReplaced(t *testing.T) {
	w := workers(t, "script", 2)
	w.Patience = 20 * time.Second
	dir := t.TempDir()
	got := map[int]Outcome{}
	err := w.Run(t.Context(), hand([]string{"a", "dies", "b", "leaves", "c", "d"}, dir), func(o Outcome) { got[o.Number] = o })
	require.NoError(t, err)
	require.Len(t, got, 6)
	for _, n := range []int{0, 2, 4, 5} {
		o := got[n]
		require.Equal(t, ledger.Pass, o.Verdict(), n)
		require.Equal(t, 5*time.Millisecond, o.Real)
		require.Equal(t, 3*time.Millisecond, o.CPU)
	}
	died, left := got[1], got[3]
	judge, says := died.Judge()
	require.Equal(t, WorkerDied, judge)
	require.Contains(t, says, "planted")
	log, err := os.ReadFile(filepath.Join(dir, "dies", WorkerLog))
	require.NoError(t, err)
	require.Contains(t, string(log), "panic: planted")
	judge, says = left.Judge()
	require.Equal(t, GoroutineLeft, judge)
	require.Contains(t, says, "blocked goroutines remain")
}

func TestAWorkerThatHangsIsEnded(t *testing.T) {
	w := workers(t, "script", 1)
	w.Patience = time.Millisecond
	dir := t.TempDir()
	var got []Outcome
	require.NoError(t, w.Run(t.Context(), hand([]string{"hangs"}, dir), func(o Outcome) { got = append(got, o) }))
	require.Len(t, got, 1)
	judge, says := got[0].Judge()
	require.Equal(t, WorkerDied, judge)
	require.Contains(t, says, "of real time")
}

func TestAnEndedContextEndsTheWorkers(t *testing.T) {
	w := workers(t, "script", 2)
	ctx, cancel := context.WithCancel(t.Context())
	got := 0
	err := w.Run(ctx, hand([]string{"a", "hangs 1", "hangs 2"}, t.TempDir()), func(Outcome) {
		got++
		cancel()
	})
	require.NoError(t, err)
	require.Equal(t, 1, got)
}

func TestAWorkerThatDoesNotStartIsTrouble(t *testing.T) {
	w := &Workers{Command: []string{filepath.Join(t.TempDir(), "none")}, Count: 2, Dir: t.TempDir()}
	require.ErrorContains(t, w.Run(t.Context(), hand([]string{"a", "b"}, t.TempDir()), func(Outcome) {}), "did not start")
}

// TestASchedulePassesInAWorker runs two real schedules, one after the other in one process.
func TestASchedulePassesInAWorker(t *testing.T) {
	w := workers(t, "real", 1)
	var got []Outcome
	require.NoError(t, w.Run(t.Context(), hand([]string{"a", "b"}, t.TempDir()), func(o Outcome) { got = append(got, o) }))
	require.Len(t, got, 2)
	for _, o := range got {
		require.Equal(t, ledger.Pass, o.Verdict(), "%s %+v", o.Died, o.Result)
		require.Greater(t, o.Result.Counts.Acknowledged, int64(100))
	}
}

// TestPoolsAreEmptyBetweenSchedules: a pooled decoder of one bubble ended the process in the next.
func TestPoolsAreEmptyBetweenSchedules(t *testing.T) {
	var pool sync.Pool
	for range 10 {
		pool.Put(new(int))
	}
	emptyPools()
	require.Nil(t, pool.Get())
}
