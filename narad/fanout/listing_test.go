package fanout

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// report is a healthy cursor.
func report(p int) CursorStats {
	return CursorStats{
		Parent: "orders", ParentID: orders(1).ID, Child: "copy", Epoch: epoch1, Partition: p, Node: self,
		State: wire.Running,
	}
}

// covers: LST-01, LST-02, LST-03, LST-04
func TestFold(t *testing.T) {
	now := time.UnixMilli(10_000_000)
	parent := orders(3)
	parent.RetentionMS = 100_000
	child := link(1, 5, 0)
	a, b, c := report(0), report(1), report(2)
	a.Next, a.HighWatermark, a.Frontier, a.OldestUnsent = 10, 30, 30, now.UnixMilli()-40_000
	a.State, a.Blocked = wire.RejectedRecord, []wire.BlockedAt{{Partition: a.Partition, Offset: 12, State: wire.RejectedRecord}}
	a.LastSuccess, a.LastCheck = 5_000, 7_000
	b.Next, b.HighWatermark, b.Frontier, b.OldestUnsent = 5, 6, 6, now.UnixMilli()+60_000 // a clock that was set back
	b.State, b.Blocked = wire.RecordTooLarge, []wire.BlockedAt{{Partition: b.Partition, Offset: 5, State: wire.RecordTooLarge}}
	b.LastSuccess, b.LastCheck = 6_000, 8_000
	c.LastCheck = 9_000

	e := Entry(parent, child, []CursorStats{c, b, a}, now, true)
	require.EqualValues(t, 21, e.LagMessages)
	require.True(t, e.LagComplete)
	require.Equal(t, wire.RejectedRecord, e.State)
	require.InDelta(t, 40, e.LagSeconds, 0.001)
	require.InDelta(t, 60, *e.RetentionHeadroomSeconds, 0.001)
	require.False(t, e.SourceDrained)
	require.Equal(t, &wire.BlockedAt{Partition: 0, Offset: 12, State: wire.RejectedRecord}, e.BlockedAt)
	require.Equal(t, "1970-01-01T00:00:06Z", *e.LastSuccessAt)
	require.Equal(t, "1970-01-01T00:00:07Z", *e.TargetVerifiedAt)
	require.Len(t, e.Partitions, 3)
	require.EqualValues(t, 5, e.Partitions[0].StartOffset)
	require.EqualValues(t, 10, *e.Partitions[0].NextOffset)
	require.Equal(t, wire.RecordTooLarge, e.Partitions[1].State)

	// A partition that did not report, or reports another attach or incarnation, is unknown.
	b.Epoch, c.ParentID = epoch2, "other"
	e = Entry(parent, child, []CursorStats{b, c}, now, true)
	require.False(t, e.LagComplete)
	require.Equal(t, wire.UnknownState, e.State)
	require.Nil(t, e.Partitions[1].NextOffset)
	require.False(t, e.SourceDrained)

	// Nothing to send, everything acked.
	e = Entry(parent, child, []CursorStats{report(0), report(1), report(2)}, now, false)
	require.True(t, e.SourceDrained)
	require.Zero(t, e.LagSeconds)
	require.InDelta(t, 100, *e.RetentionHeadroomSeconds, 0.001)
	require.Nil(t, e.TargetVerifiedAt)
	behind := report(1)
	behind.Next, behind.HighWatermark, behind.Frontier = 9, 9, 8
	require.False(t, Entry(parent, child, []CursorStats{report(0), behind, report(2)}, now, false).SourceDrained)

	parent.RetentionMS = 0
	require.Nil(t, Entry(parent, child, nil, now, false).RetentionHeadroomSeconds)
}

// What one owner does not know, or does not answer, takes nothing from what the others say.
//
// covers: LST-02, LST-04
func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	a, b := report(0), report(1)
	a.LastCheck, b.LastCheck = 7_000, 8_000
	b.Frontier = -1 // it does not open
	for silent, want := range []string{"1970-01-01T00:00:08Z", "1970-01-01T00:00:07Z"} {
		reports := slices.Delete([]CursorStats{a, b}, silent, silent+1)
		e := Entry(orders(2), link(1), reports, time.Now(), true)
		require.NotNil(t, e.TargetVerifiedAt, "partition %d did not report", silent)
		require.Equal(t, want, *e.TargetVerifiedAt)
		require.Nil(t, e.Partitions[1].AckFrontier)
	}
	b.LastCheck = 0
	require.Nil(t, Entry(orders(2), link(1), []CursorStats{a, b}, time.Now(), false).TargetVerifiedAt, "one of them never checked")
}

