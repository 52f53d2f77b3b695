package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"narad.example/narad/cluster"
	"narad.example/narad/move"
	"narad.example/narad/peer"
	"narad.example/narad/remote/link"
	"narad.example/narad/wire"
)

// The ops that nodes ask each other, beside those of package cluster and link. The words travel between releases.
const (
	opBarrier        = "Barrier"
	opCommit         = "Commit"
	opConsume        = "Consume"
	opReplay         = "Replay"
	opSettle         = "Settle"
	opPartitionStats = "PartitionStats"
	opStartOffsets   = "StartOffsets"
	opCursorStats    = "CursorStats"
	opIngressBacklog = "IngressBacklog"
	opRemoteStatus   = "RemoteStatus"
	opRemoteCheck    = "RemoteCheck"
)

// How long another node is waited for.
const (
	askWait     = 2 * time.Second // an owner's report (api.md: describe, LST-06)
	commitWait  = 5 * time.Second // a commit of up to 8 MiB
	settleWait  = 5 * time.Second // an ack, a replay, and what a consume may take beyond its own wait
	barrierWait = 5 * time.Second

	// A write of a remote has the leader ask every member for its posture, then for its check of the target, then the owners for offsets. What the
	// client reads the answer by, http.write_timeout, is 30 s.
	remoteWriteWait = 25 * time.Second
)

// errNobody is the cause when a node has no address, or this one has no peers.
var errNobody = errors.New("the node cannot be asked: it has no address here")

// exchange calls an op of another member. Errors are those of peer.Client.Call; one that was not sent wraps peer.ErrUnreachable.
func (n *Node) exchange(ctx context.Context, node, op string, body []byte, limit time.Duration) ([]byte, error) {
	return n.exchangeInto(ctx, node, op, body, nil, limit)
}

// exchangeInto is exchange with memory for the answer.
func (n *Node) exchangeInto(ctx context.Context, node, op string, body, room []byte, limit time.Duration) ([]byte, error) {
	m, ok := n.meta.Member(node)
	if !ok || m.RPCAddr == "" || n.plane.client == nil {
		return nil, fmt.Errorf("%w: node %s: %w", peer.ErrUnreachable, node, errNobody)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return n.plane.client.CallInto(ctx, m.RPCAddr, op, body, room)
}

// ask is exchange in JSON. answer may be nil.
func (n *Node) ask(ctx context.Context, node, op string, question, answer any, limit time.Duration) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encode a call of %s: %w", op, err)
	}
	raw, err := n.exchange(ctx, node, op, body, limit)
	if err != nil || answer == nil {
		return err
	}
	if err = json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("the answer of node %s to %s does not decode: %w", node, op, err)
	}
	return nil
}

// answers makes a handler of a function from JSON to JSON. Until the node is whole it refuses.
func answers[Q, A any](n *Node, do func(ctx context.Context, q Q) (A, error)) peer.Handler {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		if !n.front.whole.Load() {
			return nil, starting()
		}
		var q Q
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, wire.Refuse(wire.Precondition, "this node cannot read the call; bring all members to one release")
		}
		a, err := do(ctx, q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(a)
	}
}

func noLeader() error {
	return wire.Refuse(wire.Unavailable, "no leader; try again").After(time.Second)
}

func starting() error {
	return wire.Refuse(wire.Unavailable, "this node is starting").After(time.Second)
}

// away turns what kept an owner from answering into what a client may know: a refusal as it is, 503 when nothing was done, 502 when
// something may have been (api.md, What clients lean on). reads is for calls that change nothing.
func away(err error, node string, reads bool) error {
	var p *wire.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return p
	case reads || errors.Is(err, peer.ErrUnreachable) || errors.Is(err, peer.ErrUnknownOp):
		return wire.Refuse(wire.Unavailable, "node %s, which owns the partition, cannot be reached", node).After(time.Second)
	}
	return wire.Refuse(wire.BadGateway, "node %s, which owns the partition, did not answer", node)
}

// handlePeers registers the ops that are answered on every node.
func (n *Node) handlePeers(s *peer.Server) {
	s.Handle(opBarrier, answers(n, n.serveBarrier))
	s.Handle(opCommit, n.serveCommit)
	s.Handle(opConsume, answers(n, n.serveConsume))
	s.Handle(opReplay, answers(n, n.serveReplay))
	s.Handle(opSettle, answers(n, n.serveSettle))
	s.Handle(opPartitionStats, answers(n, n.servePartitionStats))
	s.Handle(opStartOffsets, answers(n, n.serveStartOffsets))
	s.Handle(opMembership, answers(n, n.serveMembership))
	s.Handle(opDraining, answers(n, n.serveDraining))
	s.HandleLent(move.OpRead, n.serveMoveRead)
	for _, op := range move.Ops {
		s.Handle(op, n.serveMove(op))
	}
	if n.o.Older {
		return // the rest is the remote plane's, and what came with it
	}
	s.Handle(cluster.OpMeet, cluster.HandleMeet(n.id, n.meta))
	s.Handle(link.OpRemoteWrite, n.serveRemoteWrite)
	s.Handle(opCursorStats, answers(n, n.serveCursorStats))
	s.Handle(opIngressBacklog, answers(n, n.serveIngressBacklog))
	s.Handle(opRemoteStatus, answers(n, n.serveRemoteStatus))
	s.Handle(opRemoteCheck, answers(n, n.serveRemoteCheck))
}

// barrier is the answer to Barrier: everything up to this index was committed before the question came.
type barrier struct {
	Index uint64 `json:"index"`
}

func (n *Node) serveBarrier(ctx context.Context, _ struct{}) (barrier, error) {
	if err := n.meta.Barrier(ctx); err != nil {
		return barrier{}, err
	}
	return barrier{n.meta.Applied()}, nil
}

// current returns once this replica holds everything that was committed before the call: behind a barrier when the node leads, else
// behind one that it asked the leader for (broker.md, Metadata). What the replica says then, the leader confirms.
func (n *Node) current(ctx context.Context) error {
	if n.meta.IsLeader() {
		return n.meta.Barrier(ctx)
	}
	id, _, ok := n.meta.Leader()
	if !ok || id == n.id {
		return noLeader()
	}
	var b barrier
	if err := n.ask(ctx, id, opBarrier, struct{}{}, &b, barrierWait); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, barrierWait)
	defer cancel()
	return n.meta.WaitApplied(ctx, b.Index)
}

// dead tells whether a member counts as dead (broker.md, Metadata).
func (n *Node) dead(member string) bool { return n.plane.beats != nil && n.plane.beats.Dead(member) }
