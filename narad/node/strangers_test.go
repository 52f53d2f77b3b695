package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

// former is three nodes over new folders, and the second one's folder of a cluster of the same names whose log is longer and whose term is
// higher: what Raft alone would take for its own.
func (b *bubble) former() (all []*machine, disk *vfs.Mem, raft string) {
	b.t.Helper()
	all = b.three("n")
	for i := range 20 {
		all[0].create(fmt.Sprint("old", i))
	}
	for range 3 {
		b.eventually("the lead goes on", func() bool { l := leader(all); return l != nil && l.node.StepDown(b.t.Context()) == nil })
		time.Sleep(2 * time.Second)
	}
	for _, m := range all {
		m.stop()
	}
	disk, raft = all[1].disk, all[1].raft
	for _, m := range all {
		m.disk, m.raft = vfs.NewMem(), b.t.TempDir()
		m.start()
	}
	for _, m := range all {
		b.ready(m)
	}
	all[0].create("orders")
	b.everywhere(all, "orders")
	all[0].pinned("orders", 0, "first")
	b.eventually("committed", func() bool { return all[0].count("orders") == 1 })
	return all, disk, raft
}

// A node that starts over the folder of another cluster is told so and does not start; where nobody answered its question it starts and is no
// member: nothing of one cluster reaches the other, no term moves and no leader falls. With its own folder back it goes on.
//
// covers: BRK-07
func TestAFolderOfAnotherCluster(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, disk, raft := b.former()
		n2 := all[1]
		ownDisk, ownRaft, ownConfig := n2.disk, n2.raft, n2.config
		n2.stop()
		rest := []*machine{all[0], all[2]}
		b.eventually("somebody leads", func() bool { return leader(rest) != nil })
		time.Sleep(10 * time.Second)
		lead, term := leader(rest), rest[0].node.Term()
		calm := func() {
			t.Helper()
			require.Same(t, lead, leader(rest))
			require.Equal(t, term, rest[0].node.Term())
			topics, err := rest[0].client().Topics(t.Context(), 0, "")
			require.NoError(t, err)
			require.Len(t, topics.Topics, 1)
		}
		n2.disk, n2.raft = disk, raft
		before, err := os.ReadFile(filepath.Join(raft, "raft.db"))
		require.NoError(t, err)
		err = n2.tryStart()
		require.ErrorContains(t, err, "setting storage.data_dir: "+raft+" holds the metadata of another cluster than node n1 of cluster.peers")
		after, err := os.ReadFile(filepath.Join(raft, "raft.db"))
		require.NoError(t, err)
		require.Equal(t, before, after, "nothing is written")
		calm()

		n2.config.Cluster.Peers = []string{"x@x:7943", "n2@n2:7943", "y@y:7943"} // nobody answers the question
		n2.start()
		time.Sleep(time.Minute)
		calm()
		_, err = n2.node.Ready(t.Context())
		require.ErrorContains(t, err, "the other node is of another cluster")
		require.ErrorContains(t, err, "storage.data_dir")
		require.NotEmpty(t, lead.log.with("a Raft connection was refused: the node at its other end does not belong to this one"))
		n2.stop()
		calm()

		n2.disk, n2.raft, n2.config = ownDisk, ownRaft, ownConfig
		n2.start()
		b.ready(n2)
		require.Equal(t, 1, n2.count("orders"))
		for _, m := range all {
			m.stop()
		}
	})
}

