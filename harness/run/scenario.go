package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/invariant"
	"narad.example/harness/ledger"
	"narad.example/harness/workload"
	"narad.example/scenarios"
)

// Scenario takes one scenario from start to verdict. Whatever happens, what was seen is in o.Dir and nothing that it started is left; its verdict
// says the rest. A scenario that does not run on this backend is not run, with its reason.
func Scenario(ctx context.Context, s *scenarios.Scenario, o Options) ledger.ScenarioRun {
	if o.Events == nil {
		o.Events = Silent{}
	}
	out := ledger.ScenarioRun{
		Name: s.Name, File: s.File, Folder: filepath.Base(o.Dir), Backend: o.Backend.Name(), Seed: workload.Seed(o.Seed, s.Name), Covers: s.Covers, Cell: s.Cell,
		Verdict: ledger.NotRun, Faults: []ledger.Fault{}, Invariants: []ledger.Verdict{},
	}
	o.Events.Started(s.Name, s.File, o.Backend.Name(), out.Seed)
	if reason, ok := RunsOn(s, o.Backend.Name()); !ok {
		out.Says = reason
		o.Events.Ended(out)
		return out
	}
	began := time.Now()
	if err := prepare(s, o.Dir); err != nil {
		out.Verdict, out.Says = ledger.Inconclusive, err.Error()
		o.Events.Ended(out)
		return out
	}
	p, err := newPlay(s, &o)
	if err != nil {
		out.Verdict, out.Says = ledger.Inconclusive, err.Error()
		o.Events.Ended(out)
		return out
	}
	p.seed = out.Seed
	p.guard("the run", func() { p.play(ctx) })
	p.conclude(&out)
	out.DurationMS = time.Since(began).Milliseconds()
	o.Events.Ended(out)
	return out
}

// prepare makes the folder and writes the scenario as it was read.
func prepare(s *scenarios.Scenario, dir string) error {
	text, err := scenarios.Marshal(s)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Join(dir, ledger.NodesName), 0o755); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	if err = os.WriteFile(filepath.Join(dir, ledger.ScenarioName), text, 0o644); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	return nil
}

// limit is how long the whole may take; a scenario over it has hung.
func (p *play) limit() time.Duration {
	longer := time.Duration(0)
	if !p.o.Virtual {
		longer = latestMost
	}
	for _, st := range p.s.Steps {
		if st.Action == "join" || st.Action == "decommission" {
			longer += memberLimit
		}
	}
	return 2*setupLimit + 2*p.loadLength() + lateMost + longer + p.s.Expect.Drained.D() + healLimit + attachLimit + readLimit
}

// loadLength is when the last load ends, from the start of the first; one that counts has as long as it may take.
func (p *play) loadLength() (longest time.Duration) {
	for i := range p.s.Load {
		length := p.s.Load[i].Length()
		if length == 0 {
			length = 10 * time.Minute
		}
		longest = max(longest, p.s.Load[i].At.D()+length)
	}
	return longest
}

// play is the flow: start, faults, heal, drain, read.
func (p *play) play(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.limit())
	defer cancel()
	p.enter(PhaseStart)
	script, err := Script(p.s)
	if err != nil {
		p.trouble("%v", err)
		return
	}
	source, target := sides(p.s)
	p.rig, err = p.o.Backend.Start(ctx, cluster.Spec{
		Scenario: p.s.Name, Source: source, Target: target, Fake: script,
		Dir: p.o.Dir, Seed: p.seed, Epoch: p.epoch, Binaries: p.o.Binaries,
	})
	if err != nil {
		p.trouble("the rig did not start: %v", err)
		return
	}
	defer p.closeRig(ctx)
	p.mu.Lock()
	p.secrets = append(p.secrets, p.rig.Secrets()...)
	p.mu.Unlock()
	p.guard("the run", func() { p.onRig(ctx) })
	p.change(func(f *ledger.Facts) { f.Aborted = f.Aborted || ctx.Err() != nil })
	p.save(context.WithoutCancel(ctx))
}

// onRig is what happens between the start of the rig and the reading.
func (p *play) onRig(ctx context.Context) {
	if err := p.setup(ctx); err != nil {
		p.trouble("setup: %v", err)
		return
	}
	p.writeFacts()
	p.guard("the sampler", func() { p.firstLook(ctx) })
	sampling, stopSampling := context.WithCancel(ctx)
	var sampler sync.WaitGroup
	sampler.Go(func() { p.sampleLoop(sampling) })
	defer func() {
		stopSampling()
		sampler.Wait()
	}()
	p.underFaults(ctx)
	p.enter(PhaseHeal)
	healed := p.heal(ctx)
	p.closeOpen("")
	p.change(func(f *ledger.Facts) { f.Healed, f.Phases.Healed = healed, p.now() })
	if ctx.Err() != nil {
		p.trouble("the run was ended: %v", context.Cause(ctx))
		return
	}
	if err := p.attachAll(ctx, "after"); err != nil {
		p.trouble("attach after the load: %v", err)
	}
	p.enter(PhaseDrain)
	p.drain(ctx)
	if err := p.finishLinks(ctx); err != nil {
		p.trouble("%v", err)
	}
}

