package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say what is run. Root is the module's folder, Out takes one line a mutant.
type Options struct {
	Root string
	Dir  string // of the patches
	Only string // a name; empty runs all
	Seed uint64 // of the first try, the next one takes the next
	// Tries is how often a scenario that missed its bug is played at most, once if it is 0: a bug may need what not every schedule brings. A
	// catch that was not the first try's is printed as one, so that a blunt scenario is seen.
	Tries int
	Out   io.Writer
}

// ErrSurvived is the cause when a planted bug was not caught by the promise that its patch names.
var ErrSurvived = errors.New("a planted bug was not caught")

// result is what became of one mutant.
type result struct {
	says string
	took time.Duration
	err  error
}

// Run plants, builds and judges each mutant, as many at a time as there are processors and two at most, and goes on after one that
// survived: the error at the end joins all of them. Lines come in the order of the names.
func Run(ctx context.Context, o Options) error {
	all, err := Load(o.Dir)
	if err != nil {
		return err
	}
	if o.Only != "" {
		all = slices.DeleteFunc(all, func(m Mutant) bool { return m.Name != o.Only })
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no planted bug %q in %s", o.Only, o.Dir)
	}
	ctx, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	results := make([]chan result, len(all))
	next := make(chan int, len(all))
	for i := range all {
		results[i] = make(chan result, 1)
		next <- i
	}
	close(next)
	for range min(atATime, runtime.NumCPU()) {
		workers.Go(func() {
			for i := range next {
				start := time.Now()
				says, survived := one(ctx, o, all[i])
				results[i] <- result{says, time.Since(start).Round(time.Second), survived}
			}
		})
	}
	var failed []error
	for i, m := range all {
		r := <-results[i]
		if err = ctx.Err(); err != nil {
			return err
		}
		word := "caught"
		if r.err != nil {
			failed = append(failed, r.err)
			word, r.says = "SURVIVED", r.err.Error()
		}
		line := strings.Join(strings.Fields(r.says), " ")
		if _, err = fmt.Fprintf(o.Out, "%-9s %-28s %4s  %s\n", word, m.Name, r.took, line); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// atATime bounds the memory: a build and a scenario take half a gigabyte each.
const atATime = 2

// one returns what the judge said of the mutant.
func one(ctx context.Context, o Options, m Mutant) (string, error) {
	dir, err := os.MkdirTemp("", "narad-mutant-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := plant(ctx, o.Root, dir, m)
	if err != nil {
		return "", err
	}
	if err = build(ctx, o.Root, dir, overlay, m.Backend); err != nil {
		return "", err
	}
	return repeat(ctx, o.Tries, func(try int) (string, error) {
		out, seed := filepath.Join(dir, fmt.Sprint("out-", try)), o.Seed+uint64(try)
		printed, err := command(ctx, o.Root, filepath.Join(dir, "chaos"), "run", "--backend", m.Backend,
			"--seed", fmt.Sprint(seed), "--out", out, m.Scenario)
		if err == nil {
			return "", fmt.Errorf("%s: %w: %s passed under seed %d", m.Name, ErrSurvived, m.Scenario, seed)
		}
		return verdict(out, m, printed)
	})
}

// repeat plays until a try catches the bug, and returns the first try's miss when none does. Tries count from 0.
func repeat(ctx context.Context, tries int, play func(try int) (string, error)) (string, error) {
	says, missed := play(0)
	for try := 1; try < tries && errors.Is(missed, ErrSurvived) && ctx.Err() == nil; try++ {
		if again, err := play(try); err == nil {
			return fmt.Sprintf("on try %d: %s", try+1, again), nil
		}
	}
	return says, missed
}

// brief is the head of what a judge says: the run folder had the rest.
func brief(says string) string {
	if r := []rune(says); len(r) > maxSays {
		return string(r[:maxSays]) + "…"
	}
	return says
}

const maxSays = 240

// verdictFile is what is read of a scenario's verdicts.json.
type verdictFile []struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Says    string `json:"says"`
}

// verdict reads the run folders and wants the named promise among the failed ones.
func verdict(out string, m Mutant, printed string) (string, error) {
	files, err := filepath.Glob(filepath.Join(out, "*", "*", "verdicts.json"))
	if err != nil {
		return "", err
	}
	var others []string
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		var all verdictFile
		if err := json.Unmarshal(body, &all); err != nil {
			return "", fmt.Errorf("%s: %w", f, err)
		}
		for _, v := range all {
			if v.Name == m.Promise && v.Verdict == "fail" {
				return v.Name + ": " + brief(v.Says), nil
			}
			if v.Verdict != "pass" {
				others = append(others, v.Name+" "+v.Verdict+" ("+brief(v.Says)+")")
			}
		}
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s: %w: no verdicts; the run printed: %s", m.Name, ErrSurvived, printed)
	}
	return "", fmt.Errorf("%s: %w by %q; instead: %s", m.Name, ErrSurvived, m.Promise, strings.Join(others, ", "))
}
