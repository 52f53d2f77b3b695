package fanout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/partition"
	"narad.example/narad/slots"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

func inBubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

// covers: CUR-02, CUR-06, SND-03
func TestACursorShipsSlabsInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(2), link(2, 3, 0))
		g.commit(orders(2), 0, 2500)
		g.commit(orders(2), 1, 10)
		g.start()
		defer g.end()
		synctest.Wait()
		require.Equal(t, numbers(3, 2500), g.target.got("copy", 0))
		require.Equal(t, numbers(0, 10), g.target.got("copy", 1))
		for _, s := range g.target.shipments() {
			require.LessOrEqual(t, s.next-s.from, int64(2*laneRecords))
		}
		g.commit(orders(2), 1, 5)
		time.Sleep(linger)
		synctest.Wait()
		require.Equal(t, numbers(0, 15), g.target.got("copy", 1))
		require.EqualValues(t, 2497+15, g.counts.shipped)
	})
}

// covers: CUR-06, CUR-09
func TestOutcomesMoveTheCursorOnlyWhenCommitted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 1200)
		outcomes := []Outcome{Committed, ReadAgain, Stopped, ReadAgain, Committed, Committed}
		call := 0
		g.target.script(func(context.Context, *fakeSink, *Slab) Outcome {
			call++
			return outcomes[min(call, len(outcomes))-1]
		})
		g.start()
		defer g.end()
		time.Sleep(time.Minute)
		require.Equal(t, numbers(0, 1200), g.target.got("copy", 0))
		froms := []int64{}
		for _, s := range g.target.shipments() {
			froms = append(froms, s.from)
		}
		require.Equal(t, []int64{0, 500, 500, 500, 500, 1000}, froms)
		require.EqualValues(t, 2, g.counts.reread)
	})
}

// covers: GAT-04
func TestNoReadWhileTheGateIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		open := make(chan struct{})
		g.target.wait = g.target.waitAfter(0, open)
		g.commit(orders(1), 0, 10)
		g.start()
		defer g.end()
		g.files.FailNext(vfs.OpRead, errors.New("a read that must not happen"), ".log")
		time.Sleep(time.Hour)
		require.Empty(t, g.target.shipments())
		require.Equal(t, 1, g.files.Unused(), "no read happened")
	})
}

// covers: CUR-12
func TestAGracefulStopKeepsPositionAndMarks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(2))
		g.commit(orders(1), 0, 3000)
		g.target.script(func(ctx context.Context, s *fakeSink, slab *Slab) Outcome {
			if slab.Records[0].Offset < 2000 {
				return Committed
			}
			s.set(func(s *fakeSink) { s.marks = []int64{2100, -1} })
			select {
			case <-s.closing: // the request on the wire ends two seconds later
				time.Sleep(2 * time.Second)
				s.set(func(s *fakeSink) { s.marks[1] = 2051 })
			case <-ctx.Done():
				t.Error("cut although the sink was closing")
			}
			return Stopped
		})
		g.start()
		synctest.Wait()
		g.stop()
		_, p, v, err := openPosition(g.files, g.cursorFile(orders(1), 0, "copy"))
		require.NoError(t, err)
		require.Equal(t, slots.Whole, v)
		require.Equal(t, position{epoch: epoch1, next: 2000, marks: []int64{2100, 2051}}, p)
		require.Empty(t, g.runner.All())

		g.target.script(nil)
		g.reopen()
		synctest.Wait()
		require.Equal(t, []int64{2100, 2051}, g.target.opened[1])
		require.Equal(t, numbers(0, 3000), g.target.got("copy", 0))
		g.stop()
		_, p, _, err = openPosition(g.files, g.cursorFile(orders(1), 0, "copy"))
		require.NoError(t, err)
		require.Equal(t, position{epoch: epoch1, next: 3000}, p, "no mark of a slab that is done")
		_ = g.store.Close()
	})
}

func TestAStopBeforeTheFirstRecordKeepsTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1, 0))
		g.start()
		synctest.Wait()
		g.stop()
		p, v := g.verdict("copy")
		require.NotEqual(t, slots.Missing, v)
		require.Equal(t, position{epoch: epoch1}, p)
		g.end()
	})
}

