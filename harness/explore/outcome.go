package explore

import (
	"context"
	"time"

	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// Job is one scenario to run in virtual time.
type Job struct {
	Number   int // of the schedule
	Seed     uint64
	Scenario *scenarios.Scenario
	Dir      string // its run folder, made anew
}

// Outcome is what came of a job.
type Outcome struct {
	Job
	Result *ledger.ScenarioRun // nil when the worker died before there was one
	Died   string              // how the worker ended while it ran this job, "" when it did not
	Real   time.Duration       // of this machine's time
	CPU    time.Duration       // of the worker, 0 when it died
}

// Judges that no scenario names: what the worker process shows.
const (
	WorkerDied    = "the worker died"
	GoroutineLeft = "no goroutine left"
)

// Judge is the judge that failed, the first one when there are several, and what it says. It is "" when none did.
func (o *Outcome) Judge() (name, says string) {
	switch {
	case o.Died != "" && o.Result == nil:
		return WorkerDied, o.Died
	case o.Died != "":
		return GoroutineLeft, o.Died
	}
	for _, v := range o.Result.Invariants {
		if v.Verdict == ledger.Fail {
			return v.Name, v.Says
		}
	}
	return "", ""
}

// Verdict is fail for a judge that failed and for a worker that died, else what the scenario came to.
func (o *Outcome) Verdict() string {
	if name, _ := o.Judge(); name != "" {
		return ledger.Fail
	}
	return o.Result.Verdict
}

// Doubt says why an outcome is inconclusive.
func (o *Outcome) Doubt() string {
	for _, v := range o.Result.Invariants {
		if v.Verdict == ledger.Inconclusive {
			return v.Name + ": " + v.Says
		}
	}
	return o.Result.Says
}

// Runner runs jobs until the channel is closed or ctx ends. It calls done for each that came to an end, never at the same time as another; a job
// that ctx cut short is not reported. An error is the harness's own.
type Runner interface {
	Run(ctx context.Context, jobs <-chan Job, done func(Outcome)) error
}
