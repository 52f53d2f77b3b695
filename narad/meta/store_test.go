package meta

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// lines collects a log.
type lines struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func alone(t *testing.T, dir string, log *lines) *Store {
	t.Helper()
	s, err := Open(Options{
		NodeID: "one", Dir: dir, Bootstrap: []Server{{ID: "one", Addr: "one:1"}}, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.NoError(t, err)
	return s
}

func member(id string) PutMember {
	return PutMember{Member: Member{ID: id, Applies: NewestType, RPCAddr: id + ":2"}}
}

// on is a topic that one node owns.
func on(node, name string) Topic {
	t := plain(name)
	t.Nodes = []string{node, node, node}
	return t
}

// covers: BRK-06
func TestOneNodeLeadsAtOnceAndKeepsItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, log := t.TempDir(), &lines{}
		s := alone(t, dir, log)
		defer func() { require.NoError(t, s.Close()) }()
		start := time.Now()
		_, err := s.Propose(t.Context(), member("one"))
		require.NoError(t, err)
		require.Less(t, time.Since(start), 500*time.Millisecond)
		index, err := s.Propose(t.Context(), CreateTopic{Topic: on("one", "t")})
		require.NoError(t, err)
		require.Equal(t, index, s.Applied())
		require.True(t, s.CaughtUp())
		require.NoError(t, s.Barrier(t.Context()))
		require.Zero(t, s.LastContact())
		id, addr, ok := s.Leader()
		require.True(t, ok && id == "one" && addr == "one:2")

		require.NoError(t, s.Snapshot())
		time.Sleep(time.Second) // snapshots are named by the millisecond
		require.NoError(t, s.Snapshot(), "nothing new is no error")
		_, err = s.Propose(t.Context(), CreateTopic{Topic: on("one", "later")})
		require.NoError(t, err)
		before := dump(t, s.State)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())

		s = alone(t, dir, log)
		start = time.Now()
		require.NoError(t, s.WaitApplied(t.Context(), index+1))
		_, err = s.Propose(t.Context(), DeleteUser{Name: "nobody"})
		require.Equal(t, wire.NotFound, wire.KindOf(err))
		require.Less(t, time.Since(start), 500*time.Millisecond)
		require.Equal(t, before, dump(t, s.State))
	})
}

// Whether a replica is caught up costs no more when Raft's own entries are many: a barrier is one, and each cursor that starts passes one.
//
// covers: BRK-06
func TestCaughtUpReadsAnEntryOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone(t, t.TempDir(), &lines{})
		defer func() { require.NoError(t, s.Close()) }()
		reads := 0
		s.readLog = func(index uint64, l *raft.Log) error { reads++; return s.bolt.GetLog(index, l) }
		_, err := s.Propose(t.Context(), member("one"))
		require.NoError(t, err)
		const barriers = 50
		for range barriers {
			require.NoError(t, s.Barrier(t.Context()))
			require.True(t, s.CaughtUp())
		}
		require.Equal(t, barriers, reads)
		_, err = s.Propose(t.Context(), CreateTopic{Topic: on("one", "t")})
		require.NoError(t, err)
		require.NoError(t, s.Barrier(t.Context()))
		require.True(t, s.CaughtUp())
		require.Equal(t, barriers+1, reads)
		s.advance(s.Applied()-1, false) // an entry of ours is not applied yet
		require.False(t, s.CaughtUp())
	})
}

func TestWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(Options{
			NodeID: "one", Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
			Bootstrap: []Server{{ID: "one", Addr: "one"}, {ID: "two", Addr: "two"}, {ID: "three", Addr: "three"}},
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		_, err = s.Propose(t.Context(), member("one"))
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, wire.Unavailable, p.Kind)
		require.Contains(t, p.Text, "no leader")
		require.NotZero(t, p.RetryAfter)
		require.False(t, s.CaughtUp())
		require.Equal(t, wire.Unavailable, wire.KindOf(s.Barrier(t.Context())))

		waiting := make(chan error)
		go func() {
			_, failed := s.Propose(context.Background(), member("one"))
			waiting <- failed
		}()
		synctest.Wait()
		require.NoError(t, s.Close())
		require.Equal(t, wire.Unavailable, wire.KindOf(<-waiting), "Close ends a proposal that waits")
	})
}

