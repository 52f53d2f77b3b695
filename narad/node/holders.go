package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"narad.example/narad/peer"
	"narad.example/narad/remote/link"
	"narad.example/narad/wire"
)

// checkWait is how long a member's check is waited for: the 15 s that it may take, and a call (TGT-01).
const checkWait = 15*time.Second + askWait

// holders asks the other members about remotes (link.Members).
type holders struct{ n *Node }

// Holdings asks all others at once.
func (h holders) Holdings(ctx context.Context) (answers map[string][]link.Holding, silent []string) {
	got, failed := askOthers[holdingsAnswer](ctx, h.n, opRemoteStatus, struct{}{}, askWait)
	answers = make(map[string][]link.Holding, len(got))
	for member, a := range got {
		answers[member] = a.Holdings
	}
	return answers, slices.Collect(maps.Keys(failed))
}

// checkQuestion is the question of RemoteCheck. Without a check the member answers its posture alone; with one it waits until it has applied
// what the asking node has.
type checkQuestion struct {
	Check   *link.CheckAsk `json:"check,omitempty"`
	Applied uint64         `json:"applied,omitempty"`
}

// checkAnswer is the answer to RemoteCheck: the posture, which earlier releases answer alone, and the check that was asked for.
type checkAnswer struct {
	wire.Posture
	Check link.CheckReply `json:"check,omitzero"`
}

// Postures asks all others at once, and gives one that has just come back the time to be connected: a write must not be refused for it.
func (h holders) Postures(ctx context.Context) (answers map[string]wire.Posture, silent []string) {
	answers, failed := askOthers[wire.Posture](peer.Patient(ctx), h.n, opRemoteCheck, checkQuestion{}, askWait)
	return answers, slices.Collect(maps.Keys(failed))
}

// Check asks all others at once. One whose release knows no such op answers without a result.
func (h holders) Check(ctx context.Context, ask link.CheckAsk) (answers map[string]link.CheckReply, silent []string) {
	got, failed := askOthers[checkAnswer](ctx, h.n, opRemoteCheck, checkQuestion{Check: &ask, Applied: h.n.meta.Applied()}, checkWait)
	answers = make(map[string]link.CheckReply, len(got))
	for member, a := range got {
		answers[member] = a.Check
	}
	for member, err := range failed {
		if errors.Is(err, peer.ErrUnknownOp) {
			answers[member] = link.CheckReply{}
			continue
		}
		silent = append(silent, member)
	}
	return answers, silent
}

func (n *Node) serveRemoteCheck(ctx context.Context, q checkQuestion) (checkAnswer, error) {
	a := checkAnswer{Posture: n.remote.links.OwnPosture()}
	if q.Check == nil {
		return a, nil
	}
	wait, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	if err := n.meta.WaitApplied(wait, q.Applied); err != nil {
		return a, wire.Refuse(wire.Unavailable, "this node is behind the one that asks").After(time.Second)
	}
	a.Check = n.remote.links.ServeCheck(ctx, *q.Check)
	return a, nil
}

// askOthers asks every other member the same question at once, and returns why those failed who gave no answer.
func askOthers[A any](ctx context.Context, n *Node, op string, question any, limit time.Duration) (answers map[string]A, failed map[string]error) {
	answers, failed = map[string]A{}, map[string]error{}
	var mu sync.Mutex // guards answers and failed
	var all sync.WaitGroup
	for _, id := range n.everybody() {
		if id == n.id {
			continue
		}
		all.Go(func() {
			var a A
			err := n.ask(ctx, id, op, question, &a, limit)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[id] = err
				return
			}
			answers[id] = a
		})
	}
	all.Wait()
	return answers, failed
}
