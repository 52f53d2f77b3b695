package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

// tick is one sample of everything.
type tick struct {
	at       time.Time
	number   int
	waiting  []string // what has not drained, in words; empty when all has
	unwell   []string // links in a state other than running, or blocked
	onWire   int64
	onTarget int64
	links    []LinkProgress
}

// How long and how often the first look waits for the cursors.
const (
	firstLookLimit = 5 * time.Second
	firstLookEvery = 100 * time.Millisecond
)

// firstLook samples before the load begins, until every attached link shows a state: it is unknown while its cursors start. So the ledger has what
// each link showed before the first fault, however soon that one comes.
func (p *play) firstLook(ctx context.Context) {
	for began := time.Now(); ; {
		p.sample(ctx, 0)
		shown := p.newest().links
		starting := slices.ContainsFunc(shown, func(l LinkProgress) bool { return l.State == string(wire.UnknownState) })
		if !starting && len(shown) == len(p.links()) || time.Since(began) >= firstLookLimit || !sleep(ctx, firstLookEvery) {
			return
		}
	}
}

// sampleLoop looks at everything again and again until ctx ends.
func (p *play) sampleLoop(ctx context.Context) {
	for number := 1; ; number++ {
		began := time.Now()
		p.guard("the sampler", func() { p.sample(ctx, number) })
		every := p.o.sampleEvery()
		if p.isIn(PhaseFaults) {
			every = p.o.sampleLoad(p.loadLength())
		}
		if !sleep(ctx, every-time.Since(began)) {
			return
		}
	}
}

func (p *play) sample(ctx context.Context, number int) {
	t := tick{number: number}
	samples := p.lookAtNodes(ctx)
	t.onWire, t.onTarget = p.seen(ctx)
	for _, s := range samples {
		switch {
		case s.Silent:
			t.waiting = append(t.waiting, s.Node+" does not answer")
		case s.Backlog > 0:
			t.waiting = append(t.waiting, fmt.Sprintf("%s has %d records in its ingress backlog", s.Node, s.Backlog))
		}
	}
	shown := p.lookAtLinks(ctx)
	for _, l := range p.links() {
		waits := slices.Contains(p.facts.Expect.Waits, l.Child)
		i := slices.IndexFunc(shown, func(s ledger.Sample) bool { return s.Parent == l.Parent && s.Child == l.Child && !s.Silent })
		if i < 0 {
			t.waiting = append(t.waiting, l.Name()+" is in no listing")
			continue
		}
		s := shown[i]
		t.links = append(t.links, LinkProgress{Child: l.Child, State: s.State, Lag: s.Lag})
		if !waits && (s.Lag > 0 || !s.LagComplete) {
			t.waiting = append(t.waiting, fmt.Sprintf("%s has lag %d (complete: %t), state %s", l.Name(), s.Lag, s.LagComplete, s.State))
		}
		if !waits && (s.State != string(wire.Running) || s.Blocked != "") {
			t.unwell = append(t.unwell, fmt.Sprintf("%s is %s %s", l.Name(), s.State, s.Blocked))
		}
	}
	for _, s := range append(samples, shown...) {
		s.Produced, s.OnWire, s.OnTarget = p.produced.Load(), t.onWire, t.onTarget
		if err := p.sampleFile.Append(s); err != nil {
			p.trouble("%v", err)
		}
	}
	t.at = time.Now()
	p.publish(t)
}

func (p *play) publish(t tick) {
	p.mu.Lock()
	p.tick = t
	close(p.ticked)
	p.ticked = make(chan struct{})
	progress := Progress{
		Scenario: p.s.Name, Phase: p.phase, At: time.Since(p.epoch), Produced: p.produced.Load(), OnWire: t.onWire, OnTarget: t.onTarget,
		Links: t.links, Faults: slices.Clone(p.active),
	}
	p.mu.Unlock()
	if err := p.operations.Flush(); err != nil {
		p.trouble("%v", err)
	}
	p.events.Progress(progress)
}

// lookAtNodes reads every node's metrics, all at once.
func (p *play) lookAtNodes(ctx context.Context) []ledger.Sample {
	nodes := p.nodes()
	out := make([]ledger.Sample, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { out[i] = p.lookAt(ctx, n) })
	}
	wg.Wait()
	return out
}

func (p *play) lookAt(ctx context.Context, n cluster.Node) ledger.Sample {
	s := ledger.Sample{At: p.now(), Node: n.Name(), Silent: true}
	if !n.Running() {
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	page, err := n.Metrics(ctx)
	if err != nil {
		return s
	}
	s.Silent, s.Metrics = false, readMetrics(page)
	s.Backlog = int64(s.Metrics[backlogMetric])
	return s
}

// lookAtLinks reads the children listing of every parent with a link, from the first node that answers.
func (p *play) lookAtLinks(ctx context.Context) []ledger.Sample {
	var out []ledger.Sample
	asked := map[string]bool{}
	for _, l := range p.links() {
		if asked[l.Parent] {
			continue
		}
		asked[l.Parent] = true
		node, listing, ok := p.listing(ctx, l.Parent, false)
		if !ok {
			out = append(out, ledger.Sample{At: p.now(), Node: node, Parent: l.Parent, Child: l.Child, Silent: true})
			continue
		}
		p.keepListing(l.Parent, listing)
		for _, c := range listing.Children {
			if c.RemoteEntry == nil {
				continue
			}
			s := ledger.Sample{
				At: p.now(), Node: node, Parent: l.Parent, Child: c.Name, State: string(c.State), Lag: c.LagMessages, LagComplete: c.LagComplete,
			}
			if b := c.BlockedAt; b != nil {
				s.Blocked = fmt.Sprintf("%d:%d %s", b.Partition, b.Offset, b.State)
			}
			out = append(out, s)
		}
	}
	return out
}

func (p *play) listing(ctx context.Context, parent string, partitions bool) (node string, c wire.Children, ok bool) {
	for _, n := range p.sources() {
		node = n.Name()
		if !n.Running() {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, lookLimit)
		listing, err := n.Client().Children(limited, parent, partitions)
		cancel()
		if err == nil {
			return node, listing, true
		}
	}
	return node, c, false
}

// seen counts records in accepted requests and in the target's logs. What cannot be asked now keeps its last value.
func (p *play) seen(ctx context.Context) (onWire, onTarget int64) {
	p.mu.Lock()
	onWire, onTarget = p.tick.onWire, p.tick.onTarget
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	if requests, err := p.rig.Wire(ctx); err == nil {
		onWire = 0
		for _, r := range requests {
			if r.Outcome == ledger.WireAccepted {
				onWire += int64(len(r.Records))
			}
		}
	}
	if p.s.Target.Fake != nil {
		return onWire, onWire
	}
	target := anyRunning(p.rig.Nodes(cluster.Target))
	if !target.Running() {
		return onWire, onTarget
	}
	var total int64
	for _, t := range targetTopics(p.s) {
		detail, err := target.Client().Topic(ctx, t.name, nil)
		if err != nil {
			return onWire, onTarget
		}
		for _, st := range detail.PartitionStats {
			total += st.HighWatermark - st.OldestOffset
		}
	}
	return onWire, total
}
