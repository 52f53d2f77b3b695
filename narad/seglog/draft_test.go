package seglog

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/vfs"
)

func appendText(t require.TestingT, l *Log, list ...string) error {
	b := NewBatch()
	defer b.Free()
	for _, text := range list {
		b.Add([]byte(text))
	}
	next := l.Next()
	first, err := l.Append(context.Background(), b)
	if err == nil {
		require.Equal(t, next, first)
	}
	return err
}

// A draft is synced when a segment is sealed and when it is settled; after that each append is.
//
// covers: BRK-04
func TestADraftIsSyncedOnce(t *testing.T) {
	mem, synced := vfs.NewMem(), 0
	l, err := Open(Options{FS: mem, Dir: "log", Draft: true, SegmentBytes: 1000, OnSync: func(time.Duration) { synced++ }})
	require.NoError(t, err)
	for range 5 {
		require.NoError(t, appendText(t, l, "some text"))
	}
	require.Zero(t, synced)
	require.EqualValues(t, 5, l.Next())
	for range 60 {
		require.NoError(t, appendText(t, l, "some text"))
	}
	sealed := len(l.Segments()) - 1
	require.Positive(t, sealed)
	require.Equal(t, sealed, synced)
	rests, err := l.Rest(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, rests, "the file that was written to hears whether it came to the disk")
	require.NoError(t, l.Settle(t.Context()))
	require.Equal(t, sealed+1, synced)
	require.NoError(t, l.Settle(t.Context()))
	require.Equal(t, sealed+1, synced, "there is nothing left to sync")
	rests, err = l.Rest(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, rests)
	require.NoError(t, appendText(t, l, "a last one"))
	require.Equal(t, sealed+2, synced)
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Settle(t.Context()), ErrClosed)
}

// Whenever the power goes, what was settled is there, what came after it too, and of an unsettled draft a run from the front.
//
// covers: BRK-04
func TestASettledDraftSurvivesAPowerLoss(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mem := vfs.NewMem()
		o := Options{FS: mem, Dir: "log", SegmentBytes: int64(rapid.IntRange(100, 5000).Draw(rt, "segment")), Draft: true}
		l, err := Open(o)
		require.NoError(rt, err)
		var wrote []string
		write := func(appends int) {
			for range appends {
				var batch []string
				for range rapid.IntRange(1, 4).Draw(rt, "frames") {
					batch = append(batch, fmt.Sprintf("%0*d", rapid.IntRange(1, 900).Draw(rt, "width"), len(wrote)+len(batch)+1))
				}
				require.NoError(rt, appendText(rt, l, batch...))
				wrote = append(wrote, batch...)
			}
		}
		write(rapid.IntRange(0, 20).Draw(rt, "before"))
		owed := 0
		if rapid.Bool().Draw(rt, "settled") {
			require.NoError(rt, l.Settle(context.Background()))
			write(rapid.IntRange(0, 5).Draw(rt, "after"))
			owed = len(wrote)
		}
		mem.DropUnsyncedPartly(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "kept") })
		_ = l.Close() // what a dead process closes does not matter
		o.Draft = false
		l, err = Open(o)
		require.NoError(rt, err)
		require.GreaterOrEqual(rt, l.Next(), int64(owed))
		var buf Buffer
		for seq := l.First(); seq < l.Next(); {
			frames, err := l.Read(seq, 100, 1<<20, &buf)
			require.NoError(rt, err)
			for _, f := range frames {
				require.Equal(rt, wrote[f.Seq], string(f.Body))
				seq = f.Seq + 1
			}
		}
		require.NoError(rt, l.Close())
	})
}

// A power loss that forgets a sector in the middle of a draft leaves a torn tail and no damage, since nothing behind it was synced alone.
//
// covers: BRK-04
func TestADraftIsOneGroup(t *testing.T) {
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "log", Draft: true}
	l, err := Open(o)
	require.NoError(t, err)
	for i := range 40 {
		require.NoError(t, appendText(t, l, fmt.Sprintf("%0100d", i)))
	}
	asked := 0
	mem.DropUnsyncedPartly(func(n int) int {
		asked++
		if asked == 6 { // after the two that ask for the file's length, the fourth sector
			return 0
		}
		return n - 1
	})
	_ = l.Close() // what a dead process closes does not matter
	l, err = Open(o)
	require.NoError(t, err)
	require.Positive(t, l.Next())
	require.Less(t, l.Next(), int64(20))
	require.NoError(t, l.Close())
}

// A draft that cannot be synced is of no use, whether a sealed segment or the last one fails.
//
// covers: BRK-04
func TestADraftThatDoesNotSync(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, text := range []string{"settled", "sealed"} {
		t.Run(text, func(t *testing.T) {
			mem := vfs.NewMem()
			l, err := Open(Options{FS: mem, Dir: "log", Draft: true, SegmentBytes: 200})
			require.NoError(t, err)
			require.NoError(t, appendText(t, l, "some text"))
			mem.FailNext(vfs.OpSync, broken, ".log")
			if text == "settled" {
				err = l.Settle(t.Context())
			} else {
				err = appendText(t, l, fmt.Sprintf("%0200d", 1))
			}
			require.ErrorIs(t, err, ErrFailed)
			require.ErrorIs(t, err, broken)
			require.ErrorIs(t, l.Settle(t.Context()), ErrFailed)
			require.ErrorIs(t, appendText(t, l, "more"), ErrFailed)
			require.NoError(t, l.Close())
		})
	}
}
