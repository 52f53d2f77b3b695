package queue

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/narad/partition"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a manager over a file system in memory with a topic "t", and what a crash of it takes.
type rig struct {
	t     *testing.T
	mem   *vfs.Mem
	store *partition.Store
	m     *Manager
	info  TopicInfo
	now   func() time.Time
	stop  func()
	pick  func(n int) int // what a power loss keeps; nil is nothing
	count counts
	log   strings.Builder
}

// counts is a Metrics that remembers.
type counts struct {
	mu                         sync.Mutex // guards what follows
	consumed, nacked, extended int
	dropped                    int64
	failed                     int
}

func (c *counts) add(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}
func (c *counts) Consumed(_ string, _, records, _ int) { c.add(func() { c.consumed += records }) }
func (c *counts) Nacked(string)                        { c.add(func() { c.nacked++ }) }
func (c *counts) Extended(string)                      { c.add(func() { c.extended++ }) }
func (c *counts) Dropped(_ string, _ int, n int64)     { c.add(func() { c.dropped += n }) }
func (c *counts) Failed(string, int)                   { c.add(func() { c.failed++ }) }

// Lookup implements Topics.
func (r *rig) Lookup(name string) (TopicInfo, error) {
	if name != r.info.Name {
		return TopicInfo{}, wire.Refuse(wire.NotFound, "topic not found")
	}
	return r.info, nil
}

// bubble runs f with a rig in virtual time.
func bubble(t *testing.T, partitions int, s Settings, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, mem: vfs.NewMem(), now: time.Now, info: TopicInfo{ID: "00aa", Name: "t", Partitions: partitions, Settings: s}}
		r.start()
		f(r)
		r.stop()
	})
}

