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
	Retries   int // how often a scenario that proved nothing is played once more, after all others and half as many at a time
}

// place is one scenario of a run.
type place struct {
	scenario *scenarios.Scenario
	retries  int // that are left
	result   *ledger.ScenarioRun
}

// All runs batches, side by side, into folders below root and keeps run.json up to date after each scenario, so that an
// aborted run has one. The head brings seed, commit, backend and versions; results stand in the order of the batches. What ctx
// did not leave time for is reported as not run. The last try of a scenario is its result, the folder of every try stays.
func All(ctx context.Context, batches []Batch, head ledger.Run, root string, one One) (ledger.Run, error) {
	head.Started = time.Now().UTC().Format(time.RFC3339)
	head.Scenarios = []ledger.ScenarioRun{}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return head, fmt.Errorf("run folder: %w", err)
	}
	if err := PointLatest(root); err != nil {
		return head, err
	}
	b := &book{root: root, head: head}
	var queues []queue
	for _, batch := range batches {
		q := queue{atOnce: max(1, batch.AtOnce)}
		for _, s := range batch.Scenarios {
			p := &place{scenario: s, retries: batch.Retries}
			b.places, q.places = append(b.places, p), append(q.places, p)
		}
		queues = append(queues, q)
	}
	if err := ownFolders(b.places); err != nil {
		return head, err
	}
	for len(queues) > 0 {
		b.round(ctx, queues, one)
		queues = again(ctx, queues)
	}
	return b.close(ctx.Err() != nil)
}

// queue is what one round plays of a batch.
type queue struct {
	places []*place
	atOnce int
}

// again is what the next round plays: of each queue what proved nothing and has a retry left.
func again(ctx context.Context, queues []queue) []queue {
	var next []queue
	for _, q := range queues {
		left := queue{atOnce: max(1, q.atOnce/2)}
		for _, p := range q.places {
			if ctx.Err() == nil && p.retries > 0 && p.result.Verdict == ledger.Inconclusive {
				p.retries--
				left.places = append(left.places, p)
			}
		}
		if len(left.places) > 0 {
			next = append(next, left)
		}
	}
	return next
}

// book is run.json while scenarios end.
type book struct {
	root   string
	places []*place

	mu   sync.Mutex // guards head's results, err and, while a round goes, what others read of places; held for a write of run.json
	head ledger.Run
	err  error
}

// round plays queues side by side and waits for all.
func (b *book) round(ctx context.Context, queues []queue, one One) {
	var running sync.WaitGroup
	for _, q := range queues {
		running.Go(func() {
			turns := make(chan struct{}, q.atOnce)
			for _, p := range q.places {
				turns <- struct{}{}
				running.Go(func() {
					defer func() { <-turns }()
					b.try(ctx, p, one)
				})
			}
		})
	}
	running.Wait()
}

// try plays one scenario, for the first time or again.
func (b *book) try(ctx context.Context, p *place, one One) {
	folder, tries := ledger.Slug(p.scenario.Name), 1
	var earlier []ledger.Try
	if p.result != nil {
		tries = p.result.Tries + 1
		folder = fmt.Sprintf("%s.try-%d", folder, tries) // no scenario's own: a slug has no full stop
		earlier = append(p.result.Earlier, ledger.TryOf(p.result))
	}
	if ctx.Err() != nil {
		if p.result == nil {
			b.note(p, notReached(p.scenario, b.head.Backend))
		}
		return
	}
	r := one(ctx, p.scenario, filepath.Join(b.root, folder))
	if r.Verdict != ledger.NotRun {
		r.Tries, r.Earlier = tries, earlier
	}
	b.note(p, r)
}

// note writes a result down.
func (b *book) note(p *place, r ledger.ScenarioRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.result = &r
	b.head.Scenarios = b.head.Scenarios[:0]
	for _, each := range b.places {
		if each.result != nil {
			b.head.Scenarios = append(b.head.Scenarios, *each.result)
		}
	}
	b.head.Verdict = Fold(b.head.Scenarios)
	b.head.Ended = time.Now().UTC().Format(time.RFC3339)
	b.err = errors.Join(b.err, ledger.WriteJSON(filepath.Join(b.root, ledger.RunName), b.head))
}

// close writes run.json for the last time. A run that was ended early proved nothing.
func (b *book) close(ended bool) (ledger.Run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ended {
		b.head.Verdict = ledger.Worst(b.head.Verdict, ledger.Inconclusive)
	}
	return b.head, errors.Join(b.err, ledger.WriteJSON(filepath.Join(b.root, ledger.RunName), b.head))
}

// ownFolders makes sure that every scenario has a folder of its own.
func ownFolders(places []*place) error {
	taken := map[string]bool{}
	for _, p := range places {
		folder := ledger.Slug(p.scenario.Name)
		if folder == "" || taken[folder] {
			return fmt.Errorf("scenario %q: its folder %q is taken or empty; give it a name of its own", p.scenario.Name, folder)
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

// PointLatest makes the link "latest" beside a run folder, or a soak's, point at it: the newest link wins where several runs begin at once. A file of
// that name that is no link is left alone and reported.
func PointLatest(root string) error {
	link := filepath.Join(filepath.Dir(root), LatestName)
	info, err := os.Lstat(link)
	if err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("run folder: %s is no link", link)
	}
	own := link + "." + filepath.Base(root)
	if err = os.Symlink(filepath.Base(root), own); err == nil {
		err = os.Rename(own, link)
	}
	if err != nil {
		return fmt.Errorf("run folder: %w", errors.Join(err, os.RemoveAll(own)))
	}
	return nil
}
