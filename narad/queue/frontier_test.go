package queue

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

const frontierPath = "data/00aa/0/" + FileName

// covers: BRK-05
func TestAcksSurviveAKillAfter100ms(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 10)
		held := r.take(nil, 10)
		for _, i := range []int{0, 1, 3, 7} {
			r.ack(held[i])
		}
		time.Sleep(100 * time.Millisecond)
		r.crash(false)
		require.EqualValues(t, 2, r.m.Frontier("00aa", 0))
		require.Equal(t, []int64{2, 4, 5, 6, 8, 9}, offsetsOf(r.take(nil, 100)))
	})
}

// covers: BRK-05
func TestAcksSurviveAPowerLossAfter1s(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 10)
		held := r.take(nil, 10)
		r.ack(held[0])
		r.ack(held[2])
		time.Sleep(time.Second)
		r.ack(held[1])
		time.Sleep(time.Second)
		r.ack(held[4])
		time.Sleep(100 * time.Millisecond)
		r.crash(true)
		require.EqualValues(t, 3, r.m.Frontier("00aa", 0), "the last ack was not synced, the others were")
		require.Equal(t, []int64{3, 4, 5, 6, 7, 8, 9}, offsetsOf(r.take(nil, 100)))
	})
}

func TestASteadyStreamOfAcksIsSyncedToo(t *testing.T) {
	bubble(t, 1, Settings{MaxInFlight: 10_000}, func(r *rig) {
		r.put(0, 300)
		began := time.Now()
		var times []time.Duration
		for _, d := range r.take(nil, 300) {
			r.ack(d)
			times = append(times, time.Since(began))
			time.Sleep(10 * time.Millisecond)
		}
		end := time.Since(began)
		r.crash(true)
		frontier := r.m.Frontier("00aa", 0)
		for i, at := range times {
			if end-at >= time.Second {
				require.Greater(t, frontier, int64(i), "acked %v before the power loss", end-at)
			}
		}
	})
}

// A torn or lost frontier file means redelivery from the oldest record on, said in the log.
func TestATornFrontierFile(t *testing.T) {
	for name, harm := range map[string]func(f vfs.File) error{
		"both slots overwritten": func(f vfs.File) error { _, err := f.WriteAt(make([]byte, 2*slotBytes), 0); return err },
		"empty":                  func(f vfs.File) error { return f.Truncate(0) },
		"cut":                    func(f vfs.File) error { return f.Truncate(33) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, Settings{}, func(r *rig) {
				r.put(0, 5)
				for _, d := range r.take(nil, 3) {
					r.ack(d)
				}
				time.Sleep(time.Second)
				r.stop()
				f, err := r.mem.OpenFile(frontierPath, os.O_RDWR, 0)
				require.NoError(t, err)
				require.NoError(t, harm(f))
				require.NoError(t, f.Close())
				r.start()
				require.Zero(t, r.m.Frontier("00aa", 0))
				require.Contains(t, r.log.String(), "no whole slot")
				got := r.take(nil, 10)
				require.Len(t, got, 5)
				r.ack(got[0])
				time.Sleep(time.Second)
				r.crash(true)
				require.EqualValues(t, 1, r.m.Frontier("00aa", 0), "the file works again")
			})
		})
	}
}

func TestOneTornSlotLeavesTheOther(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 5)
		held := r.take(nil, 5)
		for _, d := range held[:3] { // three syncs, so both slots are written
			r.ack(d)
			time.Sleep(time.Second)
		}
		r.stop()
		f, err := r.mem.OpenFile(frontierPath, os.O_RDWR, 0)
		require.NoError(t, err)
		newest, found := saved{}, int64(-1)
		for i := range int64(2) {
			data := make([]byte, slotBytes)
			_, err = f.ReadAt(data, i*slotBytes)
			require.NoError(t, err)
			s, ok := parseSlot(data)
			require.True(t, ok)
			if s.seq > newest.seq {
				newest, found = s, i
			}
		}
		require.EqualValues(t, 3, newest.frontier)
		_, err = f.WriteAt([]byte{0xff}, found*slotBytes+25)
		require.NoError(t, err)
		r.start()
		require.EqualValues(t, 2, r.m.Frontier("00aa", 0))
	})
}

