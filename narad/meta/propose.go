package meta

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"narad.example/narad/wire"
)

// ErrNotLeader is returned by ProposeLocal, and by a Forwarder, when the node that was asked does not lead, or was not reached
// at all. Nothing was proposed then and the proposal may be tried elsewhere.
var ErrNotLeader = errors.New("meta: not the leader")

var errClosed = errors.New("meta: the store is closed")

// Forwarder carries a proposal of a follower to the leader, whose handler calls ProposeLocal. The error is a *wire.Problem for a
// refusal and ErrNotLeader when nothing was proposed; any other one leaves the outcome unknown.
type Forwarder interface {
	ForwardPropose(ctx context.Context, leaderAddr string, entry []byte) (index uint64, err error)
}

const (
	askAgain     = 100 * time.Millisecond // between two tries at a leader that turned out to be none
	enterTimeout = 5 * time.Second        // until Raft takes a proposal in
)

func noLeader() *wire.Problem {
	return wire.Refuse(wire.Unavailable, "no leader; try again").After(time.Second)
}

// unknown is the refusal of a write that may have been proposed. Clients match its text (api.md).
func unknown() *wire.Problem {
	return wire.Refuse(wire.Unavailable, "the outcome is unknown: the change may still be applied")
}

func stopped() *wire.Problem {
	return wire.Refuse(wire.Unavailable, "the metadata replica of this node has stopped; ask another node")
}

// Propose puts an entry to the leader and returns its index once it has been applied on this node (BRK-06). It waits a few
// seconds for a leader when there is none. The error is always a *wire.Problem: the entry's own refusal, Unavailable with "no
// leader" when nothing was proposed, or Unavailable with "the change may still be applied" when that is not known.
func (s *Store) Propose(ctx context.Context, e Entry) (uint64, error) {
	data, err := Encode(e)
	if err != nil {
		return 0, wire.Refuse(wire.Internal, "the change does not encode")
	}
	var index uint64
	err = s.WithLeader(ctx, func() (err error) {
		index, err = s.proposeOnce(ctx, data)
		return err
	})
	return index, problem(err)
}

// WithLeader calls do, again while it returns ErrNotLeader, which says that it met no leader and changed nothing, for the few seconds that a
// write waits for one. Then the error is Unavailable with "no leader", else do's own.
func (s *Store) WithLeader(ctx context.Context, do func() error) error {
	patience := time.NewTimer(s.leaderWait)
	defer patience.Stop()
	for {
		changed, moved := s.Changed(), s.LeaderMoved()
		err := do()
		if !errors.Is(err, ErrNotLeader) {
			return err
		}
		if s.fsm.err() != nil {
			return stopped()
		}
		again := time.NewTimer(askAgain)
		select {
		case <-changed: // perhaps the leader's member record
		case <-moved:
		case <-again.C:
		case <-patience.C:
			err = noLeader()
		case <-ctx.Done():
			err = noLeader()
		case <-s.closing:
			err = noLeader()
		}
		again.Stop()
		if !errors.Is(err, ErrNotLeader) {
			return err
		}
	}
}

// proposeOnce asks the leader of this moment.
func (s *Store) proposeOnce(ctx context.Context, data []byte) (uint64, error) {
	id, addr, ok := s.Leader()
	switch {
	case !ok:
		return 0, ErrNotLeader
	case id == s.id:
		return s.ProposeLocal(ctx, data)
	case addr == "" || s.forward == nil:
		return 0, ErrNotLeader
	}
	index, err := s.forward.ForwardPropose(ctx, addr, data)
	if err != nil {
		return 0, err
	}
	if s.WaitApplied(ctx, index) != nil {
		return 0, unknown()
	}
	return index, nil
}

// problem leaves refusals as they are and turns everything else into an unknown outcome.
func problem(err error) error {
	var p *wire.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return p
	}
	return unknown()
}

