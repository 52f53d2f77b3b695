package link

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// Holding is one remote as one node holds it: what RemoteStatus answers. It names no URL and no credential (LST-05).
type Holding struct {
	Name string          `json:"name"`
	ID   string          `json:"id"`
	Node wire.RemoteNode `json:"node"`
}

// Members asks the other members.
type Members interface {
	// Postures returns what each answered, and the members that did not answer.
	Postures(ctx context.Context) (answers map[string]wire.Posture, silent []string)
	// Check has each make the check of a target, and returns the answers, without a result from a release that knows no check, and the members that
	// did not answer.
	Check(ctx context.Context, ask CheckAsk) (answers map[string]CheckReply, silent []string)
	// Holdings returns the answers by member, and the members that did not answer.
	Holdings(ctx context.Context) (answers map[string][]Holding, silent []string)
}

// Holdings is every remote of this node's replica as its credential cache has it.
func (s *Service) Holdings() []Holding {
	var out []Holding
	for _, r := range s.o.State.Remotes() {
		out = append(out, Holding{Name: r.Name, ID: r.ID, Node: s.node(r)})
	}
	return out
}

// crowd is what all members answered at one moment.
type crowd struct {
	answers map[string][]Holding
	silent  []string
}

func (s *Service) askMembers(ctx context.Context) crowd {
	c := crowd{answers: map[string][]Holding{s.o.NodeID: s.Holdings()}}
	if s.o.Members == nil {
		return c
	}
	others, silent := s.o.Members.Holdings(ctx)
	for member, held := range others {
		c.answers[member] = held
	}
	c.silent = slices.Sorted(slices.Values(silent))
	return c
}

// nodes is one row a member for a remote: unknown for one that did not answer, missing for one that has no such remote, stale for one
// that holds an older credential than this replica knows.
func (c crowd) nodes(r meta.Remote) []wire.RemoteNode {
	var out []wire.RemoteNode
	for member, held := range c.answers {
		row := wire.RemoteNode{State: wire.CredentialMissing, LastError: "none"}
		if i := slices.IndexFunc(held, func(h Holding) bool { return h.ID == r.ID }); i >= 0 {
			row = held[i].Node
			if row.State == wire.CredentialReady && row.CredentialVersion < r.CredentialVersion {
				row.State = wire.CredentialStale
			}
		}
		row.Node = member
		out = append(out, row)
	}
	for _, member := range c.silent {
		out = append(out, wire.RemoteNode{Node: member, State: wire.CredentialUnknown, LastError: "none"})
	}
	slices.SortFunc(out, func(a, b wire.RemoteNode) int { return strings.Compare(a.Node, b.Node) })
	return out
}

// lingering lists remotes that this replica no longer has and other members still hold.
func (c crowd) lingering(known []meta.Remote) []wire.Lingering {
	byID := map[string]*wire.Lingering{}
	for member, held := range c.answers {
		for _, h := range held {
			if slices.ContainsFunc(known, func(r meta.Remote) bool { return r.ID == h.ID }) {
				continue
			}
			if byID[h.ID] == nil {
				byID[h.ID] = &wire.Lingering{Name: h.Name, ID: h.ID, NotAnswering: append([]string{}, c.silent...)}
			}
			byID[h.ID].Holding = append(byID[h.ID].Holding, member)
		}
	}
	var out []wire.Lingering
	for _, l := range byID {
		slices.Sort(l.Holding)
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b wire.Lingering) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return out
}
