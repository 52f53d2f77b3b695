package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"narad.example/narad/cluster"
	"narad.example/narad/meta"
	"narad.example/narad/peer"
	"narad.example/narad/wire"
)

const (
	opMembership = "Membership"
	opDraining   = "Draining"
)

// membershipWait is for a leader that looks at the members or proposes a step of a decommission.
const membershipWait = 5 * time.Second

// handOverWait is for another voter to take the lead, which takes it an election without a rival.
const handOverWait = 2 * time.Second

// The questions of Membership. The words travel between releases.
const (
	askMembers      = "members"
	askPlan         = "plan"
	askDecommission = "decommission"
	askCancel       = "cancel"
	askForget       = "forget"
)

// membershipAsk asks the leader about members; ID is empty for all.
type membershipAsk struct {
	What   string `json:"what"`
	ID     string `json:"id,omitempty"`
	Detail bool   `json:"detail,omitempty"`
}

type membershipAnswer struct {
	Members   *wire.Members      `json:"members,omitempty"`
	Plan      *wire.Decommission `json:"plan,omitempty"`
	Forgotten *wire.Forgotten    `json:"forgotten,omitempty"`
	NotLeader bool               `json:"not_leader,omitempty"` // the node that was asked does not lead; nothing was done
}

// openMembership builds what administers the members.
func (n *Node) openMembership() {
	n.members = &cluster.Membership{
		Meta: n.meta, Node: n.id, Dead: n.dead, Blocked: func(string) []wire.Reason { return nil },
		Age: func(string) (time.Duration, bool) { return 0, n.meta.IsLeader() },
	}
	if n.plane.beats == nil {
		return // a cluster of one
	}
	n.plane.controller = &cluster.Controller{Meta: n.meta, Node: n.id, Dead: n.dead, Backlog: n.leftOn, Logger: n.log}
	n.members.Age, n.members.Blocked = n.plane.beats.Age, n.plane.controller.Blocked
}

// serveMembership answers on the leader.
func (n *Node) serveMembership(ctx context.Context, q membershipAsk) (a membershipAnswer, err error) {
	if !n.meta.IsLeader() {
		return membershipAnswer{NotLeader: true}, nil
	}
	switch q.What {
	case askMembers:
		all := n.members.Members(q.Detail)
		a.Members = &all
	case askPlan:
		var plan wire.Decommission
		plan, err = n.members.Plan(q.ID)
		a.Plan = &plan
	case askDecommission:
		err = n.members.Decommission(ctx, q.ID)
	case askCancel:
		err = n.members.Cancel(ctx, q.ID)
	case askForget:
		var f wire.Forgotten
		f, err = n.members.Forget(ctx, q.ID)
		a.Forgotten = &f
	default:
		err = wire.Refuse(wire.Precondition, "this node cannot read the call; bring all members to one release")
	}
	if errors.Is(err, meta.ErrNotLeader) {
		return membershipAnswer{NotLeader: true}, nil
	}
	return a, err
}

// members administers the members for the API, on whichever node is asked (api.Members).
type members struct{ n *Node }

func (q *membershipAsk) reads() bool { return q.What == askMembers || q.What == askPlan }

// ask asks the leader. A change waits for one while none leads, as every write of the metadata does.
func (m members) ask(ctx context.Context, q membershipAsk) (a membershipAnswer, err error) {
	if q.reads() {
		if a, err = m.askOnce(ctx, q); errors.Is(err, meta.ErrNotLeader) {
			err = noLeader()
		}
		return a, err
	}
	err = m.n.meta.WithLeader(ctx, func() (err error) {
		a, err = m.askOnce(ctx, q)
		return err
	})
	return a, err
}

// askOnce asks the leader of this moment. Its error is meta.ErrNotLeader where nobody led, or the leader of a change was not reached.
func (m members) askOnce(ctx context.Context, q membershipAsk) (a membershipAnswer, err error) {
	id, _, ok := m.n.meta.Leader()
	switch {
	case id == m.n.id:
		a, err = m.n.serveMembership(ctx, q)
	case !ok:
		return a, meta.ErrNotLeader
	default:
		if err = m.n.ask(ctx, id, opMembership, q, &a, membershipWait); err != nil {
			err = leaderAway(err, q.reads())
		}
	}
	if err == nil && a.NotLeader {
		err = meta.ErrNotLeader
	}
	return a, err
}

// Members asks the leader; without one it shows what this node knows, and no ages.
func (m members) Members(ctx context.Context, detail bool) (wire.Members, error) {
	a, err := m.ask(ctx, membershipAsk{What: askMembers, Detail: detail})
	if err == nil && a.Members != nil {
		return *a.Members, nil
	}
	m.n.log.Debug("the leader was not asked for the members; this node shows what it knows", slog.Any("cause", err))
	return m.n.members.Members(detail), nil
}