func (r *rig) start() {
	r.store = partition.NewStore(partition.StoreOptions{FS: r.mem, Dir: "data", SegmentBytes: 2000, Now: func() time.Time { return r.now() }})
	r.m = NewManager(Options{Topics: r, Store: r.store, FS: r.mem, Metrics: &r.count, Logger: slog.New(slog.NewTextHandler(&r.log, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.m.Run(ctx) }) // a crash makes its last write fail
	r.stop = func() {
		cancel()
		wg.Wait()
		_ = r.m.Close()
		_ = r.store.Close()
	}
}

// crash kills the process, with or without the power, and starts the next one.
func (r *rig) crash(powerLoss bool) {
	r.mem.Freeze()
	r.stop()
	if powerLoss && r.pick != nil {
		r.mem.DropUnsyncedPartly(r.pick)
	} else if powerLoss {
		r.mem.DropUnsynced()
	}
	r.mem.Thaw()
	r.start()
}

// put commits records with the payloads "p<partition> <n>".
func (r *rig) put(index int, n int) {
	r.t.Helper()
	log, err := r.store.Open(r.info.ID, index)
	require.NoError(r.t, err)
	recs := make([]partition.Record, n)
	for i := range recs {
		recs[i] = partition.Record{Key: []byte("k"), Payload: fmt.Appendf(nil, "p%d %d", index, log.HighWatermark()+int64(i))}
	}
	_, err = log.Commit(context.Background(), recs)
	require.NoError(r.t, err)
}

// take consumes without waiting.
func (r *rig) take(index *int, most int) []wire.Delivery {
	r.t.Helper()
	got, err := r.m.Consume(context.Background(), "t", index, most, 0)
	require.NoError(r.t, err)
	for _, d := range got {
		require.Equal(r.t, fmt.Sprintf("p%d %d", d.Partition, d.Offset), string(d.Payload))
		require.Equal(r.t, "k", string(d.Key))
		require.Equal(r.t, "t", d.Topic)
		require.True(r.t, strings.HasPrefix(d.Handle, fmt.Sprintf("%d:%d:", d.Partition, d.Offset)))
	}
	return got
}

func (r *rig) ack(d wire.Delivery) {
	r.t.Helper()
	require.NoError(r.t, r.m.Ack(context.Background(), "t", d.Handle))
}

func (r *rig) refused(kind wire.Kind, err error) {
	r.t.Helper()
	require.Error(r.t, err)
	require.Equal(r.t, kind, wire.KindOf(err), err.Error())
}

func ptr(i int) *int { return &i }

func offsetsOf(list []wire.Delivery) []int64 {
	var o []int64
	for _, d := range list {
		o = append(o, d.Offset)
	}
	return o
}

// covers: BRK-05
func TestLeaseAckNackExtend(t *testing.T) {
	bubble(t, 1, Settings{VisibilityTimeout: 30 * time.Second}, func(r *rig) {
		r.put(0, 4)
		got := r.take(nil, 3)
		require.Equal(t, []int64{0, 1, 2}, offsetsOf(got))
		require.WithinDuration(t, time.Now(), got[0].Committed, time.Millisecond)
		require.Equal(t, []int64{3}, offsetsOf(r.take(ptr(0), 10)))
		require.Empty(t, r.take(nil, 10))

		r.ack(got[1])
		r.refused(wire.Gone, r.m.Ack(r.t.Context(), "t", got[1].Handle))
		require.Zero(t, r.m.Frontier("00aa", 0), "0 is not acked")
		r.ack(got[0])
		require.EqualValues(t, 2, r.m.Frontier("00aa", 0))

		require.NoError(t, r.m.Nack(r.t.Context(), "t", got[2].Handle))
		r.refused(wire.Gone, r.m.Nack(r.t.Context(), "t", got[2].Handle))
		again := r.take(nil, 10)
		require.Equal(t, []int64{2}, offsetsOf(again), "a nack gives again at once")
		require.NotEqual(t, got[2].Handle, again[0].Handle)
		r.refused(wire.Gone, r.m.Ack(r.t.Context(), "t", got[2].Handle))

		time.Sleep(29 * time.Second)
		require.NoError(t, r.m.Extend(r.t.Context(), "t", again[0].Handle))
		time.Sleep(time.Second)
		require.Equal(t, []int64{3}, offsetsOf(r.take(nil, 10)), "3 has run out, 2 was extended")
		time.Sleep(28 * time.Second)
		require.Empty(t, r.take(nil, 10))
		time.Sleep(time.Second)
		r.refused(wire.Gone, r.m.Ack(r.t.Context(), "t", again[0].Handle))
		require.Equal(t, []int64{2}, offsetsOf(r.take(nil, 10)))
		require.Equal(t, 1, r.count.nacked)
		require.Equal(t, 1, r.count.extended)
	})
}

// covers: BRK-05
func TestRefusals(t *testing.T) {
	bubble(t, 3, Settings{}, func(r *rig) {
		r.put(0, 1)
		d := r.take(nil, 1)[0]
		for _, bad := range []string{"", "x", "0:0", "0:0:zz", "0:-1:0011223344556677", "00:0:0011223344556677", "0:0:00112233445566778899", "0:0:001122334455667G"} {
			r.refused(wire.Invalid, r.m.Ack(r.t.Context(), "t", bad))
		}
		nonce := d.Handle[strings.LastIndex(d.Handle, ":")+1:]
		r.refused(wire.Gone, r.m.Ack(r.t.Context(), "t", "1:0:"+nonce))
		r.refused(wire.Gone, r.m.Ack(r.t.Context(), "t", "9:0:"+nonce))
		r.refused(wire.NotFound, r.m.Ack(r.t.Context(), "other", d.Handle))
		_, err := r.m.Consume(r.t.Context(), "other", nil, 1, 0)
		r.refused(wire.NotFound, err)
		_, err = r.m.Consume(r.t.Context(), "t", ptr(3), 1, 0)
		r.refused(wire.Invalid, err)
		r.info.Owned = []int{1}
		_, err = r.m.Consume(r.t.Context(), "t", ptr(0), 1, 0)
		r.refused(wire.Unavailable, err)
		r.refused(wire.Unavailable, r.m.Ack(r.t.Context(), "t", d.Handle))
		r.put(0, 1)
		require.Empty(t, r.take(nil, 1), "partition 0 is owned elsewhere")
	})
}

// covers: BRK-05
func TestReplay(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 3)
		d, err := r.m.Replay(r.t.Context(), "t", 0, 1)
		require.NoError(t, err)
		require.Equal(t, "p0 1", string(d.Payload))
		require.Empty(t, d.Handle)
		d, err = r.m.Replay(r.t.Context(), "t", 0, 3)
		require.NoError(t, err)
		require.Nil(t, d)
		_, err = r.m.Replay(r.t.Context(), "t", 0, -1)
		r.refused(wire.Invalid, err)
		_, err = r.m.Replay(r.t.Context(), "t", 1, 0)
		r.refused(wire.Invalid, err)
		require.Equal(t, []int64{0, 1, 2}, offsetsOf(r.take(nil, 10)), "a replay leases nothing")

		time.Sleep(2 * time.Hour)
		r.retain(time.Hour)
		_, err = r.m.Replay(r.t.Context(), "t", 0, 1)
		r.refused(wire.Gone, err)
		require.True(t, strings.HasSuffix(err.Error(), "aged out of retention (oldest retained: 3)"), err.Error())
	})
}

