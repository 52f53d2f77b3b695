package ingress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

// covers: BRK-02
func TestDispatchBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := newCommits()
		commits.took = 10 * time.Millisecond
		n := start(t, options(vfs.NewMem(), newState(orders(40)), commits))
		defer n.stop()
		payload := bytes.Repeat([]byte("x"), 1<<20)
		for range 15 {
			require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{{Payload: payload, Partition: 0}}))
		}
		for i := range 400 {
			require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain(fmt.Sprint(i))}))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NoError(t, commits.broken)
		require.Equal(t, MaxCommits, commits.most)
		require.Equal(t, maxCommitBytes, commits.biggest)
		require.Zero(t, n.BacklogTotal())
		for p := range 40 {
			var want []string
			for i := range 400 {
				if i%40 == p {
					want = append(want, fmt.Sprintf("=%d", i))
				}
			}
			got := commits.of(orders(40).ID, p)
			if p == 0 {
				got = got[15:]
			}
			require.Equal(t, want, got)
		}
	})
}

// covers: BRK-02
func TestAFailingDestinationIsRetriedAndHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := newCommits()
		commits.refusing(func(_ string, p int) error {
			if p == 0 {
				return errors.New("down")
			}
			return nil
		})
		n := start(t, options(vfs.NewMem(), newState(orders(2)), commits))
		defer n.stop()
		var want [2][]string
		big := bytes.Repeat([]byte("x"), 400<<10)
		for i := range 400 { // 160 MiB for partition 1, a little for the failing one
			small := fmt.Sprintf("%d", i)
			require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{
				pinned(0, small), {Payload: append([]byte(small), big...), Partition: 1},
			}))
			want[0] = append(want[0], "="+small)
			synctest.Wait()
		}
		require.Len(t, commits.of(orders(2).ID, 1), 400, "no wait for the failing one's next try")
		require.Empty(t, commits.of(orders(2).ID, 0))
		require.EqualValues(t, 400, n.Backlog(orders(2).ID))
		require.Less(t, n.memory(), int64(1<<20), "what waits pins only itself")
		commits.refusing(nil)
		time.Sleep(maxBackoff)
		synctest.Wait()
		require.Equal(t, want[0], commits.of(orders(2).ID, 0))
		require.Zero(t, n.BacklogTotal())
		require.Zero(t, n.memory())
		require.Zero(t, n.destinations())
	})
}

func TestReadingStopsWhenMemoryIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := newCommits()
		var down atomic.Bool
		down.Store(true)
		commits.refusing(func(string, int) error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		})
		n := start(t, options(vfs.NewMem(), newState(orders(1)), commits))
		defer n.stop()
		payload := bytes.Repeat([]byte("x"), 1<<20-100)
		for range 100 {
			require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{{Payload: payload, Partition: 0}}))
			synctest.Wait()
			require.LessOrEqual(t, n.memory(), int64(MaxMemory))
		}
		require.EqualValues(t, 100, n.BacklogTotal())
		down.Store(false)
		time.Sleep(time.Minute)
		require.Len(t, commits.of(orders(1).ID, 0), 100)
	})
}

type confirmer struct {
	gone atomic.Bool
	err  error
	asks atomic.Int64
}

func (c *confirmer) Gone(context.Context, string) (bool, error) {
	c.asks.Add(1)
	return c.gone.Load(), c.err
}

// covers: BRK-02, BRK-09
func TestRecordsOfAGoneTopicAreDroppedOnlyWhenConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits, state, leader, log := newCommits(), newState(orders(1)), &confirmer{}, &logged{}
		commits.refusing(func(id string, _ int) error {
			if id == orders(1).ID {
				return errors.New("unknown topic")
			}
			return nil
		})
		o := options(vfs.NewMem(), state, commits)
		o.Gone, o.Logger = leader, log.logger()
		n := start(t, o)
		defer n.stop()
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("old")}))
		again := orders(1)
		again.ID = "bbbbbbbbbbbbbbbb"
		state.put(again) // the name lives on as another incarnation
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("new")}))
		time.Sleep(10 * time.Second)
		require.Positive(t, leader.asks.Load())
		require.EqualValues(t, 1, n.Backlog(orders(1).ID), "not confirmed: kept")
		require.Equal(t, []string{"=new"}, commits.of(again.ID, 0))
		require.NotContains(t, log.String(), "dropped")
		leader.gone.Store(true)
		time.Sleep(10 * time.Second)
		require.Zero(t, n.BacklogTotal())
		require.Equal(t, []string{"=new"}, commits.of(again.ID, 0))
		require.Empty(t, commits.of(orders(1).ID, 0))
		require.Contains(t, log.String(), "records dropped, their topic was deleted")
		require.Contains(t, log.String(), "topic_id=aaaaaaaaaaaaaaaa")
	})
}