// ProposeLocal proposes an encoded entry if this node leads, and returns once it is applied here. It refuses an entry that this
// release cannot apply, since it would stop every replica of this release, and holds entries of the remote plane back until
// ReleaseGate lets them pass (WRT-02). The error is a *wire.Problem or ErrNotLeader.
func (s *Store) ProposeLocal(ctx context.Context, data []byte) (uint64, error) {
	e, err := s.fsm.decode(data)
	if err != nil {
		return 0, wire.Refuse(wire.Precondition, "the leader runs a release that does not know this change; upgrade it first")
	}
	if !s.IsLeader() {
		return 0, ErrNotLeader
	}
	if put, ok := e.(PutMember); ok && !s.serves(put.Member.ID) {
		return 0, wire.Refuse(wire.Conflict, "node %s is not in the cluster, or not any more", put.Member.ID)
	}
	if e.Type() >= TypePutRemote {
		if err = s.releaseGate(max(e.Type(), NewestOfRemotes)); err != nil {
			return 0, err
		}
	}
	if !s.enter() {
		return 0, ErrNotLeader
	}
	future := s.raft.Apply(data, enterTimeout)
	if err = s.await(ctx, future); err != nil {
		return 0, err
	}
	s.spread()
	if refusal, refused := future.Response().(error); refused {
		if errors.Is(refusal, ErrFailed) {
			return 0, unknown()
		}
		return 0, refusal
	}
	return future.Index(), nil
}

// spread has the other nodes hear at once of what was just committed. Raft tells them so with its next entry, or after 50 to 100 ms without one,
// for which whoever asked another node than the leader would wait: so the next entry comes now, a barrier.
func (s *Store) spread() {
	if len(s.Servers()) < 2 || s.spreading.Add(1) > 1 {
		return // the goroutine of an earlier write does it
	}
	if !s.enter() {
		s.spreading.Store(0)
		return
	}
	go func() {
		defer s.proposed.Done()
		for told := int64(0); !s.spreading.CompareAndSwap(told, 0); {
			told = s.spreading.Load()
			_ = s.raft.Barrier(enterTimeout).Error() // if it fails they hear of it later
		}
	}()
}

// enter counts a proposal in, unless Raft is about to end; await counts it out.
func (s *Store) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return false
	}
	s.proposed.Add(1)
	return true
}

// await waits for a future of Raft, and leaves it to a goroutine of its own when the context ends first.
func (s *Store) await(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() {
		defer s.proposed.Done()
		done <- f.Error()
	}()
	select {
	case err := <-done:
		switch {
		case err == nil:
			return nil
		case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout),
			errors.Is(err, raft.ErrLeadershipTransferInProgress):
			return ErrNotLeader
		}
		return unknown()
	case <-ctx.Done():
		return unknown()
	}
}

// Barrier returns once everything committed before it has been applied here and this node's leadership was confirmed by doing
// so. The error is a *wire.Problem, Unavailable with "no leader" when this node does not lead.
func (s *Store) Barrier(ctx context.Context) error {
	if !s.enter() {
		return noLeader()
	}
	if err := s.await(ctx, s.raft.Barrier(enterTimeout)); err != nil {
		return noLeader()
	}
	return nil
}

// ReleaseGate refuses while a member, or a Raft server without a member record, is not known to apply the entries of the remote
// plane, dead ones included (WRT-02). The error is a *wire.Problem: Precondition, class old_release, naming the member.
func (s *Store) ReleaseGate() error { return s.releaseGate(NewestOfRemotes) }

// releaseGate refuses while a member is not known to apply an entry type.
func (s *Store) releaseGate(newest EntryType) error {
	old := OldRelease
	if newest > NewestOfRemotes {
		old = func(member string) error {
			return oldRelease(member, "member %s is not known to run a release that knows this change; upgrade it first")
		}
	}
	servers := s.Servers()
	if len(servers) == 0 {
		return noLeader() // the configuration is not known yet: nothing says that the gate may open
	}
	for _, v := range servers {
		if _, ok := s.Member(v.ID); !ok {
			return old(v.ID)
		}
	}
	for _, m := range s.Members() {
		if m.Applies < newest {
			return old(m.ID)
		}
	}
	return nil
}

// OldRelease is the refusal of a remote write because of a member, which it names (WRT-02, WRT-08): Precondition, class old_release.
func OldRelease(member string) error {
	return oldRelease(member, "member %s is not known to run a release with remotes; upgrade it first")
}

func oldRelease(member, text string) error {
	return wire.Refuse(wire.Precondition, text, member).With("class", "old_release").With("members", []string{member})
}
