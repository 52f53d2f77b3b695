package partition

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/seglog"
	"narad.example/narad/vfs"
)

// foreign is a good frame that holds no record.
func foreign(t *testing.T, seq int64) []byte {
	l, err := seglog.Open(seglog.Options{FS: vfs.NewMem(), Dir: "other", Start: seq})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	b := seglog.NewBatch()
	b.Add([]byte("short"))
	_, err = l.Append(t.Context(), b)
	require.NoError(t, err)
	var buf seglog.Buffer
	_, err = l.Read(seq, 1, 100, &buf)
	require.NoError(t, err)
	return buf.Run()
}

func TestImportKeepsOffsetsAndTimes(t *testing.T) {
	at := time.UnixMilli(5000)
	source := open(t, Options{FS: vfs.NewMem(), Dir: "a", SegmentBytes: 300, Codec: NewZstd(1), Now: func() time.Time { return at }})
	for i := range 20 {
		at = at.Add(time.Second)
		_, err := source.Commit(t.Context(), []Record{{Key: []byte("k"), Payload: bytes.Repeat(fmt.Append(nil, i), 1+40*(i%2))}})
		require.NoError(t, err)
	}
	_, err := source.Retain(10 * time.Second)
	require.NoError(t, err)
	want := all(t, source, 100, 1<<20)
	target := open(t, Options{FS: vfs.NewMem(), Dir: "b", Start: source.Oldest(), Now: func() time.Time { return time.UnixMilli(1) }})
	read := func(from int64, most int) *Stored {
		var s Stored
		require.NoError(t, source.ReadStored(from, most, 1<<20, &s))
		return &s
	}
	begin := source.Oldest()
	require.NoError(t, target.Import(t.Context(), read(begin, 3)))
	require.ErrorIs(t, target.Import(t.Context(), read(begin+4, 9)), ErrGap)
	require.ErrorIs(t, target.Import(t.Context(), read(begin+2, 9)), ErrGap)
	for name, spoil := range map[string]func(s *Stored){
		"cut":      func(s *Stored) { s.Frames = s.Frames[:len(s.Frames)-1] },
		"changed":  func(s *Stored) { s.Frames[len(s.Frames)-1] ^= 1 },
		"fewer":    func(s *Stored) { s.Records++ },
		"moved on": func(s *Stored) { s.First++ },
		"others":   func(s *Stored) { s.Records, s.Frames = 1, foreign(t, s.First) },
	} {
		run := read(begin+3, 1)
		spoil(run)
		require.ErrorIs(t, target.Import(t.Context(), run), ErrForeign, name)
		require.Equal(t, begin+3, target.HighWatermark(), "nothing of it was stored")
	}
	for next := begin + 3; next < source.HighWatermark(); next = target.HighWatermark() {
		require.NoError(t, target.Import(t.Context(), read(next, 100)))
		require.Greater(t, target.HighWatermark(), next)
	}
	require.NoError(t, target.Import(t.Context(), read(source.HighWatermark(), 100)))
	var s Stored
	require.ErrorIs(t, source.ReadStored(begin-1, 1, 1, &s), ErrTrimmed)
	require.Empty(t, s.Frames)
	require.Equal(t, want, all(t, target, 100, 1<<20))
	first, err := target.Commit(t.Context(), []Record{{Payload: []byte("x")}})
	require.NoError(t, err)
	ms, err := target.CommitTime(first)
	require.NoError(t, err)
	require.GreaterOrEqual(t, ms, want[len(want)-1].CommitMS, "times do not decrease after a move")
}
