package invariant

import (
	"fmt"
	"slices"

	"narad.example/harness/ledger"
)

// pauseGrace is how long after the answer to a pause a request may still begin, in ms: an owner that is not the node which answered
// applies the pause a little later.
const pauseGrace = 2000

// paused is WRT-12 on the wire: from 2 s after a pause was answered until the link is resumed no request with records begins for it. What
// was on the wire may end.
func paused(s *ledger.Scenario) *finding {
	f := &finding{promise: "a paused link sends no records"}
	if missing := s.Lacks(ledger.FactsName, ledger.OperationsName); missing != "" {
		return f.lack("%s", missing)
	}
	n, looked := 0, int64(0)
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Action != "remote_child.pause" || o.Outcome != ledger.Acknowledged {
			continue
		}
		n++
		from, to := o.Done+pauseGrace, pauseEnd(s, o)
		looked += max(0, to-from)
		if to <= from {
			f.lack("the pause of %s that was answered at %d ms lasted %d ms, which is no longer than its grace", o.Target, o.Done, to-o.Done)
		}
		quiet(s, f, o, from, to)
	}
	if n > 0 && !s.Facts.WireRead {
		f.lack("the wire was not read")
	}
	f.looked = fmt.Sprintf("%d pauses, %d ms of silence", n, looked)
	return f
}

// pauseEnd is when the pause was next told to end, whether or not that was answered, else the end of the run.
func pauseEnd(s *ledger.Scenario, pause *ledger.Operation) int64 {
	ends := []string{"remote_child.resume", "remote_child.accept_target", "remote_child.delete"}
	end := s.Facts.Phases.End
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Target == pause.Target && slices.Contains(ends, o.Action) && o.Outcome != ledger.Refused && o.At >= pause.Done {
			end = min(end, o.At)
		}
	}
	return end
}

func quiet(s *ledger.Scenario, f *finding, pause *ledger.Operation, from, to int64) {
	for i := range s.Facts.Links {
		l := &s.Facts.Links[i]
		if !about(pause, l) {
			continue
		}
		for j := range s.Wire {
			r := &s.Wire[j]
			if r.At > from && r.At < to && len(r.Records) > 0 && ofEpoch(s, l, r) {
				f.breaks(r.RequestID, "%s is paused, but request %d with %d records began at %d ms", l.Name(), r.Seq, len(r.Records), r.At)
			}
		}
	}
}
