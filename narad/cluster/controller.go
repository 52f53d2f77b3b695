package cluster

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"narad.example/narad/meta"
)

// BalanceAfter is how long a member must have had less than its share before partitions move to it: a cluster that is being built, or a
// node that is away for a moment, moves nothing.
const BalanceAfter = time.Minute

// ControllerMeta is what the controller needs of the metadata; *meta.Store is one.
type ControllerMeta interface {
	IsLeader() bool
	Topics() []meta.Topic
	Members() []meta.Member
	Propose(ctx context.Context, e meta.Entry) (uint64, error)
}

// Controller begins and ends the moves of partitions, on whichever node leads (BRK-07). It looks each HeartbeatInterval, since that is
// when somebody may count as dead, which nothing announces.
type Controller struct {
	Meta   ControllerMeta
	Dead   func(member string) bool
	Logger *slog.Logger

	uneven time.Time // since when members differ by more than they should; zero when they do not
}

// Run controls until ctx ends. It returns nil.
func (c *Controller) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if c.Meta.IsLeader() {
			c.look(ctx, time.Now())
		} else {
			c.uneven = time.Time{}
		}
		pause(ctx, HeartbeatInterval)
	}
	return nil
}

// look proposes what is to be done now. What is not proposed, or refused since the state moved, the next look finds again.
func (c *Controller) look(ctx context.Context, now time.Time) {
	topics := c.Meta.Topics()
	for _, e := range hopeless(topics, c.Dead) {
		c.Logger.Warn("a move is ended, one of its nodes is dead", slog.String("topic_id", e.TopicID), slog.Int("partition", e.Partition))
		c.propose(ctx, e)
	}
	starts := shares(topics, c.live())
	switch {
	case len(starts) == 0:
		if !anyMoves(topics) {
			c.uneven = time.Time{}
		}
		return
	case c.uneven.IsZero():
		c.uneven = now
	}
	if now.Sub(c.uneven) < BalanceAfter {
		return
	}
	for _, e := range starts {
		c.Logger.Info("a partition moves to a member that has less", slog.String("topic_id", e.TopicID), slog.Int("partition", e.Partition),
			slog.String("from", e.From), slog.String("to", e.To))
		c.propose(ctx, e)
	}
}

func (c *Controller) propose(ctx context.Context, e meta.Entry) {
	ctx, cancel := context.WithTimeout(ctx, HeartbeatInterval)
	defer cancel()
	if _, err := c.Meta.Propose(ctx, e); err != nil {
		c.Logger.Debug("the controller's entry was not applied", slog.Any("cause", err))
	}
}

// live lists the members that may take partitions, in ID order.
func (c *Controller) live() []string {
	var ids []string
	for _, m := range c.Meta.Members() {
		if !c.Dead(m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func anyMoves(topics []meta.Topic) bool {
	for i := range topics {
		if len(topics[i].Moves) > 0 {
			return true
		}
	}
	return false
}

// hopeless lists the moves that a dead source or target keeps from their end. Partitions of a dead node stay where their data is.
func hopeless(topics []meta.Topic, dead func(string) bool) (ends []meta.EndMove) {
	for i := range topics {
		t := &topics[i]
		for _, mv := range t.Moves {
			if dead(mv.To) || dead(t.NodeOf(mv.Partition)) {
				ends = append(ends, meta.EndMove{TopicID: t.ID, Partition: mv.Partition, MoveID: mv.ID})
			}
		}
	}
	return ends
}

// shares lists the moves that make the live members' numbers of partitions differ by one at most, as far as they may begin now: one at
// a time from each node. Where a partition goes counts as where it is.
func shares(topics []meta.Topic, live []string) (starts []meta.StartMove) {
	load, busy, where := map[string]int{}, map[string]bool{}, make([][]string, len(topics))
	for i := range topics {
		t := &topics[i]
		where[i] = slices.Clone(t.Nodes)
		for _, mv := range t.Moves {
			busy[t.NodeOf(mv.Partition)] = true
			where[i][mv.Partition] = mv.To
		}
		for _, node := range where[i] {
			load[node]++
		}
	}
	for {
		from, to := "", ""
		for _, id := range live {
			if !busy[id] && (from == "" || load[id] > load[from]) {
				from = id
			}
			if to == "" || load[id] < load[to] {
				to = id
			}
		}
		if from == "" || load[from]-load[to] < 2 {
			return starts
		}
		i, p := candidate(topics, where, from, to)
		if p < 0 {
			return starts
		}
		starts = append(starts, meta.StartMove{TopicID: topics[i].ID, Partition: p, From: from, To: to, MoveID: meta.NewID()})
		where[i][p], busy[from] = to, true
		load[from]--
		load[to]++
	}
}

// candidate is a partition of the topic of which one node has most and the other least, so that topics stay spread; below 0 when all that
// the one has is still on its way to it.
func candidate(topics []meta.Topic, where [][]string, from, to string) (topic, partition int) {
	partition = -1
	most := 0
	for i := range topics {
		surplus, last := 0, -1
		for p, node := range where[i] {
			switch node {
			case from:
				surplus++
				if topics[i].NodeOf(p) == from {
					last = p
				}
			case to:
				surplus--
			}
		}
		if last >= 0 && (partition < 0 || surplus > most) {
			topic, partition, most = i, last, surplus
		}
	}
	return topic, partition
}
