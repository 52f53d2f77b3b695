package run

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// play is one scenario on its way.
type play struct {
	s      *scenarios.Scenario
	o      *Options
	events Events
	seed   uint64
	epoch  time.Time
	rig    cluster.Rig

	operations *ledger.Writer[ledger.Operation]
	faultFile  *ledger.Writer[ledger.Fault]
	sampleFile *ledger.Writer[ledger.Sample]
	produced   atomic.Int64 // acknowledged records
	requests   atomic.Int64 // admin requests, for their IDs
	loadStart  time.Time
	after      aftermath

	mu      sync.Mutex // guards what follows; never held while waiting for a node or a file
	facts   ledger.Facts
	open    []ledger.Fault // kills and stops that wait for their start
	active  []string       // faults in force
	phase   string
	users   map[string]*account // by remote
	secrets []string
	tick    tick                     // the newest sample
	ticked  chan struct{}            // closed at the next one
	shown   map[string]string        // states in the newest listing, by parent
	pages   []json.RawMessage        // listings as they were answered
	kept    []ledger.Stored          // records of parents that were read back during the run, before retention could take them
	ties    map[string]tie           // by target topic
	left    []string                 // nodes of the source that were decommissioned
	turns   map[string]chan struct{} // of kills, stops and starts, by node
	doomed  []string                 // nodes that a fault is about to end, holds or brings back
}

// account is the user of a remote on the target.
type account struct{ name, password string }

func newPlay(s *scenarios.Scenario, o *Options) (*play, error) {
	p := &play{s: s, o: o, events: o.Events, epoch: time.Now(), users: map[string]*account{}, shown: map[string]string{}, ticked: make(chan struct{}), ties: map[string]tie{}, turns: map[string]chan struct{}{}}
	if p.events == nil {
		p.events = Silent{}
	}
	p.facts = ledger.Facts{
		Scenario: s.Name, Epoch: p.epoch.UnixMilli(), Backend: o.Backend.Name(), Virtual: o.Virtual, Fake: s.Target.Fake != nil, Sources: s.Source.Nodes, TargetNodes: s.Target.Nodes, Links: []ledger.Link{},
		Expect: expectation(s), Relax: relaxed(s),
	}
	var err error
	if p.operations, err = ledger.Create[ledger.Operation](p.path(ledger.OperationsName)); err != nil {
		return nil, err
	}
	if p.faultFile, err = ledger.Create[ledger.Fault](p.path(ledger.FaultsName)); err != nil {
		return nil, err
	}
	if p.sampleFile, err = ledger.Create[ledger.Sample](p.path(ledger.LinksName)); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *play) path(name string) string { return filepath.Join(p.o.Dir, name) }

// now is the time in the ledger's form.
func (p *play) now() int64 { return time.Since(p.epoch).Milliseconds() }

// trouble notes what went wrong in the harness itself; the verdict is inconclusive then.
func (p *play) trouble(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if len(p.facts.Trouble) < 20 && !slices.Contains(p.facts.Trouble, text) {
		p.facts.Trouble = append(p.facts.Trouble, text)
	}
}

func (p *play) enter(phase string) {
	p.mu.Lock()
	p.phase = phase
	p.mu.Unlock()
	p.events.Phase(p.s.Name, phase)
}

func (p *play) isIn(phase string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.phase == phase
}

// guard runs one of the play's goroutines; a panic in it is trouble of the harness.
func (p *play) guard(what string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			p.trouble("%s broke: %v", what, r)
		}
	}()
	f()
}

func (p *play) change(f func(*ledger.Facts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.facts)
}

// links are the epochs that are attached now.
func (p *play) links() []ledger.Link {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []ledger.Link
	for _, l := range p.facts.Links {
		if l.DetachedAt == 0 {
			out = append(out, l)
		}
	}
	return out
}

// sources are the nodes of the source that are its members, as far as the scenario goes.
func (p *play) sources() []cluster.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.rig.Nodes(cluster.Source)), func(n cluster.Node) bool { return slices.Contains(p.left, n.Name()) })
}

// gone are the nodes of the source that were decommissioned.
func (p *play) gone() (out []cluster.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.left {
		if n, err := p.rig.Node(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// nodes are all nodes that are one of the product's: a fake is none.
func (p *play) nodes() []cluster.Node {
	all := slices.Clone(p.sources())
	if p.s.Target.Fake == nil {
		all = append(all, p.rig.Nodes(cluster.Target)...)
	}
	return all
}

// sleep waits for d and tells whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
