package explore

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"narad.example/harness/spawn"
	"narad.example/scenarios"
)

// Workers runs jobs in processes of this binary. Zero limits take their defaults.
type Workers struct {
	Command  []string      // starts one worker: orders on its standard input, answers on file 3
	Count    int           // processes at a time
	Dir      string        // where a worker's own output goes
	Patience time.Duration // real time that one job may take before the worker counts as hung; spawn.Patience when 0

	mu sync.Mutex // held while done runs, so that outcomes come one at a time
}

// jobsPerProcess bounds how long one process lives, so that what one schedule leaves in memory does not weigh on hundreds of others.
const jobsPerProcess = 40

// WorkerLog is where a worker's own output lies in the folder of the job in which it died.
const WorkerLog = "worker.log"

// Run is Runner's.
func (w *Workers) Run(ctx context.Context, jobs <-chan Job, done func(Outcome)) error {
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		return fmt.Errorf("explore: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	starter := spawn.New()
	defer starter.Close()
	errs := make([]error, w.Count)
	var wg sync.WaitGroup
	for i := range w.Count {
		wg.Go(func() {
			if errs[i] = w.serve(ctx, starter, jobs, done); errs[i] != nil {
				cancel() // a harness that cannot start workers must not leave the others waiting
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// serve hands jobs to one process after the other.
func (w *Workers) serve(ctx context.Context, starter *spawn.Spawner, jobs <-chan Job, done func(Outcome)) error {
	var p *process
	defer func() {
		if p != nil {
			bury(p)
		}
	}()
	for {
		var job Job
		var more bool
		select {
		case job, more = <-jobs:
		case <-ctx.Done():
		}
		if !more || ctx.Err() != nil {
			return nil
		}
		if p != nil && p.jobs >= jobsPerProcess {
			bury(p)
			p = nil
		}
		if p == nil {
			var err error
			if p, err = w.start(ctx, starter); err != nil {
				return err
			}
		}
		out, err := w.one(ctx, p, job)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if out.Died != "" {
			bury(p)
			out.Died = firstOf(p.log, out.Died)
			_ = os.Rename(p.log, filepath.Join(job.Dir, WorkerLog)) // without it the outcome still says how it died
			p = nil
		}
		w.mu.Lock()
		done(out)
		w.mu.Unlock()
	}
}

// process is one worker.
type process struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	from    *os.File
	answers *bufio.Scanner
	log     string
	jobs    int
}

func (w *Workers) start(ctx context.Context, starter *spawn.Spawner) (*process, error) {
	log, err := os.CreateTemp(w.Dir, "worker-*.log")
	if err != nil {
		return nil, fmt.Errorf("explore: %w", err)
	}
	defer func() { _ = log.Close() }()
	from, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("explore: %w", err)
	}
	defer func() { _ = to.Close() }()
	cmd := exec.CommandContext(ctx, w.Command[0], w.Command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{to}
	cmd.Env = append(os.Environ(), OneProcessor)
	orders, err := cmd.StdinPipe()
	if err == nil {
		err = starter.Start(cmd)
	}
	if err != nil {
		_ = from.Close()
		return nil, fmt.Errorf("explore: a worker did not start: %w", err)
	}
	p := &process{cmd: cmd, orders: orders, from: from, answers: bufio.NewScanner(from), log: log.Name()}
	p.answers.Buffer(nil, 16<<20)
	return p, nil
}

// OneProcessor is the setting under which workers run, for a replay: fewer interleavings are left to chance.
const OneProcessor = "GOMAXPROCS=1"

// bury ends a process that has no job.
func bury(p *process) {
	_ = p.orders.Close() // the worker ends at the end of its orders
	_ = p.cmd.Wait()     // how it ended is known from its answers
	_ = p.from.Close()
}

// one runs a job. A worker that does not answer in time is asked for its stacks and counts as dead.
func (w *Workers) one(ctx context.Context, p *process, job Job) (Outcome, error) {
	out := Outcome{Job: job}
	text, err := scenarios.Marshal(job.Scenario)
	if err != nil {
		return out, err
	}
	if err = os.MkdirAll(job.Dir, 0o755); err != nil {
		return out, fmt.Errorf("explore: %w", err)
	}
	file := filepath.Join(job.Dir, "schedule.yaml")
	if err = os.WriteFile(file, text, 0o644); err != nil {
		return out, fmt.Errorf("explore: %w", err)
	}
	line, err := json.Marshal(order{File: file, Dir: job.Dir, Seed: job.Seed})
	if err != nil {
		return out, fmt.Errorf("explore: %w", err)
	}
	p.jobs++
	patience := cmp.Or(w.Patience, spawn.Patience)
	began := time.Now()
	leash := spawn.Hold(p.cmd.Process, patience)
	_, werr := p.orders.Write(append(line, '\n')) // a worker that is gone shows at the answers
	for werr == nil && p.answers.Scan() {
		var a answer
		if json.Unmarshal(p.answers.Bytes(), &a) != nil {
			continue
		}
		if a.Result != nil {
			out.Result = a.Result
		}
		if a.Ended {
			if leash.Release() {
				p.jobs = jobsPerProcess // late at the very moment of its answer: it is dying, and gets no other job
			}
			out.Real, out.CPU = time.Duration(a.RealMS)*time.Millisecond, time.Duration(a.CPUMS)*time.Millisecond
			return out, nil
		}
	}
	out.Real = time.Since(began)
	out.Died = "the worker ended without an answer"
	if leash.Release() && ctx.Err() == nil {
		out.Died = fmt.Sprintf("nothing came for %s of real time", patience)
	}
	return out, nil
}

// firstOf adds the first line of a worker's panic to how it died.
func firstOf(log, died string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return died
	}
	for line := range strings.Lines(string(text)) {
		for _, mark := range []string{"panic:", "fatal error:", "runtime:"} {
			if strings.HasPrefix(line, mark) {
				return died + ": " + strings.TrimSpace(line)
			}
		}
	}
	return died
}
