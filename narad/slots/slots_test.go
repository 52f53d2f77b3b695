package slots

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

const name = "value"

func write(t *testing.T, f *File, value string) {
	require.NoError(t, f.Write([]byte(value)))
	require.NoError(t, f.Sync())
}

func open(t *testing.T, files vfs.FS) (*File, string, Verdict) {
	f, value, v, err := Open(files, name)
	require.NoError(t, err)
	return f, string(value), v
}

func TestValuesComeBack(t *testing.T) {
	files := vfs.NewMem()
	f, _, v := open(t, files)
	require.Equal(t, Missing, v)
	require.NoError(t, f.Sync(), "nothing to sync")
	for i, want := range []string{"", "a", "bb", string(bytes.Repeat([]byte("x"), MaxValue))} {
		write(t, f, want)
		require.NoError(t, f.Close())
		var got string
		f, got, v = open(t, files)
		require.Equal(t, want, got)
		if i > 0 {
			require.Equal(t, Whole, v)
		}
	}
	require.Error(t, f.Write(make([]byte, MaxValue+1)))
	require.NoError(t, f.Close())
}

func TestAPowerLossKeepsTheLastSyncedValue(t *testing.T) {
	files := vfs.NewMem()
	f, _, _ := open(t, files)
	write(t, f, "synced")
	for range 3 {
		require.NoError(t, f.Write([]byte("in the page cache")))
	}
	// A kill keeps the page cache.
	files.Freeze()
	files.Thaw()
	again, got, _ := open(t, files)
	require.Equal(t, "in the page cache", got)
	// The next process syncs what it found before it writes into the other slot.
	require.NoError(t, again.Write([]byte("newer")))
	files.DropUnsynced()
	_, got, v := open(t, files)
	require.Equal(t, Whole, v)
	require.Equal(t, "in the page cache", got)
	require.NoError(t, f.Close())
	require.NoError(t, again.Close())
}

func TestAFailedWriteOrSyncIsWrittenAgainIntoTheSameSlot(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpOpen, vfs.OpWrite, vfs.OpSync, vfs.OpSyncDir} {
		files := vfs.NewMem()
		f, _, _ := open(t, files)
		if op != vfs.OpSyncDir {
			write(t, f, "old")
			require.NoError(t, f.Close())
		}
		disk := errors.New("disk")
		match := name
		if op == vfs.OpSyncDir {
			match = ""
		}
		files.FailNext(op, disk, match)
		err := f.Write([]byte("new"))
		if err == nil {
			err = f.Sync()
		}
		require.ErrorIs(t, err, disk, op)
		write(t, f, "newer")
		_, got, _ := open(t, files)
		require.Equal(t, "newer", got)
		require.NoError(t, f.Close())
	}
}

// Any single byte of one slot may be wrong: the other slot counts.
func TestABadByteLeavesTheOtherSlot(t *testing.T) {
	old, err := Slot(1, []byte("old"))
	require.NoError(t, err)
	newer, err := Slot(2, []byte("new"))
	require.NoError(t, err)
	whole := append(append([]byte(nil), newer...), old...)
	for i := range whole {
		bad := append([]byte(nil), whole...)
		bad[i] ^= 0x10
		value, seq, v := Parse(bad)
		require.Equal(t, Older, v)
		if i < Size {
			require.Equal(t, "old", string(value))
			require.EqualValues(t, 1, seq)
		} else {
			require.Equal(t, "new", string(value))
		}
	}
	for n := range whole {
		_, _, v := Parse(whole[:n])
		require.Equal(t, n < Size, v == Damaged)
	}
}

func FuzzParse(f *testing.F) {
	slot, err := Slot(3, []byte("value"))
	require.NoError(f, err)
	f.Add(slot)
	f.Add(append(slot, slot...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		value, seq, v := Parse(file)
		if v == Damaged {
			require.Empty(t, value)
			return
		}
		again, err := Slot(seq, value)
		require.NoError(t, err)
		got, n, _ := Parse(again)
		require.Equal(t, seq, n)
		require.True(t, bytes.Equal(value, got))
	})
}
