package partition

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"narad.example/narad/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, o Options) *Partition {
	t.Helper()
	p, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// all reads every visible record, cloned.
func all(t require.TestingT, p *Partition, maxRecords, maxBytes int) []Record {
	var s Slab
	var list []Record
	for next := p.Oldest(); next < p.HighWatermark(); next = s.Next {
		require.NoError(t, p.Read(next, maxRecords, maxBytes, &s))
		require.NotEmpty(t, s.Records)
		for _, r := range s.Records {
			r.Key, r.Payload = bytes.Clone(r.Key), bytes.Clone(r.Payload)
			list = append(list, r)
		}
	}
	return list
}

// covers: BRK-03
func TestCommitAndRead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.UnixMilli(1_000_000)
		o := Options{FS: vfs.NewMem(), Dir: "t/0", SegmentBytes: int64(rapid.IntRange(100, 3000).Draw(rt, "segment")), Now: func() time.Time { return now }}
		p, err := Open(o)
		require.NoError(rt, err)
		var want []Record
		last := int64(0)
		for range rapid.IntRange(1, 20).Draw(rt, "commits") {
			now = now.Add(time.Duration(rapid.IntRange(-5000, 5000).Draw(rt, "clock")) * time.Millisecond)
			last = max(last, now.UnixMilli())
			var recs []Record
			for range rapid.IntRange(1, 5).Draw(rt, "records") {
				r := Record{Payload: rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(rt, "payload"), CommitMS: last, Offset: int64(len(want) + len(recs))}
				if rapid.Bool().Draw(rt, "keyed") {
					r.Key = rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(rt, "key")
				}
				recs = append(recs, r)
			}
			first, err := p.Commit(t.Context(), recs)
			require.NoError(rt, err)
			require.EqualValues(rt, len(want), first)
			want = append(want, recs...)
			require.EqualValues(rt, len(want), p.HighWatermark())
			if rapid.Bool().Draw(rt, "restart") {
				require.NoError(rt, p.Close())
				p, err = Open(o)
				require.NoError(rt, err)
				require.EqualValues(rt, len(want), p.HighWatermark())
			}
		}
		got := all(rt, p, rapid.IntRange(1, 50).Draw(rt, "max"), rapid.IntRange(1, 2000).Draw(rt, "bytes"))
		require.Equal(rt, want, got)
		require.NoError(rt, p.Close())
	})
}

func TestForKey(t *testing.T) {
	require.Equal(t, int(uint32(0x811c9dc5)%7), ForKey(nil, 7)) // the offset basis of FNV-1a
	require.Equal(t, int(uint32(0xe40c292c)%5), ForKey([]byte("a"), 5))
	seen := map[int]bool{}
	for i := range 1000 {
		seen[ForKey(fmt.Append(nil, i), 12)] = true
	}
	require.Len(t, seen, 12)
}

// covers: BRK-03
func TestCommitsCombineIntoOneCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		p := open(t, Options{FS: mem, Dir: "t/0"})
		mem.SetSyncDelay(10 * time.Millisecond)
		began, before := time.Now(), mem.Syncs()
		grown := p.Grown()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				first, err := p.Commit(t.Context(), []Record{{Payload: fmt.Append(nil, i, "a")}, {Payload: fmt.Append(nil, i, "b")}})
				require.NoError(t, err)
				var s Slab
				require.NoError(t, p.Read(first, 2, 1000, &s))
				require.Equal(t, fmt.Sprint(i, "a"), string(s.Records[0].Payload))
				require.Equal(t, fmt.Sprint(i, "b"), string(s.Records[1].Payload))
			})
		}
		synctest.Wait()
		require.Zero(t, p.HighWatermark(), "nothing is visible before it is synced")
		wg.Wait()
		<-grown
		require.EqualValues(t, 2, mem.Syncs()-before)
		require.Equal(t, 20*time.Millisecond, time.Since(began))
		require.EqualValues(t, 100, p.HighWatermark())
		require.Len(t, all(t, p, 1000, 1<<20), 100)
	})
}

