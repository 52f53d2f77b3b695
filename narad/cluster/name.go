package cluster

import (
	"context"
	"log/slog"

	"narad.example/narad/meta"
)

// NamerMeta is what a cluster's ID needs of the metadata; *meta.Store is one.
type NamerMeta interface {
	ClusterID() string
	IsLeader() bool
	Changed() <-chan struct{}
	LeaderMoved() <-chan struct{}
	Propose(ctx context.Context, e meta.Entry) (uint64, error)
}

// Namer has the leader give the cluster its ID, once every member is of a release that applies it.
type Namer struct {
	Meta   NamerMeta
	Logger *slog.Logger
}

// Run ends, with nil, when the cluster has an ID or ctx ends. It waits for whatever may open the gate: an entry, another leader.
func (n *Namer) Run(ctx context.Context) error {
	for ctx.Err() == nil && n.Meta.ClusterID() == "" {
		changed, moved := n.Meta.Changed(), n.Meta.LeaderMoved()
		if n.Meta.IsLeader() {
			_, err := n.Meta.Propose(ctx, meta.NameCluster{ID: meta.NewID()})
			if err == nil {
				return nil
			}
			n.Logger.Debug("the cluster has no ID yet", slog.Any("cause", err))
		}
		select {
		case <-changed:
		case <-moved:
		case <-ctx.Done():
		}
	}
	return nil
}