func TestAFrontierAboveTheHighWatermarkIsSetBack(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 3)
		r.stop()
		f := &frontierFile{fs: r.mem, path: frontierPath}
		require.NoError(t, f.write(10, []int64{12, 13}))
		require.NoError(t, f.close())
		r.start()
		require.EqualValues(t, 3, r.m.Frontier("00aa", 0))
		require.Contains(t, r.log.String(), "above the high watermark")
		r.put(0, 12)
		require.Len(t, r.take(nil, 100), 12, "acks of records that are gone count for none of the new ones")
	})
}

func TestAFailedWriteOfTheFrontierIsTriedAgain(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync, vfs.OpRename} {
		t.Run(string(op), func(t *testing.T) {
			bubble(t, 1, Settings{}, func(r *rig) {
				r.put(0, 5)
				held := r.take(nil, 5)
				if op != vfs.OpRename { // the file is there already
					r.ack(held[0])
					time.Sleep(2 * time.Second)
				}
				r.mem.FailNext(op, syscall.EIO, FileName)
				for _, d := range held {
					if op == vfs.OpRename || d.Offset > 0 {
						r.ack(d)
					}
				}
				time.Sleep(4 * time.Second)
				require.Zero(t, r.mem.Unused())
				require.Equal(t, 1, r.count.failed)
				r.crash(true)
				require.EqualValues(t, 5, r.m.Frontier("00aa", 0))
			})
		})
	}
}

// At rest Run does nothing at all: no sync and no write in an hour.
func TestAnIdleManagerIsQuiet(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 1)
		r.ack(r.take(nil, 1)[0])
		time.Sleep(2 * time.Second)
		before := r.mem.Syncs()
		time.Sleep(time.Hour)
		require.Equal(t, before, r.mem.Syncs())
		require.NoError(t, r.m.Hold("00aa", 0))
		require.Equal(t, before, r.mem.Syncs())
	})
}

func TestManyAcksAheadNeedALargerSlot(t *testing.T) {
	bubble(t, 1, Settings{MaxInFlight: 20_000, MaxAckedAhead: 20_000}, func(r *rig) {
		r.put(0, 10_000)
		var want []int64
		for _, d := range r.take(nil, 10_000) {
			if d.Offset%2 == 1 {
				r.ack(d)
			} else {
				want = append(want, d.Offset)
			}
		}
		time.Sleep(time.Second)
		r.crash(true)
		require.Equal(t, want, offsetsOf(r.take(nil, 10_000)))
	})
}

// A kill leaves the newest slot in the page cache only. The next process must not write the other one, which was synced, before
// the newest is on the disk: a power loss could tear both.
func TestAKillAndThenAPowerLossLeaveASlot(t *testing.T) {
	for seed := range uint64(40) {
		bubble(t, 1, Settings{MaxInFlight: 2000, MaxAckedAhead: 2000}, func(r *rig) {
			r.pick = rand.New(rand.NewPCG(seed, 0)).IntN
			r.put(0, 1000)
			synced := map[int64]bool{}
			for _, d := range r.take(nil, 1000) {
				if d.Offset%3 == 1 {
					r.ack(d)
					synced[d.Offset] = true
				}
				if d.Offset == 100 || d.Offset == 999 {
					time.Sleep(time.Second)
				}
			}
			r.crash(false)
			for _, powerLoss := range []bool{false, true} {
				for _, d := range r.take(nil, 50) {
					r.ack(d)
				}
				time.Sleep(100 * time.Millisecond)
				r.crash(powerLoss)
			}
			for _, d := range r.take(nil, 1000) {
				require.False(t, synced[d.Offset], "record %d was acked and synced", d.Offset)
			}
			require.NotContains(t, r.log.String(), "no whole slot")
		})
	}
}

func FuzzSlot(f *testing.F) {
	f.Add(appendSlot(nil, saved{seq: 1, frontier: 5}))
	f.Add(appendSlot(nil, saved{seq: 9, frontier: 5, acked: []int64{6, 7, 9, 4000}}))
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, ok := parseSlot(data)
		if !ok {
			return
		}
		again, ok := parseSlot(appendSlot(nil, s))
		if !ok || again.seq != s.seq || again.frontier != s.frontier || !slices.Equal(again.acked, s.acked) {
			t.Fatalf("%+v became %+v", s, again)
		}
	})
}

