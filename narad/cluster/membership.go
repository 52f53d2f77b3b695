package cluster

import (
	"context"
	"slices"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// MembershipMeta is what the administration of members needs of the metadata; *meta.Store is one.
type MembershipMeta interface {
	Members() []meta.Member
	Member(id string) (meta.Member, bool)
	Topics() []meta.Topic
	Servers() []meta.Server
	Leader() (id, rpcAddr string, ok bool)
	Barrier(ctx context.Context) error
	Propose(ctx context.Context, e meta.Entry) (uint64, error)
	RemoveServer(ctx context.Context, id string) error
}

// Membership shows the members, begins and cancels decommissions and forgets servers that never became members. It is asked on the leader,
// which alone knows who lives. Every error is a *wire.Problem. Who may do what is the caller's business.
type Membership struct {
	Meta    MembershipMeta
	Node    string // this one
	Dead    func(member string) bool
	Age     func(member string) (age time.Duration, known bool)
	Blocked func(member string) []wire.Reason
}

// Members lists the members, in ID order; detail lists the partitions of each.
func (m *Membership) Members(detail bool) wire.Members {
	topics, servers := m.Meta.Topics(), m.Meta.Servers()
	leader, _, _ := m.Meta.Leader()
	out := wire.Members{Members: []wire.Member{}}
	for _, rec := range m.Meta.Members() {
		owned, outbound, _ := holdings(topics, rec.ID)
		v := wire.Member{
			ID: rec.ID, Addr: rec.RPCAddr, Status: wire.MemberAlive, Draining: rec.Draining(), OwnedPartitions: owned, OutboundMoves: outbound,
			Voter: votes(servers, rec.ID), Leader: rec.ID == leader, DecommissionBlocked: m.Blocked(rec.ID),
		}
		if m.Dead(rec.ID) {
			v.Status = wire.MemberDead
		}
		if age, known := m.Age(rec.ID); known {
			seconds := age.Seconds()
			v.HeartbeatAgeSeconds = &seconds
		}
		if detail {
			v.Partitions = ownedBy(topics, rec.ID)
		}
		out.Members = append(out.Members, v)
	}
	return out
}

func votes(servers []meta.Server, id string) bool {
	return slices.ContainsFunc(servers, func(s meta.Server) bool { return s.ID == id && !s.Waits })
}

func ownedBy(topics []meta.Topic, node string) (out []wire.MemberTopic) {
	for _, t := range topics {
		var ps []int
		for p, id := range t.Nodes {
			if id == node {
				ps = append(ps, p)
			}
		}
		if len(ps) > 0 {
			out = append(out, wire.MemberTopic{Topic: t.Name, Partitions: ps})
		}
	}
	return out
}

func noMember() *wire.Problem { return wire.Refuse(wire.NotFound, "no such member") }

// Plan tells what a decommission would find. A member that drains already would be refused nothing.
func (m *Membership) Plan(id string) (wire.Decommission, error) {
	rec, ok := m.Meta.Member(id)
	if !ok {
		return wire.Decommission{}, noMember()
	}
	servers := m.Meta.Servers()
	owned, _, inbound := holdings(m.Meta.Topics(), id)
	d := wire.Decommission{Member: id, Reasons: []string{}, Voter: votes(servers, id), OwnedPartitions: owned, InboundMoves: inbound}
	if !rec.Draining() {
		d.Reasons = m.against(rec, servers, owned)
	}
	d.WouldDecommission = len(d.Reasons) == 0
	return d, nil
}

// against lists what speaks against a decommission.
func (m *Membership) against(rec meta.Member, servers []meta.Server, owned int) []string {
	reasons, stay, receivers := []string{}, 0, 0
	for _, other := range m.Meta.Members() {
		if other.ID == rec.ID || other.Draining() {
			continue
		}
		stay++
		if !m.Dead(other.ID) {
			receivers++
		}
	}
	for code, holds := range map[string]bool{
		wire.BelowMinVoters:    stay < meta.MinMembers,
		wire.NoHealthyMajority: !majority(servers, rec.ID, m.Dead),
		wire.NoReceivers:       receivers == 0,
		wire.OwnerDead:         owned > 0 && m.Dead(rec.ID),
	} {
		if holds {
			reasons = append(reasons, code)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// Decommission begins to move everything away from a member; the controller ends it. One that is on its way already is no error. Refused with
// Conflict and the reasons of Plan.
func (m *Membership) Decommission(ctx context.Context, id string) error {
	d, err := m.Plan(id)
	if err != nil {
		return err
	}
	if !d.WouldDecommission {
		return wire.Refuse(wire.Conflict, "member %s cannot be decommissioned now", id).With("reasons", d.Reasons)
	}
	_, err = m.Meta.Propose(ctx, meta.DrainMember{ID: id, Step: meta.DrainBegin, Drain: meta.NewID()})
	return err
}

// Cancel lets a member stay. One that stays anyway is no error; one that has left its last partition behind is a Conflict.
func (m *Membership) Cancel(ctx context.Context, id string) error {
	_, err := m.Meta.Propose(ctx, meta.DrainMember{ID: id, Step: meta.DrainCancel})
	return err
}

// Forget takes a server out of Raft that has no member record: one that was let in and never came. Refused: NotFound, Invalid for the leader
// itself, Conflict while it has a record or partitions or the other voters would be no healthy majority. meta.ErrNotLeader when this node lost the lead.
func (m *Membership) Forget(ctx context.Context, id string) (wire.Forgotten, error) {
	if m.Meta.Barrier(ctx) != nil { // the record may stand in the log alone
		return wire.Forgotten{}, meta.ErrNotLeader
	}
	servers := m.Meta.Servers()
	f := wire.Forgotten{ID: id, Voter: votes(servers, id)}
	owned, _, inbound := holdings(m.Meta.Topics(), id)
	_, member := m.Meta.Member(id)
	switch {
	case id == m.Node:
		return f, wire.Refuse(wire.Invalid, "node %s leads the cluster and cannot forget itself", id)
	case member:
		return f, wire.Refuse(wire.Conflict, "node %s is a member: decommission it", id)
	case owned+inbound > 0:
		return f, wire.Refuse(wire.Conflict, "node %s has %d partitions", id, owned+inbound)
	case !slices.ContainsFunc(servers, func(s meta.Server) bool { return s.ID == id }):
		return f, wire.Refuse(wire.NotFound, "the cluster knows no node %s", id)
	case !majority(servers, id, m.Dead):
		return f, wire.Refuse(wire.Conflict, "too few of the other voters are alive; without node %s nothing could be written", id)
	}
	return f, m.Meta.RemoveServer(ctx, id)
}