// underFaults runs load, faults and steps side by side until all have ended.
func (p *play) underFaults(ctx context.Context) {
	p.enter(PhaseFaults)
	p.loadStart = time.Now()
	p.change(func(f *ledger.Facts) { f.Phases.LoadStart = p.now() })
	var nodes []workload.Producer
	for _, n := range p.sources() {
		nodes = append(nodes, producer{n})
	}
	var wg sync.WaitGroup
	p.runTimeline(ctx, &wg)
	p.guard("the load", func() {
		err := workload.Run(ctx, workload.Options{
			Seed: p.seed, Loads: loads(p.s), Nodes: nodes, Now: p.now, Owes: p.owes,
			Record: func(op ledger.Operation) error {
				if op.Outcome == ledger.Acknowledged {
					p.produced.Add(1)
					p.after.acknowledged(op.Done)
				}
				return p.operations.Append(op)
			},
		})
		if err != nil {
			p.trouble("%v", err)
		}
	})
	p.change(func(f *ledger.Facts) { f.Phases.LoadEnd = p.now() })
	wg.Wait()
}

// save reads back and writes down what the rig still can tell. It is called with a context that an abort does not end.
func (p *play) save(ctx context.Context) {
	p.enter(PhaseReading)
	p.change(func(f *ledger.Facts) { f.Phases.End = p.now() })
	p.guard("reading back", func() { p.readBack(ctx) })
	limited, cancel := context.WithTimeout(ctx, healLimit)
	defer cancel()
	requests, err := p.rig.Wire(limited)
	if err != nil {
		p.trouble("wire: %v", err)
	}
	if err = errors.Join(err, ledger.Write(p.path(ledger.WireName), requests)); err != nil {
		p.trouble("%v", err)
	}
	p.change(func(f *ledger.Facts) { f.WireRead = err == nil })
	if scripted, ok := p.rig.(cluster.Scripted); ok && p.s.Target.Fake != nil {
		steps, serr := scripted.Steps(limited)
		if serr != nil {
			p.trouble("script steps: %v", serr)
		}
		p.change(func(f *ledger.Facts) { f.Steps = steps })
	}
	p.guard("the pages", func() { p.gatherPages(limited) })
	p.guard("the logs", p.gatherLogs)
	if watched, ok := p.rig.(cluster.Watched); ok {
		for _, t := range watched.Trouble() {
			p.trouble("%s", t)
		}
	}
}

func (p *play) closeRig(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if err := p.rig.Close(limited); err != nil {
		p.trouble("cleaning up: %v", err)
	}
	if looker, ok := p.rig.(cluster.Leftovers); ok {
		left, err := looker.Left(limited)
		if err != nil {
			p.trouble("%v", err)
		}
		p.change(func(f *ledger.Facts) { f.Left, f.LeftRead = left, err == nil })
	}
}

func (p *play) writeFacts() {
	p.mu.Lock()
	facts := p.facts
	p.mu.Unlock()
	if err := ledger.WriteJSON(p.path(ledger.FactsName), facts); err != nil {
		p.trouble("%v", err)
	}
}

// conclude closes the files, asks the judges and fills the answer.
func (p *play) conclude(out *ledger.ScenarioRun) {
	p.enter(PhaseJudge)
	for _, closing := range []func() error{p.operations.Close, p.faultFile.Close, p.sampleFile.Close} {
		if err := closing(); err != nil {
			p.trouble("%v", err)
		}
	}
	p.writeFacts()
	out.Verdict = ledger.Inconclusive
	out.Says = strings.Join(p.facts.Trouble, "; ")
	s, err := ledger.Load(p.o.Dir)
	if err != nil {
		out.Says += "; " + err.Error()
		return
	}
	j := invariant.Judge(s, p.secrets)
	out.Verdict, out.Counts = j.Verdict(), j.Counts
	out.Faults = append(out.Faults, s.Faults...)
	for _, v := range j.Verdicts {
		v.IDs = nil
		out.Invariants = append(out.Invariants, v)
	}
	if err = ledger.WriteJSON(p.path(ledger.VerdictsName), j.Verdicts); err != nil {
		out.Verdict = ledger.Worst(out.Verdict, ledger.Inconclusive)
		out.Says += "; " + err.Error()
	}
}
