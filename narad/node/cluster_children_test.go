package node_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// farLink is a source of three nodes with a link to a target of one.
func farLink(t *testing.T, b *bubble) (all []*machine, target *machine) {
	t.Helper()
	return farLinkWith(t, b, func(*machine) {})
}

// farLinkWith is farLink with nodes of the source that are set up differently.
func farLinkWith(t *testing.T, b *bubble, change func(*machine)) (all []*machine, target *machine) {
	t.Helper()
	all, target = b.threeWith("n", change), b.machine("target")
	ca := target.serveTLS()
	target.start()
	target.create("orders")
	_, err := target.client().Users().Create(t.Context(), wire.CreateUser{Username: linkUser, Password: remotePassword, Grants: []wire.Grant{
		{Action: wire.ActionProduce, Patterns: []string{"orders"}},
	}})
	require.NoError(t, err)
	time.Sleep(time.Second) // every member is registered everywhere
	_, err = all[0].client().Remotes().Create(t.Context(), wire.CreateRemote{
		Name: "dr", URL: "https://target:" + apiPort, Username: linkUser, Password: remotePassword, CAPEM: ca,
	})
	require.NoError(t, err)
	all[1].create("orders")
	b.everywhere(all, "orders")
	_, err = all[2].client().AttachRemote(t.Context(), "orders", wire.AttachChild{Child: "orders-dr", Remote: "dr", Lanes: 2})
	require.NoError(t, err)
	b.everywhere(all, "orders-dr")
	return all, target
}

func (m *machine) child(parent, name string) wire.ChildEntry {
	m.b.t.Helper()
	l, err := m.client().Children(m.b.t.Context(), parent, true)
	require.NoError(m.b.t, err)
	for _, c := range l.Children {
		if c.Name == name {
			return c
		}
	}
	require.Fail(m.b.t, "no such child", name)
	return wire.ChildEntry{}
}

// A local child, a delay child and a remote child of one parent get every record although parent and children are spread over three
// nodes; every node's listing folds all owners. With an owner away its partitions are unknown everywhere, a detach is held back and
// names it, and a pause goes on; once it is back the link comes to rest.
//
// covers: BRK-10, CUR-02, CUR-05, LST-01, LST-02, LST-06, UNS-01, UNS-02, WRT-03, WRT-04
func TestChildrenOfAllKindsAcrossNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, target := farLink(t, b)
		for _, name := range []string{"copy", "late"} {
			all[0].create(name)
			b.everywhere(all, name)
		}
		_, err := all[1].client().AttachChild(t.Context(), "orders", wire.AttachChild{Child: "copy"})
		require.NoError(t, err)
		_, err = all[2].client().AttachChild(t.Context(), "orders", wire.AttachChild{Child: "late", DelayMS: 120_000})
		require.NoError(t, err)
		began := time.Now()
		for i := range 60 {
			all[i%3].produce("orders", fmt.Sprint("k", i%7), id("r", i))
		}
		b.eventually("copied and shipped", func() bool { return all[0].count("copy") == 60 && target.count("orders") == 60 })
		require.Zero(t, all[1].count("late"))
		require.Less(t, time.Since(began), 2*time.Minute)
		time.Sleep(2 * time.Minute)
		b.eventually("due", func() bool { return all[1].count("late") == 60 })
		for _, m := range all {
			b.eventually("drained, says "+m.name, func() bool {
				e := m.child("orders", "orders-dr")
				return e.LagComplete && e.LagMessages == 0 && e.State == wire.Running && len(e.Partitions) == 3
			})
			require.True(t, m.child("orders", "copy").LagComplete)
		}

		d := b.everywhere(all, "orders")
		gone := owner(all, d, 0)
		var m *machine
		for _, other := range all {
			if other != gone {
				m = other
			}
		}
		gone.kill(false)
		time.Sleep(10 * time.Second) // a pause needs a leader
		_, err = m.client().Pause(t.Context(), "orders", "orders-dr", "an owner is away")
		require.NoError(t, err)
		e := m.child("orders", "orders-dr")
		require.False(t, e.LagComplete)
		require.False(t, e.SourceDrained)
		require.Equal(t, wire.UnknownState, e.State)
		for _, row := range e.Partitions {
			if row.Node == gone.name {
				require.Equal(t, wire.UnknownState, row.State)
				require.Nil(t, row.NextOffset)
			} else {
				require.Equal(t, wire.Paused, row.State)
			}
		}
		ca, err := fakes.NewCA(time.Now())
		require.NoError(t, err)
		_, err = m.client().Remotes().Create(t.Context(), wire.CreateRemote{
			Name: "other", URL: "https://elsewhere:" + apiPort, Username: linkUser, Password: remotePassword, CAPEM: ca.PEM(),
		})
		require.Equal(t, 412, statusOf(err), "its posture is not known")
		require.ErrorContains(t, err, gone.name)
		remotes, err := m.client().Remotes().List(t.Context(), true)
		require.NoError(t, err)
		require.Equal(t, []string{gone.name}, remotes.NotAnswering)
		for _, row := range remotes.Remotes[0].Nodes {
			want := wire.CredentialReady
			if row.Node == gone.name {
				want = wire.CredentialUnknown
			}
			require.Equal(t, want, row.State, row.Node)
		}
		require.Len(t, remotes.Remotes[0].Nodes, 3)
		err = m.client().Detach(t.Context(), "orders", "orders-dr", false)
		require.Equal(t, 409, statusOf(err))
		var refusal wire.Unshipped
		var answer *client.Error
		require.ErrorAs(t, err, &answer)
		require.NoError(t, json.Unmarshal(answer.Body, &refusal))
		require.Equal(t, []string{gone.name}, refusal.NotAnswering)
		gone.start()
		b.ready(gone)
		_, err = gone.client().Resume(t.Context(), "orders", "orders-dr", false)
		require.NoError(t, err)
		b.eventually("the link runs again", func() bool {
			return gone.child("orders", "orders-dr").Partitions[0].State == wire.Running
		})
		time.Sleep(15 * time.Second) // the next check of the parent (UNS-04)
		require.NoError(t, m.client().Detach(t.Context(), "orders", "orders-dr", false))
		for _, m := range append(all, target) {
			m.stop()
		}
	})
}

