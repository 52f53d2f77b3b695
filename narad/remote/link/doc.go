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
//   - Each committed write has the leader's audit line, whoever dies: at least once, and more than once only marked replayed (DEC-13).
//
// How a line outlives its leader: the entry carries the request ID, event, actor and target of its line (meta.Origin), and every replica keeps
// those of the last 256 remote entries (meta.State.Trail). Each entry also names the earlier ones whose lines its proposer has written, and the
// state marks them; a line that the log refused is not named. Who comes to lead passes a barrier and writes the lines of earlier terms that
// nobody has confirmed, with `replayed` and their own index, unless they stand in this process's log already. It confirms them with its next
// write. So the newest line is repeated at each change of the lead until another write follows, and a replayed line lacks what stands in the
// leader's alone: host, fingerprint, credential_version. An entry that got no word from Raft has a line with outcome
// unknown, which confirms nothing: if it was committed after all, the next leader says so.
//
// FollowTrail is the one loop; the caller runs it and ends it with its context. Writes take turns on the leader for the moment between their last
// check and their proposal.
//
// Refused: an entry that only confirms (one more write of the log for each write, to spare a line that may repeat), a file of lines that are owed
// (it dies with its node), checks in the state machine alone. A follower of another release could not be told why, and the target cannot be
// asked from there.
package link
