package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// Options of Run.
type Options struct {
	Seed        uint64
	For         time.Duration // no schedule begins after it; 0 is no limit
	Count       int           // schedules at most; 0 is no limit
	First       int           // the number of the first schedule
	Out         string        // the folder of this exploration
	MinimizeFor time.Duration // for one failure
	Runner      Runner
	Say         io.Writer // progress lines
}

// Failure is a schedule that failed, made as small as it could be.
type Failure struct {
	Number int
	Judge  string
	Says   string
	Shrunk Shrunk
	Again  int    // more runs of the schedule as it was, before it was shrunk; less than Repeats when time ran out
	Failed int    // so many of them failed by the same judge
	File   string // the scenario file
}

// Doubt is a schedule that proved nothing.
type Doubt struct {
	Number int
	Says   string
	Dir    string
}

// Summary is what an exploration came to.
type Summary struct {
	Ran      int
	Failures []Failure
	Doubts   []Doubt
	Records  int64         // acknowledged
	Virtual  time.Duration // of all schedules
	Real     time.Duration // of all schedules, which run side by side
	CPU      time.Duration // of all schedules
	Took     time.Duration // of the exploration, without the shrinking
	Slowest  time.Duration
	Ended    bool // ctx ended it
}

// Bounds of an exploration.
const (
	Repeats      = 3   // how often a schedule or a change to it is run before it counts as one that does not fail
	mostFailures = 10  // after so many there is enough to look at
	mostTries    = 150 // scenarios run for one failure
	plainEvery   = 10 * time.Second
	doubtsInTen  = 1 // more than one in ten that prove nothing is a finding about the generator
)

// TooManyDoubts tells whether so many schedules proved nothing that the exploration did not either.
func (s *Summary) TooManyDoubts() bool { return len(s.Doubts)*10 > s.Ran*doubtsInTen }

// explorer is one exploration at work.
type explorer struct {
	o       *Options
	began   time.Time
	said    time.Time
	summary Summary
	failed  []Outcome
	enough  context.CancelFunc
}

// Run explores until its time is over, its count is reached, ten schedules have failed, or ctx ends, and then shrinks what failed. Its error is
// trouble of the harness; the summary is valid beside it.
func Run(ctx context.Context, o Options) (Summary, error) {
	if o.For <= 0 && o.Count <= 0 {
		return Summary{}, errors.New("explore: it wants a time or a count to end at")
	}
	e := &explorer{o: &o, began: time.Now(), said: time.Now()}
	err := e.explore(ctx)
	e.summary.Took = time.Since(e.began)
	e.summary.Ended = ctx.Err() != nil
	for i := range e.failed {
		if err == nil {
			err = e.failure(ctx, &e.failed[i])
		}
	}
	return e.summary, err
}

// explore hands out schedules and takes what comes of them.
func (e *explorer) explore(ctx context.Context) error {
	handing, enough := context.WithCancel(ctx)
	defer enough()
	e.enough = enough
	jobs := make(chan Job)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(jobs)
		var over <-chan time.Time
		if e.o.For > 0 {
			t := time.NewTimer(e.o.For)
			defer t.Stop()
			over = t.C
		}
		for n := e.o.First; e.o.Count == 0 || n < e.o.First+e.o.Count; n++ {
			job := Job{Number: n, Seed: e.o.Seed, Scenario: Schedule(e.o.Seed, n), Dir: filepath.Join(e.o.Out, "runs", fmt.Sprintf("%04d", n))}
			select {
			case jobs <- job:
			case <-over:
				return
			case <-handing.Done():
				return
			}
		}
	})
	err := e.o.Runner.Run(ctx, jobs, e.done)
	enough()
	wg.Wait()
	return err
}

