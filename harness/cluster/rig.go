package cluster

import (
	"context"
	"errors"
	"time"

	"narad.example/fakes"
	"narad.example/harness/ledger"
	"narad.example/narad/client"
)

// Sides of a rig.
const (
	Source = "source"
	Target = "target"
)

// ErrTrouble marks an error of the harness or its tools: a run that meets one is no verdict on the product.
var ErrTrouble = errors.New("harness trouble")

// ErrUnsupported is what a node or a rig answers to something that its backend cannot do, such as killing a fake.
var ErrUnsupported = errors.New("not supported here")

// Spec says what to start.
type Spec struct {
	Scenario string
	Source   Side
	Target   Side
	Fake     *fakes.Script // nil is a real target
	Dir      string        // the scenario's run folder: logs go to nodes/<name>.log; data lives elsewhere
	Seed     uint64
	Epoch    time.Time // the run's start, from which recorded times count; zero is now
	Binaries Binaries
}

// Side is one cluster.
type Side struct {
	Nodes  int
	Spares int            // nodes beside them that are not started and that no other knows (Joiner)
	Older  []int          // numbers of nodes that pose as a release before remotes (Upgradable)
	Config map[string]any // overrides of the nodes' JSON config, nested
}

// Binaries are the static binaries of the project. Older is the build of narad that can pose as an older release; wanted by sides with such nodes.
type Binaries struct{ Narad, Chaos, Older string }

// Backend starts rigs.
type Backend interface {
	Name() string
	// Available says why this backend cannot run here, nil when it can.
	Available(ctx context.Context) error
	// Start returns a rig that is ready, or leaves nothing.
	Start(ctx context.Context, spec Spec) (Rig, error)
	// Sweep removes what a killed harness left. It touches nothing of a harness that lives.
	Sweep(ctx context.Context) error
}

// Rig is a running pair of clusters with what stands between them.
type Rig interface {
	// Nodes lists the nodes of a side in order. A fake is one node of the target's side.
	Nodes(side string) []Node
	// Node finds one by name, such as "source-1".
	Node(name string) (Node, error)
	Link() Link
	Remote() Remote
	// Admin is the root admin of both clusters.
	Admin() (user, password string)
	// Wire returns everything that the tap or the fake saw so far, in the order of the answers.
	Wire(ctx context.Context) ([]ledger.WireRequest, error)
	// Secrets lists every secret of the rig, for the judge that looks for them.
	Secrets() []string
	// Close removes everything. The context bounds it, so it must not be one that has ended already.
	Close(ctx context.Context) error
}

// Watched is a rig that notices what nobody asked for: a node that ended by itself, a tool that failed.
type Watched interface{ Trouble() []string }

// Scripted is a rig with a fake target.
type Scripted interface {
	// Steps reports the use of each script step.
	Steps(ctx context.Context) ([]ledger.Step, error)
}

// Remote is what a POST /v1/remotes on the source gets. With a fake, User and Password are its credential; on a real target
// the run makes a user of its own and they are empty.
// OtherCAPEM is the rig's other authority, whose certificate the edge has for fakes.FaceOtherCA.
type Remote struct{ URL, CAPEM, OtherCAPEM, User, Password string }

// Faced is a rig whose edge can show another TLS face (fakes.FaceNames).
type Faced interface {
	// Show gives every connection that comes from now on this face.
	Show(ctx context.Context, face string) error
	// Met is what the edge met so far, by face.
	Met(ctx context.Context) (map[string]fakes.FaceCount, error)
}

// Node is one node of a cluster.
type Node interface {
	Info
	Life
	// Log is what the node has written to its output so far, over all its starts.
	Log() ([]byte, error)
	// Metrics is the node's metrics page.
	Metrics(ctx context.Context) (string, error)
}

// Info tells who a node is and how to talk to it. A client is made for each call, since a port may have changed.
type Info interface {
	Name() string
	Side() string
	Client() *client.Client // as admin
	ClientAs(user, password string) *client.Client
}

// Life is what can be done to a node. Each returns when it is done: Start when the node is ready, Stop and Kill when it is gone.
type Life interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error // graceful
	Kill(ctx context.Context) error
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	Running() bool
}

// Link is the way from source to target.
type Link interface {
	// Enable lets connections through again; Disable ends all of them and refuses new ones.
	Enable(ctx context.Context) error
	Disable(ctx context.Context) error
	Add(ctx context.Context, t Toxic) error
	Remove(ctx context.Context, name string) error
	// Reset enables the link and removes every toxic.
	Reset(ctx context.Context) error
	// State reads back what is set.
	State(ctx context.Context) (enabled bool, toxics []string, err error)
	// Probe sends bytes to the far end and back on a fresh connection and tells how long that took, from the dial to the end of
	// the connection.
	Probe(ctx context.Context, bytes int) (time.Duration, error)
	// Hold opens a connection to the far end and keeps it, for evidence about connections that are already there.
	Hold(ctx context.Context) (Held, error)
}

// Held is an open connection through the link.
type Held interface {
	// Ping sends bytes to the far end and back on this connection.
	Ping(ctx context.Context, bytes int) (time.Duration, error)
	Close() error
}
