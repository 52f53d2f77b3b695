package partition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/seglog"
	"narad.example/narad/vfs"
)

// On a full disk the segment that is appended to cannot be sealed. What is due and older goes all the same, which makes the room, and nothing that is
// acknowledged later is lost.
//
// covers: BRK-03, BRK-04
func TestRetainOnAFullDisk(t *testing.T) {
	mem, now := vfs.NewMem(), time.UnixMilli(1_000_000)
	o := Options{FS: mem, Dir: "t/0", SegmentBytes: 500, Now: func() time.Time { return now }}
	p := open(t, o)
	for range 10 {
		_, err := p.Commit(t.Context(), []Record{{Payload: make([]byte, 90)}})
		require.NoError(t, err)
	}
	now = now.Add(time.Hour)
	mem.SetCapacity(mem.Used())
	dropped, err := p.Retain(time.Minute)
	require.ErrorIs(t, err, seglog.ErrFull)
	require.Positive(t, dropped)
	require.Equal(t, 1, p.Stats().Segments)
	first, err := p.Commit(t.Context(), []Record{{Payload: []byte("acknowledged")}})
	require.NoError(t, err, "there is room now")
	require.EqualValues(t, 10, first)
	mem.SetCapacity(mem.Used())
	now = now.Add(time.Hour)
	_, err = p.Retain(time.Minute)
	require.ErrorIs(t, err, seglog.ErrFull, "there is no older one")
	mem.SetCapacity(0) // somebody made room
	_, err = p.Commit(t.Context(), []Record{{Payload: []byte("acknowledged too")}})
	require.NoError(t, err)
	require.NoError(t, p.Close())
	p = open(t, o)
	require.EqualValues(t, 12, p.HighWatermark())
	require.NotEmpty(t, all(t, p, 10, 1000))
}
