package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// replica is the metadata without Raft.
type replica struct{ *meta.State }

func (r replica) Propose(_ context.Context, e meta.Entry) (uint64, error) {
	index := r.Applied() + 1
	return index, r.Apply(index, e)
}

// owners answers for partitions: high watermark 10*partition+1. Nodes in down do not answer.
type owners struct{ down map[string]bool }

func (o owners) Stats(ctx context.Context, node string, _ meta.Topic, ps []int) ([]wire.PartitionStats, error) {
	if o.down[node] {
		<-ctx.Done()
		return nil, errors.New("down")
	}
	var out []wire.PartitionStats
	for _, p := range ps {
		out = append(out, wire.PartitionStats{HighWatermark: int64(10*p + 1)})
	}
	return out, nil
}

type desk struct {
	*Topics
	t    *testing.T
	meta replica
	down map[string]bool
}

func newDesk(t *testing.T, members ...string) *desk {
	d := &desk{t: t, meta: replica{meta.NewState()}, down: map[string]bool{}}
	for _, m := range members {
		_, err := d.meta.Propose(t.Context(), meta.PutMember{Member: meta.Member{ID: m}})
		require.NoError(t, err)
	}
	d.Topics = NewTopics(TopicsOptions{Meta: d.meta, NodeID: "n1", Partitions: owners{d.down}})
	return d
}

func (d *desk) create(r wire.CreateTopic) wire.Topic {
	d.t.Helper()
	got, err := d.Create(d.t.Context(), "ann", r)
	require.NoError(d.t, err)
	return got
}

func (d *desk) refused(kind wire.Kind, err error) {
	d.t.Helper()
	var p *wire.Problem
	require.ErrorAs(d.t, err, &p)
	require.Equal(d.t, kind, p.Kind, p.Text)
}

// link puts a remote child under a topic, as package link would.
func (d *desk) link(parent, child string) {
	d.t.Helper()
	p, ok := d.meta.Topic(parent)
	require.True(d.t, ok)
	if _, exists := d.meta.Remote("r"); !exists {
		_, err := d.meta.Propose(d.t.Context(), meta.PutRemote{Remote: meta.Remote{Name: "r", ID: "1"}, Salt: make([]byte, meta.SaltBytes)})
		require.NoError(d.t, err)
	}
	_, err := d.meta.Propose(d.t.Context(), meta.AttachRemote{
		ParentID: p.ID, ParentPartitions: p.Partitions,
		Topic: meta.Topic{
			Name: child, ID: meta.NewID(), Parent: parent, AttachEpoch: meta.NewID(), AttachOffsets: make([]int64, p.Partitions),
			Remote: &meta.RemoteLink{Remote: "r", Topic: parent, Lanes: 1, Skip: map[int][]int64{0: {2, 7}}},
		},
	})
	require.NoError(d.t, err)
}

func ptr[V any](v V) *V { return &v }

// covers: BRK-12, BRK-09
func TestCreateDefaultsAndLimits(t *testing.T) {
	d := newDesk(t)
	got := d.create(wire.CreateTopic{Name: "t", Owner: "ignored"})
	require.Regexp(t, "^[0-9a-f]{16}$", got.ID)
	require.NotZero(t, got.CreatedAt)
	got.ID, got.CreatedAt = "", 0
	require.Equal(t, wire.Topic{
		Name: "t", Partitions: 3, RetentionMS: 7 * 24 * 3600 * 1000, VisibilityTimeoutMS: 30000,
		MaxInFlightPerPartition: 1024, MaxAckedAheadPerPartition: 1024, Owner: "ann", Role: wire.Standalone,
	}, got)
	require.Zero(t, d.create(wire.CreateTopic{Name: "forever", RetentionMS: ptr(int64(0))}).RetentionMS)
	require.Equal(t, 108, d.create(wire.CreateTopic{Name: strings.Repeat("n", 200), Partitions: 108}).Partitions)

	for _, bad := range []wire.CreateTopic{
		{}, {Name: "."}, {Name: ".."}, {Name: strings.Repeat("n", 201)}, {Name: "a/b"}, {Name: "ü"}, {Name: "a b"},
		{Name: "x", Partitions: 2}, {Name: "x", Partitions: 109}, {Name: "x", Partitions: -1},
		{Name: "x", RetentionMS: ptr(int64(3599999))}, {Name: "x", RetentionMS: ptr(int64(-1))},
		{Name: "x", VisibilityTimeoutMS: -1}, {Name: "x", MaxInFlightPerPartition: -1}, {Name: "x", MaxAckedAheadPerPartition: -1},
		{Name: "x", FanoutDelayMS: 1}, {Name: "x", Schema: json.RawMessage(`{"type":7}`)}, {Name: "x", Schema: json.RawMessage(`null`)},
		{Name: "x", Parent: "t", FanoutDelayMS: yearMS + 1},
	} {
		_, err := d.Create(t.Context(), "ann", bad)
		d.refused(wire.Invalid, err)
	}
	_, err := d.Create(t.Context(), "ann", wire.CreateTopic{Name: "T"})
	d.refused(wire.Conflict, err)
	require.Contains(t, err.Error(), "differs only in letter case")
	_, err = d.Create(t.Context(), "ann", wire.CreateTopic{Name: "x", Parent: "none"})
	d.refused(wire.NotFound, err)
}

