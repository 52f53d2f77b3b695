package seglog

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

// handles counts the open files of a log.
func handles(l *Log, mem *vfs.Mem) (n int) {
	for _, s := range l.Segments() {
		n += mem.Handles(filepath.Join(l.o.Dir, segmentName(s.First)))
	}
	return n
}

func appendOne(t *testing.T, l *Log, body string) {
	t.Helper()
	b := NewBatch()
	defer b.Free()
	b.Add([]byte(body))
	_, err := l.Append(context.Background(), b)
	require.NoError(t, err)
}

// readAll reads a log whole and checks that frame n has the body "n".
func readAll(t *testing.T, l *Log) {
	t.Helper()
	var buf Buffer
	for next := l.First(); next < l.Next(); {
		frames, err := l.Read(next, 10, 1000, &buf)
		require.NoError(t, err)
		for _, f := range frames {
			require.Equal(t, fmt.Sprint(f.Seq), string(f.Body))
		}
		next += int64(len(frames))
	}
}

// A log that was idle for the time given has no open file; reads and appends open what they need, and damage that came meanwhile is found.
func TestALogThatRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		l, err := Open(Options{FS: mem, Dir: "log", SegmentBytes: 200})
		require.NoError(t, err)
		rest := func() bool {
			rests, restErr := l.Rest(t.Context(), 30*time.Minute)
			require.NoError(t, restErr)
			return rests
		}
		for i := range 50 {
			appendOne(t, l, fmt.Sprint(i))
		}
		readAll(t, l)
		require.Positive(t, handles(l, mem))
		time.Sleep(29 * time.Minute)
		require.False(t, rest())
		require.Positive(t, handles(l, mem))
		time.Sleep(time.Minute)
		require.True(t, rest())
		require.Zero(t, handles(l, mem))
		require.True(t, rest(), "it rests on")

		readAll(t, l)
		require.False(t, rest(), "a read is a use")
		appendOne(t, l, "50") // through the file that the read has opened
		time.Sleep(30 * time.Minute)
		require.True(t, rest())
		var held Buffer
		v, err := l.acquire(3, &held)
		require.NoError(t, err)
		time.Sleep(30 * time.Minute)
		require.False(t, rest(), "a read is under way")
		require.NoError(t, l.release(v.seg))
		require.True(t, rest())
		for i := 51; i < 60; i++ {
			appendOne(t, l, fmt.Sprint(i))
		}
		require.False(t, rest(), "an append is a use")
		readAll(t, l)
		time.Sleep(30 * time.Minute)
		require.True(t, rest())
		require.NoError(t, l.Seal(t.Context()))
		require.NoError(t, l.DropBefore(20))
		readAll(t, l)

		time.Sleep(30 * time.Minute)
		require.True(t, rest())
		first := filepath.Join("log", segmentName(l.First()))
		require.Equal(t, 1, mem.Flip(func(name string) bool { return name == "/"+first }))
		var buf Buffer
		_, err = l.Read(l.First(), 1, 1000, &buf)
		require.ErrorIs(t, err, ErrDamaged)

		time.Sleep(30 * time.Minute)
		mem.FailNext(vfs.OpOpen, fmt.Errorf("too many open files"), ".log")
		require.True(t, rest())
		b := NewBatch()
		b.Add([]byte("60"))
		_, err = l.Append(t.Context(), b)
		require.ErrorContains(t, err, "too many open files")
		require.NoError(t, l.Failed(), "nothing was written")
		_, err = l.Append(t.Context(), b)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		_, err = l.Rest(t.Context(), 1)
		require.NoError(t, err, "it was used just now")
		time.Sleep(time.Hour)
		_, err = l.Rest(t.Context(), 1)
		require.ErrorIs(t, err, ErrClosed)
	})
}

// Whoever reads and appends while a log is put to rest again and again notices nothing, and what was acknowledged survives a power loss.
func TestARestBesideReadsAndAppends(t *testing.T) {
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "log", SegmentBytes: 300, Lazy: true}
	l, err := Open(o)
	require.NoError(t, err)
	var done atomic.Bool
	var beside, all sync.WaitGroup
	beside.Go(func() {
		for !done.Load() {
			if _, restErr := l.Rest(context.Background(), 1); restErr != nil {
				t.Error(restErr)
				return
			}
		}
	})
	for range 2 {
		all.Go(func() {
			var buf Buffer
			for next := int64(0); next < 300; {
				frames, readErr := l.Read(next, 5, 1000, &buf)
				if readErr != nil {
					t.Error(readErr)
					return
				}
				for _, f := range frames {
					if string(f.Body) != fmt.Sprint(f.Seq) {
						t.Error("another frame", f.Seq)
					}
				}
				next += int64(len(frames))
			}
		})
	}
	for i := range 300 {
		appendOne(t, l, fmt.Sprint(i))
	}
	all.Wait()
	done.Store(true)
	beside.Wait()
	mem.Freeze()
	_ = l.Close()
	mem.DropUnsynced()
	mem.Thaw()
	l, err = Open(o)
	require.NoError(t, err)
	require.EqualValues(t, 300, l.Next())
	readAll(t, l)
	require.NoError(t, l.Close())
}

// A segment's room is reserved when it is begun and what is left of it given back when it is sealed; files hold what they hold without, so
// recovery sees no difference. A disk that has no such room does without.
func TestPreallocatedSegments(t *testing.T) {
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "log", SegmentBytes: 300, Preallocate: true}
	l, err := Open(o)
	require.NoError(t, err)
	for i := range 40 {
		appendOne(t, l, fmt.Sprint(i))
	}
	infos := l.Segments()
	for i, s := range infos {
		want := int64(0)
		if i == len(infos)-1 {
			want = 300
		}
		require.Equal(t, want, mem.Reserved(filepath.Join("log", segmentName(s.First))), i)
	}
	mem.Freeze()
	_ = l.Close()
	mem.DropUnsynced()
	mem.Thaw()
	l, err = Open(o)
	require.NoError(t, err)
	require.EqualValues(t, 40, l.Next())
	readAll(t, l)
	require.NoError(t, l.Close())

	disk := Options{Dir: t.TempDir(), SegmentBytes: 1 << 20, Preallocate: true}
	l, err = Open(disk)
	require.NoError(t, err)
	for i := range 10 {
		appendOne(t, l, fmt.Sprint(i))
	}
	require.NoError(t, l.Seal(t.Context()))
	readAll(t, l)
	require.NoError(t, l.Close())
	disk.Preallocate = false
	l, err = Open(disk)
	require.NoError(t, err)
	require.EqualValues(t, 10, l.Next())
	readAll(t, l)
	require.NoError(t, l.Close())
}
