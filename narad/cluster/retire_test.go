package cluster

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

func (s *stage) servers() (out []string) {
	for _, v := range s.meta.Servers() {
		if v.Waits {
			out = append(out, v.ID+" waits")
			continue
		}
		out = append(out, v.ID)
	}
	return out
}

func (s *stage) drain(id string) {
	s.t.Helper()
	s.do(meta.DrainMember{ID: id, Step: meta.DrainBegin, Drain: "drain-" + id})
}

// blocked is the code that keeps a decommission from its end.
func (s *stage) blocked(id string) string {
	why := s.c.Blocked(id)
	if len(why) == 0 {
		return ""
	}
	return why[0].Code
}

// A decommission begins when it is asked for and not at the next heartbeat; other changes of the metadata make nobody look.
//
// covers: BRK-07
func TestADecommissionBeginsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "a", "b", "c", "d")
		s.topic("t", "a", "b", "c", "d", "d")
		looks := 0
		s.c.Dead = func(string) bool { looks++; return false }
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.c.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		first := looks
		require.Positive(t, first)
		s.topic("u", "a", "b", "c")
		synctest.Wait()
		require.Equal(t, first, looks)
		s.drain("d")
		synctest.Wait()
		require.Equal(t, []string{"t/4 d>a"}, s.moves())
		s.arrive()
		synctest.Wait()
		require.Len(t, s.moves(), 1, "the next one")
		stop()
		require.NoError(t, <-ended)
	})
}

// A member's decommission, step by step: its partitions go at once and one at a time, its ingress empties, it leaves, loses its vote, then its
// record. Whatever stands in the way is named, and nothing is taken before.
//
// covers: BRK-07
func TestADecommissionStepByStep(t *testing.T) {
	s := newStage(t, "a", "b", "c", "d")
	s.topic("t", "a", "b", "c", "d", "d")
	s.look(0)
	s.drain("d")
	s.left["d"] = 7
	s.look(0)
	require.Equal(t, []string{"t/4 d>a"}, s.moves(), "at once")
	s.look(time.Second)
	require.Len(t, s.moves(), 1, "one at a time")
	s.arrive()
	s.dead["d"] = true
	s.look(time.Second)
	require.Empty(t, s.moves())
	require.Equal(t, wire.OwnerDead, s.blocked("d"))
	s.dead["d"] = false
	for _, id := range []string{"a", "b", "c"} {
		s.dead[id] = true
	}
	s.look(time.Second)
	require.Equal(t, wire.NoReceivers, s.blocked("d"))
	clear(s.dead)
	s.look(time.Second)
	require.Equal(t, []string{"t/3 d>b"}, s.moves())
	require.Empty(t, s.blocked("d"))
	s.arrive()

	s.look(time.Second)
	require.Equal(t, wire.BacklogWaits, s.blocked("d"))
	s.left["d"] = -1
	s.look(time.Second)
	require.Equal(t, wire.BacklogUnknown, s.blocked("d"))
	s.left["d"], s.dead["d"] = 0, true
	s.look(time.Second)
	require.Equal(t, wire.BacklogUnknown, s.blocked("d"), "a dead one says nothing, whatever it said last")
	clear(s.dead)
	require.Equal(t, []string{"a", "b", "c", "d"}, s.servers())
	s.look(time.Second)
	m, _ := s.meta.Member("d")
	require.True(t, m.Leaving)
	s.dead["b"], s.dead["c"] = true, true
	s.look(time.Second)
	require.Equal(t, wire.NoHealthyMajority, s.blocked("d"))
	require.Equal(t, []string{"a", "b", "c", "d"}, s.servers())
	clear(s.dead)
	require.False(t, s.told)
	s.left["d"] = -1 // it does not answer any more, which keeps it from nothing
	s.look(time.Second)
	require.True(t, s.told, "it is asked once more, so that it hears before it is out of Raft")
	require.Equal(t, []string{"a", "b", "c"}, s.servers())
	_, there := s.meta.Member("d")
	require.False(t, there)
	s.look(0)
	s.look(time.Hour)
	require.Empty(t, s.moves(), "the shares are even")
}

// A cancelled decommission leaves what has moved where it is, ends a move to a member that began to drain, and gives shares again.
//
// covers: BRK-07
func TestACancelledDecommission(t *testing.T) {
	s := newStage(t, "a", "b", "c", "d")
	s.topic("t", "a", "a", "b", "c", "d")
	s.do(meta.StartMove{TopicID: "id-t", Partition: 0, From: "a", To: "d", MoveID: "m"})
	s.drain("d")
	s.look(0)
	require.Equal(t, []string{"t/4 d>a"}, s.moves(), "nothing goes to it any more")
	s.arrive()
	s.do(meta.DrainMember{ID: "d", Step: meta.DrainCancel})
	s.look(time.Second)
	s.look(time.Minute)
	require.Equal(t, []string{"t/4 a>d"}, s.moves())
}