// done takes one outcome. The folder of a schedule that passed goes.
func (e *explorer) done(o Outcome) {
	s := &e.summary
	s.Ran++
	s.Real += o.Real
	s.CPU += o.CPU
	s.Slowest = max(s.Slowest, o.Real)
	if o.Result != nil {
		s.Records += o.Result.Counts.Acknowledged
		s.Virtual += time.Duration(o.Result.DurationMS) * time.Millisecond
	}
	switch o.Verdict() {
	case ledger.Pass:
		if err := os.RemoveAll(o.Dir); err != nil {
			e.say("schedule %d: %v", o.Number, err)
		}
	case ledger.Fail:
		name, says := o.Judge()
		e.say("schedule %d FAILED: %s: %s", o.Number, name, brief(says))
		e.failed = append(e.failed, o)
		if len(e.failed) >= mostFailures {
			e.say("%d schedules have failed, which is enough to look at", len(e.failed))
			e.enough()
		}
	default:
		e.say("schedule %d is inconclusive: %s", o.Number, brief(o.Doubt()))
		s.Doubts = append(s.Doubts, Doubt{Number: o.Number, Says: o.Doubt(), Dir: o.Dir})
	}
	if time.Since(e.said) >= plainEvery {
		e.said = time.Now()
		e.say("%d schedules, %s of virtual time, %d records, %d failed, %d inconclusive after %s",
			s.Ran, s.Virtual.Round(time.Minute), s.Records, len(e.failed), len(s.Doubts), time.Since(e.began).Round(time.Second))
	}
}

// say writes a line; a screen that is gone stops nothing.
func (e *explorer) say(format string, args ...any) {
	_, _ = fmt.Fprintf(e.o.Say, format+"\n", args...)
}

// brief cuts what a judge says for one line.
func brief(says string) string {
	const most = 300
	if r := []rune(says); len(r) > most {
		return string(r[:most]) + "…"
	}
	return says
}

// failure looks how often a schedule fails, shrinks it and writes it down. Without time for that it is written as it was.
func (e *explorer) failure(ctx context.Context, o *Outcome) error {
	judge, says := o.Judge()
	f := Failure{Number: o.Number, Judge: judge, Says: says, Shrunk: Shrunk{Scenario: o.Scenario}}
	limited, cancel := context.WithTimeout(ctx, e.o.MinimizeFor)
	defer cancel()
	dir := filepath.Join(e.o.Out, "shrinking")
	again := func(ctx context.Context, s *scenarios.Scenario, untilOne bool) (ran, failed int, err error) {
		return e.repeat(ctx, Job{Number: o.Number, Seed: o.Seed, Scenario: s, Dir: dir}, judge, untilOne)
	}
	var err error
	f.Again, f.Failed, err = again(limited, o.Scenario, false)
	e.say("schedule %d: fails by %q in %d of %d more runs", f.Number, judge, f.Failed, f.Again)
	if err == nil && f.Failed > 0 {
		f.Shrunk, err = Shrink(limited, o.Scenario, mostTries, func(ctx context.Context, s *scenarios.Scenario) (bool, error) {
			_, failed, aerr := again(ctx, s, true)
			return failed > 0, aerr
		})
	}
	if rerr := os.RemoveAll(dir); err == nil {
		err = rerr
	}
	f.File = filepath.Join(e.o.Out, fmt.Sprintf("schedule-%04d.yaml", o.Number))
	if werr := write(&f, o.Seed, o.Dir); err == nil {
		err = werr
	}
	e.summary.Failures = append(e.summary.Failures, f)
	e.say("schedule %d: %d changes kept of %d tried: %s", f.Number, f.Shrunk.Kept, f.Shrunk.Tried, f.File)
	return err
}

// repeat runs a job again and again, or until one run fails by the judge, and counts the runs and those that failed by it.
func (e *explorer) repeat(ctx context.Context, job Job, judge string, untilOne bool) (ran, failed int, err error) {
	jobs := make(chan Job, Repeats)
	for i := range Repeats {
		one := job
		one.Dir = filepath.Join(job.Dir, fmt.Sprint(i))
		jobs <- one
	}
	close(jobs)
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	err = e.o.Runner.Run(ctx, jobs, func(o Outcome) {
		ran++
		if name, _ := o.Judge(); name == judge {
			failed++
			if untilOne {
				enough()
			}
		}
	})
	return ran, failed, err
}
