package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// retire brings decommissions on: a member whose partitions are gone and whose ingress is empty leaves, then loses its place in Raft, then
// its record. Each step stands in the metadata or in Raft's configuration, so that the next leader goes on where this one ended. A dead
// member goes no further than its partitions: what its ingress took in and was answered 202 is there alone.
func (c *Controller) retire(ctx context.Context, topics []meta.Topic, members []meta.Member) {
	blocked := map[string][]wire.Reason{}
	for _, m := range members {
		if !m.Draining() {
			continue
		}
		if why := c.retireOne(ctx, topics, members, m); why.Code != "" {
			blocked[m.ID] = []wire.Reason{why}
		}
	}
	c.show(blocked)
}

// retireOne takes one step of a member's decommission and returns what keeps it from the next.
func (c *Controller) retireOne(ctx context.Context, topics []meta.Topic, members []meta.Member, m meta.Member) wire.Reason {
	owned, _, inbound := holdings(topics, m.ID)
	switch {
	case m.Leaving:
		return c.remove(ctx, members, m)
	case owned > 0 && c.Dead(m.ID):
		return wire.Reason{Code: wire.OwnerDead, Message: fmt.Sprintf("%d partitions are on it alone, and it is dead: bring it back", owned)}
	case owned > 0 && len(c.live(members)) == 0:
		return wire.Reason{Code: wire.NoReceivers, Message: fmt.Sprintf("%d partitions have no live member to go to", owned)}
	case owned > 0 && owned == c.tried.held(topics, m.ID):
		return wire.Reason{Code: wire.MovesFailed, Message: fmt.Sprintf("the last move of each of its %d partitions was given up or aborted; the logs of the nodes "+
			"that they went to say why, and they are tried again every few minutes", owned)}
	case owned > 0 || inbound > 0:
		return wire.Reason{}
	}
	silent := wire.Reason{Code: wire.BacklogUnknown, Message: "it does not say how many accepted records wait in its ingress: bring it back"}
	if c.Dead(m.ID) {
		return silent
	}
	left, err := c.Backlog(ctx, m.ID, m.Drain)
	switch {
	case err != nil:
		return silent
	case left > 0:
		return wire.Reason{Code: wire.BacklogWaits, Message: fmt.Sprintf("%d accepted records wait in its ingress for their partitions", left)}
	}
	c.propose(ctx, meta.DrainMember{ID: m.ID, Step: meta.DrainLeave, Drain: m.Drain})
	return wire.Reason{}
}

// remove takes a member that leaves out of Raft and drops its record. A leader that leaves hands the lead over first.
func (c *Controller) remove(ctx context.Context, members []meta.Member, m meta.Member) wire.Reason {
	if !majority(c.Meta.Servers(), m.ID, c.Dead) {
		return wire.Reason{Code: wire.NoHealthyMajority, Message: "too few of the other voters are alive"}
	}
	if m.ID != c.Node && !c.Dead(m.ID) {
		// Its answer means that it knows that it leaves: once it is out of Raft nothing tells it any more. Without one it leaves all the same.
		_, _ = c.Backlog(ctx, m.ID, m.Drain)
	}
	ctx, cancel := context.WithTimeout(ctx, HeartbeatInterval)
	defer cancel()
	if m.ID == c.Node {
		if err := c.Meta.StepDown(ctx); err != nil {
			c.Logger.Warn("the lead was not handed over; tried again", slog.Any("cause", err))
		}
		return wire.Reason{}
	}
	if err := c.Meta.RemoveServer(ctx, m.ID); err != nil {
		c.Logger.Warn("a member that leaves is still in Raft; tried again", slog.String("member", m.ID), slog.Any("cause", err))
		return wire.Reason{}
	}
	c.Logger.Info("a member has left the cluster", slog.String("member", m.ID), slog.Int("members", len(members)-1))
	c.propose(ctx, meta.RemoveMember{ID: m.ID})
	return wire.Reason{}
}

// promote gives the vote to one live member that waits for it.
func (c *Controller) promote(ctx context.Context, members []meta.Member) {
	servers := c.Meta.Servers()
	voters, next := 0, ""
	for _, s := range servers {
		i := slices.IndexFunc(members, func(m meta.Member) bool { return m.ID == s.ID })
		stays := i < 0 || !members[i].Draining() // one without a record may vote, and nobody has said that it goes
		switch {
		case !s.Waits && stays:
			voters++
		case s.Waits && i >= 0 && stays && next == "" && !c.Dead(s.ID):
			next = s.ID
		}
	}
	if next == "" || voters >= meta.MostVoters {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, HeartbeatInterval)
	defer cancel()
	if err := c.Meta.Promote(ctx, next); err != nil {
		c.Logger.Debug("a member did not get its vote; tried again", slog.String("member", next), slog.Any("cause", err))
		return
	}
	c.Logger.Info("a member has its vote", slog.String("member", next))
}

// holdings counts what a node owns, what of it is on its way out, and what is on its way to it.
func holdings(topics []meta.Topic, node string) (owned, outbound, inbound int) {
	for i := range topics {
		for _, id := range topics[i].Nodes {
			if id == node {
				owned++
			}
		}
		for _, mv := range topics[i].Moves {
			switch node {
			case mv.To:
				inbound++
			case topics[i].NodeOf(mv.Partition):
				outbound++
			}
		}
	}
	return owned, outbound, inbound
}

// majority tells whether enough of the voters that stay without one node are alive.
func majority(servers []meta.Server, without string, dead func(string) bool) bool {
	voters, live := 0, 0
	for _, s := range servers {
		if s.Waits || s.ID == without {
			continue
		}
		voters++
		if !dead(s.ID) {
			live++
		}
	}
	return live > voters/2
}
