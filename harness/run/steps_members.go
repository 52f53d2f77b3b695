package run

import (
	"context"
	"net/http"
	"slices"

	"narad.example/harness/cluster"
	"narad.example/narad/client"
	"narad.example/narad/wire"
	"narad.example/scenarios"
)

// join starts a spare and waits until it votes: one that was not let in proves nothing.
func (p *play) join(ctx context.Context, source cluster.Node, st scenarios.Step) {
	n, err := p.rig.Node(st.Node)
	joiner, ok := n.(cluster.Joiner)
	if err != nil || !ok {
		p.trouble("join at %s: %s cannot join here", st.At, st.Node)
		return
	}
	if err := joiner.Join(ctx); err != nil {
		p.trouble("join at %s: %v", st.At, err)
		return
	}
	if !p.member(ctx, source, st.Node, func(m *wire.Member) bool { return m != nil && m.Voter }) {
		p.trouble("join at %s: %s has no vote", st.At, st.Node)
	}
}

// decommission lets a node leave, waits until it has and stops it. The others are asked: whoever leaves may hear nothing of its end.
func (p *play) decommission(ctx context.Context, st scenarios.Step) {
	others := slices.DeleteFunc(slices.Clone(p.sources()), func(n cluster.Node) bool { return n.Name() == st.Node })
	if !p.o.Virtual { // a loaded machine holds elections of its own, and 503 is a right answer in one
		if _, err := p.whom(ctx, "source leader"); err != nil {
			p.trouble("decommission at %s: %v", st.At, err)
			return
		}
	}
	asked := p.asked(others)
	a := p.admin(ctx, asked, request{
		ok: http.StatusNoContent, action: "cluster.decommission", target: st.Node, expect: st.Expect,
		do: func(ctx context.Context, c *client.Client) error { return c.Decommission(ctx, st.Node) },
	})
	if a.Status != http.StatusNoContent {
		return
	}
	if !p.member(ctx, asked, st.Node, func(m *wire.Member) bool { return m == nil }) {
		p.trouble("decommission at %s: %s has not left", st.At, st.Node)
		return
	}
	p.mu.Lock()
	p.left = append(p.left, st.Node)
	p.mu.Unlock()
	n, err := p.rig.Node(st.Node)
	if err == nil {
		err = n.Stop(ctx)
	}
	if err != nil {
		p.trouble("decommission at %s: stopping %s: %v", st.At, st.Node, err)
	}
}

// member waits until the listing shows a member, nil when it shows none of the name, as it is wanted; false when ctx ends before.
func (p *play) member(ctx context.Context, asked cluster.Node, name string, wanted func(*wire.Member) bool) bool {
	for {
		if all, err := asked.Client().Members(ctx, false); err == nil {
			var found *wire.Member
			if i := slices.IndexFunc(all.Members, func(m wire.Member) bool { return m.ID == name }); i >= 0 {
				found = &all.Members[i]
			}
			if wanted(found) {
				return true
			}
		}
		if !sleep(ctx, p.o.sampleEvery()) {
			return false
		}
	}
}
