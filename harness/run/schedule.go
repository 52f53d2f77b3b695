package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"narad.example/harness/ledger"
	"narad.example/scenarios"
)

// How real time may hold up a timeline.
const (
	recovery   = 2 * time.Second  // what follows a fault comes at least so long after it, or as long as it was planned to
	latestMost = 90 * time.Second // a timeline that is later than this is given up; less than lateMost, so that the load is still there
)

// event is a fault or a step of the timeline.
type event struct {
	name  string
	at    time.Duration // when it is planned, in the load's time
	due   time.Duration // when a fault is planned to be over
	fault *scenarios.Fault
	step  *scenarios.Step
	begun chan struct{} // closed when a step has begun
	over  chan struct{} // closed when it is over
	ended time.Time     // set before over is closed
}

func (e *event) end() {
	e.ended = time.Now()
	close(e.over)
}

// lasts tells whether a step may be meant to go on while the next fault comes: it waits for something that is not its answer.
func (e *event) lasts() bool {
	return slices.Contains([]string{"join", "decommission", "move", "skip"}, e.step.Action)
}

// timeline is the scenario's faults and steps in the order of their times; of one time faults come first, then the order of the file counts.
func (p *play) timeline() (all []*event) {
	add := func(e event) {
		e.begun, e.over = make(chan struct{}), make(chan struct{})
		all = append(all, &e)
	}
	for i := range p.s.Faults {
		f := &p.s.Faults[i]
		nodes := 1
		if f.Rolling != "" {
			nodes = len(p.rig.Nodes(f.Rolling))
		}
		add(event{name: f.Name(), at: f.At.D(), due: f.At.D() + time.Duration(nodes)*(f.For.D()+f.Slow.D()), fault: f})
	}
	for i := range p.s.Steps {
		st := &p.s.Steps[i]
		add(event{name: fmt.Sprintf("%s at %s", st.Action, st.At), at: st.At.D(), step: st})
	}
	slices.SortStableFunc(all, func(a, b *event) int { return cmp.Compare(a.at, b.at) })
	return all
}

// runTimeline begins each fault and step at its time: faults side by side, steps one after the other. The wait group ends with the last of them.
//
// On real clusters a fault may take longer than planned, since a node of a loaded machine is slow to stop and to start. What was planned after
// it must not meet it: that would be another scenario, in which a step is rightly refused. So the timeline stands still until it is over, and all
// that follows is as much later; the ledger says by how much. A virtual run keeps to the scenario's times.
func (p *play) runTimeline(ctx context.Context, wg *sync.WaitGroup) {
	all := p.timeline()
	for _, e := range all {
		switch {
		case e.fault != nil:
			p.after.faults++
		case e.at < p.lastLoad():
			p.after.steps++
		}
	}
	steps := make(chan *event, len(all))
	wg.Go(func() {
		for e := range steps {
			close(e.begun)
			p.guard("the steps", func() {
				if ctx.Err() == nil {
					p.step(ctx, *e.step)
				}
			})
			e.end()
		}
	})
	wg.Go(func() {
		defer close(steps)
		p.guard("the timeline", func() { p.begin(ctx, wg, all, steps) })
	})
}

// begin begins one event after the other, and counts the faults as ended that it no longer begins.
func (p *play) begin(ctx context.Context, wg *sync.WaitGroup, all []*event, steps chan<- *event) {
	var late time.Duration
	reached := true
	for i, e := range all {
		reached = reached && p.reach(ctx, all[:i], e, &late)
		if e.step != nil && e.at < p.lastLoad() {
			p.after.came()
		}
		switch {
		case e.step != nil && reached:
			steps <- e
		case e.step != nil:
		case reached:
			wg.Go(func() {
				defer func() { p.after.ended(p.now()) }()
				defer e.end()
				p.guard(e.name, func() { p.fault(ctx, *e.fault) })
			})
		default:
			p.after.ended(p.now())
		}
	}
}

// reach waits for the time of an event, and on real clusters until what it was planned after is over. It is false when the run has ended, or
// the timeline is so late that it is given up: then what is missing proves nothing.
func (p *play) reach(ctx context.Context, before []*event, e *event, late *time.Duration) bool {
	due := p.loadStart.Add(e.at)
	if !sleep(ctx, time.Until(due.Add(*late))) {
		return false
	}
	if p.o.Virtual {
		return true
	}
	limited, cancel := context.WithDeadline(ctx, due.Add(latestMost))
	defer cancel()
	why := ""
	for _, b := range before {
		waits, past := follows(limited, b, e)
		if waits {
			why = fmt.Sprintf("%s was not over when %s was due", b.name, e.name)
		}
		if !past {
			if ctx.Err() == nil {
				p.trouble("the timeline was given up: %s, nor %s later", why, latestMost)
				p.change(func(f *ledger.Facts) { f.Aborted = true })
			}
			return false
		}
	}
	if why != "" {
		*late = time.Since(due)
		p.after.delayed(*late)
		p.change(func(f *ledger.Facts) {
			f.Late = append(f.Late, ledger.Late{At: e.at.Milliseconds(), By: late.Milliseconds(), Why: why})
		})
	}
	return true
}

// follows waits until b is so long over as e was planned after it. It tells whether there was anything to wait for, and whether that is past.
func follows(ctx context.Context, b, e *event) (waits, past bool) {
	over, gap := b.over, time.Duration(0)
	switch {
	case b.fault != nil && b.due <= e.at:
		gap = min(e.at-b.due, recovery)
	case b.step != nil && e.fault != nil && b.lasts():
		over = b.begun
	case b.step != nil && e.fault != nil:
	default:
		return false, true
	}
	select {
	case <-over:
	default:
		waits = true
		select {
		case <-over:
		case <-ctx.Done():
			return true, false
		}
	}
	if gap > 0 {
		if rest := time.Until(b.ended.Add(gap)); rest > 0 {
			return true, sleep(ctx, rest)
		}
	}
	return waits, true
}
