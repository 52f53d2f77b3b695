package meta

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// lookAgain is how often a call that waits for a node looks whether it is still wanted.
const lookAgain = time.Second

var errAway = errors.New("meta: the node does not answer the heartbeats of Raft")

// reaching is Raft's transport to nodes that may be away. Raft sends a follower that does not answer what it lacks again and again, and in the end
// every ten seconds alone, so that one that comes back goes without for as long, while heartbeats reach it twice a second. So, while heartbeats
// fail, what else goes to the follower waits here for one that does not, instead of failing: Raft then counts no failure, and the call goes out
// at once. It waits while this node leads in the call's term and Raft has the follower; then it fails, and Raft ends what it was part of.
type reaching struct {
	*raft.NetworkTransport
	node   atomic.Pointer[raft.Raft] // nil while Raft starts
	ending <-chan struct{}           // closed when no connection is made any more

	mu   sync.Mutex // guards away
	away map[raft.ServerID]absence
}

// absence is that of a node whose newest heartbeat of this node's lead in a term failed.
type absence struct {
	term uint64
	ends chan struct{} // closed then
}

// AppendEntries sends entries or a heartbeat.
func (t *reaching) AppendEntries(id raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) error {
	beat := q.PrevLogEntry == 0 && q.PrevLogTerm == 0 && len(q.Entries) == 0 && q.LeaderCommitIndex == 0 // as Raft itself tells one
	if !beat {
		if err := t.wait(id, q.Term); err != nil {
			return err
		}
	}
	err := t.NetworkTransport.AppendEntries(id, to, q, a)
	if beat {
		t.beaten(id, q.Term, err == nil)
	}
	return err
}

// InstallSnapshot sends a snapshot.
func (t *reaching) InstallSnapshot(
	id raft.ServerID, to raft.ServerAddress, q *raft.InstallSnapshotRequest, a *raft.InstallSnapshotResponse, data io.Reader,
) error {
	if err := t.wait(id, q.Term); err != nil {
		return err
	}
	return t.NetworkTransport.InstallSnapshot(id, to, q, a, data)
}

// beaten takes the end of a heartbeat.
func (t *reaching) beaten(id raft.ServerID, term uint64, answered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, away := t.away[id]
	if away && (answered || a.term != term) {
		close(a.ends)
		delete(t.away, id)
		away = false
	}
	if !answered && !away {
		t.away[id] = absence{term, make(chan struct{})}
	}
}

// wait returns nil when the heartbeats of this term are answered by a node, as far as is known.
func (t *reaching) wait(id raft.ServerID, term uint64) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		t.mu.Lock()
		a, away := t.away[id]
		t.mu.Unlock()
		if !away || a.term != term {
			return nil
		}
		select {
		case <-a.ends:
		case <-tick.C:
			if !t.wanted(id, term) {
				return errAway
			}
		case <-t.ending:
			return errAway
		}
	}
}

// isAway tells whether the newest heartbeat of a term failed.
func (t *reaching) isAway(id raft.ServerID, term uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, away := t.away[id]
	return away && a.term == term
}

// wanted tells whether this node leads in the term and Raft has the other one.
func (t *reaching) wanted(id raft.ServerID, term uint64) bool {
	r := t.node.Load()
	if r == nil || r.State() != raft.Leader || r.CurrentTerm() != term {
		return false
	}
	f := r.GetConfiguration()
	return f.Error() == nil && slices.ContainsFunc(f.Configuration().Servers, func(s raft.Server) bool { return s.ID == id })
}
