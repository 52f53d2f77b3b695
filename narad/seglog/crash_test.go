package seglog

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/vfs"
)

// crash is one life of a process that several writers use, ended at a drawn moment. acked collects what was acknowledged:
// the text of each frame by its sequence number.
type crash struct {
	mem   *vfs.Mem
	o     Options
	acked map[int64]string
	life  int
}

// live opens the log, checks that every acknowledged frame is there, and lets writers append until the kill.
func (c *crash) live(rt *rapid.T) {
	c.life++
	l, err := Open(c.o)
	require.NoError(rt, err)
	c.verify(rt, l)
	writers := rapid.IntRange(1, 4).Draw(rt, "writers")
	frames := rapid.IntRange(1, 6).Draw(rt, "frames a batch")
	width := rapid.IntRange(1, 900).Draw(rt, "width")
	kill := time.Duration(rapid.IntRange(0, 20_000).Draw(rt, "kill at")) * time.Microsecond
	var mu sync.Mutex // guards c.acked while the writers run
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := 0; ; n++ {
				b := NewBatch()
				for i := range frames {
					b.Add(c.text(w, n, i, width))
				}
				first, err := l.Append(context.Background(), b)
				b.Free()
				if err != nil {
					return
				}
				mu.Lock()
				for i := range frames {
					c.acked[first+int64(i)] = string(c.text(w, n, i, width))
				}
				mu.Unlock()
			}
		})
	}
	time.Sleep(kill)
	c.mem.Freeze()
	wg.Wait()
	_ = l.Close() // what a dead process closes does not matter
	switch rapid.SampledFrom([]string{"kill", "power loss", "power loss while writing back"}).Draw(rt, "end") {
	case "power loss":
		c.mem.DropUnsynced()
	case "power loss while writing back":
		c.mem.DropUnsyncedPartly(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "kept") })
	}
	c.mem.Thaw()
}

// text is never a run of zeros, as the payload of a record would not be.
func (c *crash) text(writer, n, i, width int) []byte {
	return fmt.Appendf(nil, "%0*d life %d writer %d batch %d frame %d", width, 7, c.life, writer, n, i)
}

func (c *crash) verify(rt *rapid.T, l *Log) {
	var buf Buffer
	found := map[int64]string{}
	for seq := l.First(); seq < l.Next(); {
		frames, err := l.Read(seq, 100, 1<<20, &buf)
		require.NoError(rt, err)
		for _, f := range frames {
			found[f.Seq] = string(f.Body)
			seq = f.Seq + 1
		}
	}
	for seq, text := range c.acked {
		require.Equal(rt, text, found[seq], "the acknowledged frame %d", seq)
	}
	// What is visible now must stay, acknowledged or not.
	c.acked = found
}

// covers: BRK-01, BRK-04
func TestAcknowledgedFramesSurviveKillsAndPowerLosses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		inBubble(t, func() {
			mem := vfs.NewMem()
			mem.SetSyncDelay(time.Duration(rapid.IntRange(100, 3000).Draw(rt, "sync")) * time.Microsecond)
			c := &crash{mem: mem, acked: map[int64]string{}, o: Options{
				FS: mem, Dir: "data/log", SegmentBytes: int64(rapid.IntRange(100, 20_000).Draw(rt, "segment")),
				Lazy: rapid.Bool().Draw(rt, "lazy"),
			}}
			for range rapid.IntRange(1, 4).Draw(rt, "lives") {
				c.live(rt)
			}
			l, err := Open(c.o)
			require.NoError(rt, err)
			c.verify(rt, l)
			require.NoError(rt, l.Close())
		})
	})
}

// inBubble runs one case of a property in virtual time. A failed case leaves the bubble as a value, since a panic would end the
// whole test binary there.
func inBubble(t *testing.T, f func()) {
	t.Helper()
	var failed any
	synctest.Test(t, func(*testing.T) {
		defer func() { failed = recover() }()
		f()
	})
	if failed != nil {
		panic(failed)
	}
}