// pinned produces a record to one partition.
func (m *machine) pinned(topic string, p int, payload string) {
	m.b.t.Helper()
	require.NoError(m.b.t, m.client().Produce(m.b.t.Context(), topic, []byte(payload), client.ProduceOptions{Partition: &p}))
}

// backlog is how many records a node has taken in and not handed on.
func (m *machine) backlog() string {
	_, page := m.get("/metrics", true)
	return metric(page, "narad_ingress_dispatch_backlog_records")
}

// While an owner is away keyless records go to the partitions of others, at once when it counts as dead; a pinned one waits for it, over
// a kill of all nodes and a start of its own node alone, whose replica does not know the topic then. When the topic is gone the leader
// says so, and only then the record is dropped.
//
// covers: BRK-02, BRK-04, BRK-09
func TestRecordsOfADeadOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		time.Sleep(time.Second)
		all[0].create("orders")
		all[0].create("brief")
		d := b.everywhere(all, "orders")
		away := owner(all, d, 0)
		var took, third *machine
		for _, m := range all {
			switch {
			case m == away:
			case took == nil:
				took = m
			default:
				third = m
			}
		}
		brief := b.everywhere(all, "brief")
		of := 0
		for owner(all, brief, of) != away {
			of++
		}
		away.kill(false)
		time.Sleep(40 * time.Second) // it counts as dead now
		began := time.Now()
		for i := range 9 {
			took.produce("orders", "", id("keyless", i))
		}
		b.eventually("rerouted", func() bool { return took.backlog() == "0" })
		require.Less(t, time.Since(began), 3*time.Second, "at once for a dead owner")
		took.pinned("orders", 0, "waits for its owner")
		took.pinned("brief", of, "has no owner any more")
		time.Sleep(10 * time.Second)
		require.Equal(t, "2", took.backlog())

		third.kill(false)
		took.kill(false)
		took.start() // alone: no leader, and a replica that has applied nothing
		time.Sleep(20 * time.Second)
		require.Empty(t, took.log.with("records dropped, their topic was deleted"))
		third.start()
		b.ready(took)
		require.NoError(t, third.client().DeleteTopic(t.Context(), "brief", false))
		b.eventually("dropped", func() bool { return took.backlog() == "1" })
		require.Len(t, took.log.with("records dropped, their topic was deleted"), 1)
		away.start()
		b.eventually("the owner got it", func() bool { return took.backlog() == "0" })
		b.ready(away)
		b.everywhere(all, "orders")
		require.Equal(t, []string{"waits for its owner"}, took.stored("orders")[0])
		require.Equal(t, 10, away.count("orders"))
		for _, m := range all {
			m.stop()
		}
	})
}