// Replays share memory one after the other, and what one has answered stays as it was.
//
// covers: BRK-05
func TestAReplayKeepsWhatItAnswered(t *testing.T) {
	bubble(t, 2, Settings{}, func(r *rig) {
		r.put(0, 300)
		r.put(1, 300)
		var got []*wire.Delivery
		for offset := range int64(300) {
			for p := range 2 {
				d, err := r.m.Replay(r.t.Context(), "t", p, offset)
				require.NoError(r.t, err)
				got = append(got, d)
			}
		}
		for i, d := range got {
			require.Equal(r.t, fmt.Sprintf("p%d %d", i%2, i/2), string(d.Payload))
			require.Equal(r.t, "k", string(d.Key))
		}
	})
}

func (r *rig) retain(d time.Duration) {
	r.t.Helper()
	log, err := r.store.Open(r.info.ID, 0)
	require.NoError(r.t, err)
	_, err = log.Retain(d)
	require.NoError(r.t, err)
}

// covers: BRK-05
func TestCapsAndTurns(t *testing.T) {
	bubble(t, 1, Settings{MaxInFlight: 4, MaxAckedAhead: 3}, func(r *rig) {
		r.put(0, 20)
		held := r.take(nil, 100)
		require.Equal(t, []int64{0, 1, 2, 3}, offsetsOf(held))
		for _, d := range held[1:] {
			r.ack(d)
		}
		require.Empty(t, r.take(nil, 100), "three are acked ahead of record 0")
		require.NoError(t, r.m.Nack(r.t.Context(), "t", held[0].Handle))
		again := r.take(nil, 100)
		require.Equal(t, []int64{0}, offsetsOf(again), "what was given before still comes")
		r.ack(again[0])
		require.EqualValues(t, 4, r.m.Frontier("00aa", 0))
		require.Equal(t, []int64{4, 5, 6, 7}, offsetsOf(r.take(nil, 100)))
		require.Equal(t, Stats{Frontier: 4, InFlight: 4}, r.m.Stats("00aa")[0])
	})
	bubble(t, 3, Settings{}, func(r *rig) {
		for p := range 3 {
			r.put(p, 30)
		}
		taken := map[int]int{}
		for range 30 {
			taken[r.take(nil, 1)[0].Partition]++
		}
		require.Equal(t, map[int]int{0: 10, 1: 10, 2: 10}, taken)
		require.Len(t, r.take(nil, 100), 60, "one answer joins partitions")
	})
}

