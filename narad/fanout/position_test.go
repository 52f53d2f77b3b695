package fanout

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/slots"
	"narad.example/narad/vfs"
)

func TestPositionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := position{epoch: rapid.StringMatching("[0-9a-f]{0,16}").Draw(t, "epoch"), next: rapid.Int64Min(0).Draw(t, "next")}
		p.marks = rapid.SliceOfN(rapid.Int64Min(-1), 0, MaxLanes).Draw(t, "marks")
		if len(p.marks) == 0 {
			p.marks = nil
		}
		b, err := p.encode()
		require.NoError(t, err)
		require.LessOrEqual(t, len(b), slots.MaxValue)
		got, err := decodePosition(b)
		require.NoError(t, err)
		require.Equal(t, p, got)
	})
}

func FuzzPosition(f *testing.F) {
	b, err := position{epoch: epoch1, next: 7, marks: []int64{-1, 9}}.encode()
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePosition(b)
		if err != nil {
			return
		}
		again, err := p.encode()
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

// FuzzCursorFile opens any bytes as a cursor file: what is read can be written and read again, and the next position counts.
//
// covers: CUR-03, CUR-14
func FuzzCursorFile(f *testing.F) {
	const name = "fanout-copy.offset"
	slot := func(seq uint64, p position) []byte {
		value, err := p.encode()
		require.NoError(f, err)
		b, err := slots.Slot(seq, value)
		require.NoError(f, err)
		return b
	}
	one, two := slot(1, position{epoch: epoch1, next: 7}), slot(2, position{epoch: epoch1, next: 9, marks: []int64{-1, 12}})
	f.Add(two)
	f.Add(append(two[:len(two):len(two)], one...))
	f.Add(append(make([]byte, slots.Size), one...))
	f.Add(append(slot(2, position{epoch: epoch2})[:100], one...))
	f.Add(slot(^uint64(0), position{epoch: epoch1, next: 1}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		files := vfs.NewMem()
		h, err := files.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = h.WriteAt(b, 0)
		require.NoError(t, err)
		require.NoError(t, h.Close())

		file, p, v, err := openPosition(files, name)
		require.NoError(t, err)
		require.NotEqual(t, slots.Missing, v)
		if v == slots.Damaged {
			require.Equal(t, position{}, p)
		} else {
			require.GreaterOrEqual(t, p.next, int64(0))
			require.LessOrEqual(t, len(p.marks), MaxLanes)
			_, err = p.encode()
			require.NoError(t, err)
		}
		next := position{epoch: epoch2, next: 99, marks: []int64{100}}
		require.NoError(t, storePosition(file, next))
		require.NoError(t, file.Close())
		_, p, _, err = openPosition(files, name)
		require.NoError(t, err)
		require.Equal(t, next, p)
	})
}

// covers: CUR-03
func TestATornWriteAtEveryByteLeavesAPosition(t *testing.T) {
	const name = "fanout-copy.offset"
	for cut := range slots.Size + 1 {
		for _, writes := range []int{1, 2, 3} {
			files := vfs.NewMem()
			f, _, v, err := openPosition(files, name)
			require.NoError(t, err)
			require.Equal(t, slots.Missing, v)
			for n := range writes {
				require.NoError(t, storePosition(f, position{epoch: epoch1, next: int64(n)}))
			}
			files.CutNextWrite(cut, vfs.ErrFrozen, name)
			require.Error(t, storePosition(f, position{epoch: epoch1, next: 99}))
			_, p, v, err := openPosition(files, name)
			require.NoError(t, err)
			require.NotEqual(t, slots.Damaged, v)
			if cut == slots.Size {
				require.EqualValues(t, 99, p.next)
			} else {
				require.EqualValues(t, writes-1, p.next, "cut at %d", cut)
			}
			require.NoError(t, f.Close())
		}
	}
}

func TestAPositionGoesOnlyWithItsOwnEpoch(t *testing.T) {
	const name = "fanout-copy.offset"
	files := vfs.NewMem()
	f, _, _, err := openPosition(files, name)
	require.NoError(t, err)
	require.NoError(t, storePosition(f, position{epoch: epoch2, next: 5}))
	require.NoError(t, f.Close())
	require.NoError(t, removePosition(files, name, epoch1))
	_, p, v, err := openPosition(files, name)
	require.NoError(t, err)
	require.Equal(t, slots.Older, v)
	require.EqualValues(t, 5, p.next)
	require.NoError(t, removePosition(files, name, epoch2))
	_, _, v, err = openPosition(files, name)
	require.NoError(t, err)
	require.Equal(t, slots.Missing, v)
	require.NoError(t, removePosition(files, name, epoch2), "twice is fine")
}
