package meta

import (
	"slices"

	"narad.example/narad/wire"
)

// DrainStep is where a member's decommission stands.
type DrainStep string

// The steps. Each but the last may be taken back by DrainCancel.
const (
	DrainBegin  DrainStep = "begin"  // its partitions are to move away, it takes no produce
	DrainCancel DrainStep = "cancel" // it stays
	DrainLeave  DrainStep = "leave"  // it owns nothing and its ingress is empty: the voter goes next, then the record
)

// MinMembers is how few members a decommission may leave, draining ones aside: with two, the loss of one stops every write.
const MinMembers = 3

// DrainMember takes a step of a member's decommission. Steps that were taken already change nothing. Refused with Conflict: a begin
// that leaves fewer than MinMembers, a cancel of a member that leaves, a leave of one that does not drain, owns a partition or has one on its way.
//
// Drain is the ID of the decommission: a fresh one begins, and a leave names the one under which the ingress was found empty, for between a
// cancel and another begin the node takes produces again.
type DrainMember struct {
	ID    string    `json:"id"`
	Step  DrainStep `json:"step"`
	Drain string    `json:"drain,omitempty"`
}

// RemoveMember drops the record of a member that leaves. One that is gone is no refusal: two leaders may want the same.
type RemoveMember struct {
	ID string `json:"id"`
}

// Type returns TypeDrainMember.
func (DrainMember) Type() EntryType { return TypeDrainMember }

// Type returns TypeRemoveMember.
func (RemoveMember) Type() EntryType { return TypeRemoveMember }

func (t tx) member(id string) *Member { return first[Member](t.txn, tableMembers, indexKey, id) }

func putMember(t tx, e PutMember) *wire.Problem {
	if e.Member.ID == "" {
		return wire.Refuse(wire.Invalid, "a member needs an ID")
	}
	m := e.Member
	m.Drain, m.Leaving = "", false
	if old := t.member(m.ID); old != nil {
		m.Drain, m.Leaving = old.Drain, old.Leaving
	}
	t.put(tableMembers, &m)
	return nil
}

func drainMember(t tx, e DrainMember) *wire.Problem {
	old := t.member(e.ID)
	if old == nil {
		return wire.Refuse(wire.NotFound, "no such member")
	}
	m := *old
	switch e.Step {
	case DrainBegin:
		switch {
		case m.Draining():
			return nil
		case e.Drain == "":
			return wire.Refuse(wire.Invalid, "a decommission needs an ID")
		case t.staying() <= MinMembers:
			return wire.Refuse(wire.Conflict, "a decommission leaves at least %d members", MinMembers).With("reasons", []string{wire.BelowMinVoters})
		}
		m.Drain = e.Drain
	case DrainCancel:
		if m.Leaving {
			return wire.Refuse(wire.Conflict, "member %s holds nothing any more and is being removed", e.ID)
		}
		m.Drain = ""
	case DrainLeave:
		if !m.Draining() || m.Drain != e.Drain || t.holds(e.ID) {
			return wire.Refuse(wire.Conflict, "member %s does not drain since then, or still has partitions", e.ID)
		}
		m.Leaving = true
	default:
		return wire.Refuse(wire.Invalid, "a decommission has no step %q", e.Step)
	}
	t.put(tableMembers, &m)
	return nil
}

func removeMember(t tx, e RemoveMember) *wire.Problem {
	old := t.member(e.ID)
	switch {
	case old == nil:
		return nil
	case !old.Leaving:
		return wire.Refuse(wire.Conflict, "member %s is not leaving", e.ID)
	}
	t.drop(tableMembers, old)
	return nil
}

// staying counts the members that are not on their way out.
func (t tx) staying() (n int) {
	for _, m := range rows[Member](t.txn, tableMembers, indexKey) {
		if !m.Draining() {
			n++
		}
	}
	return n
}

// holds tells whether a node owns a partition, or one is on its way to it.
func (t tx) holds(node string) bool {
	for _, topic := range rows[Topic](t.txn, tableTopics, indexKey) {
		if slices.Contains(topic.Nodes, node) || slices.ContainsFunc(topic.Moves, func(m Move) bool { return m.To == node }) {
			return true
		}
	}
	return false
}

// take refuses an assignment of partitions to nodes that leave or have left since it was made: nobody would serve them. A state without
// members knows nobody, and takes what it is given.
func (t tx) take(nodes []string) *wire.Problem {
	if len(rows[Member](t.txn, tableMembers, indexKey)) == 0 {
		return nil
	}
	for _, id := range nodes {
		if m := t.member(id); m == nil || m.Leaving {
			return wire.Refuse(wire.Conflict, Retry)
		}
	}
	return nil
}
