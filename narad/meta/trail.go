package meta

import "slices"

// TrailLength is how many remote entries the trail keeps (DEC-13).
const TrailLength = 256

// Origin is what a remote entry says of the request behind it, so that the leader's audit lines outlive the leader that owes them
// (DEC-13, WRT-11). It holds names, IDs and indexes alone: a trail is written to logs (CRD-13). The members travel in the entry's JSON.
type Origin struct {
	RequestID string     `json:"request_id,omitempty"` // 16 hex
	Actor     string     `json:"actor,omitempty"`
	Event     string     `json:"event,omitempty"`  // of the line; an entry without one owes none
	Target    string     `json:"target,omitempty"` // of the line
	Ended     []string   `json:"ended,omitempty"`  // what a topic's delete ends, as "parent/child": a line for each
	Force     bool       `json:"force,omitempty"`
	Abandoned *Abandoned `json:"abandoned,omitempty"` // by a forced delete
	Written   []uint64   `json:"written,omitempty"`   // entries whose lines the proposer of this one has written; TrailLength at most
}

// Abandoned is what a forced delete of a link or its parent left unshipped, in records, as far as anybody answered (WRT-11).
type Abandoned struct {
	LagMessages     int64 `json:"lag_messages"`
	DispatchBacklog int64 `json:"dispatch_backlog"`
}

func (o Origin) origin() Origin { return o }

// originated is an entry with an Origin.
type originated interface{ origin() Origin }

// Trace is one remote entry of the trail.
type Trace struct {
	Index     uint64     `json:"index"`
	Term      uint64     `json:"term"` // of Raft: the leader of this term owes the lines first
	RequestID string     `json:"request_id"`
	Event     string     `json:"event"`
	Actor     string     `json:"actor"`
	Target    string     `json:"target"`
	Ended     []string   `json:"ended,omitempty"`
	Force     bool       `json:"force,omitempty"`
	Abandoned *Abandoned `json:"abandoned,omitempty"`
	Written   bool       `json:"written,omitempty"` // a later entry has confirmed its lines
}

// trailRow is the one row of the trail's table. Its list is replaced and never written to.
type trailRow struct {
	Key    string
	Traces []Trace
}

// Trail returns the newest TrailLength remote entries in the order of their indexes. The list belongs to the state.
func (s *State) Trail() []Trace {
	row, _ := one[trailRow](s, tableTrail, indexKey, tableTrail)
	return row.Traces
}

// trace keeps a remote entry that is being applied, and what it confirms. An entry of a release without a trail owes nothing.
func (t tx) trace(index, term uint64, e Entry) {
	from, is := e.(originated)
	if !is {
		return
	}
	o := from.origin()
	if o.Event == "" && len(o.Written) == 0 {
		return
	}
	old := t.trail()
	traces := make([]Trace, 0, len(old)+1)
	for _, w := range old {
		w.Written = w.Written || slices.Contains(o.Written, w.Index)
		traces = append(traces, w)
	}
	if o.Event != "" {
		traces = append(traces, Trace{
			Index: index, Term: term, RequestID: o.RequestID, Event: o.Event, Actor: o.Actor, Target: o.Target, Ended: o.Ended,
			Force: o.Force, Abandoned: o.Abandoned,
		})
	}
	t.putTrail(traces)
}

func (t tx) trail() []Trace {
	if row := first[trailRow](t.txn, tableTrail, indexKey, tableTrail); row != nil {
		return row.Traces
	}
	return nil
}

// putTrail stores the newest of a list that nobody else holds.
func (t tx) putTrail(traces []Trace) {
	t.put(tableTrail, &trailRow{Key: tableTrail, Traces: traces[max(0, len(traces)-TrailLength):]})
}