// flipping is a disk that loses a bit of what it writes while armed.
type flipping struct {
	vfs.FS
	armed bool
}

type flippingFile struct {
	vfs.File
	disk *flipping
}

func (f *flipping) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	return &flippingFile{file, f}, err
}

func (f *flippingFile) WriteAt(p []byte, off int64) (int, error) {
	if f.disk.armed {
		p = bytes.Clone(p)
		p[len(p)/2] ^= 4
	}
	return f.File.WriteAt(p, off)
}

// covers: BRK-03
func TestWhatDoesNotReadBackIsNeverVisible(t *testing.T) {
	for name, harm := range map[string]func(*vfs.Mem, *flipping){
		"a flipped bit":      func(_ *vfs.Mem, f *flipping) { f.armed = true },
		"an unreadable file": func(m *vfs.Mem, _ *flipping) { m.FailNext(vfs.OpRead, syscall.EIO, ".log") },
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			disk := &flipping{FS: mem}
			p := open(t, Options{FS: disk, Dir: "t/0", Codec: NewZstd(3)})
			_, err := p.Commit(t.Context(), []Record{{Payload: bytes.Repeat([]byte("good"), 100)}})
			require.NoError(t, err)
			harm(mem, disk)
			_, err = p.Commit(t.Context(), []Record{{Payload: bytes.Repeat([]byte("bad"), 100)}})
			require.ErrorIs(t, err, ErrFailed)
			require.EqualValues(t, 1, p.HighWatermark())
			disk.armed = false
			_, err = p.Commit(t.Context(), []Record{{Payload: []byte("late")}})
			require.ErrorIs(t, err, ErrFailed, "nothing may follow what does not read back")
			require.Error(t, p.Failed())
			var s Slab
			require.NoError(t, p.Read(1, 10, 1000, &s))
			require.Empty(t, s.Records)
			require.EqualValues(t, 1, s.Next)
		})
	}
}

func TestAFullDiskIsNoEnd(t *testing.T) {
	mem := vfs.NewMem()
	p := open(t, Options{FS: mem, Dir: "t/0"})
	mem.SetCapacity(5000)
	n := int64(0)
	for {
		_, err := p.Commit(t.Context(), []Record{{Payload: make([]byte, 300)}, {Payload: make([]byte, 300)}})
		if err != nil {
			require.ErrorIs(t, err, ErrFull)
			break
		}
		n += 2
	}
	require.Equal(t, n, p.HighWatermark())
	mem.SetCapacity(0)
	first, err := p.Commit(t.Context(), []Record{{Payload: []byte("x")}})
	require.NoError(t, err)
	require.Equal(t, n, first)
}

func TestRetain(t *testing.T) {
	now := time.UnixMilli(0)
	o := Options{FS: vfs.NewMem(), Dir: "t/0", SegmentBytes: 500, Now: func() time.Time { return now }}
	p := open(t, o)
	for range 20 { // one record an hour, about four to a segment
		now = now.Add(time.Hour)
		_, err := p.Commit(t.Context(), []Record{{Payload: make([]byte, 90)}})
		require.NoError(t, err)
	}
	n, err := p.Retain(0)
	require.NoError(t, err)
	require.Zero(t, n)
	require.EqualValues(t, 3600, p.Stats().OldestSegmentAt)
	n, err = p.Retain(10 * time.Hour)
	require.NoError(t, err)
	require.Positive(t, n)
	require.Equal(t, n, p.Oldest())
	require.Greater(t, p.Oldest(), int64(5))
	require.LessOrEqual(t, p.Oldest(), int64(10), "no record younger than the retention goes")
	var s Slab
	err = p.Read(0, 1, 1, &s)
	require.ErrorIs(t, err, ErrTrimmed)
	var trimmed *Trimmed
	require.ErrorAs(t, err, &trimmed)
	require.Equal(t, p.Oldest(), trimmed.Oldest)
	require.Equal(t, (p.Oldest()+1)*3600, p.Stats().OldestSegmentAt)

	now = now.Add(11 * time.Hour) // now all is due, the segment that is appended to as well
	_, err = p.Retain(10 * time.Hour)
	require.NoError(t, err)
	require.EqualValues(t, 20, p.Oldest())
	require.Equal(t, 1, p.Stats().Segments)
	require.NoError(t, p.Close())
	p = open(t, o)
	require.EqualValues(t, 20, p.HighWatermark())
	_, err = p.Commit(t.Context(), []Record{{Payload: []byte("x")}})
	require.NoError(t, err)
	require.Len(t, all(t, p, 10, 1000), 1)
}