// covers: CUR-04, BRK-10
func TestCreateAsAChild(t *testing.T) {
	d := newDesk(t)
	d.create(wire.CreateTopic{Name: "p", Partitions: 5, RetentionMS: ptr(2 * meta.HourMS)})
	got := d.create(wire.CreateTopic{Name: "c", Parent: "p", FanoutDelayMS: meta.HourMS})
	require.Equal(t, 5, got.Partitions)
	require.Equal(t, wire.Child, got.Role)
	require.Equal(t, []int64{1, 11, 21, 31, 41}, got.AttachOffsets)
	require.Regexp(t, "^[0-9a-f]{16}$", got.AttachEpoch)
	parent, err := d.Get(t.Context(), "p", nil)
	require.NoError(t, err)
	require.Equal(t, wire.Parent, parent.Role)
	require.Equal(t, []string{"c"}, parent.Children)
	_, err = d.Create(t.Context(), "ann", wire.CreateTopic{Name: "x", Parent: "p", FanoutDelayMS: meta.HourMS + 1})
	d.refused(wire.Conflict, err)
	_, err = d.Create(t.Context(), "ann", wire.CreateTopic{Name: "x", Parent: "c"})
	d.refused(wire.Conflict, err)
	_, err = d.Create(t.Context(), "ann", wire.CreateTopic{Name: "c", Parent: "p"})
	d.refused(wire.Conflict, err)
	d.down["n1"] = true
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = d.Create(ctx, "ann", wire.CreateTopic{Name: "x", Parent: "p"})
		d.refused(wire.Unavailable, err)
	})
	_, ok := d.meta.Topic("x")
	require.False(t, ok, "something was left")
}

// covers: BRK-12
func TestAlter(t *testing.T) {
	d := newDesk(t, "n1", "n2")
	d.create(wire.CreateTopic{Name: "t"})
	got, err := d.Alter(t.Context(), "t", wire.AlterTopic{
		RetentionMS: ptr(meta.HourMS), MaxInFlightPerPartition: ptr(1), MaxAckedAheadPerPartition: ptr(2), Partitions: ptr(4),
	})
	require.NoError(t, err)
	require.Equal(t, []int64{meta.HourMS, 1, 2, 4},
		[]int64{got.RetentionMS, int64(got.MaxInFlightPerPartition), int64(got.MaxAckedAheadPerPartition), int64(got.Partitions)})
	require.Len(t, got.PartitionStats, 4)
	require.NotEqual(t, got.PartitionStats[2].OwnerNode, got.PartitionStats[3].OwnerNode, "round-robin goes on")
	for _, bad := range []wire.AlterTopic{
		{}, {Partitions: ptr(4)}, {Partitions: ptr(3)}, {Partitions: ptr(109)}, {RetentionMS: ptr(int64(5))},
		{MaxInFlightPerPartition: ptr(0)}, {MaxAckedAheadPerPartition: ptr(-1)}, {SchemaBaseVersion: ptr(0)},
		{Schema: json.RawMessage(`true`)}, {Schema: json.RawMessage(`null`)},
	} {
		_, err = d.Alter(t.Context(), "t", bad)
		d.refused(wire.Invalid, err)
	}
	_, err = d.Alter(t.Context(), "none", wire.AlterTopic{Partitions: ptr(9)})
	d.refused(wire.NotFound, err)

	_, err = d.Alter(t.Context(), "t", wire.AlterTopic{RetentionMS: ptr(24 * meta.HourMS)})
	require.NoError(t, err)
	d.link("t", "c")
	_, err = d.Alter(t.Context(), "t", wire.AlterTopic{RetentionMS: ptr(23 * meta.HourMS)})
	d.refused(wire.Conflict, err)
	_, err = d.Alter(t.Context(), "c", wire.AlterTopic{Partitions: ptr(9)})
	d.refused(wire.Conflict, err)
}

