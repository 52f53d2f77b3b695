package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// BalanceAfter is how long a member must have had less than its share before partitions move to it: a cluster that is being built, or a
// node that is away for a moment, moves nothing.
const BalanceAfter = time.Minute

// ControllerMeta is what the controller needs of the metadata; *meta.Store is one.
type ControllerMeta interface {
	IsLeader() bool
	Term() uint64
	Barrier(ctx context.Context) error
	Topics() []meta.Topic
	Members() []meta.Member
	Changed() <-chan struct{}
	Propose(ctx context.Context, e meta.Entry) (uint64, error)
	Servers() []meta.Server
	Promote(ctx context.Context, id string) error
	RemoveServer(ctx context.Context, id string) error
	StepDown(ctx context.Context) error
}

// Controller begins and ends the moves of partitions, gives new members their vote and brings decommissions to their end, on whichever node
// leads (BRK-07). It looks each HeartbeatInterval, since that is when somebody may count as dead, which nothing announces, and whenever the
// metadata change while a member drains.
type Controller struct {
	Meta    ControllerMeta
	Node    string // this one
	Dead    func(member string) bool
	Backlog func(ctx context.Context, member, drain string) (records int64, err error) // in its ingress, which takes no more
	Logger  *slog.Logger

	passed uint64    // the term of this node's lead in which its replica held all that was committed before
	uneven time.Time // since when members differ by more than they should; zero when they do not
	tried  attempts

	mu      sync.Mutex // guards the rest
	blocked map[string][]wire.Reason
}

// Blocked is what kept the decommission of a member from its end at the last look; nil on a node that does not lead.
func (c *Controller) Blocked(member string) []wire.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocked[member]
}

// Run controls until ctx ends. It returns nil.
func (c *Controller) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := c.Meta.Changed()
		switch {
		case !c.Meta.IsLeader():
			c.uneven, c.tried = time.Time{}, attempts{}
			c.show(nil)
		case c.current(ctx):
			c.look(ctx, time.Now())
		}
		c.rest(ctx, changed)
	}
	return nil
}

// current tells whether the replica has held all that was committed before this node began to lead. Until it has, as after a restart, it passes
// through old states, in which members drain that have long come back (broker.md, Metadata).
func (c *Controller) current(ctx context.Context) bool {
	term := c.Meta.Term()
	if c.passed == term {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, HeartbeatInterval)
	defer cancel()
	if c.Meta.Barrier(ctx) != nil || c.Meta.Term() != term {
		return false
	}
	c.passed = term
	return true
}

// rest waits for the next look.
func (c *Controller) rest(ctx context.Context, changed <-chan struct{}) {
	tick := time.NewTimer(HeartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-changed:
			changed = c.Meta.Changed()
			if c.Meta.IsLeader() && len(c.draining(c.Meta.Members())) > 0 {
				return
			}
		case <-tick.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *Controller) show(blocked map[string][]wire.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked = blocked
}

// look proposes what is to be done now. What is not proposed, or refused since the state moved, the next look finds again.
func (c *Controller) look(ctx context.Context, now time.Time) {
	topics, members := c.Meta.Topics(), c.Meta.Members()
	c.tried.watch(topics, now)
	for _, e := range hopeless(topics, c.Dead, c.refuses(members)) {
		c.Logger.Warn("a move is ended, one of its nodes is dead or leaves", slog.String("topic_id", e.TopicID), slog.Int("partition", e.Partition))
		c.tried.excuse(e)
		c.propose(ctx, e)
	}
	c.retire(ctx, topics, members)
	c.promote(ctx, members)
	s := newSpread(topics, c.live(members), c.tried.waits)
	c.start(ctx, "a partition moves away from a member that is being decommissioned", s.evacuate(c.draining(members)))
	c.balance(ctx, now, topics, s.even())
}

// balance starts moves that make the shares even, once they have been uneven for BalanceAfter.
func (c *Controller) balance(ctx context.Context, now time.Time, topics []meta.Topic, starts []meta.StartMove) {
	switch {
	case len(starts) == 0:
		if !anyMoves(topics) {
			c.uneven = time.Time{}
		}
		return
	case c.uneven.IsZero():
		c.uneven = now
	}
	if now.Sub(c.uneven) >= BalanceAfter {
		c.start(ctx, "a partition moves to a member that has less", starts)
	}
}

func (c *Controller) start(ctx context.Context, why string, starts []meta.StartMove) {
	for _, e := range starts {
		c.Logger.Info(why, slog.String("topic_id", e.TopicID), slog.Int("partition", e.Partition),
			slog.String("from", e.From), slog.String("to", e.To))
		if c.propose(ctx, e) {
			c.tried.begun(e)
		}
	}
}

// propose tells whether the entry was applied, as far as is known.
func (c *Controller) propose(ctx context.Context, e meta.Entry) bool {
	ctx, cancel := context.WithTimeout(ctx, HeartbeatInterval)
	defer cancel()
	_, err := c.Meta.Propose(ctx, e)
	if err != nil {
		c.Logger.Debug("the controller's entry was not applied", slog.Any("cause", err))
	}
	return err == nil
}

// live lists the members that may take partitions, in ID order.
func (c *Controller) live(members []meta.Member) []string {
	var ids []string
	for _, m := range members {
		if !m.Draining() && !c.Dead(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// draining lists the members whose partitions are to go and can, in ID order.
func (c *Controller) draining(members []meta.Member) []string {
	var ids []string
	for _, m := range members {
		if m.Draining() && !c.Dead(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// refuses tells of a node whether it takes no partition: it is dead, or drains.
func (c *Controller) refuses(members []meta.Member) func(node string) bool {
	drains := map[string]bool{}
	for _, m := range members {
		drains[m.ID] = m.Draining()
	}
	return func(node string) bool { return drains[node] || c.Dead(node) }
}

func anyMoves(topics []meta.Topic) bool {
	for i := range topics {
		if len(topics[i].Moves) > 0 {
			return true
		}
	}
	return false
}

// hopeless lists the moves that a dead source, or a target that is dead or drains, keeps from their end. Partitions of a dead node stay where
// their data is.
func hopeless(topics []meta.Topic, dead, refuses func(string) bool) (ends []meta.EndMove) {
	for i := range topics {
		t := &topics[i]
		for _, mv := range t.Moves {
			if refuses(mv.To) || dead(t.NodeOf(mv.Partition)) {
				ends = append(ends, meta.EndMove{TopicID: t.ID, Partition: mv.Partition, MoveID: mv.ID})
			}
		}
	}
	return ends
}