type router struct{ to int }

func (r router) Sibling(string, int) (int, bool) { return r.to, true }

// covers: BRK-02
func TestReroute(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		after time.Duration // the sibling has them by then and not before half of it
	}{
		{"an owner that fails", errors.New("down"), RerouteAfter + 2*maxBackoff},
		{"a dead owner", fmt.Errorf("commit: %w", ErrOwnerDead), time.Millisecond},
		{"a frozen partition", fmt.Errorf("commit: %w", ErrFrozen), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				commits := newCommits()
				commits.refusing(func(_ string, p int) error {
					if p == 0 {
						return c.err
					}
					return nil
				})
				o := options(vfs.NewMem(), newState(orders(2)), commits)
				o.Reroute = router{1}
				n := start(t, o)
				defer n.stop()
				key := keyOf(0, 2)
				require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{
					plain("a"), keyed(key, "b"), pinned(0, "c"), plain("d"), plain("e"),
				}))
				time.Sleep(c.after / 4)
				if c.after > time.Second {
					require.Equal(t, []string{"=d"}, commits.of(orders(2).ID, 1), "too early")
				}
				time.Sleep(c.after + time.Second)
				if c.after == 0 {
					time.Sleep(time.Minute)
					require.Equal(t, []string{"=d"}, commits.of(orders(2).ID, 1))
				} else {
					require.Equal(t, []string{"=d", "=a", "=e"}, commits.of(orders(2).ID, 1))
				}
				commits.refusing(nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				all := append(commits.of(orders(2).ID, 0), commits.of(orders(2).ID, 1)...)
				slices.Sort(all)
				require.Equal(t, []string{"=a", "=c", "=d", "=e", key + "=b"}, all)
				require.Zero(t, n.memory())
			})
		})
	}
}

func TestBacklogIsExactPerTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := meta.Topic{Name: "other", ID: "cccccccccccccccc", Partitions: 1}
		commits := newCommits()
		commits.refusing(func(string, int) error { return errors.New("down") })
		files, state := vfs.NewMem(), newState(orders(2), other)
		n := start(t, options(files, state, commits))
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("a"), plain("b"), plain("c")}))
		require.NoError(t, n.Produce(t.Context(), "other", "", []wire.NewRecord{plain("a")}))
		check := func(n *node, a, b int64) {
			synctest.Wait()
			require.Equal(t, a, n.Backlog(orders(2).ID))
			require.Equal(t, b, n.Backlog(other.ID))
			require.Equal(t, a+b, n.BacklogTotal())
		}
		check(n, 3, 1)
		n.stop()
		n = start(t, options(files, state, commits))
		defer n.stop()
		check(n, 3, 1)
		commits.refusing(func(id string, _ int) error {
			if id == other.ID {
				return errors.New("down")
			}
			return nil
		})
		time.Sleep(time.Minute)
		check(n, 0, 1)
	})
}

// A backlog of any size is known to the record without a read of the log, so that a check of it has nothing to bound: it ends at once, and
// any number of them may run.
//
// covers: UNS-03
func TestABacklogIsKnownWithoutAScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := newCommits()
		commits.refusing(func(string, int) error { return errors.New("down") })
		n := start(t, options(vfs.NewMem(), newState(orders(2)), commits))
		defer n.stop()
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("a"), plain("b")}))
		const more = 1_000_001
		n.backlog.recovered(orders(2).ID, more) // the log holds none of them
		defer n.backlog.leave(orders(2).ID, more)
		began := time.Now()
		for range 3 {
			require.EqualValues(t, more+2, n.Backlog(orders(2).ID))
		}
		require.Equal(t, began, time.Now())
	})
}

// The word of a frozen partition's owner ends a row of failures: what is refused so is not rerouted, whatever was met before.
//
// covers: BRK-02
func TestAFreezeEndsARowOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits, calls := newCommits(), 0
		commits.refusing(func(_ string, p int) error {
			switch {
			case p != 0:
				return nil
			case calls == 0:
				calls++
				return errors.New("down")
			}
			return ErrFrozen
		})
		o := options(vfs.NewMem(), newState(orders(2)), commits)
		o.Reroute = router{1}
		n := start(t, o)
		defer n.stop()
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("a")}))
		time.Sleep(time.Minute)
		require.Empty(t, commits.of(orders(2).ID, 1), "it waits for the freeze to end")
		commits.refusing(nil)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"=a"}, commits.of(orders(2).ID, 0))
	})
}
