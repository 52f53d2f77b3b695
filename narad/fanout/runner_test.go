package fanout

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/slots"
)

// verdict reads what stands in a cursor file.
func (g *rig) verdict(child string) (position, slots.Verdict) {
	_, p, v, err := openPosition(g.files, g.cursorFile(orders(1), 0, child))
	require.NoError(g.t, err)
	return p, v
}

// covers: CUR-04
func TestANewEpochWaitsForTheEndOfTheOld(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 10)
		var wire atomic.Int64 // requests of the old epoch on the wire
		g.target.script(func(_ context.Context, s *fakeSink, _ *Slab) Outcome {
			wire.Add(1)
			<-s.closing
			time.Sleep(3 * time.Second)
			wire.Add(-1)
			return Stopped
		})
		g.start()
		defer g.end()
		synctest.Wait()
		g.target.script(func(context.Context, *fakeSink, *Slab) Outcome {
			if wire.Load() != 0 {
				t.Error("two epochs ship at once")
			}
			return Committed
		})
		again := link(1, 4)
		again.AttachEpoch = epoch2
		g.meta.put(again)
		time.Sleep(time.Second)
		require.EqualValues(t, 1, wire.Load())
		require.Empty(t, g.runner.Stats("copy"))
		time.Sleep(5 * time.Second)
		require.Equal(t, numbers(4, 10), g.target.got("copy", 0))
		require.Equal(t, epoch2, g.runner.Stats("copy")[0].Epoch)
	})
}

// covers: CUR-02
func TestADetachRemovesTheFileAMoveDoesNot(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 10)
		g.start()
		defer g.end()
		synctest.Wait()
		away := orders(1)
		away.Nodes = []string{"n2"}
		g.meta.put(away)
		time.Sleep(time.Minute)
		require.Empty(t, g.runner.All(), "the owner is another node") // CUR-13
		p, v := g.verdict("copy")
		require.NotEqual(t, slots.Missing, v)
		require.EqualValues(t, 10, p.next)

		g.meta.put(orders(1))
		g.commit(orders(1), 0, 5)
		synctest.Wait()
		require.Equal(t, numbers(0, 15), g.target.got("copy", 0), "resumed from the file")
		g.meta.remove("copy")
		synctest.Wait()
		require.Empty(t, g.runner.All())
		_, v = g.verdict("copy")
		require.Equal(t, slots.Missing, v)
	})
}

// covers: CUR-13
func TestAStoppedCursorIsInNoReport(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(2), link(1))
		g.start()
		defer g.end()
		synctest.Wait()
		require.Len(t, g.runner.All(), 2)
		away := orders(2)
		away.Nodes[1] = "n2"
		g.meta.put(away)
		synctest.Wait()
		all := g.runner.All()
		require.Len(t, all, 1)
		require.Equal(t, 0, all[0].Partition)
	})
}

// covers: CUR-12
func TestAHoldStopsAndAReleaseStartsAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(2), link(1))
		g.commit(orders(2), 0, 10)
		g.start()
		defer g.end()
		synctest.Wait()
		require.NoError(t, g.runner.Hold(t.Context(), orders(2).ID, 0))
		require.Len(t, g.runner.All(), 1)
		p, _ := g.verdict("copy")
		require.EqualValues(t, 10, p.next, "durable when Hold returns")
		g.commit(orders(2), 0, 5)
		g.meta.put(link(1)) // any change
		time.Sleep(time.Minute)
		require.Len(t, g.target.got("copy", 0), 10)
		g.runner.Release(orders(2).ID, 0)
		synctest.Wait()
		require.Equal(t, numbers(0, 15), g.target.got("copy", 0))
	})
}

type leader struct {
	err  atomic.Bool
	no   atomic.Bool
	asks atomic.Int64
}

func (l *leader) Confirm(context.Context, string, int, string, string) (bool, error) {
	l.asks.Add(1)
	if l.err.Load() {
		return false, errors.New("no leader")
	}
	return !l.no.Load(), nil
}

// covers: CUR-15, CUR-17
func TestACursorStartsOnlyOnceTheLeaderConfirmsIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		l := &leader{}
		l.err.Store(true)
		g.opts.Confirm = l
		g.commit(orders(1), 0, 10)
		g.start()
		defer g.end()
		time.Sleep(10 * time.Second)
		require.Empty(t, g.target.shipments())
		l.no.Store(true)
		l.err.Store(false)
		time.Sleep(10 * time.Second)
		require.Empty(t, g.target.shipments())
		l.no.Store(false)
		time.Sleep(2 * confirmRetry)
		require.Equal(t, numbers(0, 10), g.target.got("copy", 0))
		l.err.Store(true)
		g.commit(orders(1), 0, 5)
		synctest.Wait()
		require.Equal(t, numbers(0, 15), g.target.got("copy", 0), "a running cursor goes on without a leader")
	})
}

