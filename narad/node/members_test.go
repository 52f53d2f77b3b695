package node_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/meta"
	"narad.example/narad/node"
	"narad.example/narad/peer"
	"narad.example/narad/wire"
)

// joiner is a machine that is none of the first members n1 to n3.
func (b *bubble) joiner(name string) *machine {
	b.t.Helper()
	m := b.machine(name)
	m.config.Cluster.Addr, m.config.Security.AllowPlaintextRaft = ":7943", true
	m.config.Cluster.Peers = []string{"n1@n1:7943", "n2@n2:7943", "n3@n3:7943", fmt.Sprintf("%s@%s:7943", name, name)}
	m.config.Cluster.InitialMembers = []string{"n1", "n2", "n3"}
	return m
}

// member is how a machine shows a member; nil when it shows none of that name.
func (m *machine) member(name string) *wire.Member {
	m.b.t.Helper()
	all, err := m.client().Members(m.b.t.Context(), true)
	require.NoError(m.b.t, err)
	i := slices.IndexFunc(all.Members, func(v wire.Member) bool { return v.ID == name })
	if i < 0 {
		return nil
	}
	return &all.Members[i]
}

// Three nodes become five under load and three again: a node that joins gets its vote and its share, one that is decommissioned takes no
// produce, gives everything away with the positions of a link, and leaves. Nobody loses a record, and nothing is sent twice.
//
// covers: BRK-07, CUR-12, CUR-13
func TestThreeToFiveToThree(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, target := farLink(t, b)
		load := b.produceSteadily(all, "orders")
		more := []*machine{b.joiner("n4"), b.joiner("n5")}
		for _, m := range more {
			m.start()
		}
		five := append(slices.Clone(all), more...)
		for _, m := range more {
			b.ready(m)
			b.eventually(m.name+" votes", func() bool { v := all[1].member(m.name); return v != nil && v.Voter })
		}
		for _, name := range []string{"a", "b", "c"} {
			all[0].create(name) // so that there is a share for everybody
		}
		time.Sleep(time.Minute) // the balancer's patience
		for _, m := range more {
			b.eventually(m.name+" has its share", func() bool { v := all[0].member(m.name); return v.OwnedPartitions >= 2 && v.OutboundMoves == 0 })
		}
		// The link's partitions go to the new ones, so that they have to come back.
		for p := range 2 {
			b.eventually("a move begins", func() bool { return all[0].node.Move(t.Context(), "orders", p, more[p].name) == nil })
			b.moved(five, "orders", p, more[p])
		}
		for _, m := range more {
			require.NoError(t, all[2].client().Decommission(t.Context(), m.name))
			time.Sleep(500 * time.Millisecond) // its replica has it
			err := m.client().Produce(t.Context(), "orders", []byte("x"), client.ProduceOptions{})
			require.ErrorContains(t, err, "being decommissioned and takes no new produce")
		}
		for _, m := range more {
			b.eventually(m.name+" has left", func() bool { return all[0].member(m.name) == nil })
			require.NotEmpty(t, m.log.with("this node is decommissioned and holds nothing any more; stop it"))
			b.eventually("it is not ready any more", func() bool { _, err := m.client().Ready(t.Context()); return err != nil })
			m.stop()
		}
		more[0].start()
		time.Sleep(time.Minute)
		require.Nil(t, all[0].member("n4"), "it does not come back by itself")
		more[0].stop()
		total := load.end()
		d := b.everywhere(all, "orders")
		for p := range 3 {
			require.NotNil(t, owner(all, d, p))
		}
		b.eventually("shipped", func() bool { return target.count("orders") >= total })
		load.holds(t, "the parent", all[0].stored("orders"))
		load.holds(t, "the target", target.stored("orders"))
		require.Equal(t, total, target.count("orders"), "nothing was sent twice")
		for _, m := range append(all, target) {
			m.stop()
		}
	})
}

