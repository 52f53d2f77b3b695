package fanout

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/vfs"
)

// covers: CUR-08, CUR-09, CUR-14
func TestKillsAtAnyPointShipEachRecordAndRepeatTwoSlabsAtMost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		lives := rapid.IntRange(1, 4).Draw(rt, "lives")
		power := rapid.Bool().Draw(rt, "power loss")
		synctest.Test(t, func(t *testing.T) { kills(t, rand.New(rand.NewPCG(seed, 2)), lives, power) })
	})
}

func kills(t *testing.T, random *rand.Rand, lives int, power bool) {
	g := newRig(t, orders(1), link(1))
	var dead atomic.Bool
	took := make(chan time.Duration, 1)
	g.target.script(func(context.Context, *fakeSink, *Slab) Outcome {
		time.Sleep(<-took)
		if dead.Load() {
			return Stopped
		}
		return Committed
	})
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case took <- time.Duration(random.IntN(30)) * time.Millisecond:
			case <-done:
				return
			}
		}
	}()
	var starts []int // index of the first shipment of each life
	total := 0
	for life := range lives + 1 {
		starts = append(starts, len(g.target.shipments()))
		if life == 0 {
			g.start()
		} else {
			g.reopen()
		}
		for range 1 + life%2 {
			n := 1 + total%3000
			g.commit(orders(1), 0, n)
			total += n
		}
		if life == lives {
			time.Sleep(time.Hour)
			g.end()
			break
		}
		g.files.SetSyncDelay(time.Duration(life) * 7 * time.Millisecond)
		time.Sleep(time.Duration((total*7919)%150) * time.Millisecond)
		dead.Store(true)
		g.files.Freeze()
		g.stop()
		g.files.SetSyncDelay(0)
		if power {
			g.files.DropUnsynced()
		}
		g.files.Thaw()
		dead.Store(false)
	}
	require.Zero(t, g.counts.dropped)
	next := int64(0)
	ships := g.target.shipments()
	for life, from := range starts {
		to := len(ships)
		if life+1 < len(starts) {
			to = starts[life+1]
		}
		first := true
		for _, s := range ships[from:to] {
			if s.outcome != Committed {
				continue
			}
			require.LessOrEqual(t, s.from, next, "a gap")
			if first {
				require.LessOrEqual(t, slabsAbove(ships[:from], s.from), 2, "life %d repeats more than two slabs", life)
			} else {
				require.Equal(t, next, s.from, "within a life nothing is repeated")
			}
			first, next = false, s.next
		}
	}
	require.EqualValues(t, total, next)
}

// slabsAbove counts the slabs of the life before that the new life, which begins at from, sends again.
func slabsAbove(before []shipment, from int64) int {
	n := 0
	for i := len(before) - 1; i >= 0; i-- {
		if before[i].outcome != Committed {
			continue
		}
		if before[i].next <= from {
			break
		}
		n++
	}
	return n
}

// covers: BRK-10, BRK-04
func TestALocalChildSurvivesKills(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		naps := rapid.SliceOfN(rapid.IntRange(0, 60), 1, 4).Draw(rt, "naps")
		synctest.Test(t, func(t *testing.T) {
			child := local(3)
			g := newRig(t, orders(2), child)
			g.start()
			for _, nap := range naps {
				g.files.SetSyncDelay(3 * time.Millisecond)
				g.commit(orders(2), 0, 200)
				g.commit(orders(2), 1, 30)
				time.Sleep(time.Duration(nap) * time.Millisecond)
				g.files.Freeze()
				g.stop()
				g.files.SetSyncDelay(0)
				g.files.DropUnsynced()
				g.files.Thaw()
				g.reopen()
			}
			time.Sleep(time.Minute)
			seen := map[string]int{}
			for p := range 3 {
				for _, r := range g.read(child.ID, p) {
					seen[string(r.Key)+"="+string(r.Payload)]++
				}
			}
			for p, n := range map[int]int{0: 200, 1: 30} {
				for _, r := range g.read(orders(2).ID, p) {
					require.Positive(t, seen[string(r.Key)+"="+string(r.Payload)])
				}
				require.Len(t, g.read(orders(2).ID, p), n*len(naps))
			}
			g.end()
		})
	})
}

// covers: CUR-07
func TestMarksOfAStoppedCursorTravelWithTheFile(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(4))
		g.commit(orders(1), 0, 100)
		sent := map[int64]int{}
		half := func(_ context.Context, s *fakeSink, slab *Slab) Outcome {
			marks := noMarks(4)
			for i := range slab.Records {
				r := &slab.Records[i]
				if lane := laneOf(r, 4); r.Offset < 60 {
					sent[r.Offset]++
					marks[lane] = r.Offset
				}
			}
			s.set(func(s *fakeSink) { s.marks = marks })
			<-s.closing
			return Stopped
		}
		g.target.script(half)
		g.start()
		synctest.Wait()
		g.stop()
		opened := len(g.target.opened)
		g.target.script(func(_ context.Context, _ *fakeSink, slab *Slab) Outcome {
			marks := g.target.opened[opened]
			for i := range slab.Records {
				if r := &slab.Records[i]; r.Offset > marks[laneOf(r, 4)] {
					sent[r.Offset]++
				}
			}
			return Committed
		})
		g.reopen()
		synctest.Wait()
		for offset := range int64(100) {
			require.Equal(t, 1, sent[offset], "offset %d", offset)
		}
		g.end()
	})
}

// BenchmarkShip is the cursor's own cost on a real disk: read, ship to nothing, write the cursor file.
func BenchmarkShip(b *testing.B) {
	dir := b.TempDir()
	store := partition.NewStore(partition.StoreOptions{Dir: dir})
	part, err := store.Open(orders(1).ID, 0)
	require.NoError(b, err)
	recs := make([]partition.Record, 1000)
	for i := range recs {
		recs[i] = partition.Record{Key: []byte("k" + strconv.Itoa(i)), Payload: make([]byte, 1024)}
	}
	for range 50 {
		_, err = part.Commit(b.Context(), recs)
		require.NoError(b, err)
	}
	b.ResetTimer()
	for n := range b.N {
		child := link(1)
		child.Name, child.AttachEpoch = fmt.Sprintf("copy%d", n), fmt.Sprintf("e%d", n)
		target := &fakeTarget{}
		end := make(chan struct{})
		target.script(func(_ context.Context, _ *fakeSink, slab *Slab) Outcome {
			if slab.Next == 50_000 {
				close(end)
			}
			return Committed
		})
		r := NewRunner(RunnerOptions{
			Meta: newMeta(orders(1), child), NodeID: self, FS: vfs.OS(), Store: store,
			OpenRemote: func(c meta.Topic, p int, marks []int64) (Sink, error) { return target.open(c, p, marks) },
		})
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		<-end
		cancel()
		require.NoError(b, <-done)
	}
	b.ReportMetric(float64(50_000*b.N)/b.Elapsed().Seconds(), "records/s")
	require.NoError(b, store.Close())
}
