package meta

import raftboltdb "github.com/hashicorp/raft-boltdb/v2"

// logs is the Raft log. It tells Raft that it must have no gap, so that a replica that installed a snapshot drops the entries
// before it. Raft would otherwise keep them as trailing ones, and a follower that then restarts behind a gap can neither take
// the leader's next entry nor end taking its snapshot.
type logs struct{ *raftboltdb.BoltStore }

// IsMonotonic is true (raft.MonotonicLogStore).
func (logs) IsMonotonic() bool { return true }
