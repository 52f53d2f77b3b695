package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// LatestName is the link beside the run folders that names the newest one.
const LatestName = "latest"

// One runs one scenario into its folder: Scenario in this process, or a worker process of the sim backend.
type One func(ctx context.Context, s *scenarios.Scenario, dir string) ledger.ScenarioRun

// Batch is scenarios that run at most AtOnce at a time. Real clusters mostly wait and virtual time only computes, so that each has a
// batch of its own.
type Batch struct {
	Scenarios []*scenarios.Scenario
	AtOnce    int
}

// All runs batches, side by side, into folders below root and keeps run.json up to date after each scenario, so that an
// aborted run has one. The head brings seed, commit, backend and versions; results stand in the order of the batches. What ctx
// did not leave time for is reported as not run.
func All(ctx context.Context, batches []Batch, head ledger.Run, root string, one One) (ledger.Run, error) {
	head.Started = time.Now().UTC().Format(time.RFC3339)
	head.Scenarios = []ledger.ScenarioRun{}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return head, fmt.Errorf("run folder: %w", err)
	}
	if err := pointLatest(root); err != nil {
		return head, err
	}
	var list []*scenarios.Scenario
	for _, b := range batches {
		list = append(list, b.Scenarios...)
	}
	if err := ownFolders(list); err != nil {
		return head, err
	}
	results := make([]*ledger.ScenarioRun, len(list))
	ended := make(chan int)
	var running sync.WaitGroup
	defer running.Wait()
	begun := 0
	for _, b := range batches {
		first := begun
		running.Go(func() {
			b.run(func(n int, s *scenarios.Scenario) {
				i := first + n
				r := notReached(s, head.Backend)
				if ctx.Err() == nil {
					r = one(ctx, s, filepath.Join(root, ledger.Slug(s.Name)))
				}
				results[i] = &r
				ended <- i
			})
		})
		begun += len(b.Scenarios)
	}
	var failed error
	done := make([]bool, len(list))
	for range list {
		done[<-ended] = true
		head.Scenarios = head.Scenarios[:0]
		for i := range results {
			if done[i] { // the others may be written right now
				head.Scenarios = append(head.Scenarios, *results[i])
			}
		}
		head.Verdict = Fold(head.Scenarios)
		head.Ended = time.Now().UTC().Format(time.RFC3339)
		failed = errors.Join(failed, ledger.WriteJSON(filepath.Join(root, ledger.RunName), head))
	}
	if ctx.Err() != nil {
		head.Verdict = ledger.Worst(head.Verdict, ledger.Inconclusive)
	}
	return head, errors.Join(failed, ledger.WriteJSON(filepath.Join(root, ledger.RunName), head))
}

// run calls one for each scenario with its place in the batch, and waits for all.
func (b Batch) run(one func(n int, s *scenarios.Scenario)) {
	turns := make(chan struct{}, max(1, b.AtOnce))
	var running sync.WaitGroup
	for n, s := range b.Scenarios {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			one(n, s)
		})
	}
	running.Wait()
}

// ownFolders makes sure that every scenario has a folder of its own.
func ownFolders(list []*scenarios.Scenario) error {
	taken := map[string]bool{}
	for _, s := range list {
		folder := ledger.Slug(s.Name)
		if folder == "" || taken[folder] {
			return fmt.Errorf("scenario %q: its folder %q is taken or empty; give it a name of its own", s.Name, folder)
		}
		taken[folder] = true
	}
	return nil
}

// notReached is the result of a scenario that the run ended before.
func notReached(s *scenarios.Scenario, backend string) ledger.ScenarioRun {
	return ledger.ScenarioRun{
		Name: s.Name, File: s.File, Covers: s.Covers, Cell: s.Cell, Backend: backend, Verdict: ledger.NotRun, Says: "the run was ended before it",
		Faults: []ledger.Fault{}, Invariants: []ledger.Verdict{},
	}
}

// pointLatest makes the link "latest" beside root point at it. A file of that name that is no link is left alone and reported.
func pointLatest(root string) error {
	link := filepath.Join(filepath.Dir(root), LatestName)
	info, err := os.Lstat(link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("run folder: %w", err)
	case info.Mode()&fs.ModeSymlink == 0:
		return fmt.Errorf("run folder: %s is no link", link)
	default:
		if err = os.Remove(link); err != nil {
			return fmt.Errorf("run folder: %w", err)
		}
	}
	if err = os.Symlink(filepath.Base(root), link); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	return nil
}
