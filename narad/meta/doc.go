// Package meta holds the cluster's metadata: topics and their assignment, local and remote children, users, members, remotes.
//
// State is the metadata itself, in memory, with the rules of every change: one applied entry is one transaction, a refusal is
// a *wire.Problem and changes nothing. Store puts it behind Raft: any node proposes, every node applies the same entries in the
// same order and reads locally. A write has been applied on the node that answers it before Propose returns (BRK-06). A stale
// replica may be read but must not destroy anything: CaughtUp, Barrier and the leader's word come first.
//
// An entry that this release cannot apply stops the replica for good (Failed) instead of being skipped, and entries of the
// remote plane are proposed only once every member reports a release that applies them (ReleaseGate, WRT-02).
//
// The state also keeps a trail of the last 256 remote entries with the audit line that each owes, for the next leader (DEC-13, package link).
// It is part of the snapshot. Names and IDs stand in it, never what an entry carries.
//
// A cluster gives itself an ID, an entry as any other (NameCluster), once every member applies it; a folder remembers it beside the log, and
// Look reads it there before anything is opened. Raft itself takes whoever comes: the log of another cluster may be longer, its term higher,
// and it would win. So both ends of a Raft connection say first who they are and refuse
//
//   - another cluster, when both know theirs;
//   - another node than the one that was looked for at the address;
//   - a node that the configuration does not have and that knows no cluster: it made one of its own (cluster.initial_members).
//
// Taken as before: who knows no cluster and is a member, or is dialled by one; and, while the cluster has no ID, a release that greets not.
// Once it has one, such a release cannot join any more. Not promised: that the folder of a cluster which never had an ID is told apart.
//
// Raft backs off up to ten seconds from a follower that does not answer. Here what it sends waits for the next heartbeat that is answered instead
// (reaching), so that a node has what it missed within a second of its return.
//
// Loops: one goroutine of a Store follows the leader's changes and a failed state machine; Close stops it and waits, as it does
// for Raft's own. Registrar.Run registers this node as a member, until its context ends.
//
// Refused: a table per kind of remote state beside topics (a remote child is a child record), polling where Changed can tell,
// heartbeats in the Raft log (an entry every five seconds and node would be most of the log).
package meta