// A new node that takes itself for one of the first members, a second one with the ID of another, and a copy of one that runs do not start and
// leave an empty folder empty, so that with the setting mended the same node is let in.
//
// covers: BRK-07
func TestANodeThatWouldMakeAClusterBesideAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		empty := func(m *machine) {
			t.Helper()
			left, err := os.ReadDir(m.raft)
			require.NoError(t, err)
			require.Empty(t, left)
		}
		fourth := b.joiner("n4")
		first := fourth.config.Cluster.InitialMembers
		fourth.config.Cluster.InitialMembers = nil
		require.ErrorContains(t, fourth.tryStart(), "setting cluster.initial_members: node n1 is of a cluster that runs already and does not have node n4")
		empty(fourth)

		twin := b.machine("twin")
		twin.config.Cluster, twin.config.Security = all[0].config.Cluster, all[0].config.Security
		twin.config.Cluster.Peers = []string{"n1@twin:7943", "n2@n2:7943", "n3@n3:7943"}
		require.ErrorContains(t, twin.tryStart(), "setting cluster.node_id: node n1 of the cluster is at n1:7943 and this one would be at twin:7943")
		empty(twin)
		twin.config.Cluster.Peers = all[0].config.Cluster.Peers
		require.ErrorContains(t, twin.tryStart(), "setting cluster.node_id: a node n1 runs already and answers at n1:7944")
		empty(twin)

		fourth.config.Cluster.InitialMembers = first
		fourth.start()
		b.ready(fourth)
		for _, m := range append(all, fourth) {
			m.stop()
		}
	})
}

// A second node with the ID of one that runs is found by the address that cluster.peers has for it too, also in a cluster that has no ID yet, since one of
// its first members was never there.
//
// covers: BRK-07
func TestATwinOfANodeOfAYoungCluster(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var two []*machine
		for _, name := range []string{"n1", "n2"} {
			m := b.machine(name)
			m.config.Cluster.Addr, m.config.Cluster.Peers = ":7943", []string{"n1@n1:7943", "n2@n2:7943", "n3@n3:7943"}
			m.config.Security.AllowPlaintextRaft = true
			m.start()
			two = append(two, m)
		}
		b.ready(two[0])
		twin := b.machine("twin")
		twin.config.Cluster, twin.config.Security = two[1].config.Cluster, two[1].config.Security
		twin.config.Cluster.AdvertiseAddr = "twin:7943"
		require.ErrorContains(t, twin.tryStart(), "setting cluster.node_id: a node n2 runs already and answers at n2:7944")
		left, err := os.ReadDir(twin.raft)
		require.NoError(t, err)
		require.Empty(t, left)
		for _, m := range two {
			m.stop()
		}
	})
}

// A node whose peers' names do not resolve says so, and which setting has them; it starts, since a name may come back.
//
// covers: BRK-07
func TestPeersThatDoNotResolve(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("n1")
		m.config.Cluster.Addr, m.config.Cluster.Peers = ":7943", []string{"n1@n1:7943", "n2@nowhere:7943", "n3@neither:7943"}
		m.config.Security.AllowPlaintextRaft = true
		m.start()
		time.Sleep(20 * time.Second)
		_, err := m.node.Ready(t.Context())
		require.ErrorContains(t, err, "setting cluster.peers: the host of ")
		require.ErrorContains(t, err, "does not resolve")
		m.stop()
	})
}

// A node that made a cluster of its own while the others were down is refused by them as soon as they meet, and says which setting did it.
//
// covers: BRK-07
func TestANodeThatMadeAClusterOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		for _, m := range all {
			m.stop()
		}
		fourth := b.joiner("n4")
		fourth.config.Cluster.InitialMembers = nil
		fourth.start()
		for _, m := range all {
			m.start()
		}
		for _, m := range all {
			b.ready(m)
		}
		time.Sleep(time.Minute)
		_, err := fourth.node.Ready(t.Context())
		require.ErrorContains(t, err, "cluster.initial_members")
		require.Len(t, all[0].everybody(), 3)
		for _, m := range append(all, fourth) {
			m.stop()
		}
	})
}

// covers: BRK-07
func TestAFolderOfAnotherNode(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		all[1].stop()
		all[2].stop()
		all[1].raft, all[1].disk = all[2].raft, all[2].disk
		require.ErrorContains(t, all[1].tryStart(), "setting cluster.node_id: "+all[2].raft+" holds the metadata of node n3, not of n2")
		all[2].start()
		b.ready(all[2])
		all[0].stop()
		all[2].stop()
	})
}
