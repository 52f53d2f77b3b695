package node_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
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
		d := b.everywhere(all, "orders")
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
			_, err := m.client().Ready(t.Context())
			b.eventually("it is not ready any more", func() bool { _, err = m.client().Ready(t.Context()); return err != nil })
			m.stop()
		}
		time.Sleep(time.Minute)
		require.Nil(t, all[0].member("n4"), "it does not come back by itself")
		total := load.end()
		d = b.everywhere(all, "orders")
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
