package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"narad.example/narad/ingress"
	"narad.example/narad/meta"
	"narad.example/narad/move"
	"narad.example/narad/partition"
	"narad.example/narad/wire"
)

// errElsewhere is returned for a partition that another node owns; the caller tries again.
var errElsewhere = errors.New("the partition is owned by another node")

// owned is the partitions of this node as its rooms use them: commits of the dispatcher and of local children, statistics,
// attach offsets, retention.
type owned struct {
	nodeID string
	state  *meta.State
	store  *partition.Store
	moves  *move.Moves
}

// open opens a partition that this node owns.
func (o *owned) open(t *meta.Topic, p int) (*partition.Partition, error) {
	if p < 0 || p >= len(t.Nodes) || t.Nodes[p] != o.nodeID {
		return nil, fmt.Errorf("topic %s partition %d: %w", t.Name, p, errElsewhere)
	}
	return o.store.Open(t.ID, p)
}

// Commit commits to a partition of a topic incarnation (ingress.Committer, fanout.Committer).
func (o *owned) Commit(ctx context.Context, topicID string, p int, recs []partition.Record) error {
	leave, err := o.moves.Enter(topicID, p)
	if errors.Is(err, move.ErrFrozen) {
		err = fmt.Errorf("topic incarnation %s partition %d: %w", topicID, p, ingress.ErrFrozen)
	}
	if err != nil {
		return err
	}
	defer leave()
	t, ok := o.state.TopicByID(topicID)
	if !ok {
		return fmt.Errorf("topic incarnation %s is not known here", topicID)
	}
	part, err := o.open(&t, p)
	if err != nil {
		return err
	}
	_, err = part.Commit(ctx, recs)
	return err
}

// Stats answers for partitions of this node.
func (o *owned) Stats(_ context.Context, node string, t meta.Topic, partitions []int) ([]wire.PartitionStats, error) {
	if node != o.nodeID {
		return nil, errElsewhere
	}
	out := make([]wire.PartitionStats, 0, len(partitions))
	for _, p := range partitions {
		part, err := o.open(&t, p)
		if err != nil {
			return nil, err
		}
		s := part.Stats()
		out = append(out, wire.PartitionStats{
			Index: p, Segments: s.Segments, OldestOffset: s.Oldest, NextOffset: s.Next, HighWatermark: s.HighWatermark,
			SizeBytes: s.Bytes, OldestSegmentAt: s.OldestSegmentAt,
		})
	}
	return out, nil
}

// startOffsets is where a remote child starts on some parent partitions of this node (CUR-05). frontier reads the consumers' frontier.
func (o *owned) startOffsets(parent *meta.Topic, partitions []int, from string, frontier func(string, int) int64) ([]int64, error) {
	out := make([]int64, len(partitions))
	for i, p := range partitions {
		part, err := o.open(parent, p)
		if err != nil {
			return nil, err
		}
		switch from {
		case wire.FromEarliest:
			out[i] = part.Oldest()
		case wire.FromUnconsumed:
			f := frontier(parent.ID, p)
			if f < 0 {
				return nil, fmt.Errorf("topic %s partition %d: the consumer frontier cannot be read", parent.Name, p)
			}
			out[i] = max(f, part.Oldest())
		default:
			out[i] = part.HighWatermark()
		}
	}
	return out, nil
}

// mine lists the partitions of a topic that this node owns, never nil.
func (o *owned) mine(t *meta.Topic) []int {
	out := []int{}
	for p, n := range t.Nodes {
		if n == o.nodeID {
			out = append(out, p)
		}
	}
	return out
}

// serving lists the partitions of a topic that this node gives to consumers, never nil: those that it owns and that are not at the end
// of a move.
func (o *owned) serving(t *meta.Topic) []int {
	return slices.DeleteFunc(o.mine(t), func(p int) bool { return !o.moves.Serves(t.ID, p) })
}

// known tells whether a topic incarnation stands in the metadata.
func (o *owned) known(topicID string) bool {
	return slices.ContainsFunc(o.state.Topics(), func(t meta.Topic) bool { return t.ID == topicID })
}