// A leader that leaves hands the lead over; the next one goes on.
//
// covers: BRK-07
func TestALeaderThatLeaves(t *testing.T) {
	s := newStage(t, "a", "b", "c", "d")
	s.drain("a")
	s.look(0)
	s.look(time.Second)
	require.False(t, s.meta.IsLeader())
	require.Equal(t, []string{"a", "b", "c", "d"}, s.servers())
	*s.meta.lead, s.c.Node = "b", "b"
	s.look(time.Second)
	require.Equal(t, []string{"b", "c", "d"}, s.servers())
}

// Those that were let in get their vote once they are members and live, up to five; who drains counts no more.
//
// covers: BRK-07
func TestVotesAreGiven(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	*s.meta.raft = append(*s.meta.raft, meta.Server{ID: "d", Addr: "d:1", Waits: true})
	s.look(0)
	require.Equal(t, []string{"a", "b", "c", "d waits"}, s.servers(), "it is no member yet")
	s.do(meta.PutMember{Member: meta.Member{ID: "d"}})
	s.dead["d"] = true
	s.look(0)
	require.Equal(t, []string{"a", "b", "c", "d waits"}, s.servers())
	clear(s.dead)
	for i := range 3 {
		s.join(fmt.Sprint("e", i), true)
	}
	s.look(0)
	require.Equal(t, []string{"a", "b", "c", "d", "e0 waits", "e1 waits", "e2 waits"}, s.servers(), "one at a time")
	s.look(0)
	s.look(0)
	require.Equal(t, []string{"a", "b", "c", "d", "e0", "e1 waits", "e2 waits"}, s.servers(), "five vote")
	s.drain("b")
	s.topic("t", "b", "b")
	s.look(0)
	require.Equal(t, []string{"a", "b", "c", "d", "e0", "e1", "e2 waits"}, s.servers())
}

func (s *stage) membership() *Membership {
	return &Membership{
		Meta: s.meta, Node: s.c.Node, Dead: s.c.Dead, Blocked: s.c.Blocked,
		Age: func(id string) (time.Duration, bool) { return 2 * time.Second, id != "c" },
	}
}

// The listing, what a dry run says, and every refusal.
//
// covers: BRK-07
func TestMembershipIsShownAndRefused(t *testing.T) {
	s := newStage(t, "a", "b", "c", "d")
	s.topic("t", "a", "b", "c", "d", "d")
	m := s.membership()
	plan := func(id string) wire.Decommission {
		d, err := m.Plan(id)
		require.NoError(t, err)
		return d
	}
	require.Equal(t, wire.Decommission{Member: "d", WouldDecommission: true, Reasons: []string{}, Voter: true, OwnedPartitions: 2}, plan("d"))
	s.dead["d"] = true
	require.Equal(t, []string{wire.OwnerDead}, plan("d").Reasons)
	s.dead = map[string]bool{"a": true, "b": true, "c": true}
	require.Equal(t, []string{wire.NoHealthyMajority, wire.NoReceivers}, plan("d").Reasons)
	require.Equal(t, wire.Conflict, wire.KindOf(m.Decommission(t.Context(), "d")))
	clear(s.dead)
	_, err := m.Plan("z")
	require.Equal(t, wire.NotFound, wire.KindOf(err))
	require.Equal(t, wire.NotFound, wire.KindOf(m.Decommission(t.Context(), "z")))
	require.Equal(t, wire.NotFound, wire.KindOf(m.Cancel(t.Context(), "z")))

	require.NoError(t, m.Decommission(t.Context(), "d"))
	require.NoError(t, m.Decommission(t.Context(), "d"), "it is on its way")
	require.True(t, plan("d").WouldDecommission)
	err = m.Decommission(t.Context(), "c")
	require.Equal(t, wire.Conflict, wire.KindOf(err))
	var p *wire.Problem
	require.ErrorAs(t, err, &p)
	require.Equal(t, []string{wire.BelowMinVoters}, p.Fields["reasons"])
	s.left["d"] = 1
	s.look(0)
	all := m.Members(true).Members
	require.Len(t, all, 4)
	two := 2.0
	require.Equal(t, wire.Member{
		ID: "d", Status: wire.MemberAlive, Draining: true, OwnedPartitions: 2, OutboundMoves: 1, Voter: true, HeartbeatAgeSeconds: &two,
		Partitions: []wire.MemberTopic{{Topic: "t", Partitions: []int{3, 4}}},
	}, all[3])
	require.True(t, all[0].Leader)
	require.Nil(t, all[2].HeartbeatAgeSeconds, "nobody knows")
	require.Nil(t, m.Members(false).Members[3].Partitions)

	forget := func(id string, want wire.Kind) {
		t.Helper()
		_, refusal := m.Forget(t.Context(), id)
		require.Equal(t, want, wire.KindOf(refusal), "%v", refusal)
	}
	forget("a", wire.Invalid)
	forget("b", wire.Conflict)
	forget("z", wire.NotFound)
	*s.meta.raft = append(*s.meta.raft, meta.Server{ID: "ghost", Addr: "ghost:1"})
	s.dead = map[string]bool{"b": true, "c": true}
	forget("ghost", wire.Conflict)
	clear(s.dead)
	f, err := m.Forget(t.Context(), "ghost")
	require.NoError(t, err)
	require.Equal(t, wire.Forgotten{ID: "ghost", Voter: true}, f)
	require.Equal(t, []string{"a", "b", "c", "d"}, s.servers())
}
