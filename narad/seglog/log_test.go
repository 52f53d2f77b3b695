package seglog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

// body is what the frame seq of a test holds.
func body(seq int64, size int) []byte {
	b := fmt.Appendf(nil, "frame %d ", seq)
	for len(b) < size {
		b = append(b, byte(len(b)*7+int(seq)))
	}
	return b
}

func open(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// put appends n frames of size bytes in one batch.
func put(t testing.TB, l *Log, n, size int) {
	t.Helper()
	b := NewBatch()
	defer b.Free()
	for i := range n {
		b.Add(body(l.Next()+int64(i), size))
	}
	_, err := l.Append(context.Background(), b)
	require.NoError(t, err)
}

// check reads all frames, in steps of at most maxFrames and maxBytes, and compares them.
func check(t testing.TB, l *Log, maxFrames, maxBytes int, size func(int64) int) {
	t.Helper()
	var buf Buffer
	for seq := l.First(); seq < l.Next(); {
		frames, err := l.Read(seq, maxFrames, maxBytes, &buf)
		require.NoError(t, err)
		require.NotEmpty(t, frames)
		require.LessOrEqual(t, len(frames), maxFrames)
		for _, f := range frames {
			require.Equal(t, seq, f.Seq)
			require.Equal(t, body(seq, size(seq)), f.Body)
			seq++
		}
	}
	frames, err := l.Read(l.Next(), maxFrames, maxBytes, &buf)
	require.NoError(t, err)
	require.Empty(t, frames)
}

func size(n int) func(int64) int { return func(int64) int { return n } }

func TestAppendAndRead(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.OS()} {
		t.Run(name, func(t *testing.T) {
			o := Options{FS: fsys, Dir: filepath.Join(t.TempDir(), "log"), SegmentBytes: 100_000, Start: 7}
			l := open(t, o)
			require.EqualValues(t, 7, l.First())
			require.EqualValues(t, 7, l.Next())
			for range 40 {
				put(t, l, 25, 1000)
			}
			require.Greater(t, len(l.Segments()), 5)
			for _, lazy := range []bool{false, true} {
				require.NoError(t, l.Close())
				o.Lazy = lazy
				l = open(t, o)
				require.EqualValues(t, 7, l.First())
				require.EqualValues(t, 1007, l.Next())
				check(t, l, 1, 10, size(1000))
				check(t, l, 1_000_000, 1<<20, size(1000))
				check(t, l, 3, 2500, size(1000))
			}
			var buf Buffer
			for _, from := range []int64{900, 8, 555, 1006} { // not forward, so through the index
				frames, err := l.Read(from, 2, 1<<20, &buf)
				require.NoError(t, err)
				require.Equal(t, body(from, 1000), frames[0].Body)
			}
			_, err := l.Read(6, 1, 1, &buf)
			require.ErrorIs(t, err, ErrTrimmed)
		})
	}
}

func TestReadFindsFramesOfAnySize(t *testing.T) {
	l := open(t, Options{FS: vfs.NewMem(), Dir: "log", SegmentBytes: 1 << 20})
	sizes := func(seq int64) int { return []int{1, 70_000, 10, 300, 200_000}[seq%5] }
	for range 30 {
		b := NewBatch()
		seq := l.Next()
		b.Add(body(seq, sizes(seq)))
		_, err := l.Append(t.Context(), b)
		require.NoError(t, err)
		b.Free()
	}
	for _, maxBytes := range []int{1, 100, 100_000, 10 << 20} {
		check(t, l, 100, maxBytes, sizes)
		check(t, l, 1, maxBytes, sizes)
	}
}

func TestDropBefore(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, Options{FS: mem, Dir: "log", SegmentBytes: 10_000})
	for range 20 {
		put(t, l, 4, 1000)
	}
	infos := l.Segments()
	mem.FailNext(vfs.OpRemove, syscall.EIO, "")
	require.Error(t, l.DropBefore(infos[2].Next))
	require.Equal(t, infos[2].Next, l.First())
	require.NoError(t, l.DropBefore(infos[2].Next+1))
	require.Equal(t, infos[2].Next, l.First())
	check(t, l, 100, 1<<20, size(1000))

	require.NoError(t, l.DropBefore(l.Next()))
	require.Len(t, l.Segments(), 1, "the active segment stays")
	require.NoError(t, l.Seal(t.Context()))
	require.NoError(t, l.Seal(t.Context()), "sealing an empty segment changes nothing")
	require.NoError(t, l.DropBefore(l.Next()))
	require.Equal(t, l.Next(), l.First())
	require.NoError(t, l.Close())

	mem.DropUnsynced()
	l = open(t, Options{FS: mem, Dir: "log", SegmentBytes: 10_000})
	require.EqualValues(t, 80, l.First())
	require.EqualValues(t, 80, l.Next())
	put(t, l, 4, 1000)
	check(t, l, 100, 1<<20, size(1000))
}

