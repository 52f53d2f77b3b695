package ingress

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

// covers: BRK-11, BRK-12
func TestProduceRefuses(t *testing.T) {
	strict := orders(3)
	strict.Schemas = []meta.Schema{{Body: []byte("true"), Sum: "x"}}
	state := newState(strict,
		meta.Topic{Name: "stub", ID: "b", Parent: "orders", Remote: &meta.RemoteLink{Remote: "east"}},
		meta.Topic{Name: "late", ID: "c", Partitions: 1, Parent: "orders", FanoutDelayMS: 1000},
		meta.Topic{Name: "child", ID: "d", Partitions: 1, Parent: "orders"})
	synctest.Test(t, func(t *testing.T) {
		o := options(vfs.NewMem(), state, newCommits())
		o.Validate = func(_ context.Context, topic meta.Topic, payload []byte) error {
			switch {
			case topic.Name != "orders":
				return errors.New("it has no schema")
			case string(payload) == "bad":
				return wire.Refuse(wire.Invalid, "schema: bad")
			case string(payload) == "later":
				return wire.Refuse(wire.Unavailable, "no schema validation slot").After(time.Second)
			}
			return nil
		}
		n := start(t, o)
		defer n.stop()
		good := []wire.NewRecord{plain("x")}
		for _, c := range []struct {
			name, topic, id string
			recs            []wire.NewRecord
			kind            wire.Kind
			text            string
		}{
			{"unknown topic", "none", "", good, wire.NotFound, "topic not found"},
			{"another incarnation", "orders", "other", good, wire.Precondition, "another incarnation"},
			{"stub", "stub", "", good, wire.Conflict, `remote child "stub" lives on remote east; consume it there`},
			{"delay child", "late", "", good, wire.Conflict, "delayed child topic is not allowed"},
			{"no messages", "orders", "", nil, wire.Invalid, "messages required"},
			{"empty payload", "orders", "", []wire.NewRecord{plain("x"), plain("")}, wire.Invalid, "message 1: "},
			{"partition range", "orders", "", []wire.NewRecord{plain("x"), pinned(3, "x")}, wire.Invalid, "message 1: "},
			{"no slot", "orders", "", []wire.NewRecord{plain("x"), plain("later")}, wire.Unavailable, "message 1: no schema validation slot"},
			{"schema before a later range", "orders", "", []wire.NewRecord{plain("bad"), pinned(3, "x")}, wire.Invalid, "message 0: schema: bad"},
		} {
			err := n.Produce(t.Context(), c.topic, c.id, c.recs)
			p, ok := errors.AsType[*wire.Problem](err)
			require.True(t, ok, c.name)
			require.Equal(t, c.kind, p.Kind, c.name)
			require.Contains(t, p.Text, c.text, c.name)
			require.Zero(t, n.log.Next(), c.name)
			require.Zero(t, n.BacklogTotal(), c.name)
		}
		require.NoError(t, n.Produce(t.Context(), "orders", orders(3).ID, good))
		require.NoError(t, n.Produce(t.Context(), "child", "", good))
	})
}

func TestProducePlacesRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := newCommits()
		n := start(t, options(vfs.NewMem(), newState(orders(3)), commits))
		defer n.stop()
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("0"), keyed("k", "key"), plain("1")}))
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("2"), plain("3")}))
		// partition wins over key
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{{Key: []byte("k"), Payload: []byte("pin"), Partition: 2}}))
		synctest.Wait()
		want := [3][]string{}
		for i := range 4 {
			want[i%3] = append(want[i%3], fmt.Sprintf("=%d", i))
		}
		at := partition.ForKey([]byte("k"), 3)
		want[at] = append(want[at], "k=key")
		want[2] = append(want[2], "k=pin")
		for p := range want {
			require.ElementsMatch(t, want[p], commits.of(orders(3).ID, p))
		}
	})
}

// covers: BRK-01
func TestProduceIsDurableWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, commits := vfs.NewMem(), newCommits()
		commits.refusing(func(string, int) error { return errors.New("down") })
		state := newState(orders(1))
		n := start(t, options(files, state, commits))
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("a"), plain("b")}))
		files.Freeze()
		n.stop()
		files.DropUnsynced()
		files.Thaw()
		commits.refusing(nil)
		again := start(t, options(files, state, commits))
		defer again.stop()
		synctest.Wait()
		require.Equal(t, []string{"=a", "=b"}, commits.of(orders(1).ID, 0))
	})
}

func TestProduceOfAFailedLogIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := vfs.NewMem()
		n := start(t, options(files, newState(orders(1)), newCommits()))
		defer n.stop()
		files.FailNext(vfs.OpSync, errors.New("disk"), ".log")
		require.Error(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("a")}))
		require.Zero(t, n.BacklogTotal())
		require.Error(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("b")}), "a failed log takes nothing")
	})
}

// A decommission closes the ingress at once and, called off, opens it.
//
// covers: BRK-07
func TestADecommissionClosesAndOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, options(vfs.NewMem(), newState(orders(1)), newCommits()))
		defer n.stop()
		n.Decommission(true)
		require.ErrorContains(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("a")}), "being decommissioned")
		require.Zero(t, n.BacklogTotal())
		n.Decommission(false)
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("b")}))
	})
}

func TestDrainRefusesAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := newCommits()
		commits.refusing(func(string, int) error { return errors.New("down") })
		n := start(t, options(vfs.NewMem(), newState(orders(1)), commits))
		defer n.stop()
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("a")}))
		require.EqualValues(t, 1, n.Backlog(orders(1).ID))
		done := make(chan error, 1)
		go func() { done <- n.Drain(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("drained with a backlog: %v", err)
		default:
		}
		err := n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("b")})
		p, ok := errors.AsType[*wire.Problem](err)
		require.True(t, ok)
		require.Equal(t, wire.Unavailable, p.Kind)
		require.Contains(t, p.Text, "being decommissioned and takes no new produce")
		commits.refusing(nil)
		require.NoError(t, <-done)
		require.Zero(t, n.BacklogTotal())
		n.Decommission(false)
		require.Error(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("c")}), "a node that stops takes nothing more")
	})
}
