package invariant

import (
	"fmt"
	"slices"
	"strings"

	"narad.example/harness/ledger"
)

// heldSlabs tells of one remote which records a kill may send again although they were answered long before it: a position stands at the
// start of its slab until the last lane is done (SND-03, CUR-08), so a lane that is kept from its target holds what the other lanes sent.
type heldSlabs struct {
	logs   map[string][]heldRecord // by "target topic parent/partition", in offset order
	places map[string][]heldPlace  // by "target topic ID"
	killed []period                // deaths that kept no lane marks
}

// heldRecord is one record that a link owes.
type heldRecord struct {
	offset int64
	sought int64 // when its producer began to send it
	done   int64 // when its first 202 had gone out, or it was skipped; 1<<62 when never
}

type heldPlace struct {
	log    string
	offset int64
	slab   int64 // records in one at most
}

func newHeldSlabs(s *ledger.Scenario, remote string) *heldSlabs {
	h := &heldSlabs{logs: map[string][]heldRecord{}, places: map[string][]heldPlace{}}
	for _, d := range s.Facts.Deaths {
		if !d.Graceful {
			h.killed = append(h.killed, period{d.At, d.Over()})
		}
	}
	if len(h.killed) == 0 {
		return h
	}
	made, done := produced(s), firstDone(s)
	for i := range s.Facts.Links {
		l := &s.Facts.Links[i]
		if l.Remote != remote {
			continue
		}
		skipped := lastSkip(s, l)
		for _, r := range s.Parent {
			if r.Topic != l.Parent || r.Offset < l.Start(r.Partition) {
				continue
			}
			rec := heldRecord{offset: r.Offset, done: 1 << 62}
			if o := made[r.ID]; o != nil {
				rec.sought = o.At
			}
			if at, ok := done[l.TargetTopic+" "+r.ID]; ok {
				rec.done = at
			}
			at := place{r.Partition, r.Offset}
			if excused(s, l, at) {
				rec.done = min(rec.done, skipped)
			}
			log := fmt.Sprintf("%s %s/%d", l.TargetTopic, l.Parent, r.Partition)
			h.logs[log] = append(h.logs[log], rec)
			name := l.TargetTopic + " " + r.ID
			h.places[name] = append(h.places[name], heldPlace{log, r.Offset, int64(max(l.Lanes, 1)) * slabPerLane})
		}
	}
	for _, log := range h.logs {
		slices.SortStableFunc(log, func(a, b heldRecord) int { return int(a.offset - b.offset) })
	}
	return h
}

// firstDone is when the first 202 of each record went out, by "topic ID".
func firstDone(s *ledger.Scenario) map[string]int64 {
	out := map[string]int64{}
	for _, r := range accepted(s) {
		if r.Status != 202 || !r.Sent || r.Doubt {
			continue
		}
		for _, rec := range r.Records {
			name := r.Topic + " " + rec.ID
			if at, ok := out[name]; !ok || r.Done < at {
				out[name] = r.Done
			}
		}
	}
	return out
}

// lastSkip is when a link's last skip was answered, 1<<62 when there was none: a drop by retention is seen by nobody but the node.
func lastSkip(s *ledger.Scenario, l *ledger.Link) int64 {
	last := int64(0)
	for i := range s.Operations {
		if o := &s.Operations[i]; o.Action == "remote_child.skip" && about(o, l) {
			last = max(last, o.Done)
		}
	}
	if last == 0 {
		return 1 << 62
	}
	return last
}

// about tells whether an admin operation was about a link.
func about(o *ledger.Operation, l *ledger.Link) bool {
	return o.Target[strings.LastIndexByte(o.Target, '/')+1:] == l.Child
}

// again tells whether a kill between a record's acceptances and request r may have sent it again: settle before the kill, a record that may lie in
// the same slab was not done. It may when it stood in the log before this one was first sent.
func (h *heldSlabs) again(name string, before []ledger.WireRequest, r *ledger.WireRequest) bool {
	first := before[0].At
	for _, death := range h.killed {
		if r.Done < death.from || before[len(before)-1].At > death.to {
			continue
		}
		for _, p := range h.places[name] {
			if slices.ContainsFunc(h.near(p), func(x heldRecord) bool {
				return x.offset != p.offset && x.done > death.from-settle && (x.offset < p.offset || x.sought <= first)
			}) {
				return true
			}
		}
	}
	return false
}

// near are the records that may lie in one slab with p.
func (h *heldSlabs) near(p heldPlace) []heldRecord {
	log := h.logs[p.log]
	at := func(offset int64) int {
		i, _ := slices.BinarySearchFunc(log, offset, func(x heldRecord, o int64) int { return int(x.offset - o) })
		return i
	}
	return log[at(p.offset-p.slab+1):at(p.offset+p.slab)]
}