// covers: BRK-01
func TestAppendsCombineIntoOneSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		l := open(t, Options{FS: mem, Dir: "log"})
		mem.SetSyncDelay(10 * time.Millisecond)
		before := mem.Syncs()
		durable := l.Durable()
		began := time.Now()
		var wg sync.WaitGroup
		seen := make([]int64, 100)
		for i := range seen {
			wg.Go(func() {
				b := NewBatch()
				defer b.Free()
				b.Add(fmt.Appendf(nil, "writer %d", i), []byte(" first"))
				b.Add([]byte("second"))
				first, err := l.Append(t.Context(), b)
				require.NoError(t, err)
				seen[i] = first
			})
		}
		wg.Wait()
		require.EqualValues(t, 2, mem.Syncs()-before, "the first alone, all others together")
		require.Equal(t, 20*time.Millisecond, time.Since(began))
		<-durable
		var buf Buffer
		for i, first := range seen {
			frames, err := l.Read(first, 1, 1, &buf)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("writer %d first", i), string(frames[0].Body))
		}
		require.NoError(t, l.Close())
		_, err := l.Append(t.Context(), &Batch{buf: make([]byte, frameBytes), count: 1})
		require.ErrorIs(t, err, ErrClosed)
	})
}

func TestAWithdrawnAppendStoresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		l := open(t, Options{FS: mem, Dir: "log"})
		mem.SetSyncDelay(time.Second)
		var wg sync.WaitGroup
		wg.Go(func() { put(t, l, 1, 10) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		b := NewBatch()
		b.Add([]byte("withdrawn"))
		_, err := l.Append(ctx, b)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wg.Wait()
		require.EqualValues(t, 1, l.Next())
	})
}

func TestFailedWritesAndSyncsPoison(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync} {
		t.Run(string(op), func(t *testing.T) {
			mem := vfs.NewMem()
			l := open(t, Options{FS: mem, Dir: "log"})
			put(t, l, 3, 100)
			if op == vfs.OpWrite {
				mem.CutNextWrite(150, syscall.EIO, ".log")
			} else {
				mem.FailNext(op, syscall.EIO, ".log")
			}
			b := NewBatch()
			b.Add(body(3, 100))
			b.Add(body(4, 100))
			for range 2 {
				_, err := l.Append(t.Context(), b)
				require.ErrorIs(t, err, ErrFailed)
				require.ErrorIs(t, err, syscall.EIO)
			}
			require.Zero(t, mem.Unused())
			require.Error(t, l.Failed())
			require.EqualValues(t, 3, l.Next())
			check(t, l, 10, 1000, size(100))
			require.NoError(t, l.Close())
			l = open(t, Options{FS: mem, Dir: "log"})
			require.EqualValues(t, 3, l.Next(), "what was refused does not come back")
			put(t, l, 3, 100)
			check(t, l, 10, 1000, size(100))
		})
	}
}

func TestFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, Options{FS: mem, Dir: "log", SegmentBytes: 2000})
	stored := 0
	mem.SetCapacity(10_000)
	b := NewBatch()
	for {
		b.Free()
		b = NewBatch()
		b.Add(body(l.Next(), 300))
		b.Add(body(l.Next()+1, 300))
		if _, err := l.Append(t.Context(), b); err != nil {
			require.ErrorIs(t, err, ErrFull)
			require.NotErrorIs(t, err, ErrFailed)
			break
		}
		stored += 2
	}
	require.Greater(t, stored, 20)
	check(t, l, 100, 100_000, size(300))
	require.NoError(t, l.Close())
	l = open(t, Options{FS: mem, Dir: "log", SegmentBytes: 2000})
	require.EqualValues(t, stored, l.Next(), "a group is stored whole or not at all")
	mem.SetCapacity(0)
	_, err := l.Append(t.Context(), b)
	require.NoError(t, err, "the same batch may be tried again")
	for range 20 {
		put(t, l, 2, 300)
	}
	check(t, l, 100, 100_000, size(300))
	require.NoError(t, l.Close())
	l = open(t, Options{FS: mem, Dir: "log"})
	check(t, l, 100, 100_000, size(300))
}

func TestABatchTooLargeIsRefused(t *testing.T) {
	l := open(t, Options{FS: vfs.NewMem(), Dir: "log"})
	b := NewBatch()
	b.Add(make([]byte, MaxBody+1))
	_, err := l.Append(t.Context(), b)
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestReadersBesideWritersAndDrops(t *testing.T) {
	l := open(t, Options{FS: vfs.NewMem(), Dir: "log", SegmentBytes: 20_000})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var buf Buffer
			for seq := int64(0); seq < 2000; {
				grown := l.Durable()
				frames, err := l.Read(seq, 50, 30_000, &buf)
				if errors.Is(err, ErrTrimmed) {
					seq = max(seq, l.First())
					continue
				}
				require.NoError(t, err)
				for _, f := range frames {
					require.Equal(t, body(f.Seq, 100), f.Body)
					seq = f.Seq + 1
				}
				if len(frames) == 0 {
					<-grown
				}
			}
		})
	}
	for range 200 {
		put(t, l, 10, 100)
		require.NoError(t, l.DropBefore(l.Next()-500))
	}
	wg.Wait()
}

func TestManySegmentsKeepFewFilesOpen(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Options{Dir: dir, SegmentBytes: 1000})
	for range 50 {
		put(t, l, 1, 900)
	}
	check(t, l, 10, 1<<20, size(900))
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not list open files")
	}
	held := 0
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && filepath.Dir(target) == dir {
			held++
		}
	}
	require.LessOrEqual(t, held, openFiles+1)
}