// covers: WRT-07, CUR-01
func TestStubsAreNotDeletedHere(t *testing.T) {
	d := newDesk(t)
	d.create(wire.CreateTopic{Name: "p"})
	d.link("p", "c")
	d.refused(wire.Conflict, d.Delete(t.Context(), "c"))
	d.refused(wire.Conflict, d.Delete(t.Context(), "p"))
	d.refused(wire.Conflict, d.DetachLocal(t.Context(), "p", "c"))
	d.refused(wire.NotFound, d.Delete(t.Context(), "none"))
	got, err := d.Get(t.Context(), "c", nil)
	require.NoError(t, err)
	require.Equal(t, wire.Child, got.Role)
	require.Zero(t, got.Partitions)
	require.NotNil(t, got.PartitionStats)
	require.Equal(t, map[string][]int64{"0": {2, 7}}, got.Remote.Skip)
	require.Equal(t, "r", got.Remote.Name)

	d.create(wire.CreateTopic{Name: "plain"})
	require.NoError(t, d.Delete(t.Context(), "plain"))
}

// covers: BRK-10, CUR-04
func TestAttachAndDetach(t *testing.T) {
	d := newDesk(t)
	d.create(wire.CreateTopic{Name: "p"})
	d.create(wire.CreateTopic{Name: "c"})
	got, err := d.AttachLocal(t.Context(), "p", wire.AttachChild{Child: "c", DelayMS: 5})
	require.NoError(t, err)
	require.Equal(t, "p", got.Name)
	require.Equal(t, []string{"c"}, got.Children)
	first, _ := d.meta.Topic("c")
	require.Equal(t, []int64{1, 11, 21}, first.AttachOffsets)
	_, err = d.AttachLocal(t.Context(), "p", wire.AttachChild{Child: "c"})
	d.refused(wire.Conflict, err)
	_, err = d.AttachLocal(t.Context(), "p", wire.AttachChild{Child: "none"})
	d.refused(wire.NotFound, err)
	for _, bad := range []wire.AttachChild{{}, {Child: "c", Lanes: 1}, {Child: "c", DelayMS: -1}, {Child: "c", DelayMS: yearMS + 1}} {
		_, err = d.AttachLocal(t.Context(), "p", bad)
		d.refused(wire.Invalid, err)
	}
	require.NoError(t, d.DetachLocal(t.Context(), "p", "c"))
	d.refused(wire.NotFound, d.DetachLocal(t.Context(), "p", "c"))
	_, err = d.AttachLocal(t.Context(), "p", wire.AttachChild{Child: "c"})
	require.NoError(t, err)
	second, _ := d.meta.Topic("c")
	require.NotEqual(t, first.AttachEpoch, second.AttachEpoch, "an attach has an epoch of its own")
}

func TestListPages(t *testing.T) {
	d := newDesk(t)
	for i := range 25 {
		d.create(wire.CreateTopic{Name: fmt.Sprintf("t%02d", i)})
	}
	even := func(v wire.Topic) bool { return (v.Name[2]-'0')%2 == 0 }
	var names []string
	token, pages := "", 0
	for {
		page, err := d.List(t.Context(), 5, token, even)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Topics), 5)
		for _, v := range page.Topics {
			names = append(names, v.Name)
		}
		pages++
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	require.Equal(t, 3, pages)
	require.Len(t, names, 13)
	require.IsIncreasing(t, names)
	all, err := d.List(t.Context(), 5000, "", nil)
	require.NoError(t, err)
	require.Len(t, all.Topics, 25)
	_, err = d.List(t.Context(), 0, "", nil)
	d.refused(wire.Invalid, err)
	for _, bad := range []string{"!", "Lw"} {
		_, err = d.List(t.Context(), 5, bad, nil)
		d.refused(wire.Invalid, err)
	}
	empty, err := newDesk(t).List(t.Context(), 5, "", nil)
	require.NoError(t, err)
	require.NotNil(t, empty.Topics)
}

func TestDescribeWaitsTwoSecondsForAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, "n1", "n2")
		d.create(wire.CreateTopic{Name: "t", Partitions: 4})
		d.down["n2"] = true
		start := time.Now()
		got, err := d.Get(t.Context(), "t", nil)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.True(t, got.Partial)
		for _, s := range got.PartitionStats {
			if s.OwnerNode == "n2" {
				require.Equal(t, OwnerUnavailable, s.Status)
				require.Equal(t, "unreachable", s.OwnerLiveness)
				continue
			}
			require.Equal(t, StatusOK, s.Status)
			require.Equal(t, int64(10*s.Index+1), s.HighWatermark)
		}
		one, err := d.Get(t.Context(), "t", ptr(3))
		require.NoError(t, err)
		require.Len(t, one.PartitionStats, 1)
		require.Equal(t, 3, one.PartitionStats[0].Index)
		_, err = d.Get(t.Context(), "t", ptr(4))
		d.refused(wire.Invalid, err)
	})
}