// covers: WRT-02
func TestReleaseGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone(t, t.TempDir(), &lines{})
		defer func() { require.NoError(t, s.Close()) }()
		closed := func(member string) {
			_, err := s.Propose(t.Context(), remote("r"))
			var p *wire.Problem
			require.ErrorAs(t, err, &p)
			require.Equal(t, wire.Precondition, p.Kind)
			require.Equal(t, []string{member}, p.Fields["members"])
		}
		closed("one") // a Raft server without a member record
		_, err := s.Propose(t.Context(), member("one"))
		require.NoError(t, err)
		old := member("old")
		old.Member.Applies = 32
		_, err = s.Propose(t.Context(), old)
		require.ErrorContains(t, err, "node old is not in the cluster", "nobody is a member before it was let in")
		require.NoError(t, s.AddServer(t.Context(), "old", "old:1"))
		require.NoError(t, s.AddServer(t.Context(), "old", "old:1"), "it is there")
		require.ErrorContains(t, s.AddServer(t.Context(), "old", "old:2"), "choose another cluster.node_id")
		require.ErrorContains(t, s.AddServer(t.Context(), "new", "old:1"), "cluster.advertise_addr")
		require.Equal(t, Server{ID: "old", Addr: "old:1", Waits: true}, s.Servers()[1])
		closed("old")
		_, err = s.Propose(t.Context(), old)
		require.NoError(t, err)
		closed("old")
		_, err = s.Propose(t.Context(), member("old"))
		require.NoError(t, err)
		_, err = s.Propose(t.Context(), remote("r"))
		require.NoError(t, err)
	})
}

func TestAnUnknownEntryStopsTheReplica(t *testing.T) {
	for name, bad := range map[string][]byte{
		"type": {200, '{', '}'}, "json": append([]byte{byte(TypePutUser)}, `{"user":{"hash":"c2VjcmV0"`...),
		"member": append([]byte{byte(TypePutUser)}, `{"secret":"hidden"}`...), "empty": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &lines{}
				s := alone(t, t.TempDir(), log)
				defer func() { require.NoError(t, s.Close()) }()
				_, err := s.Propose(t.Context(), member("one"))
				require.NoError(t, err)
				_, err = s.ProposeLocal(t.Context(), bad)
				require.Equal(t, wire.Precondition, wire.KindOf(err), "this release must not propose it")
				require.NoError(t, s.Failed())

				before := s.Applied()
				_ = s.raft.Apply(bad, time.Second).Error() // what a newer leader would have done
				synctest.Wait()
				require.ErrorIs(t, s.Failed(), ErrFailed)
				require.Contains(t, log.String(), "level=ERROR")
				require.NotContains(t, log.String(), "hidden")
				_, err = s.Propose(t.Context(), member("two"))
				require.Equal(t, wire.Unavailable, wire.KindOf(err))
				require.Equal(t, before, s.Applied())
				require.False(t, s.CaughtUp())
				require.False(t, s.IsLeader())
				require.Error(t, s.Snapshot())
			})
		})
	}
}

// stuck is a leader that takes a proposal and is never heard of again.
type stuck struct{ asked chan struct{} }

func (s stuck) ForwardPropose(ctx context.Context, _ string, _ []byte) (uint64, error) {
	close(s.asked)
	<-ctx.Done()
	return 0, ctx.Err()
}

func TestTheTextOfAnUnknownOutcome(t *testing.T) {
	require.Contains(t, problem(fmt.Errorf("cut: %w", context.DeadlineExceeded)).Error(), "the change may still be applied")
	refusal := wire.Refuse(wire.Conflict, "taken")
	require.Equal(t, error(refusal), problem(fmt.Errorf("over the wire: %w", refusal)))

	ctx, cancel := context.WithCancel(t.Context())
	s := stuck{asked: make(chan struct{})}
	go func() { <-s.asked; cancel() }()
	_, err := s.ForwardPropose(ctx, "", nil)
	require.Equal(t, wire.Unavailable, wire.KindOf(problem(err)))
}

func TestCaughtUpLooksAtTheCommittedEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone(t, t.TempDir(), &lines{})
		defer func() { require.NoError(t, s.Close()) }()
		index, err := s.Propose(t.Context(), member("one"))
		require.NoError(t, err)
		require.True(t, s.CaughtUp())
		s.advance(index-1, false) // as if the state machine had not come to it yet
		require.False(t, s.CaughtUp())
		s.advance(index, false)
		require.NoError(t, s.Barrier(t.Context()))
		require.Greater(t, s.raft.CommitIndex(), s.Applied(), "an entry of Raft's own stands above")
		require.True(t, s.CaughtUp())
		require.Equal(t, raft.Leader, s.raft.State())
	})
}
