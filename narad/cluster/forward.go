package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"narad.example/narad/meta"
	"narad.example/narad/peer"
)

// OpPropose is the op that carries an encoded entry to the leader.
const OpPropose = "Propose"

// proposed is its answer. NotLeader says that nothing was proposed.
type proposed struct {
	Index     uint64 `json:"index,omitempty"`
	NotLeader bool   `json:"not_leader,omitempty"`
}

// Forwarder carries proposals over the node RPC.
type Forwarder struct{ client *peer.Client }

// NewForwarder makes a meta.Forwarder of a peer client, which stays the caller's to close.
func NewForwarder(c *peer.Client) *Forwarder { return &Forwarder{client: c} }

// ForwardPropose sends the entry once. Errors are as meta.Forwarder wants them.
func (f *Forwarder) ForwardPropose(ctx context.Context, leaderAddr string, entry []byte) (uint64, error) {
	body, err := f.client.Call(ctx, leaderAddr, OpPropose, entry)
	if err != nil {
		if errors.Is(err, peer.ErrUnreachable) {
			return 0, fmt.Errorf("%w: %w", meta.ErrNotLeader, err)
		}
		return 0, err
	}
	var p proposed
	if err = json.Unmarshal(body, &p); err != nil {
		return 0, errors.New("the leader's answer to a proposal does not decode")
	}
	if p.NotLeader {
		return 0, meta.ErrNotLeader
	}
	return p.Index, nil
}

// HandlePropose answers OpPropose on every node.
func HandlePropose(s *meta.Store) peer.Handler {
	return func(ctx context.Context, entry []byte) ([]byte, error) {
		index, err := s.ProposeLocal(ctx, entry)
		switch {
		case errors.Is(err, meta.ErrNotLeader):
			return json.Marshal(proposed{NotLeader: true})
		case err != nil:
			return nil, err
		}
		return json.Marshal(proposed{Index: index})
	}
}