// Plan tells what a decommission would find.
func (m members) Plan(ctx context.Context, id string) (wire.Decommission, error) {
	a, err := m.ask(ctx, membershipAsk{What: askPlan, ID: id})
	if err != nil || a.Plan == nil {
		return wire.Decommission{}, err
	}
	return *a.Plan, nil
}

// Decommission begins one.
func (m members) Decommission(ctx context.Context, id string) error {
	_, err := m.ask(ctx, membershipAsk{What: askDecommission, ID: id})
	return err
}

// Cancel lets a member stay.
func (m members) Cancel(ctx context.Context, id string) error {
	_, err := m.ask(ctx, membershipAsk{What: askCancel, ID: id})
	return err
}

// Forget takes a server that never became a member out of Raft.
func (m members) Forget(ctx context.Context, id string) (wire.Forgotten, error) {
	a, err := m.ask(ctx, membershipAsk{What: askForget, ID: id})
	if err != nil || a.Forgotten == nil {
		return wire.Forgotten{}, err
	}
	return *a.Forgotten, nil
}

// leaderAway is what may be known of a call to the leader that failed: meta.ErrNotLeader for a change that it never heard of.
func leaderAway(err error, reads bool) error {
	var p *wire.Problem
	switch {
	case errors.As(err, &p):
		return p
	case reads, errors.Is(err, peer.ErrUnknownOp):
		return wire.Refuse(wire.Unavailable, "the leader cannot be reached; try again").After(time.Second)
	case errors.Is(err, peer.ErrUnreachable):
		return meta.ErrNotLeader
	}
	return wire.Refuse(wire.Unavailable, "the outcome is unknown: the change may still be applied")
}

// StepDown hands the lead of the metadata to another voter while this node goes on. Without one, or on a node that does not lead, it is
// meta.ErrNotLeader.
func (n *Node) StepDown(ctx context.Context) error { return n.meta.StepDown(ctx) }

// Term is Raft's, as far as this node knows it.
func (n *Node) Term() uint64 { return n.meta.Term() }

// handOver gives the lead to another voter, so that nobody has to notice first that the leader is gone. Where that fails they elect.
func (n *Node) handOver(ctx context.Context) {
	if n.plane.beats == nil || !n.meta.IsLeader() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverWait)
	defer cancel()
	if err := n.meta.StepDown(ctx); err != nil {
		n.log.Warn("the lead was not handed over; the other nodes elect a leader", slog.Any("cause", err))
	}
}

// drainingAsk asks a member that is being decommissioned what its ingress still holds, once it has applied what the leader has.
type drainingAsk struct {
	Applied uint64 `json:"applied"`
	Drain   string `json:"drain"` // ID of the decommission
}

// serveDraining closes the ingress before it counts, so that nothing is taken in behind the count.
func (n *Node) serveDraining(ctx context.Context, q drainingAsk) (backlogAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	if err := n.meta.WaitApplied(ctx, q.Applied); err != nil {
		return backlogAnswer{}, wire.Refuse(wire.Unavailable, "this node is behind the one that asks").After(time.Second)
	}
	if m := n.closeIngress(); m.Drain != q.Drain || q.Drain == "" {
		return backlogAnswer{}, wire.Refuse(wire.Conflict, "node %s is not being decommissioned, or not since then", n.id)
	}
	return backlogAnswer{n.ingress.BacklogTotal()}, nil
}

// closeIngress closes the ingress while this node is being decommissioned, and opens it when it is not.
func (n *Node) closeIngress() meta.Member {
	n.draining.Lock()
	defer n.draining.Unlock()
	m, _ := n.meta.Member(n.id)
	n.ingress.Decommission(m.Draining())
	return m
}

// leftOn is the controller's question.
func (n *Node) leftOn(ctx context.Context, member, drain string) (int64, error) {
	q := drainingAsk{Applied: n.meta.Applied(), Drain: drain}
	if member == n.id {
		a, err := n.serveDraining(ctx, q)
		return a.Records, err
	}
	var a backlogAnswer
	err := n.ask(ctx, member, opDraining, q, &a, 2*askWait)
	return a.Records, err
}

// watchDecommission keeps the ingress closed while this node is being decommissioned, and says when it may be stopped.
func (n *Node) watchDecommission(ctx context.Context) error {
	said := false
	for {
		changed := n.meta.Changed()
		m := n.closeIngress()
		if m.Leaving && !said {
			n.log.Warn("this node is decommissioned and holds nothing any more; stop it", slog.String("member", n.id))
			said = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