// covers: BRK-03, BRK-04
func TestVisibleRecordsSurviveKillsAndPowerLosses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		inBubble(t, func() {
			mem := vfs.NewMem()
			mem.SetSyncDelay(time.Millisecond)
			o := Options{FS: mem, Dir: "data/t/0", SegmentBytes: int64(rapid.IntRange(200, 5000).Draw(rt, "segment"))}
			seen := map[int64]string{} // what was acknowledged or read
			for range rapid.IntRange(1, 4).Draw(rt, "lives") {
				o.Codec = nil
				if rapid.Bool().Draw(rt, "zstd") {
					o.Codec = NewZstd(1)
				}
				p, err := Open(o)
				require.NoError(rt, err)
				found := map[int64]string{}
				for _, r := range all(rt, p, 100, 1<<20) {
					found[r.Offset] = string(r.Payload)
				}
				for offset, payload := range seen {
					require.Equal(rt, payload, found[offset])
				}
				seen = found
				var mu sync.Mutex // guards seen while goroutines run
				var wg sync.WaitGroup
				for w := range 3 {
					wg.Go(func() {
						for n := 0; ; n++ {
							payload := fmt.Sprint("writer ", w, " record ", n, strings.Repeat(" x", n%50))
							first, err := p.Commit(context.Background(), []Record{{Payload: []byte(payload)}})
							if err != nil {
								return
							}
							mu.Lock()
							seen[first] = payload
							mu.Unlock()
						}
					})
				}
				wg.Go(func() {
					var s Slab
					for next := p.Oldest(); ; next = s.Next {
						grown := p.Grown()
						if err := p.Read(next, 10, 1000, &s); err != nil {
							return
						}
						mu.Lock()
						for _, r := range s.Records {
							seen[r.Offset] = string(r.Payload)
						}
						mu.Unlock()
						if len(s.Records) == 0 {
							select {
							case <-grown:
							case <-time.After(100 * time.Millisecond):
								return
							}
						}
					}
				})
				time.Sleep(time.Duration(rapid.IntRange(0, 30_000).Draw(rt, "kill at")) * time.Microsecond)
				mem.Freeze()
				wg.Wait()
				_ = p.Close()
				if rapid.Bool().Draw(rt, "power loss") {
					mem.DropUnsyncedPartly(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "kept") })
				}
				mem.Thaw()
			}
		})
	})
}

