package cluster

import (
	"context"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// MovesMeta is what the administration of moves needs of the metadata; *meta.Store is one.
type MovesMeta interface {
	Topic(name string) (meta.Topic, bool)
	Topics() []meta.Topic
	Propose(ctx context.Context, e meta.Entry) (uint64, error)
}

// Moves shows the moves of partitions and ends them. Every error is a *wire.Problem. Who may do what is the caller's business.
type Moves struct {
	Meta MovesMeta
	Dead func(member string) bool
}

// What blocks a move.
const (
	sourceDead = "source_dead"
	targetDead = "target_dead"
)

// BlockedReasons are what Move.Blocked says.
func BlockedReasons() []string { return []string{sourceDead, targetDead} }

// Moves lists the moves, by topic and partition.
func (m *Moves) Moves(context.Context) (wire.Moves, error) {
	out := wire.Moves{Moves: []wire.Move{}}
	for _, t := range m.Meta.Topics() {
		for _, mv := range t.Moves {
			out.Moves = append(out.Moves, m.view(&t, mv))
		}
	}
	return out, nil
}

func (m *Moves) view(t *meta.Topic, mv meta.Move) wire.Move {
	v := wire.Move{
		Topic: t.Name, Partition: mv.Partition, From: t.NodeOf(mv.Partition), To: mv.To,
		FromStatus: wire.MemberAlive, ToStatus: wire.MemberAlive,
	}
	if m.Dead(v.To) {
		v.ToStatus, v.Blocked = wire.MemberDead, targetDead
	}
	if m.Dead(v.From) {
		v.FromStatus, v.Blocked = wire.MemberDead, sourceDead
	}
	return v
}

// Abort ends the move of a partition; its owner keeps it. The copy goes by itself.
func (m *Moves) Abort(ctx context.Context, topic string, partition int) (wire.AbortedMove, error) {
	t, ok := m.Meta.Topic(topic)
	if !ok {
		return wire.AbortedMove{}, noTopic()
	}
	mv, moves := t.Move(partition)
	if !moves {
		return wire.AbortedMove{}, wire.Refuse(wire.NotFound, "the partition is not being moved")
	}
	_, err := m.Meta.Propose(ctx, meta.EndMove{TopicID: t.ID, Partition: partition, MoveID: mv.ID})
	if err != nil {
		return wire.AbortedMove{}, err
	}
	return wire.AbortedMove{Move: m.view(&t, mv), Note: "the partition stays; a member that still has less than its share may get it later"}, nil
}
