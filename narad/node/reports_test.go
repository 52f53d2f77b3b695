package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"narad.example/narad/fanout"
	"narad.example/narad/meta"
	"narad.example/narad/node"
	"narad.example/narad/partition"
	"narad.example/narad/peer"
	remotelink "narad.example/narad/remote/link"
	"narad.example/narad/wire"
)

// A lag counts what the owners of the partitions report of this attach, and is complete only with all of them.
//
// covers: UNS-02, LST-02
func TestALagIsCompleteOnlyWithEveryOwner(t *testing.T) {
	parent := meta.Topic{Name: "p", ID: "id", Partitions: 3, Nodes: []string{"n1", "n2", "n3"}}
	child := meta.Topic{Name: "c", Parent: "p", AttachEpoch: "e"}
	report := func(p int, node, epoch string) fanout.CursorStats {
		return fanout.CursorStats{ParentID: "id", Child: "c", Epoch: epoch, Partition: p, Node: node, Next: 5, HighWatermark: 7}
	}
	whole := []fanout.CursorStats{report(0, "n1", "e"), report(1, "n2", "e"), report(2, "n3", "e")}
	require.Equal(t, remotelink.LagReport{Messages: 6, Complete: true}, node.FoldLag(parent, child, whole, nil))
	for name, last := range map[string][]fanout.CursorStats{
		"no cursor runs there":       nil,
		"a cursor of another attach": {report(2, "n3", "before")},
		"not the owner":              {report(2, "n1", "e")},
	} {
		got := node.FoldLag(parent, child, append(whole[:2:2], last...), nil)
		require.Equal(t, remotelink.LagReport{Messages: 4, NotAnswering: []string{"n3"}}, got, name)
	}
	got := node.FoldLag(parent, child, whole[1:], []string{"n1"})
	require.Equal(t, remotelink.LagReport{Messages: 4, NotAnswering: []string{"n1"}}, got)
}

// An owner that has not applied what the asking node has reports nothing (LST-06).
//
// covers: LST-06
func TestAnOwnerThatIsBehindReportsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		began := time.Now()
		_, err := m.node.CursorsAt(t.Context(), "c", m.node.Applied())
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		_, err = m.node.CursorsAt(t.Context(), "c", m.node.Applied()+1)
		require.Error(t, err)
		require.Equal(t, 2*time.Second, time.Since(began))
		m.stop()
	})
}

// A commit reaches the owner byte for byte, a damaged one not at all, and a try that comes after the one that replaced it neither.
//
// covers: BRK-02
func TestACommitOverTheWire(t *testing.T) {
	recs := []partition.Record{
		{Key: []byte("k"), Payload: []byte("one")}, {Payload: []byte("two")}, {Key: []byte{0, 255}, Payload: []byte{}},
	}
	got, body, err := node.CommitOverTheWire(recs)
	require.NoError(t, err)
	require.Equal(t, recs, got)
	for cut := 1; cut < len(body); cut++ {
		if err := node.DecodeCommit(body[:cut]); err == nil {
			require.Contains(t, []int{len(body) - 8 - 2, len(body) - 8 - 2 - 8 - 3, len(body) - 8 - 2 - 8 - 3 - 8 - 4}, cut, "only between records")
		}
	}
	var l node.Line
	require.True(t, l.Enter("n1", "life", 1))
	require.True(t, l.Enter("n1", "life", 3))
	require.False(t, l.Enter("n1", "life", 2), "a straggler")
	require.False(t, l.Enter("n1", "life", 3))
	require.True(t, l.Enter("n2", "life", 1), "another sender")
	require.True(t, l.Enter("n1", "next life", 1), "a sender that has begun anew")
	require.True(t, l.Enter("n1", "", 0), "a child's commits have no numbers")
}

// An owner commits for others what it owns, by the incarnation's ID, and refuses a straggler with nothing stored.
//
// covers: BRK-02, BRK-09
func TestAnOwnerRefusesWhatIsNotItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		topic := m.create("orders")
		require.NoError(t, m.node.CommitAs(t.Context(), topic.ID, 0, "life", 2))
		require.Error(t, m.node.CommitAs(t.Context(), topic.ID, 0, "life", 1))
		require.Error(t, m.node.CommitAs(t.Context(), topic.ID, 3, "life", 3))
		require.Error(t, m.node.CommitAs(t.Context(), "another", 0, "life", 4))
		require.Equal(t, 1, m.count("orders"))
		require.NoError(t, m.node.CommitAs(t.Context(), topic.ID, 0, "life", 5))
		require.Equal(t, 2, m.count("orders"))
		m.stop()
	})
}

// An owner that answers is not silent, whatever it answers: one partition whose log has failed holds no commits of the owner's others up. One
// that did not answer, or was not reached, is asked by one commit at a time.
//
// covers: BRK-02
func TestWhichOwnersAreSilent(t *testing.T) {
	var a node.Asked
	answers := []error{nil, wire.Refuse(wire.Unavailable, "not mine"), fmt.Errorf("peer: call Commit: %w", status.Error(codes.Internal, "internal error"))}
	silences := []error{
		peer.ErrUnreachable, fmt.Errorf("peer: call Commit: %w", status.Error(codes.DeadlineExceeded, "late")),
		fmt.Errorf("peer: call Commit: %w", status.Error(codes.Unavailable, "cut")),
	}
	for _, silence := range silences {
		for _, answer := range answers {
			require.True(t, a.Enter("n2"))
			require.True(t, a.Enter("n2"))
			a.Leave("n2", silence)
			require.True(t, a.Enter("n2"))
			require.False(t, a.Enter("n2"), "one asks for all")
			require.True(t, a.Enter("n3"))
			a.Leave("n2", answer)
			require.True(t, a.Enter("n2"))
			require.True(t, a.Enter("n2"), "%v", answer)
		}
	}
}
