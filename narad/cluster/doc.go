// Package cluster administers what spans the nodes: topics and their assignment to nodes, this node's membership, and the
// carrying of proposals to the leader.
//
// Topics checks a request against api.md, reads the replica and proposes one entry per change; the rules that must hold whoever
// proposes are the state's own (package meta), which has the last word. Remote children are package link's: what would touch one
// here is refused with 409 and asks to retry (WRT-07).
//
// New partitions go to the members in turn, without those that count as dead. Who is dead the leader knows from heartbeats and tells in
// its answers to them.
//
// Loops: Registrar.Run and Heartbeats.Run, until their contexts end.
//
// Refused: heartbeats in the Raft log (package meta), a balancer (a partition stays where its data is).
package cluster
