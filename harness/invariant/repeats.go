package invariant

import (
	"cmp"
	"slices"
	"strings"

	"narad.example/harness/ledger"
)

// repeats is HAR-09 by record (CUR-08): a record that was accepted twice was in doubt the first time. Its answer did not go out whole, or said
// something else than 202, or took so long that the sender may have given up; or it fell into a fault of the link or of the source, or into the
// seconds before a death or an admin's action; or its slab was held until such a death (heldSlabs). One that was answered 202 in peace and comes again was resent for nothing, however few there are.
func repeats(s *ledger.Scenario, f *finding, remote string) {
	owed := map[string]int{}
	topics := map[string]bool{}
	for i := range s.Facts.Links {
		l := &s.Facts.Links[i]
		if l.Remote != remote {
			continue
		}
		topics[l.TargetTopic] = true
		for _, r := range s.Parent {
			if r.Topic == l.Parent && r.Offset >= l.Start(r.Partition) {
				owed[l.TargetTopic+" "+r.ID]++
			}
		}
	}
	unsure := unsureTimes(s)
	held := newHeldSlabs(s, remote)
	seen := map[string][]ledger.WireRequest{}
	for _, r := range accepted(s) {
		if !topics[r.Topic] {
			continue
		}
		for _, rec := range r.Records {
			name := r.Topic + " " + rec.ID
			before := seen[name]
			seen[name] = append(before, r)
			if rec.ID == "" || len(before) < max(1, owed[name]) || anyInDoubt(before, unsure) ||
				parked(before, &r, unsure) || held.again(name, before, &r) {
				continue
			}
			first := before[len(before)-1]
			f.breaks(rec.ID, "%s came again in request %d, although request %d was answered 202 at %d ms and nothing cut it", rec.ID, r.Seq, first.Seq, first.Done)
		}
	}
}

// Times in ms.
const (
	slowAnswer = 1000 // from then on a sender may have given up waiting
	settle     = 5000 // by then a position is synced (DEC-34), an answer has come in, a stop is over (DEC-09)
)

// parked tells whether r began before those that were answered earlier and was itself in doubt: what lay in a frozen target's buffers is
// accepted after the resend that its silence caused.
func parked(before []ledger.WireRequest, r *ledger.WireRequest, unsure []period) bool {
	return anyInDoubt([]ledger.WireRequest{*r}, unsure) && !slices.ContainsFunc(before, func(b ledger.WireRequest) bool { return b.At < r.At })
}

func anyInDoubt(before []ledger.WireRequest, unsure []period) bool {
	for i := range before {
		r := &before[i]
		if !r.Sent || r.Doubt || r.Status != 202 || r.Done-r.At >= slowAnswer {
			return true
		}
		for _, p := range unsure {
			if p.from <= r.Done && p.to >= r.At {
				return true
			}
		}
	}
	return false
}

// unsureTimes are the times in which an answer that went out may not have come in, or a position may not have been kept.
func unsureTimes(s *ledger.Scenario) []period {
	var out []period
	for i := range s.Faults {
		f := &s.Faults[i]
		if strings.HasPrefix(f.On, "target-") || strings.HasPrefix(f.On, "source-") && (f.Kind == "stop" || f.Kind == "restart" || f.Kind == "transfer" || f.Kind == "upgrade") {
			continue // a graceful stop of a source is one of the deaths; a lead that is handed over without one touches no link
		}
		from := f.Start - settle
		if f.Kind == "bit_flip" {
			from = 0 // a cursor whose file cannot be read begins again (CUR-14)
		}
		out = append(out, period{from, cmp.Or(f.End, 1<<62) + settle})
	}
	for _, d := range s.Facts.Deaths {
		if d.Graceful { // it waits for what is on the wire, keeps what it heard, and cuts the rest
			out = append(out, period{d.At + stopWait - slowAnswer, max(d.At+stopWait, d.Over()) + slowAnswer})
			continue
		}
		out = append(out, period{d.At - settle, d.Over()})
	}
	for i := range s.Operations {
		if o := &s.Operations[i]; o.Kind == ledger.KindAdmin && !strings.HasPrefix(o.Action, "user.") {
			out = append(out, period{o.At - settle, o.Done})
		}
	}
	return out
}
