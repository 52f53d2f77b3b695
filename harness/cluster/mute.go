package cluster

import "context"

// What a Mute answers to whoever dials the node.
const (
	SaysNothing = "nothing" // connections are taken and nothing comes
	SaysGarbage = "garbage" // bytes that are no TLS, without end
	SaysEndless = "endless" // behind a TLS handshake, bytes without end
	SaysRelayed = "relayed" // what the node itself says, by a man in the middle who ends TLS on both sides; of the node RPC alone
)

// Mutable is a rig in which others that dial a node can meet somebody else at its ports. The node itself dials as before.
type Mutable interface {
	// Mute ends the connections that were dialled to a node's Raft (CarriesRaft), node RPC (CarriesRPC) or both (CarriesAll), and takes those
	// that come.
	Mute(ctx context.Context, node, carries, says string) (Muted, error)
}

// Muted is a node that does not answer.
type Muted interface {
	// Met is how many connections were taken in its place so far.
	Met() int
	// Mend ends these and gives the node its ports back.
	Mend(ctx context.Context) error
}