func TestASinkThatDoesNotEndIsCutAfterFiveSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 10)
		g.target.script(func(ctx context.Context, _ *fakeSink, _ *Slab) Outcome {
			<-ctx.Done()
			return Stopped
		})
		g.start()
		defer g.end()
		synctest.Wait()
		before := time.Now()
		g.stop()
		require.LessOrEqual(t, time.Since(before), closeWait)
	})
}

// covers: CUR-16
func TestAPositionAboveTheHighWatermarkIsSetBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(2))
		g.commit(orders(1), 0, 10)
		f, _, _, err := openPosition(g.files, g.cursorFile(orders(1), 0, "copy"))
		require.NoError(t, err)
		require.NoError(t, storePosition(f, position{epoch: epoch1, next: 40, marks: []int64{45, 41}}))
		require.NoError(t, f.Close())
		g.start()
		defer g.end()
		synctest.Wait()
		require.Contains(t, g.log.String(), "level=ERROR")
		require.Contains(t, g.log.String(), "set back")
		require.Equal(t, [][]int64{nil}, g.target.opened)
		g.commit(orders(1), 0, 5)
		synctest.Wait()
		require.Equal(t, numbers(10, 15), g.target.got("copy", 0))
	})
}

// covers: CUR-16
func TestMarksAboveTheHighWatermarkAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(3))
		g.commit(orders(1), 0, 10)
		f, _, _, err := openPosition(g.files, g.cursorFile(orders(1), 0, "copy"))
		require.NoError(t, err)
		require.NoError(t, storePosition(f, position{epoch: epoch1, next: 4, marks: []int64{10, 9, 3}}))
		require.NoError(t, f.Close())
		g.start()
		defer g.end()
		synctest.Wait()
		require.Equal(t, [][]int64{{-1, 9, -1}}, g.target.opened)
	})
}

// covers: CUR-03, CUR-04
func TestAFileOfAnotherEpochIsNotResumed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		child := link(1, 2)
		child.AttachEpoch = epoch2
		g := newRig(t, orders(1), child)
		g.commit(orders(1), 0, 10)
		f, _, _, err := openPosition(g.files, g.cursorFile(orders(1), 0, "copy"))
		require.NoError(t, err)
		require.NoError(t, storePosition(f, position{epoch: epoch1, next: 7, marks: []int64{8}}))
		require.NoError(t, f.Close())
		g.start()
		defer g.end()
		synctest.Wait()
		require.Equal(t, numbers(2, 10), g.target.got("copy", 0))
		require.Equal(t, [][]int64{nil}, g.target.opened)
	})
}

// covers: CUR-14, CUR-03
func TestALostCursorFileReplaysFromAttachPointOrOldest(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage []byte
		attach int64
		oldest bool
	}{
		{"damaged, attach point", make([]byte, 1024), 5, false},
		{"empty, attach point", nil, 5, false},
		{"damaged, oldest", []byte("NSL1 and nothing else"), 5, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g := newRig(t, orders(1), link(1, c.attach))
				from := int(c.attach)
				g.commit(orders(1), 0, 3000)
				if c.oldest {
					from = int(g.retain(0))
					require.Greater(t, from, 5)
				}
				require.NoError(t, vfs.WriteFile(g.files, g.cursorFile(orders(1), 0, "copy"), c.damage, 0o600))
				g.start()
				defer g.end()
				synctest.Wait()
				require.Equal(t, numbers(from, int(g.partition(orders(1).ID, 0).HighWatermark())), g.target.got("copy", 0))
				require.Contains(t, g.log.String(), "the cursor file is damaged")
				require.Zero(t, g.counts.dropped)
			})
		})
	}
}

// retain lets retention take the oldest segments and returns the oldest offset then.
func (g *rig) retain(p int) int64 {
	part := g.partition(orders(1).ID, p)
	time.Sleep(2 * time.Hour)
	g.commit(orders(1), p, 300)
	_, err := part.Retain(time.Hour)
	require.NoError(g.t, err)
	return part.Oldest()
}

