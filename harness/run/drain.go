package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
)

// heal takes everything back and verifies it (BR-33): the link lets a fresh connection through and has no toxic, every node runs and answers.
func (p *play) heal(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, healLimit)
	defer cancel()
	healed := true
	fail := func(format string, args ...any) {
		healed = false
		p.trouble("healing: "+format, args...)
	}
	if err := p.rig.Link().Reset(ctx); err != nil {
		fail("link: %v", err)
	}
	for _, n := range p.nodes() {
		if n.Running() {
			continue
		}
		if err := n.Start(ctx); err != nil {
			fail("%s: %v", n.Name(), err)
		}
	}
	switch enabled, toxics, err := p.rig.Link().State(ctx); {
	case err != nil:
		fail("link: %v", err)
	case !enabled || len(toxics) > 0:
		fail("the link is not as it was (enabled %t, toxics %v)", enabled, toxics)
	}
	if _, err := p.rig.Link().Probe(ctx, 1<<10); err != nil {
		fail("nothing passes the link: %v", err)
	}
	if parted, ok := p.rig.(cluster.Parted); ok && parted.Partings() > 0 {
		fail("%d cuts between nodes are still in force", parted.Partings())
	}
	for _, n := range p.nodes() {
		if !p.answers(ctx, n) {
			fail("%s does not answer", n.Name())
		}
	}
	return healed
}

func (p *play) answers(ctx context.Context, n cluster.Node) bool {
	for {
		if s := p.lookAt(ctx, n); !s.Silent {
			return true
		}
		if !sleep(ctx, p.o.sampleEvery()) {
			return false
		}
	}
}

// drain waits until everything has arrived and every state has cleared, or the deadline is over.
func (p *play) drain(ctx context.Context) {
	var delay time.Duration
	for _, l := range p.links() {
		delay = max(delay, time.Duration(l.DelayMS)*time.Millisecond)
	}
	limit := p.s.Expect.Drained.D() + delay
	deadline := time.Now().Add(limit)
	p.change(func(f *ledger.Facts) { f.Phases.Deadline = deadline.Sub(p.epoch).Milliseconds() })
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	first, found := p.awaitTicks(ctx, func(t tick) []string { return t.waiting })
	if !found {
		return
	}
	p.change(func(f *ledger.Facts) {
		f.Phases.Drained = first.at.Sub(p.epoch).Milliseconds()
		f.Waiting = nil
	})
	_, _ = p.awaitTicks(ctx, func(t tick) []string { return append(slices.Clone(t.unwell), t.waiting...) })
}

// awaitTicks waits for two samples, at least a second apart, for which left is empty, with none between for which it is not. Until then
// Facts.Waiting says what is left.
func (p *play) awaitTicks(ctx context.Context, left func(tick) []string) (tick, bool) {
	var since time.Time
	last := p.newest().number
	for {
		p.mu.Lock()
		t, next := p.tick, p.ticked
		p.mu.Unlock()
		if t.number > last {
			last = t.number
			waiting := left(t)
			p.change(func(f *ledger.Facts) { f.Waiting = waiting })
			switch {
			case len(waiting) > 0:
				since = time.Time{}
			case since.IsZero():
				since = t.at
			case t.at.Sub(since) >= time.Second:
				return t, true
			}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return tick{}, false
		}
	}
}

func (p *play) newest() tick {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tick
}

// finishLinks writes down what the links hold at the end: skip lists, positions, the present incarnation of their targets.
func (p *play) finishLinks(ctx context.Context) error {
	for _, l := range p.links() {
		stub, err := anyRunning(p.sources()).Client().Topic(ctx, l.Child, nil)
		if err != nil {
			return err
		}
		_, listing, ok := p.listing(ctx, l.Parent, true)
		if !ok {
			return fmt.Errorf("the listing of %s was not answered", l.Parent)
		}
		next := map[int]int64{}
		for _, c := range listing.Children {
			if c.Name != l.Child || c.RemoteEntry == nil {
				continue
			}
			for _, part := range c.Partitions {
				if part.NextOffset != nil {
					next[part.Partition] = *part.NextOffset
				}
			}
		}
		id, err := p.presentID(ctx, l)
		if err != nil {
			return err
		}
		p.change(func(f *ledger.Facts) {
			for i := range f.Links {
				if e := &f.Links[i]; e.Child == l.Child && e.DetachedAt == 0 {
					e.NextOffsets, e.TargetID = next, id
					if stub.Remote != nil {
						e.Skip = stub.Remote.Skip
					}
				}
			}
		})
	}
	return nil
}

func (p *play) presentID(ctx context.Context, l ledger.Link) (string, error) {
	if p.s.Target.Fake != nil {
		return l.TargetID, nil
	}
	t, err := anyRunning(p.rig.Nodes(cluster.Target)).Client().Topic(ctx, l.TargetTopic, nil)
	return t.ID, err
}
