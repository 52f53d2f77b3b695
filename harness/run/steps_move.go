package run

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"narad.example/harness/cluster"
	"narad.example/narad/client"
	"narad.example/narad/wire"
	"narad.example/scenarios"
)

// move moves a partition of the link's parent and waits until its new owner answers for it: a step that moved nothing proves nothing.
func (p *play) move(ctx context.Context, source cluster.Node, l scenarios.Link, st scenarios.Step) {
	from, err := ownerOf(ctx, source, l.Parent, *st.Partition)
	if err != nil {
		p.trouble("move at %s: the owner of %s/%d is not known: %v", st.At, l.Parent, *st.Partition, err)
		return
	}
	to := st.Node
	if to == "" {
		to = nextRunning(p.sources(), from)
	}
	mover, ok := source.(cluster.Mover)
	if !ok || to == "" {
		p.trouble("move at %s: no node can be told to move it, or none is there to take it", st.At)
		return
	}
	r := request{ok: st.Expect, target: fmt.Sprintf("%s/%d", l.Parent, *st.Partition), expect: st.Expect}
	r.do = func(ctx context.Context, _ *client.Client) error { return mover.Move(ctx, l.Parent, *st.Partition, to) }
	if a := p.admin(ctx, source, r); a.Status != http.StatusAccepted {
		p.trouble("move at %s: it did not begin: %d %s %s", st.At, a.Status, a.Text, a.Problem)
		return
	}
	for {
		at, err := ownerOf(ctx, anyRunning(p.sources()), l.Parent, *st.Partition)
		if err == nil && at == to {
			return
		}
		if !sleep(ctx, p.o.sampleEvery()) {
			p.trouble("move at %s: %s/%d is not on %s, but on %s", st.At, l.Parent, *st.Partition, to, at)
			return
		}
	}
}

// ownerOf is the owner of a partition, once it answers.
func ownerOf(ctx context.Context, n cluster.Node, topic string, partition int) (string, error) {
	d, err := n.Client().Topic(ctx, topic, &partition)
	switch {
	case err != nil:
		return "", err
	case d.Partial || len(d.PartitionStats) != 1:
		return "", wire.Refuse(wire.Unavailable, "the owner did not answer")
	}
	return d.PartitionStats[0].OwnerNode, nil
}

// nextRunning is the running node after another one, round the cluster; empty when that one is alone.
func nextRunning(nodes []cluster.Node, after string) string {
	at := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Name() == after })
	for i := range nodes {
		if n := nodes[(at+1+i)%len(nodes)]; n.Running() && n.Name() != after {
			return n.Name()
		}
	}
	return ""
}
