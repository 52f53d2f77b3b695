package seglog

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

// again closes a log and opens it as one that is no draft, whole and with the same end.
func again(t *testing.T, l *Log, o Options) {
	t.Helper()
	next := l.Next()
	require.NoError(t, l.Close())
	o.Draft = false
	l, err := Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	require.Equal(t, next, l.Next())
	var buf Buffer
	for seq := l.First(); seq < next; {
		frames, err := l.Read(seq, 10, 1<<20, &buf)
		require.NoError(t, err)
		require.NotEmpty(t, frames)
		seq = frames[len(frames)-1].Seq + 1
	}
}

// A disk that is full when a segment is begun may leave a file of it. What is appended once there is room again is not behind the end that the
// file's name says.
//
// covers: BRK-01, BRK-04
func TestASegmentThatCouldNotBeBegun(t *testing.T) {
	for _, o := range []Options{{}, {Lazy: true}, {Preallocate: true}, {Lazy: true, Draft: true}} {
		for free := range int64(2 * headerBytes) {
			mem := vfs.NewMem()
			o.FS, o.Dir, o.SegmentBytes = mem, "log", 1000
			l, err := Open(o)
			require.NoError(t, err)
			require.NoError(t, appendText(t, l, fmt.Sprintf("%0800d", 1)))
			mem.SetCapacity(mem.Used() + free)
			require.ErrorIs(t, appendText(t, l, fmt.Sprintf("%0300d", 2)), ErrFull)
			require.ErrorIs(t, appendText(t, l, fmt.Sprintf("%0300d", 2)), ErrFull)
			mem.SetCapacity(0) // somebody made room
			require.NoError(t, appendText(t, l, "small"))
			require.NoError(t, appendText(t, l, "smaller"))
			require.Len(t, l.Segments(), 2)
			require.NoError(t, l.Settle(t.Context()))
			again(t, l, o)
		}
	}
}

// covers: BRK-01, BRK-04
func TestASealOnAFullDisk(t *testing.T) {
	o := Options{FS: vfs.NewMem(), Dir: "log", Preallocate: true}
	mem := o.FS.(*vfs.Mem)
	l, err := Open(o)
	require.NoError(t, err)
	require.NoError(t, appendText(t, l, "one"))
	mem.SetCapacity(mem.Used())
	require.ErrorIs(t, l.Seal(t.Context()), ErrFull)
	mem.SetCapacity(0)
	require.NoError(t, appendText(t, l, "two"))
	again(t, l, o)
}

// A disk that syncs slower than a draft is filled holds it up, and once it is settled no more files stay open than of another log.
//
// covers: BRK-07
func TestADraftOnASlowDiskOpensFewFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		o := Options{FS: mem, Dir: "log", SegmentBytes: 200, Draft: true}
		l, err := Open(o)
		require.NoError(t, err)
		mem.SetSyncDelay(time.Minute)
		begun, most := time.Now(), 0
		for range 100 {
			require.NoError(t, appendText(t, l, fmt.Sprintf("%0150d", 1)))
			most = max(most, filesOpen(l))
		}
		require.LessOrEqual(t, most, openFiles+2, "those that are synced, the one that waits and the one that is filled")
		require.Equal(t, 24*time.Minute, time.Since(begun), "99 segments, four at a time, the last four of them under way")
		require.NoError(t, l.Settle(t.Context()))
		require.NoError(t, appendText(t, l, fmt.Sprintf("%0150d", 1)))
		require.LessOrEqual(t, filesOpen(l), openFiles+1)
		again(t, l, o)
	})
}

// filesOpen counts the segments whose file is open.
func filesOpen(l *Log) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.list {
		if s.file != nil {
			n++
		}
	}
	return n
}

// After many reads at once no more files stay open than after one at a time.
func TestManyReadersLeaveFewFilesOpen(t *testing.T) {
	l := open(t, Options{FS: vfs.NewMem(), Dir: "log", SegmentBytes: 200})
	for range 3 * openFiles {
		require.NoError(t, appendText(t, l, fmt.Sprintf("%0150d", 1)))
	}
	var buf Buffer
	var held []*segment
	l.mu.Lock()
	for _, s := range l.list[:2*openFiles] {
		_, err := l.hold(s, s.first, &buf)
		require.NoError(t, err)
		held = append(held, s)
	}
	l.mu.Unlock()
	for _, s := range held {
		require.NoError(t, l.release(s))
	}
	_, err := l.Read(0, 1, 1000, &buf)
	require.NoError(t, err)
	require.LessOrEqual(t, filesOpen(l), openFiles+1)
}
