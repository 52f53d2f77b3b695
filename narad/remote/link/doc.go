// Package link makes, changes and ends remotes and remote children (seed: Writes and their gates, The unshipped check; WRT,
// UNS and TGT-11 of the requirements).
//
// A write is checked on the node that took it, which seals the password if there is one, and goes to the leader as a RemoteWrite
// with the caller's name and the request ID. The leader checks again, proposes one Raft entry and writes the authoritative
// audit line. The node that took it answers once the entry is applied there.
//
// It promises:
//
//   - A password in plain never leaves the node that received it and reaches no error, log or audit line (CRD-01, CRD-13).
//   - A RemoteWrite is sent once. No answer is an unknown outcome, and is reported as one (DEC-36).
//   - Whatever is refused leaves nothing behind.
//   - A link, or a parent that has one, is deleted only after every member's backlog and then every owner's lag were read and
//     found empty, or with force, which the audit line tells with what it abandoned (UNS-01, WRT-11).
//
// It runs no loop. Writes take turns on the leader for the moment between their last check and their proposal.
//
// Refused: checks in the state machine alone. A follower of another release could not be told why, and the target cannot be
// asked from there.
package link
