package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// A node that begins to lead may have much of the log still to apply, as after a restart of the whole cluster. What it shows until then decides
// nothing: here a decommission that was cancelled long ago, and a member that left and came again under its ID.
//
// covers: BRK-07
func TestALeaderThatIsBehindDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b", "c", "d", "e")
		s.topic("t", "a", "b", "c", "d", "d")
		s.drain("d")
		s.drain("e")
		s.do(meta.DrainMember{ID: "e", Step: meta.DrainLeave, Drain: "drain-e"})
		s.meta.log.entries = []meta.Entry{
			meta.DrainMember{ID: "d", Step: meta.DrainCancel}, meta.RemoveMember{ID: "e"}, meta.PutMember{Member: meta.Member{ID: "e"}},
		}
		s.meta.log.fails.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.c.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		whole := func() {
			t.Helper()
			require.Empty(t, s.moves())
			require.Equal(t, []string{"a", "b", "c", "d", "e"}, s.servers())
		}
		whole()
		s.meta.log.fails.Store(false)
		time.Sleep(HeartbeatInterval)
		synctest.Wait()
		whole()
		m, there := s.meta.Member("e")
		require.True(t, there)
		require.False(t, m.Draining())
		stop()
		require.NoError(t, <-ended)
	})
}

// Nobody is forgotten whose record only stands in the log.
//
// covers: BRK-07
func TestNobodyIsForgottenByALeaderThatIsBehind(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	*s.meta.raft = append(*s.meta.raft, meta.Server{ID: "d", Addr: "d:1"})
	s.meta.log.entries = []meta.Entry{meta.PutMember{Member: meta.Member{ID: "d"}}}
	s.meta.log.fails.Store(true)
	m := &Membership{Meta: s.meta, Node: "a", Dead: s.c.Dead, Blocked: s.c.Blocked}
	_, err := m.Forget(t.Context(), "d")
	require.ErrorIs(t, err, meta.ErrNotLeader)
	s.meta.log.fails.Store(false)
	_, err = m.Forget(t.Context(), "d")
	require.Equal(t, wire.Conflict, wire.KindOf(err))
	require.Equal(t, []string{"a", "b", "c", "d"}, s.servers())
}
