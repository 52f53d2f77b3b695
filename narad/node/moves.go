package node

import (
	"context"
	"fmt"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/move"
	"narad.example/narad/peer"
	"narad.example/narad/wire"
)

// openMoves builds what moves partitions from and to this node. A node without peers serves at once.
func (n *Node) openMoves() {
	n.moves = move.New(move.Options{
		NodeID: n.id, State: n.meta.State, Leader: moveLeader{n}, Store: n.store, FS: n.fs, Cursors: heldCursors{n},
		Consumers: n.queues, Caller: moveCaller{n}, Logger: n.log, At: n.o.AtMoveStep,
	})
	n.owned.moves = n.moves
	if len(n.cfg.Cluster.Peers) == 0 {
		n.moves.Begin()
	}
}

// Move begins to move a partition to another member. It returns once that stands in the metadata; what comes of it the topic's
// description shows. Errors are *wire.Problem.
func (n *Node) Move(ctx context.Context, topic string, partition int, to string) error {
	t, ok := n.meta.Topic(topic)
	if !ok {
		return wire.Refuse(wire.NotFound, "no such topic")
	}
	_, err := n.meta.Propose(ctx, meta.StartMove{
		TopicID: t.ID, Partition: partition, From: t.NodeOf(partition), To: to, MoveID: meta.NewID(),
	})
	return err
}

// serveMove answers an op of a move's source that Handle knows.
func (n *Node) serveMove(op string) peer.Handler {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		if !n.front.whole.Load() {
			return nil, starting()
		}
		return n.moves.Handle(op)(ctx, body)
	}
}

// serveMoveRead answers a target that asks for records.
func (n *Node) serveMoveRead(ctx context.Context, body []byte) (*peer.Lent, error) {
	if !n.front.whole.Load() {
		return nil, starting()
	}
	head, records, done, err := n.moves.Read(ctx, body)
	if err != nil {
		return nil, err
	}
	return &peer.Lent{Head: head, Body: records, Done: done}, nil
}

// moveLeader asks the leader for package move.
type moveLeader struct{ n *Node }

// Propose puts an entry to the leader.
func (l moveLeader) Propose(ctx context.Context, e meta.Entry) (uint64, error) {
	return l.n.meta.Propose(ctx, e)
}

// WaitApplied waits for the replica.
func (l moveLeader) WaitApplied(ctx context.Context, index uint64) error {
	return l.n.meta.WaitApplied(ctx, index)
}

// Current is a read index; the replica must count as caught up too (broker.md, Metadata).
func (l moveLeader) Current(ctx context.Context) error {
	if err := l.n.current(ctx); err != nil {
		return err
	}
	if !l.n.meta.CaughtUp() {
		return fmt.Errorf("node %s: %w", l.n.id, errBehind)
	}
	return nil
}

// moveCaller calls other nodes for package move.
type moveCaller struct{ n *Node }

// Call is one call of an op.
func (c moveCaller) Call(ctx context.Context, node, op string, body, room []byte, limit time.Duration) ([]byte, error) {
	return c.n.exchangeInto(ctx, node, op, body, room, limit)
}

// heldCursors is the runner, which is built after the moves are.
type heldCursors struct{ n *Node }

// Hold ends the cursors of a partition.
func (h heldCursors) Hold(ctx context.Context, topicID string, partition int) error {
	return h.n.runner.Hold(ctx, topicID, partition)
}

// Release lets them start again.
func (h heldCursors) Release(topicID string, partition int) { h.n.runner.Release(topicID, partition) }