// The leader itself is decommissioned: it hands the lead over, the next one ends what it began, and what was removed stays away, also when it
// is started again. A node with the ID of another, and one whose peers are no cluster, say so and are not ready.
//
// covers: BRK-07
func TestTheLeaderIsDecommissioned(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		fourth := b.joiner("n4")
		fourth.start()
		b.ready(fourth)
		all = append(all, fourth)
		all[0].create("orders")
		b.everywhere(all, "orders")
		for p := range 3 {
			all[0].pinned("orders", p, id("r", p))
		}
		b.eventually("committed", func() bool { return all[0].count("orders") == 3 })
		first := leader(all)
		rest := slices.DeleteFunc(slices.Clone(all), func(m *machine) bool { return m == first })
		asked := rest[0]
		plan, err := asked.client().PlanDecommission(t.Context(), first.name)
		require.NoError(t, err)
		require.True(t, plan.WouldDecommission && plan.Voter)
		require.NoError(t, asked.client().Decommission(t.Context(), first.name))
		require.ErrorContains(t, asked.client().Decommission(t.Context(), rest[1].name), "cannot be decommissioned now")
		b.eventually("it has left", func() bool { return asked.member(first.name) == nil })
		require.NotSame(t, first, leader(rest))
		d := b.everywhere(rest, "orders")
		for p := range 3 {
			require.NotNil(t, owner(rest, d, p))
		}
		require.Equal(t, 3, asked.count("orders"), "every record is still there")

		first.stop()
		first.start()
		time.Sleep(time.Minute)
		_, err = first.client().Ready(t.Context())
		require.Error(t, err, "a member that has left stays away")
		require.Nil(t, asked.member(first.name))

		twin := b.joiner("twin")
		twin.config.Cluster.NodeID = rest[1].name
		twin.config.Cluster.Peers = []string{rest[0].name + "@" + rest[0].name + ":7943", rest[1].name + "@twin:7943", "x@x:7943", "y@y:7943", "z@z:7943"}
		twin.config.Cluster.InitialMembers = []string{"x", "y", "z"}
		twin.start()
		lost := b.joiner("lost")
		lost.config.Cluster.Peers = []string{"x@x:7943", "y@y:7943", "z@z:7943", "lost@lost:7943"}
		lost.config.Cluster.InitialMembers = []string{"x", "y", "z"}
		lost.start()
		time.Sleep(time.Minute)
		require.True(t, twin.said("choose another cluster.node_id"))
		require.True(t, lost.said("no node of cluster.peers leads or knows who does"))
		for _, m := range []*machine{twin, lost} {
			_, err = m.client().Ready(t.Context())
			require.Error(t, err)
			require.Len(t, m.log.with("this node waits to be let into the cluster"), 1, "said once")
		}
		require.Len(t, asked.everybody(), 3)
		for _, m := range append(all, twin, lost) {
			m.stop()
		}
	})
}

// A member that dies while it is decommissioned is waited for: the listing and the leader's series say why, and once it is back it leaves. Asked
// without a leader the listing shows what the node knows.
//
// covers: BRK-07, BRK-13
func TestADeadMemberDoesNotLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		fourth := b.joiner("n4")
		fourth.start()
		b.ready(fourth)
		b.eventually("it votes", func() bool { v := all[0].member("n4"); return v != nil && v.Voter })
		fourth.kill(false)
		time.Sleep(40 * time.Second)
		require.Equal(t, wire.MemberDead, all[1].member("n4").Status)
		require.NoError(t, all[0].client().Decommission(t.Context(), "n4"), "it owns nothing")
		b.eventually("what blocks it is shown", func() bool {
			why := all[2].member("n4").DecommissionBlocked
			return len(why) == 1 && why[0].Code == wire.BacklogUnknown
		})
		_, page := leader(all).get("/metrics", true)
		require.Equal(t, "1", metric(page, `narad_decommission_blocked{node="n4",reason="backlog_unknown"}`))
		time.Sleep(time.Minute)
		require.True(t, all[0].member("n4").Draining, "it is still there")
		fourth.start()
		b.eventually("it has left", func() bool { return all[0].member("n4") == nil })

		time.Sleep(10 * time.Second) // everybody has applied it
		first := leader(all)
		rest := slices.DeleteFunc(slices.Clone(all), func(m *machine) bool { return m == first })
		first.kill(false)
		rest[1].kill(false)
		time.Sleep(10 * time.Second)
		left := rest[0].everybody()
		require.Len(t, left, 3)
		for _, m := range left {
			require.Nil(t, m.HeartbeatAgeSeconds)
		}
		fourth.stop()
		rest[0].stop()
	})
}

// A node that was let in and never came holds the remote plane back, as a release that nobody knows would, until it is forgotten.
//
// covers: BRK-07, WRT-02
func TestANodeThatNeverCameIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		time.Sleep(time.Second)
		require.NoError(t, leader(all).node.Admit(t.Context(), "ghost", "ghost:7943"))
		create := func() error {
			_, err := all[1].client().Remotes().Create(t.Context(), wire.CreateRemote{
				Name: "dr", URL: "https://target:7942", Username: linkUser, Password: remotePassword,
			})
			return err
		}
		require.ErrorContains(t, create(), "member ghost is not known to run a release with remotes")
		_, err := all[2].client().Forget(t.Context(), "n1")
		require.Error(t, err)
		f, err := all[2].client().Forget(t.Context(), "ghost")
		require.NoError(t, err)
		require.Equal(t, wire.Forgotten{ID: "ghost"}, f)
		b.eventually("the gate opens", func() bool { return create() == nil })
		for _, m := range all {
			m.stop()
		}
	})
}