// covers: BRK-10, CUR-02
func TestLocalChildrenWithRealMetadata(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t)
		state := meta.NewState()
		g.opts.Meta = state
		g.start()
		defer g.end()
		index := uint64(0)
		apply := func(e meta.Entry) {
			index++
			require.NoError(t, state.Apply(index, e))
		}
		same, fewer := local(2), local(3)
		same.Parent, fewer.Parent, fewer.Name, fewer.ID = "", "", "fewer", "dddddddddddddddd"
		same.Nodes, fewer.Nodes = []string{self, self}, []string{self, self, self}
		apply(meta.CreateTopic{Topic: orders(2)})
		apply(meta.CreateTopic{Topic: same})
		apply(meta.CreateTopic{Topic: fewer})
		g.commit(orders(2), 0, 100) // before the attach
		apply(meta.AttachChild{Parent: "orders", ParentID: orders(2).ID, Child: "audit", ChildID: same.ID, Epoch: epoch1, Offsets: []int64{100, 0}})
		apply(meta.AttachChild{Parent: "orders", ParentID: orders(2).ID, Child: "fewer", ChildID: fewer.ID, Epoch: epoch2, Offsets: []int64{0, 0}})
		g.commit(orders(2), 0, 5000)
		part := g.partition(orders(2).ID, 1)
		for i := range 50 {
			_, err := part.Commit(t.Context(), []partition.Record{{Payload: fmt.Appendf(nil, "keyless %d", i)}})
			require.NoError(t, err)
		}
		time.Sleep(time.Second)
		got := map[int][]partition.Record{}
		total := 0
		for p := range 2 {
			for _, r := range g.read(same.ID, p) {
				if len(r.Key) == 0 {
					require.Equal(t, 1, p, "a keyless record keeps its partition")
				} else {
					require.Equal(t, partition.ForKey(r.Key, 2), p)
				}
				got[p] = append(got[p], r)
				total++
			}
		}
		require.Equal(t, 5050, total)
		inOrder(t, got)
		total = 0
		for p := range 3 {
			for _, r := range g.read(fewer.ID, p) {
				if len(r.Key) > 0 {
					require.Equal(t, partition.ForKey(r.Key, 3), p)
				}
				total++
			}
		}
		require.Equal(t, 5150, total)
		apply(meta.DetachChild{Parent: "orders", Child: "audit", Epoch: epoch1})
		synctest.Wait()
		require.Empty(t, g.runner.Stats("audit"))
		_, v := g.verdict("audit")
		require.Equal(t, slots.Missing, v)
		require.Len(t, g.runner.Stats("fewer"), 2)
	})
}

// inOrder checks that the numbers of each key go up.
func inOrder(t *testing.T, byPartition map[int][]partition.Record) {
	for _, recs := range byPartition {
		last := map[string]int{}
		for _, r := range recs {
			if len(r.Key) == 0 {
				continue
			}
			var n int
			_, err := fmt.Sscanf(string(r.Payload), "%d", &n)
			require.NoError(t, err)
			require.Greater(t, n, last[string(r.Key)])
			last[string(r.Key)] = n
		}
	}
}

// read returns copies of all records of a partition.
func (g *rig) read(topicID string, p int) []partition.Record {
	part := g.partition(topicID, p)
	var out []partition.Record
	for next := part.Oldest(); next < part.HighWatermark(); {
		var s partition.Slab
		require.NoError(g.t, part.Read(next, 1000, 1<<20, &s))
		out = append(out, s.Records...)
		next = s.Next
	}
	return out
}

// flakyCommits refuses some commits to one partition.
type flakyCommits struct {
	Committer
	partition int
	failures  atomic.Int64
	calls     [8]atomic.Int64
}

func (f *flakyCommits) Commit(ctx context.Context, topicID string, p int, recs []partition.Record) error {
	f.calls[p].Add(1)
	if p == f.partition && f.failures.Add(-1) >= 0 {
		return errors.New("down")
	}
	return f.Committer.Commit(ctx, topicID, p, recs)
}

// covers: BRK-10
func TestAFailedBucketIsRetriedAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), local(4))
		g.commit(orders(1), 0, 100)
		flaky := &flakyCommits{Committer: g.opts.Commit, partition: partition.ForKey([]byte("k1"), 4)}
		flaky.failures.Store(5)
		g.opts.Commit = flaky
		g.start()
		defer g.end()
		time.Sleep(100 * time.Millisecond)
		require.Zero(t, g.runner.Stats("audit")[0].Next, "commit before advance")
		time.Sleep(time.Minute)
		total := 0
		for p := range 4 {
			total += len(g.read(local(4).ID, p))
			if p != flaky.partition {
				require.LessOrEqual(t, flaky.calls[p].Load(), int64(1))
			}
		}
		require.Equal(t, 100, total)
		require.EqualValues(t, 6, flaky.calls[flaky.partition].Load())
		require.EqualValues(t, 100, g.runner.Stats("audit")[0].Next)
	})
}

// covers: BRK-10
func TestAStopInsideAFailedBucketDoesNotAdvance(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), local(4))
		g.commit(orders(1), 0, 100)
		flaky := &flakyCommits{Committer: g.opts.Commit, partition: partition.ForKey([]byte("k1"), 4)}
		flaky.failures.Store(1 << 40)
		g.opts.Commit = flaky
		g.start()
		time.Sleep(time.Second)
		g.stop()
		p, _ := g.verdict("audit")
		require.Zero(t, p.next)
		flaky.failures.Store(0)
		g.reopen()
		defer g.end()
		synctest.Wait()
		require.NotEmpty(t, g.read(local(4).ID, flaky.partition))
		require.EqualValues(t, 100, g.runner.Stats("audit")[0].Next)
	})
}

// covers: BRK-10, CUR-11
func TestALocalDelayChild(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		child := local(1)
		child.FanoutDelayMS = 60_000
		g := newRig(t, orders(1), child)
		g.start()
		defer g.end()
		g.commit(orders(1), 0, 10)
		time.Sleep(59 * time.Second)
		require.Empty(t, g.read(child.ID, 0))
		time.Sleep(2 * time.Second)
		require.Len(t, g.read(child.ID, 0), 10)
	})
}

func TestLingerGathersASlab(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), local(1))
		g.start()
		defer g.end()
		synctest.Wait()
		for range 5 {
			g.commit(orders(1), 0, 1)
			time.Sleep(4 * time.Millisecond)
		}
		require.Empty(t, g.read(local(1).ID, 0))
		time.Sleep(25 * time.Millisecond)
		require.Len(t, g.read(local(1).ID, 0), 5)
		require.EqualValues(t, 5, g.counts.shipped)
	})
}