// covers: CUR-10
func TestDropBehindIsCountedAndLogged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 3000)
		down, stored := true, int64(-1)
		g.target.script(func(_ context.Context, _ *fakeSink, slab *Slab) Outcome {
			if down && slab.Next > 500 {
				return ReadAgain
			}
			if !down && stored < 0 {
				p, _ := g.verdict("copy")
				stored = p.next
			}
			return Committed
		})
		gate := make(chan struct{})
		g.target.wait = g.target.waitAfter(2, gate)
		g.start()
		defer g.end()
		synctest.Wait()
		oldest := g.retain(0)
		require.Greater(t, oldest, int64(500))
		stats := g.runner.Stats("copy")
		require.Zero(t, stats[0].Headroom(time.Now(), 1000), "DEC-43")
		require.Zero(t, g.counts.dropped)
		down = false
		close(gate)
		synctest.Wait()
		hw := int(g.partition(orders(1).ID, 0).HighWatermark())
		require.Equal(t, append(numbers(0, 500), numbers(int(oldest), hw)...), g.target.got("copy", 0))
		require.Equal(t, oldest-500, g.counts.dropped)
		require.Equal(t, oldest, stored, "the drop is durable before anything else ships: it is counted once")
		line := fmt.Sprintf("from=500 to=%d records=%d", oldest-1, oldest-500)
		require.Equal(t, 1, strings.Count(g.log.String(), line), g.log.String())
		for _, part := range []string{"level=ERROR", "parent=orders", "partition=0", "child=copy", "remote=east"} {
			require.Contains(t, g.log.String(), part)
		}
		g.stop()
		_, p, _, err := openPosition(g.files, g.cursorFile(orders(1), 0, "copy"))
		require.NoError(t, err)
		require.EqualValues(t, hw, p.next)
	})
}

// covers: CUR-10
func TestADropInsideAPartlySentSlabCountsOnlyTheUnsent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const lanes = 2
		g := newRig(t, orders(1), link(lanes))
		g.commit(orders(1), 0, 900)
		var sent [lanes]int64
		gate, calls := make(chan struct{}), 0
		g.target.script(func(_ context.Context, s *fakeSink, slab *Slab) Outcome {
			if calls++; calls > 1 {
				return Committed
			}
			for i := range slab.Records { // lane 0 is done up to 700, lane 1 nothing
				if r := &slab.Records[i]; laneOf(r, lanes) == 0 && r.Offset <= 700 {
					sent[0]++
				}
			}
			s.set(func(s *fakeSink) { s.marks = []int64{700, -1} })
			return ReadAgain
		})
		g.target.wait = g.target.waitAfter(1, gate)
		g.start()
		defer g.end()
		synctest.Wait()
		oldest := g.retain(0)
		require.Greater(t, oldest, int64(701))
		close(gate)
		synctest.Wait()
		require.Positive(t, sent[0])
		require.Equal(t, oldest-sent[0], g.counts.dropped)
	})
}

// covers: CUR-11
func TestTheDelayGate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		child := link(1)
		child.FanoutDelayMS = (10 * time.Minute).Milliseconds()
		g := newRig(t, orders(1), child)
		g.start()
		defer g.end()
		began := time.Now()
		g.commit(orders(1), 0, 3)
		time.Sleep(5 * time.Minute)
		g.commit(orders(1), 0, 4)
		time.Sleep(10*time.Minute + time.Second)
		ships := g.target.shipments()
		require.Len(t, ships, 2)
		require.Equal(t, []int64{0, 3, 3, 7}, []int64{ships[0].from, ships[0].next, ships[1].from, ships[1].next})
		for i, due := range []time.Duration{10 * time.Minute, 15 * time.Minute} {
			require.GreaterOrEqual(t, ships[i].at.Sub(began), due)
			require.Less(t, ships[i].at.Sub(began), due+time.Second)
		}
	})
}

