package cluster

import (
	"context"
	"net"
)

// What a Cut meets of the connections between two nodes.
const (
	CarriesAll  = "all"
	CarriesRaft = "raft"
	CarriesRPC  = "rpc"
)

// Cut parts nodes from others. From and To are names of nodes; To may be Target, which is the target's edge as nodes of the source reach it
// (Carries is CarriesAll then).
type Cut struct {
	From, To []string
	// OneWay parts them in one direction. Loud, what From dials to To ends and is refused, while To dials From as before. Silent, what From
	// sends to To does not arrive, on no connection; what To sends does, but without an answer none is made.
	OneWay bool
	// Silent holds what is sent, and dials hang, until the heal; connections that live so long go on. Else connections are reset and dials refused.
	Silent  bool
	Carries string
}

// CutMet is what met a cut so far.
type CutMet struct {
	Ended int // connections that it reset, or held, when it began
	Dials int // dials that it refused, or let hang
}

// Parted is a rig whose nodes can be parted from each other.
type Parted interface {
	// Part begins a cut.
	Part(ctx context.Context, c Cut) (Parting, error)
	// Reach opens a connection as the node from would, to node to: to its Raft (CarriesRaft) or its node RPC (CarriesRPC), or to Target.
	Reach(ctx context.Context, from, to, carries string) (net.Conn, error)
	// Partings is how many cuts are in force.
	Partings() int
}

// Parting is a cut in force.
type Parting interface {
	// Met is what met it, probes of the harness included.
	Met() CutMet
	// Mend takes it back.
	Mend(ctx context.Context) error
}
