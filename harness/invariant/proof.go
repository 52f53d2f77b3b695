package invariant

import (
	"fmt"
	"slices"
	"strings"

	"narad.example/harness/ledger"
)

// What a run must have done at least to have proved anything.
const (
	leastRecords = 100 // acknowledged, over the whole run
	leastAround  = 5   // acknowledged before, during and after each fault
	shortFault   = 1000
)

// proof judges the run itself (harness.md, Verdicts): traffic before, during and after each fault; evidence that each fault landed;
// everything healed; a last record produced and seen; every step of a fake used up; no death that the harness did not cause. It never says fail:
// a run that proved nothing accuses nobody.
func proof(s *ledger.Scenario) *finding {
	f := &finding{promise: "the run put the promises to the test"}
	need := []string{ledger.FactsName, ledger.OperationsName, ledger.FaultsName, ledger.WireName, ledger.LinksName}
	if missing := s.Lacks(need...); missing != "" {
		return f.lack("%s", missing)
	}
	for _, t := range s.Facts.Trouble {
		f.lack("the harness had trouble: %s", t)
	}
	if !s.Facts.Healed {
		f.lack("not every fault was healed and verified")
	}
	for _, d := range s.Facts.Deaths {
		if !d.Asked {
			f.lack("%s died at %d ms and no fault explains it", d.Node, d.At)
		}
	}
	var done []int64
	for i := range s.Operations {
		if o := &s.Operations[i]; o.Kind == ledger.KindProduce && o.Outcome == ledger.Acknowledged {
			done = append(done, o.Done)
		}
	}
	slices.Sort(done)
	if len(done) < leastRecords {
		f.lack("only %d records were acknowledged, a run wants %d", len(done), leastRecords)
	}
	shapes(s, f)
	requests := accepted(s)
	var tried []int64 // whatever the outcome
	for i := range s.Operations {
		if o := &s.Operations[i]; o.Kind == ledger.KindProduce {
			tried = append(tried, o.At)
		}
	}
	slices.Sort(tried)
	for i := range s.Faults {
		faultProved(f, &s.Faults[i], done, tried, requests)
	}
	for _, step := range s.Facts.Steps {
		if step.Used < max(1, step.Want) {
			f.lack("step %q of the fake answered %d times, not %d", step.Name, step.Used, max(1, step.Want))
		}
	}
	lastSeen(s, f, requests)
	f.looked = fmt.Sprintf("%d records acknowledged, %d faults landed, %d script steps used", len(done), len(s.Faults), len(s.Facts.Steps))
	if n := len(s.Facts.Late); n > 0 {
		f.looked += fmt.Sprintf(", up to %d ms later than planned", s.Facts.Late[n-1].By)
	}
	return f
}

// shapes asks for an acknowledged record of each shape that the load promises.
func shapes(s *ledger.Scenario, f *finding) {
	for _, shape := range s.Facts.Expect.Shapes {
		seen := slices.ContainsFunc(s.Operations, func(o ledger.Operation) bool {
			return o.Kind == ledger.KindProduce && o.Outcome == ledger.Acknowledged && o.Shape == shape
		})
		if !seen {
			f.lack("no %s record was acknowledged, although the load has them", shape)
		}
	}
}

// faultProved asks for traffic around one fault. While a node of the source is away nothing may be acknowledged, so that what was tried counts.
func faultProved(f *finding, fault *ledger.Fault, done, tried []int64, requests []ledger.WireRequest) {
	if !fault.Landed {
		f.lack("nothing proves that %s landed", fault.Name)
	}
	if fault.Kind == "start" {
		return // the end of the kill or stop before it
	}
	if fault.End == 0 {
		f.lack("%s never ended", fault.Name)
		return
	}
	during := leastAround
	if fault.End-fault.Start < shortFault {
		during = 1
	}
	between := func(of []int64, from, to int64) int {
		low, _ := slices.BinarySearch(of, from)
		high, _ := slices.BinarySearch(of, to)
		return high - low
	}
	meets, what := done, "acknowledged"
	if strings.HasPrefix(fault.On, "source-") {
		meets, what = tried, "tried"
	}
	const ever = int64(1) << 62
	for _, part := range []struct {
		when, what string
		has, min   int
	}{
		{"before", "acknowledged", between(done, 0, fault.Start), leastAround},
		{"during", what, between(meets, fault.Start, fault.End+1), during},
		{"after", "acknowledged", between(done, fault.End+1, ever), leastAround},
	} {
		if part.has < part.min {
			f.lack("only %d records were %s %s %s, it wants %d", part.has, part.what, part.when, fault.Name, part.min)
		}
	}
	first := fault.Kind == "upgrade" && strings.HasPrefix(fault.On, "source-") // no link can be there before the last of them
	if !first && !slices.ContainsFunc(requests, func(r ledger.WireRequest) bool { return r.Done < fault.Start }) {
		f.lack("the target accepted nothing before %s", fault.Name)
	}
	if !slices.ContainsFunc(requests, func(r ledger.WireRequest) bool { return r.At > fault.End }) {
		f.lack("the target accepted nothing after %s", fault.Name)
	}
}

// lastSeen asks for the record that was acknowledged last: it must have been seen on the wire, for each topic that has a link which owes it.
func lastSeen(s *ledger.Scenario, f *finding, requests []ledger.WireRequest) {
	for i := range s.Facts.Links {
		l := &s.Facts.Links[i]
		if l.DetachedAt != 0 || waits(s, l) {
			continue
		}
		var last *ledger.Operation
		for j := range s.Operations {
			o := &s.Operations[j]
			if o.Kind == ledger.KindProduce && o.Topic == l.Parent && o.Outcome == ledger.Acknowledged && (last == nil || o.Done >= last.Done) {
				last = o
			}
		}
		if last == nil {
			f.lack("nothing was produced into %s", l.Parent)
			continue
		}
		seen := slices.ContainsFunc(requests, func(r ledger.WireRequest) bool {
			return r.Topic == l.TargetTopic && slices.ContainsFunc(r.Records, func(rec ledger.WireRecord) bool { return rec.ID == last.ID })
		})
		if !seen && last.Done >= l.AttachedAt {
			f.lack("the last record of %s, %s, was never seen on the wire", l.Parent, last.ID)
		}
	}
}