// covers: BRK-05
func TestNothingIsLostAndNothingAckedComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		inBubble(t, func() {
			r := &rig{t: t, mem: vfs.NewMem(), now: time.Now, info: TopicInfo{ID: "00aa", Name: "t", Partitions: 1, Settings: Settings{
				VisibilityTimeout: 5 * time.Second, MaxInFlight: rapid.IntRange(1, 8).Draw(rt, "in flight"), MaxAckedAhead: rapid.IntRange(1, 8).Draw(rt, "ahead"),
			}}}
			r.pick = func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "kept") }
			r.start()
			defer func() { r.stop() }()
			total := int64(0)
			acked := map[int64]bool{}
			var held []wire.Delivery
			until := map[string]time.Time{} // by handle
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				switch rapid.SampledFrom([]string{"put", "take", "take", "ack", "ack", "nack", "sleep", "kill"}).Draw(rt, "step") {
				case "put":
					n := rapid.IntRange(1, 5).Draw(rt, "records")
					r.put(0, n)
					total += int64(n)
				case "take":
					for _, d := range r.take(nil, rapid.IntRange(1, 5).Draw(rt, "most")) {
						require.False(rt, acked[d.Offset], "record %d was acked", d.Offset)
						for _, h := range held {
							require.False(rt, h.Offset == d.Offset && time.Now().Before(until[h.Handle]), "record %d is leased", d.Offset)
						}
						held = append(held, d)
						until[d.Handle] = time.Now().Add(5 * time.Second)
					}
				case "ack", "nack":
					if len(held) == 0 {
						continue
					}
					i := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
					d := held[i]
					held = slices.Delete(held, i, i+1)
					var err error
					if ack := rapid.Bool().Draw(rt, "ack"); ack {
						err = r.m.Ack(context.Background(), "t", d.Handle)
						acked[d.Offset] = acked[d.Offset] || err == nil
					} else {
						err = r.m.Nack(context.Background(), "t", d.Handle)
					}
					require.Equal(rt, time.Now().Before(until[d.Handle]), err == nil, "%v", err)
				case "sleep":
					time.Sleep(time.Duration(rapid.IntRange(1, 4000).Draw(rt, "ms")) * time.Millisecond)
				case "kill":
					time.Sleep(time.Second)
					r.crash(rapid.Bool().Draw(rt, "power loss"))
					held = nil
				}
			}
			// Every record that is not acked is given in the end, none that is.
			for range 4*total + 10 {
				for _, d := range r.take(nil, 100) {
					require.False(rt, acked[d.Offset])
					r.ack(d)
					acked[d.Offset] = true
				}
				time.Sleep(time.Second)
			}
			require.Len(rt, acked, int(total))
			require.Equal(rt, total, r.m.Frontier("00aa", 0))
		})
	})
}

// inBubble runs one case of a property in virtual time. A failed case leaves the bubble as a value, since a panic would end the
// whole test binary there.
func inBubble(t *testing.T, f func()) {
	t.Helper()
	var failed any
	synctest.Test(t, func(*testing.T) {
		defer func() { failed = recover() }()
		f()
	})
	if failed != nil {
		panic(failed)
	}
}

// A held partition gives nothing and keeps its file as it is; what was acked is in it. Unhold wakes those who wait.
//
// covers: BRK-05, BRK-07
func TestAHeldPartition(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 3)
		r.ack(r.take(nil, 1)[0])
		leased := r.take(nil, 1)[0]
		require.NoError(t, r.m.Hold("00aa", 0))
		_, err := r.m.Consume(t.Context(), "t", nil, 1, 0)
		require.Equal(t, wire.Unavailable, wire.KindOf(err))
		require.Equal(t, wire.Unavailable, wire.KindOf(r.m.Ack(t.Context(), "t", leased.Handle)))
		require.EqualValues(t, -1, r.m.Frontier("00aa", 0))
		r.crash(true)
		require.EqualValues(t, 1, r.m.Frontier("00aa", 0), "the file was synced by the hold")
		require.NoError(t, r.m.Hold("00aa", 0))
		r.m.Unhold("00aa", 0)
		require.Equal(t, []int64{1, 2}, offsetsOf(r.take(nil, 5)))
	})
}
