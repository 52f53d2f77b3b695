package seglog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	mem := vfs.NewMem()
	var synced atomic.Int32
	l, err := Open(Options{FS: mem, Dir: "log", Draft: true, SegmentBytes: 1000, OnSync: func(time.Duration) { synced.Add(1) }})
	require.NoError(t, err)
	for range 5 {
		require.NoError(t, appendText(t, l, "some text"))
	}
	require.Zero(t, synced.Load())
	require.EqualValues(t, 5, l.Next())
	for range 60 {
		require.NoError(t, appendText(t, l, "some text"))
	}
	sealed := len(l.Segments()) - 1
	require.Positive(t, sealed)
	l.syncing.Wait()
	require.EqualValues(t, sealed, synced.Load())
	rests, err := l.Rest(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, rests, "the file that was written to hears whether it came to the disk")
	require.NoError(t, l.Settle(t.Context()))
	require.EqualValues(t, sealed+1, synced.Load())
	require.NoError(t, l.Settle(t.Context()))
	require.EqualValues(t, sealed+1, synced.Load(), "there is nothing left to sync")
	rests, err = l.Rest(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, rests)
	require.NoError(t, appendText(t, l, "a last one"))
	require.EqualValues(t, sealed+2, synced.Load())
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Settle(t.Context()), ErrClosed)
}

// Whenever the power goes, what was settled is there, and what came after it too. An unsettled draft does not open, or has a run from the front.
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
		if owed == 0 && errors.Is(err, ErrDamaged) {
			return
		}
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

// A sector that a settled draft loses is damage, as in any other log, and no torn tail that recovery may cut.
//
// covers: BRK-04
func TestASettledDraftThatLosesASector(t *testing.T) {
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "log", Draft: true}
	l, err := Open(o)
	require.NoError(t, err)
	for i := range 40 {
		require.NoError(t, appendText(t, l, fmt.Sprintf("%0100d", i)))
	}
	require.NoError(t, l.Settle(t.Context()))
	path := l.list[0].path
	require.NoError(t, l.Close())
	f, err := mem.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, sectorBytes), 4*sectorBytes)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	o.Draft = false
	_, err = Open(o)
	require.ErrorIs(t, err, ErrDamaged)
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
				require.NoError(t, appendText(t, l, fmt.Sprintf("%0200d", 1)), "nobody waits for the sync of a full segment")
				err = l.Settle(t.Context())
			}
			require.ErrorIs(t, err, ErrFailed)
			require.ErrorIs(t, err, broken)
			require.ErrorIs(t, l.Settle(t.Context()), ErrFailed)
			require.ErrorIs(t, appendText(t, l, "more"), ErrFailed)
			require.NoError(t, l.Close())
		})
	}
}

// A draft goes on while its full segments are synced. Whoever settles or closes it waits for them, and their files stay open until then.
//
// covers: BRK-04
func TestADraftSyncsBehind(t *testing.T) {
	for _, end := range []string{"settled", "closed"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := vfs.NewMem()
				l, err := Open(Options{FS: mem, Dir: "log", Draft: true, SegmentBytes: 200})
				require.NoError(t, err)
				mem.SetSyncDelay(time.Hour)
				begun := time.Now()
				for range openFiles {
					require.NoError(t, appendText(t, l, fmt.Sprintf("%0150d", 1)))
				}
				require.Zero(t, time.Since(begun))
				require.Len(t, l.Segments(), openFiles)
				for _, s := range l.list {
					require.NotNil(t, s.file)
				}
				if end == "settled" {
					require.NoError(t, l.Settle(t.Context()))
				} else {
					require.NoError(t, l.Close())
				}
				require.Equal(t, time.Hour, time.Since(begun))
				for _, s := range l.list[:len(l.list)-1] {
					require.Zero(t, s.refs)
				}
				require.NoError(t, l.Close())
			})
		})
	}
}
