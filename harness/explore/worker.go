package explore

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"narad.example/harness/cluster/sim"
	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/harness/workload"
	"narad.example/scenarios"
)

// order is one line to a worker.
type order struct {
	File string `json:"file"`
	Dir  string `json:"dir"`
	Seed uint64 `json:"seed"`
}

// answer is one line from a worker. A result comes from inside the bubble and ended after it: a worker that dies between the two left
// goroutines behind.
type answer struct {
	Result *ledger.ScenarioRun `json:"result,omitempty"`
	Ended  bool                `json:"ended,omitempty"`
	RealMS int64               `json:"real_ms,omitempty"`
	CPUMS  int64               `json:"cpu_ms,omitempty"`
}

// lazyGC lets the heap grow to five times what is in use: a schedule needs some dozens of MiB, and collecting less often saves processor time.
const lazyGC = 400

// Work is a worker: it runs each scenario that orders names in a bubble of its own and answers to answers. It never returns: testing.Main, which
// alone can make a bubble, ends the process. A goroutine that is left in a bubble is a panic.
func Work(orders io.Reader, answers io.Writer) {
	os.Args = os.Args[:1]
	debug.SetGCPercent(lazyGC)
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "schedules", F: func(t *testing.T) {
		enc := json.NewEncoder(answers)
		lines := bufio.NewScanner(orders)
		for lines.Scan() {
			var o order
			if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
				t.Fatal(err)
			}
			s, err := scenarios.Load(o.File)
			if err != nil {
				t.Fatal(err)
			}
			emptyPools()
			began, cpu := time.Now(), processorTime()
			synctest.Test(t, func(t *testing.T) {
				r := run.Scenario(t.Context(), s, run.Options{
					Backend: &sim.Backend{Random: sim.SeededSecrets(workload.Seed(o.Seed, s.Name))}, Seed: o.Seed, Dir: o.Dir, Virtual: true,
				})
				if err := enc.Encode(answer{Result: &r}); err != nil {
					panic(fmt.Sprintf("the explorer is gone: %v", err))
				}
			})
			if err := enc.Encode(answer{Ended: true, RealMS: time.Since(began).Milliseconds(), CPUMS: (processorTime() - cpu).Milliseconds()}); err != nil {
				t.Fatal(err)
			}
		}
	}}}, nil, nil)
}

// emptyPools drops what package-level pools hold: it takes two collections. A decoder that one bubble put there has a channel of that bubble, and the
// runtime ends a process whose next bubble uses it.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