// covers: BRK-05
func TestAnswersAreBounded(t *testing.T) {
	bubble(t, 3, Settings{}, func(r *rig) {
		for p := range 3 {
			log, err := r.store.Open(r.info.ID, p)
			require.NoError(t, err)
			for range 10 {
				_, err = log.Commit(r.t.Context(), []partition.Record{{Payload: make([]byte, 1<<20)}})
				require.NoError(t, err)
			}
		}
		consume := func(index *int) int {
			got, err := r.m.Consume(r.t.Context(), "t", index, 100, 0)
			require.NoError(t, err)
			return len(got)
		}
		require.Equal(t, 4, consume(ptr(0)), "a scan stops at 4 MiB")
		require.Equal(t, 8, consume(nil), "an answer at 8 MiB")
		total := 12
		for n := consume(nil); n > 0; n = consume(nil) {
			total += n
		}
		require.Equal(t, 30, total)
	})
	bubble(t, 1, Settings{}, func(r *rig) {
		log, err := r.store.Open(r.info.ID, 0)
		require.NoError(t, err)
		for range 2 {
			_, err = log.Commit(r.t.Context(), []partition.Record{{Payload: make([]byte, 9<<20)}})
			require.NoError(t, err)
		}
		for range 2 {
			got, err := r.m.Consume(r.t.Context(), "t", nil, 100, 0)
			require.NoError(t, err)
			require.Len(t, got, 1, "the first record always goes")
			require.NoError(t, r.m.Nack(r.t.Context(), "t", got[0].Handle))
			got, err = r.m.Consume(r.t.Context(), "t", nil, 100, 0)
			require.NoError(t, err)
			require.Len(t, got, 1, "when it is given again too")
			require.NoError(t, r.m.Ack(r.t.Context(), "t", got[0].Handle))
		}
	})
}

// covers: BRK-05
func TestRetentionMovesTheFrontier(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 5)
		held := r.take(nil, 4)
		r.ack(held[2])
		require.NoError(t, r.m.Nack(r.t.Context(), "t", held[3].Handle))
		time.Sleep(10 * time.Second) // the other leases live
		r.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		r.retain(time.Hour)
		r.put(0, 2)
		r.refused(wire.Gone, r.m.Ack(r.t.Context(), "t", held[0].Handle))
		require.EqualValues(t, 5, r.m.Frontier("00aa", 0))
		require.EqualValues(t, 4, r.count.dropped, "all but the one that was acked")
		require.Equal(t, []int64{5, 6}, offsetsOf(r.take(nil, 10)))
	})
}

func TestReleaseAndForget(t *testing.T) {
	bubble(t, 2, Settings{}, func(r *rig) {
		r.put(0, 3)
		r.put(1, 1)
		held := r.take(ptr(0), 3)
		r.ack(held[0])
		require.NoError(t, r.m.Release("00aa", 0))
		r.refused(wire.Gone, r.m.Ack(r.t.Context(), "t", held[1].Handle))
		require.Equal(t, []int64{1, 2}, offsetsOf(r.take(ptr(0), 3)), "leases ended, the frontier stayed")

		r.ack(r.take(ptr(1), 0)[0])
		// The topic is deleted and made anew while a consumer waits; he gets the new one's records only.
		got := make(chan []wire.Delivery, 1)
		go func() {
			list, err := r.m.Consume(context.Background(), "t", nil, 10, time.Minute)
			assert.NoError(t, err)
			got <- list
		}()
		synctest.Wait()
		r.info.ID = "00bb"
		require.NoError(t, r.m.Forget("00aa"))
		require.NoError(t, r.store.Drop("00aa"))
		time.Sleep(2 * time.Second)
		there, err := r.store.Exists("00aa", 0)
		require.NoError(t, err)
		require.False(t, there, "nothing is written into a dropped topic")
		require.Zero(t, r.count.failed, "nor tried")
		r.put(1, 1)
		require.Len(t, <-got, 1)
	})
}

// Retention, restarts and a closed log: nothing is leased from a partition that is being taken away.
func TestAClosedPartitionIsUnavailable(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 3)
		d := r.take(nil, 1)[0]
		require.NoError(t, r.store.Release("00aa", 0))
		_, err := r.m.Consume(r.t.Context(), "t", nil, 1, 0)
		r.refused(wire.Unavailable, err)
		require.NoError(t, r.m.Ack(r.t.Context(), "t", d.Handle))
		require.NoError(t, r.m.Release("00aa", 0))
		require.Equal(t, []int64{1, 2}, offsetsOf(r.take(nil, 10)))
	})
}