// Due times follow the owner's wall clock, and a step of it is noticed within half a minute (DEC-40); no age is negative (DEC-15).
// covers: CUR-11, LST-04
func TestTheWallClockIsStepped(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		child := link(1)
		child.FanoutDelayMS = time.Hour.Milliseconds()
		g := newRig(t, orders(1), child)
		var step atomic.Int64
		g.opts.Now = func() time.Time { return time.Now().Round(0).Add(time.Duration(step.Load())) }
		g.start()
		defer g.end()
		g.commit(orders(1), 0, 3)
		age := func() float64 {
			all, err := g.listing("orders")
			require.NoError(t, err)
			return all.Children[0].LagSeconds
		}
		time.Sleep(time.Minute)
		require.InDelta(t, 60, age(), 1)
		step.Store(int64(-2 * time.Hour))
		require.Zero(t, age())
		time.Sleep(90 * time.Minute)
		require.Empty(t, g.target.shipments(), "for a clock that is behind nothing is due")
		step.Store(int64(25 * time.Hour))
		time.Sleep(maxDelaySleep + time.Second)
		require.Equal(t, numbers(0, 3), g.target.got("copy", 0))
		require.Zero(t, age())
	})
}

// covers: CUR-08
func TestNeverMoreThanTwoSlabsAheadOfTheDurablePosition(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 3000)
		g.files.SetSyncDelay(time.Minute)
		g.start()
		defer g.end()
		time.Sleep(time.Second)
		require.Len(t, g.target.shipments(), 2, "the second ships during the sync of the first, the third waits for it")
		time.Sleep(time.Minute)
		require.Len(t, g.target.shipments(), 3)
		g.files.SetSyncDelay(0)
		time.Sleep(time.Hour)
		require.Equal(t, numbers(0, 3000), g.target.got("copy", 0))
	})
}

// BR-38 C in the small.
// covers: CUR-03, CUR-09
func TestACursorFileThatCannotBeWrittenStopsTheCursor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 3000)
		for range 2 {
			g.files.FailNext(vfs.OpSync, errors.New("disk"), "fanout-copy")
		}
		g.start()
		defer g.end()
		synctest.Wait()
		require.Len(t, g.target.shipments(), 2)
		require.Equal(t, wire.UnknownState, g.runner.Stats("copy")[0].State)
		time.Sleep(faultRetry + time.Second)
		require.Len(t, g.target.shipments(), 2, "the second write failed too")
		require.Equal(t, 1, strings.Count(g.log.String(), "the cursor file cannot be written"))
		time.Sleep(faultRetry)
		require.Equal(t, numbers(0, 3000), g.target.got("copy", 0))
		require.Equal(t, wire.Running, g.runner.Stats("copy")[0].State)
	})
}

func TestALogThatCannotBeReadStopsTheCursor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 10)
		g.files.FailNext(vfs.OpRead, errors.New("disk"), ".log")
		g.start()
		defer g.end()
		synctest.Wait()
		require.Empty(t, g.target.shipments())
		require.Equal(t, 1, strings.Count(g.log.String(), "the parent's log cannot be read"))
		require.EqualValues(t, 0, g.counts.dropped)
		time.Sleep(faultRetry + time.Second)
		require.Equal(t, numbers(0, 10), g.target.got("copy", 0))
	})
}

// covers: GAT-09
func TestASlabReadAheadIsNotKeptWhileNothingShips(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1))
		g.commit(orders(1), 0, 1500)
		defer func() { require.NoError(t, g.store.Close()) }()
		pool := &sync.Pool{New: func() any { return new(partition.Slab) }}
		s := &source{part: g.partition(orders(1).ID, 0), pool: pool, lanes: 1, bounds: bounds{records: 500, bytes: laneBytes}}
		s.startAhead(500)
		slab := s.takeAhead()
		require.EqualValues(t, 1000, slab.Next)
		slab.Release()
		require.Nil(t, slab.Records)
		require.Nil(t, slab.mem)
		s.startAhead(500)
		time.Sleep(keepAhead + time.Millisecond)
		s.readers.Wait()
		require.Nil(t, s.takeAhead())
		got, err := s.take(500)
		require.NoError(t, err)
		require.EqualValues(t, 1000, got.Next)
	})
}