func (m *machine) everybody() []wire.Member {
	m.b.t.Helper()
	all, err := m.client().Members(m.b.t.Context(), false)
	require.NoError(m.b.t, err)
	return all.Members
}

func (m *machine) said(what string) bool { return strings.Contains(m.log.String(), what) }

// A leader that is stopped hands the lead over: nobody waits for an election.
//
// covers: BRK-07
func TestAStoppedLeaderHandsTheLeadOver(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		time.Sleep(time.Second)
		first := leader(all)
		rest := slices.DeleteFunc(slices.Clone(all), func(m *machine) bool { return m == first })
		began := time.Now()
		first.stop()
		b.eventually("another one leads", func() bool { return leader(rest) != nil })
		require.Less(t, time.Since(began), 500*time.Millisecond, "an election begins no earlier than a second after the leader was heard last")
		rest[0].create("orders")
		for _, m := range rest {
			m.stop()
		}
	})
}

// A decommission that is asked for while the members elect a leader waits for it; with no majority left it says so after three seconds.
//
// covers: BRK-07
func TestADecommissionWaitsForAnElection(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		fourth := b.joiner("n4")
		fourth.start()
		b.ready(fourth)
		b.eventually("it votes", func() bool { v := all[0].member("n4"); return v != nil && v.Voter })
		first := leader(all)
		rest := slices.DeleteFunc(slices.Clone(all), func(m *machine) bool { return m == first })
		first.kill(false)
		began := time.Now()
		require.NoError(t, rest[0].client().Decommission(t.Context(), "n4"))
		require.Greater(t, time.Since(began), 500*time.Millisecond, "somebody was elected first")
		b.eventually("it has left", func() bool { return rest[0].member("n4") == nil })
		fourth.stop()
		rest[1].kill(false)
		time.Sleep(10 * time.Second)
		began = time.Now()
		require.ErrorContains(t, rest[0].client().Decommission(t.Context(), "n4"), "no leader; try again")
		require.Equal(t, 3*time.Second, time.Since(began).Round(time.Second))
		rest[0].stop()
	})
}

// So does a write of a remote.
//
// covers: BRK-06, WRT-01
func TestARemoteWriteWaitsForAnElection(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		first := leader(all)
		rest := slices.DeleteFunc(slices.Clone(all), func(m *machine) bool { return m == first })
		remotes := rest[0].client().Remotes()
		for _, name := range []string{"b", "c"} {
			_, err := remotes.Create(t.Context(), wire.CreateRemote{
				Name: name, URL: "https://b.example:7942", Username: "link", Password: "a password of this test alone",
			})
			require.NoError(t, err)
		}
		first.kill(false)
		synctest.Wait() // a call that went out on the old connection has an unknown outcome
		began := time.Now()
		require.NoError(t, remotes.Delete(t.Context(), "b", false))
		require.Greater(t, time.Since(began), 500*time.Millisecond, "somebody was elected first")
		rest[1].kill(false)
		time.Sleep(10 * time.Second)
		began = time.Now()
		require.ErrorContains(t, remotes.Delete(t.Context(), "c", false), "no leader; try again")
		require.Equal(t, 3*time.Second, time.Since(began).Round(time.Second))
		rest[0].stop()
	})
}

// What a client hears of a call to the leader that failed: a refusal as it is, else whether anything may have been done.
//
// covers: BRK-07, BRK-14
func TestWhatIsHeardOfALeaderThatDidNotAnswer(t *testing.T) {
	refusal, silence := wire.Refuse(wire.Conflict, "no"), errors.New("silence")
	require.Equal(t, refusal, node.LeaderAway(refusal, false))
	unsent := fmt.Errorf("%w: %w", peer.ErrUnreachable, silence)
	require.ErrorIs(t, node.LeaderAway(unsent, false), meta.ErrNotLeader, "a change is put to the next leader")
	for _, err := range []error{unsent, silence} {
		require.ErrorContains(t, node.LeaderAway(err, true), "the leader cannot be reached")
	}
	require.ErrorContains(t, node.LeaderAway(peer.ErrUnknownOp, false), "the leader cannot be reached")
	require.ErrorContains(t, node.LeaderAway(silence, false), "the change may still be applied")
}
