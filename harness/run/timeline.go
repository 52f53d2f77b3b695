package run

import (
	"context"
	"fmt"
	"slices"

	"narad.example/faults"
	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/harness/workload"
	"narad.example/scenarios"
)

// fault does one fault, or one for each node of a side in turn.
func (p *play) fault(ctx context.Context, f scenarios.Fault) {
	if f.Rolling == "" {
		p.one(ctx, f, f.Name(), f.Node())
		return
	}
	for _, n := range p.rig.Nodes(f.Rolling) {
		if ctx.Err() == nil {
			p.one(ctx, f, fmt.Sprintf("%s: %s", f.Name(), n.Name()), n.Name())
		}
	}
}

// one does one fault from its injection to its end. A kill or stop without an end of its own lasts until the start of that node.
func (p *play) one(ctx context.Context, f scenarios.Fault, name, on string) {
	node, err := p.whom(ctx, on)
	if err != nil {
		p.trouble("%s: %v", name, err)
		return
	}
	spec := faultSpec(f)
	spec.Label, spec.Node = name, node
	if f.Parts() || f.Paces() {
		if spec.Parted, err = p.parties(ctx, f); err != nil {
			p.trouble("%s: %v", name, err)
			return
		}
	}
	spec.Dying = func(ctx context.Context, graceful bool) func() { return p.beforeDeath(ctx, node, graceful) }
	made, err := faults.New(spec)
	if err != nil {
		p.trouble("%v", err)
		return
	}
	p.activate(name, true)
	defer p.activate(name, false)
	ends := spec.Kind == faults.Kill || spec.Kind == faults.Stop || spec.Kind == faults.Restart || spec.Kind == faults.Upgraded || p.stopsToTransfer(spec)
	if ends || spec.Kind == faults.Start || spec.Kind == faults.Pause {
		p.doom(node, true)
		defer p.doom(node, false)
	}
	if f.For <= 0 && (ends || spec.Kind == faults.Start) {
		// On a slow machine a kill may take longer than until the start that follows it, which would have it prove nothing.
		turn := p.turn(node)
		turn <- struct{}{}
		defer func() { <-turn }()
	}
	line, err := faults.Do(ctx, p.rig, made, f.For.D(), p.epoch, workload.Source(p.seed, "fault "+name))
	if err != nil {
		p.trouble("%v", err)
	}
	if on != node {
		line.Evidence["was"] = on
	}
	if ends && f.For <= 0 {
		p.mu.Lock()
		p.open = append(p.open, line)
		p.mu.Unlock()
		return
	}
	if spec.Kind == faults.Start {
		p.closeOpen(node)
	}
	p.record(line)
}

// stopsToTransfer tells whether the fault stops the leader, which hands its lead over only then.
func (p *play) stopsToTransfer(s faults.Spec) bool {
	if s.Kind != faults.Transferred {
		return false
	}
	n, err := p.rig.Node(s.Node)
	_, steps := n.(cluster.Stepper)
	return err == nil && !steps
}

// doom marks a node that a fault is about to end, holds or brings back, and that so might not answer.
func (p *play) doom(node string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doomed = slices.DeleteFunc(p.doomed, func(n string) bool { return n == node })
	if on {
		p.doomed = append(p.doomed, node)
	}
}

// asked is the one of nodes that an admin's step goes to: one that runs and is not doomed, as far as there is one. Once it was asked no other one
// is: what got no answer may be done, and the same action asked again would be answered as another one.
func (p *play) asked(all []cluster.Node) cluster.Node {
	p.mu.Lock()
	spared := slices.DeleteFunc(slices.Clone(all), func(n cluster.Node) bool { return slices.Contains(p.doomed, n.Name()) })
	p.mu.Unlock()
	if i := slices.IndexFunc(spared, cluster.Node.Running); i >= 0 {
		return spared[i]
	}
	return anyRunning(all)
}

// turn is held by the one fault that ends or starts a node now.
func (p *play) turn(node string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns[node] == nil {
		p.turns[node] = make(chan struct{}, 1)
	}
	return p.turns[node]
}

