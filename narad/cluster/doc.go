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
// A node comes and goes in steps, each of which stands in Raft or in the metadata, so that whoever leads goes on with it:
//
//	joins:  Joiner asks -> AddServer (follows the log) -> Registrar's record -> Promote (at most five vote) -> its share of partitions
//	leaves: DrainMember begin (no partition, no produce) -> moves, one at a time -> its ingress says empty -> DrainMember leave
//	        -> RemoveServer -> RemoveMember
//
// A decommission has an ID. The count of the ingress is asked for under it, and the leave names it: between a cancel and another begin the
// node takes produces again, and what was counted before counts no more. A leader that leaves hands the lead over first. A member that has
// left keeps its folder, finds itself in no configuration and never asks to come back.
//
// Loops: Registrar.Run, Heartbeats.Run, Controller.Run and, on a node that waits to be let in, Joiner.Run, until their contexts end.
//
// Refused: heartbeats in the Raft log (package meta); taking a dead member away, since what its ingress answered 202 for is there alone; a
// dead node's partitions elsewhere (the data is there); fewer than three members by a decommission.
package cluster
