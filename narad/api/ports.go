package api

import (
	"context"
	"time"

	"narad.example/narad/wire"
)

// Caller is who asks for a remote write. Its members are those of link.Caller, so that the node's adapter is a conversion.
type Caller struct {
	Name      string
	Admin     bool
	RequestID string
}

// Topics administers topics and local children (cluster.Topics). Every error that a client may read is a *wire.Problem.
type Topics interface {
	Create(ctx context.Context, actor string, req wire.CreateTopic) (wire.Topic, error)
	Get(ctx context.Context, name string, partition *int) (wire.TopicDetail, error)
	List(ctx context.Context, limit int, token string, visible func(wire.Topic) bool) (wire.TopicPage, error)
	Alter(ctx context.Context, name string, req wire.AlterTopic) (wire.TopicDetail, error)
	Schemas(ctx context.Context, name string) (wire.SchemaHistory, error)
	Delete(ctx context.Context, name string) error
	AttachLocal(ctx context.Context, parent string, req wire.AttachChild) (wire.Topic, error)
	DetachLocal(ctx context.Context, parent, child string) error
}

// Listing answers the children listing of a topic that exists, from the reports of all owners (LST-01).
type Listing interface {
	Listing(ctx context.Context, parent string, partitions bool) (wire.Children, error)
}

// Links makes, steers and ends remote children (link.Service). Attach with DryRun set checks everything and stores nothing; of its
// answer AttachOffsets, Capabilities, Checks and Warnings are shown (TGT-12).
type Links interface {
	Attach(ctx context.Context, c Caller, parent string, req wire.AttachChild) (wire.Attached, error)
	Detach(ctx context.Context, c Caller, parent, child string, force bool) error
	DeleteTopic(ctx context.Context, c Caller, name string, force bool) error
	// Pause, Resume and Skip answer the stub once this node has applied the change.
	Pause(ctx context.Context, c Caller, parent, child, reason string) (wire.Topic, error)
	Resume(ctx context.Context, c Caller, parent, child string, acceptTarget bool) (wire.Topic, error)
	Skip(ctx context.Context, c Caller, parent, child string, partition int, offset int64) (wire.Topic, error)
}

// Moves shows the moves of partitions and ends them (cluster.Moves).
type Moves interface {
	Moves(ctx context.Context) (wire.Moves, error)
	Abort(ctx context.Context, topic string, partition int) (wire.AbortedMove, error)
}

// Members shows the members of the cluster, and begins and cancels their decommissions (cluster.Membership, on the leader).
type Members interface {
	Members(ctx context.Context, detail bool) (wire.Members, error)
	Plan(ctx context.Context, id string) (wire.Decommission, error)
	Decommission(ctx context.Context, id string) error
	Cancel(ctx context.Context, id string) error
	Forget(ctx context.Context, id string) (wire.Forgotten, error)
}

// Remotes administers remotes (link.Service).
type Remotes interface {
	CreateRemote(ctx context.Context, c Caller, req wire.CreateRemote) (wire.Remote, error)
	PatchRemote(ctx context.Context, c Caller, name string, req wire.PatchRemote) (wire.Remote, error)
	DeleteRemote(ctx context.Context, c Caller, name string, force bool) error
	Remotes(ctx context.Context, nodes bool) (wire.Remotes, error)
	Remote(ctx context.Context, name string, nodes bool) (wire.Remote, error)
	Test(ctx context.Context, c Caller, name string, req wire.TestRemote) (wire.RemoteTest, error)
	Reencrypt(ctx context.Context, c Caller) (wire.Reencrypted, error)
}

// Producer takes records (ingress.Ingress): all or none, and they are on disk when it returns nil (BRK-01). The memory of
// recs is the handler's again once it returned nil, because the body buffer is reused: an implementation that keeps records
// longer copies them. After an error the buffer is left to the collector, since a group commit may still read it.
// A refusal of one record reads `message N: ...`, also for a single produce, where the handler takes the prefix off.
type Producer interface {
	Produce(ctx context.Context, topic, ifTopicID string, recs []wire.NewRecord) error
}

// Consumer leases records (queue.Manager).
type Consumer interface {
	Consume(ctx context.Context, topic string, partition *int, limit int, wait time.Duration) ([]wire.Delivery, error)
	Replay(ctx context.Context, topic string, partition int, offset int64) (*wire.Delivery, error)
	Ack(ctx context.Context, topic, handle string) error
	Nack(ctx context.Context, topic, handle string) error
	Extend(ctx context.Context, topic, handle string) error
}

// Health answers the probes. Stopping is true from the moment the node begins to stop. Ready returns nil when a leader was
// heard of within 5 s and a login works, and what is degraded, if anything.
type Health interface {
	Stopping() bool
	Ready(ctx context.Context) (degraded string, err error)
}
