package seglog

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

// runOf reads frames from the offset from on in one piece.
func runOf(t *testing.T, l *Log, from int64, frames int) []byte {
	t.Helper()
	var buf Buffer
	got, err := l.Read(from, frames, 1<<20, &buf)
	require.NoError(t, err)
	require.Len(t, got, frames)
	return bytes.Clone(buf.Run())
}

// Frames of one log are those of another once it has adopted them, alone and in a group with others.
func TestAdoptedFramesAreTheSame(t *testing.T) {
	from := open(t, Options{FS: vfs.NewMem(), Dir: "a", Start: 7})
	put(t, from, 20, 300)
	put(t, from, 20, 300)
	for _, first := range []int64{7, 7 + 3, 7 + 18} { // from the begin of a group, within one, over two
		to := open(t, Options{FS: vfs.NewMem(), Dir: "b", Start: first})
		b, heard := NewBatch(), 0
		require.NoError(t, b.Adopt(runOf(t, from, first, 10), first, func(got []byte) error {
			require.Equal(t, body(first+int64(heard), 300), got)
			heard++
			return nil
		}))
		require.Equal(t, 10, heard)
		require.Equal(t, 10, b.Len())
		both := NewBatch()
		both.Join(b)
		second := NewBatch()
		require.NoError(t, second.Adopt(runOf(t, from, first+10, 5), first+10, func([]byte) error { return nil }))
		both.Join(second)
		both.Add(body(first+15, 300))
		_, err := to.Append(t.Context(), both)
		require.NoError(t, err)
		both.Free()
		put(t, to, 4, 300)
		require.Equal(t, first+20, to.Next())
		check(t, to, 1000, 1<<20, size(300))
		require.NoError(t, to.Close())
		check(t, open(t, to.o), 1000, 1<<20, size(300))
	}
}

// Whatever is not the run that is awaited adds nothing.
func TestFramesThatAreNotAdopted(t *testing.T) {
	from := open(t, Options{FS: vfs.NewMem(), Dir: "a"})
	put(t, from, 5, 40)
	good := runOf(t, from, 1, 3)
	for at := range good {
		for _, bad := range [][]byte{append(bytes.Clone(good[:at]), good[at]^0x10), append(append(bytes.Clone(good[:at]), good[at]^0x10), good[at+1:]...)} {
			b := NewBatch()
			require.Error(t, b.Adopt(bad, 1, func([]byte) error { return nil }), at)
			require.Zero(t, b.Len())
			require.Zero(t, b.Bytes())
		}
	}
	b := NewBatch()
	require.ErrorIs(t, b.Adopt(bytes.Clone(good), 2, func([]byte) error { return nil }), errOrder)
	refused := errors.New("not this one")
	require.ErrorIs(t, b.Adopt(bytes.Clone(good), 1, func(got []byte) error {
		if bytes.Equal(got, body(3, 40)) {
			return refused
		}
		return nil
	}), refused)
	require.Zero(t, b.Bytes())
}

// A batch that adopted keeps the memory that it had, and not the one that it was lent.
func TestABatchDoesNotKeepWhatItWasLent(t *testing.T) {
	from := open(t, Options{FS: vfs.NewMem(), Dir: "a"})
	put(t, from, 5, 40)
	run := runOf(t, from, 0, 5)
	b := new(Batch)
	b.Add([]byte("something"))
	own := &b.buf[0]
	b.buf, b.count = b.buf[:0], 0
	require.NoError(t, b.Adopt(run, 0, func([]byte) error { return nil }))
	require.Same(t, &run[0], &b.buf[0], "nothing was copied")
	b.Add([]byte("one more"))
	b.Free()
	require.Same(t, own, &b.buf[:1][0])
}

// What a batch joined, whose append failed, may be joined again.
func TestJoinedAgainAfterAFullDisk(t *testing.T) {
	from, mem := open(t, Options{FS: vfs.NewMem(), Dir: "a"}), vfs.NewMem()
	put(t, from, 3, 40)
	run := NewBatch()
	require.NoError(t, run.Adopt(runOf(t, from, 0, 3), 0, func([]byte) error { return nil }))
	to := open(t, Options{FS: mem, Dir: "b"})
	for _, room := range []int64{10, 10, 0} {
		if room > 0 {
			mem.SetCapacity(mem.Used() + room)
		} else {
			mem.SetCapacity(0)
		}
		b := NewBatch()
		b.Join(run)
		_, err := to.Append(t.Context(), b)
		b.Free()
		if room > 0 {
			require.ErrorIs(t, err, ErrFull)
			continue
		}
		require.NoError(t, err)
	}
	var buf Buffer
	frames, err := to.Read(0, 10, 1000, &buf)
	require.NoError(t, err)
	require.Len(t, frames, 3)
}