func faultSpec(f scenarios.Fault) faults.Spec {
	s := faults.Spec{Kind: f.Kind(), Stay: f.For <= 0, Slow: f.Slow.D()}
	switch {
	case f.Rolling != "":
		s.Kind = faults.Restart
	case f.Parts():
		s.Kind = faults.Part
	}
	if t := f.Toxic; t != nil {
		name := fmt.Sprintf("%s-%d", t.Type, f.At.D().Milliseconds())
		s.Toxic = cluster.Toxic{Name: name, Type: t.Type, Stream: t.Stream, Attributes: t.Attributes()}
	}
	if d := f.Disk; d != nil {
		s.Disk = cluster.DiskFault{Files: d.Files, Delay: d.Delay.D()}
	}
	if c := f.Clock; c != nil {
		s.Step, s.Drift = c.Step.D(), c.Drift.D()
	}
	s.Face, s.Answers, s.Says, s.Unaudited, s.Parted.Carries = f.TLS, f.DNS, f.Says, f.Unaudited, f.Carries
	if c := f.Config; c != nil {
		s.Set = c.Set
	}
	if f.Flap != nil {
		s.Flap = &faults.Flap{On: f.Flap.On.D(), Off: f.Flap.Off.D()}
	}
	return s
}

func (p *play) activate(name string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = slices.DeleteFunc(p.active, func(n string) bool { return n == name })
	if on {
		p.active = append(p.active, name)
	}
}

// record writes a fault down.
func (p *play) record(f ledger.Fault) {
	if err := p.faultFile.Append(f); err != nil {
		p.trouble("%v", err)
	}
	if err := p.faultFile.Flush(); err != nil {
		p.trouble("%v", err)
	}
}

// closeOpen ends the kills and stops of a node that have no end of their own; "" ends those of all nodes.
func (p *play) closeOpen(node string) {
	p.mu.Lock()
	var over []ledger.Fault
	p.open = slices.DeleteFunc(p.open, func(f ledger.Fault) bool {
		if node != "" && f.On != node {
			return false
		}
		f.End = p.now()
		over = append(over, f)
		return true
	})
	p.mu.Unlock()
	for _, f := range over {
		p.record(f)
	}
}

// beforeDeath reads a node's counters, because they die with it (HAR-09), and notes how many cursors it runs. What it returns notes when it was over.
func (p *play) beforeDeath(ctx context.Context, name string, graceful bool) (ended func()) {
	n, err := p.rig.Node(name)
	if err != nil {
		p.trouble("%v", err)
		return func() {}
	}
	last := p.lookAt(ctx, n)
	if !last.Silent {
		if err = p.sampleFile.Append(last); err != nil {
			p.trouble("%v", err)
		}
	}
	if n.Side() != cluster.Source {
		return func() {}
	}
	cursors, nth := p.cursorsOf(ctx, name), 0
	p.change(func(f *ledger.Facts) {
		nth = len(f.Deaths)
		f.Deaths = append(f.Deaths, ledger.Death{Node: name, At: p.now(), Asked: true, Graceful: graceful, Cursors: cursors, LastSample: last.At})
	})
	return func() { p.change(func(f *ledger.Facts) { f.Deaths[nth].Ended = p.now() }) }
}

// cursorsOf counts the cursors that run on a node, all of them when the listing names none of the rig's nodes.
func (p *play) cursorsOf(ctx context.Context, node string) int {
	mine, all := 0, 0
	for _, l := range p.links() {
		_, listing, ok := p.listing(ctx, l.Parent, true)
		if !ok {
			all += p.s.Topics[l.Parent].Partitions
			continue
		}
		for _, c := range listing.Children {
			if c.RemoteEntry == nil || c.Name != l.Child {
				continue
			}
			for _, part := range c.Partitions {
				all++
				if part.Node == node {
					mine++
				}
			}
		}
	}
	if mine == 0 {
		return all
	}
	return mine
}