// covers: LST-03
func TestTheWorstStateIsShown(t *testing.T) {
	for i, worse := range wire.LinkStates {
		for _, better := range wire.LinkStates[i:] {
			if worse == wire.Paused || better == wire.Paused {
				continue // what the replica says, see TestTheAnsweringNodesReplicaDecides
			}
			a, b := report(0), report(1)
			a.State, b.State = better, worse
			require.Equal(t, worse, Entry(orders(2), link(1), []CursorStats{a, b}, time.Now(), false).State)
		}
	}
}

// covers: LST-06, LST-08
func TestTheAnsweringNodesReplicaDecides(t *testing.T) {
	r := report(0)
	r.State, r.Blocked = wire.RejectedRecord, []wire.BlockedAt{{Partition: r.Partition, Offset: 7, State: wire.RejectedRecord}}
	child := link(1)
	child.Remote.Paused = true
	e := Entry(orders(1), child, []CursorStats{r}, time.Now(), true)
	require.Equal(t, wire.Paused, e.State)
	require.Equal(t, wire.Paused, e.Partitions[0].State)
	require.EqualValues(t, 7, e.BlockedAt.Offset)

	child.Remote.Paused = false
	child.Remote.Skip = map[int][]int64{0: {3, 7}}
	two := r // another lane is stuck too: its record is the one to look at now (DEC-37)
	two.Blocked = append(slices.Clone(r.Blocked), wire.BlockedAt{Offset: 9, State: wire.RecordTooLarge})
	e = Entry(orders(1), child, []CursorStats{two}, time.Now(), false)
	require.EqualValues(t, 9, e.BlockedAt.Offset)
	require.Equal(t, wire.RecordTooLarge, e.State)

	e = Entry(orders(1), child, []CursorStats{r}, time.Now(), false)
	require.Nil(t, e.BlockedAt)
	require.Equal(t, wire.Running, e.State)

	r = report(0)
	r.State = wire.Paused
	require.Equal(t, wire.Running, Entry(orders(1), link(1), []CursorStats{r}, time.Now(), false).State)

	r.State, r.Unverified = wire.Running, true
	require.True(t, Entry(orders(1), link(1), []CursorStats{r}, time.Now(), false).Unverified)
	r.State = wire.TargetUnavailable
	require.False(t, Entry(orders(1), link(1), []CursorStats{r}, time.Now(), false).Unverified)
}

// covers: LST-01, LST-04, LST-05
func TestListing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		parent := orders(2)
		parent.RetentionMS = (24 * time.Hour).Milliseconds()
		near := local(1)
		near.FanoutDelayMS = 1000
		g := newRig(t, parent, link(1), near, meta.Topic{Name: "other", ID: "f", Partitions: 1, Nodes: []string{self}})
		g.opts.Frontier = func(_ string, p int) int64 { return int64(10 - p) }
		g.target.script(func(ctx context.Context, s *fakeSink, slab *Slab) Outcome {
			if slab.Partition == 1 {
				return Committed
			}
			s.set(func(s *fakeSink) {
				s.status = SinkStatus{
					State: wire.TargetMissing, LastSuccess: time.Now(), LastCheck: time.Now(),
				}
			})
			<-ctx.Done()
			return Stopped
		})
		g.commit(parent, 0, 10)
		g.commit(parent, 1, 10)
		g.start()
		defer g.end()
		time.Sleep(90 * time.Second)
		_, err := g.listing("none")
		require.Equal(t, wire.NotFound, wire.KindOf(err))
		got, err := g.listing("orders")
		require.NoError(t, err)
		require.Equal(t, "orders", got.Parent)
		require.Equal(t, parent.ID, got.ParentID)
		require.Len(t, got.Children, 2)
		require.Equal(t, "audit", got.Children[0].Name)
		require.Nil(t, got.Children[0].RemoteEntry)
		require.EqualValues(t, 1000, got.Children[0].DelayMS)
		require.Zero(t, got.Children[0].LagMessages)
		e := got.Children[1]
		require.EqualValues(t, 10, e.LagMessages)
		require.True(t, e.LagComplete)
		require.Equal(t, wire.TargetMissing, e.State)
		require.InDelta(t, 90, e.LagSeconds, 1)
		require.InDelta(t, 24*3600-90, *e.RetentionHeadroomSeconds, 1)
		require.NotNil(t, e.LastSuccessAt)
		require.EqualValues(t, 10, *e.Partitions[0].AckFrontier)
		body, err := json.Marshal(got)
		require.NoError(t, err)
		require.Contains(t, string(body), `"blocked_at":null`)
		require.NotContains(t, string(body), "http")

		away := parent
		away.Nodes = []string{"n2", self}
		g.meta.put(away)
		synctest.Wait()
		got, err = g.listing("orders")
		require.NoError(t, err)
		require.Equal(t, wire.UnknownState, got.Children[1].State)
		require.False(t, got.Children[1].LagComplete)
	})
}