// covers: BRK-09
func TestStore(t *testing.T) {
	mem := vfs.NewMem()
	s := NewStore(StoreOptions{FS: mem, Dir: "data"})
	var wg sync.WaitGroup
	opened := make([]*Partition, 20)
	for i := range opened {
		wg.Go(func() {
			p, err := s.Open("aaaa", 3)
			require.NoError(t, err)
			opened[i] = p
		})
	}
	wg.Wait()
	for _, p := range opened {
		require.Same(t, opened[0], p)
	}
	_, err := opened[0].Commit(t.Context(), []Record{{Payload: []byte("old")}})
	require.NoError(t, err)
	ids, err := s.Topics()
	require.NoError(t, err)
	require.Equal(t, []string{"aaaa"}, ids)
	require.NoError(t, s.Release("aaaa", 3))
	p, err := s.Open("aaaa", 3)
	require.NoError(t, err)
	require.EqualValues(t, 1, p.HighWatermark())

	// The topic made anew under the same name has another ID, and sees nothing of the old one.
	p, err = s.Open("bbbb", 3)
	require.NoError(t, err)
	require.Zero(t, p.HighWatermark())
	require.NoError(t, s.Drop("aaaa"))
	there, err := s.Exists("aaaa", 3)
	require.NoError(t, err)
	require.False(t, there)
	require.NoError(t, s.Drop("aaaa"), "again, as after a crash")
	require.NoError(t, s.Remove("bbbb", 3))
	for _, id := range []string{"", ".", "..", "a/b"} {
		_, err = s.Open(id, 0)
		require.Error(t, err)
		require.Error(t, s.Drop(id))
	}
	mem.FailNext(vfs.OpOpen, syscall.EMFILE, "cccc")
	_, err = s.Open("cccc", 0)
	require.ErrorIs(t, err, syscall.EMFILE)
	_, err = s.Open("cccc", 0)
	require.NoError(t, err, "a failed opening is tried again")
	require.NoError(t, s.Close())
	_, err = s.Open("cccc", 0)
	require.ErrorIs(t, err, ErrClosed)
}

func TestDamageIsReported(t *testing.T) {
	dir := t.TempDir()
	p := open(t, Options{Dir: dir})
	for range 3 {
		_, err := p.Commit(t.Context(), []Record{{Payload: []byte("payload")}})
		require.NoError(t, err)
	}
	name := filepath.Join(dir, fmt.Sprintf("%020d.log", 0))
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	data[60] ^= 1
	require.NoError(t, os.WriteFile(name, data, 0o600))
	var s Slab
	require.NoError(t, p.Read(0, 1, 1, &s))
	require.ErrorIs(t, p.Read(1, 1, 1, &s), ErrDamaged)
	require.NoError(t, p.Close())
	_, err = Open(Options{Dir: dir})
	require.ErrorIs(t, err, ErrDamaged)
}

func TestAFrameThatIsNoRecord(t *testing.T) {
	for _, body := range [][]byte{nil, make([]byte, 8), {4, 0, 0, 0, 0, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
		{2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 1}, {1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1}, {1, 0, 0, 0, 0, 0, 0, 0, 0, 9}} {
		_, _, err := decode(0, body)
		require.ErrorIs(t, err, errRecord)
	}
}

// BenchmarkCommit commits 500 records of 1 KiB at a time on the real disk.
func BenchmarkCommit(b *testing.B) {
	for name, writers := range map[string]int{"1 writer": 1, "4 writers": 4} {
		b.Run(name, func(b *testing.B) {
			p := open(b, Options{Dir: b.TempDir()})
			recs := make([]Record, 500)
			for i := range recs {
				recs[i] = Record{Key: fmt.Append(nil, "key-", i), Payload: bytes.Repeat([]byte("x"), 1024)}
			}
			b.ReportAllocs()
			began := time.Now()
			var wg sync.WaitGroup
			share := (b.N + writers - 1) / writers
			for range writers {
				wg.Go(func() {
					for range share {
						if _, err := p.Commit(context.Background(), recs); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(share*writers*500)/time.Since(began).Seconds(), "records/s")
		})
	}
}

// BenchmarkRead reads forward as a fan-out cursor does.
func BenchmarkRead(b *testing.B) {
	p := open(b, Options{Dir: b.TempDir()})
	recs := make([]Record, 500)
	for i := range recs {
		recs[i] = Record{Key: []byte("key"), Payload: bytes.Repeat([]byte("x"), 1024)}
	}
	for range 100 {
		_, err := p.Commit(context.Background(), recs)
		require.NoError(b, err)
	}
	var s Slab
	b.ReportAllocs()
	count, next := 0, int64(0)
	for b.Loop() {
		require.NoError(b, p.Read(next, 4096, 4<<20, &s))
		count += len(s.Records)
		if next = s.Next; next == p.HighWatermark() {
			next = 0
		}
	}
	b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "records/s")
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
