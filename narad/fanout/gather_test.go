package fanout

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// linger is fanout.linger_ms as it stands by itself.
const linger = 25 * time.Millisecond

// TestALinkThatKeepsUpGathers: the first record goes at once, those that follow wait until the slab before is linger old, and a backlog for nothing.
//
// covers: SND-03
func TestALinkThatKeepsUpGathers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.start()
		defer g.end()
		slabs := func() int { synctest.Wait(); return len(g.target.shipments()) }
		time.Sleep(time.Minute)
		g.commit(orders(1), 0, 1)
		require.Equal(t, 1, slabs(), "the first one goes at once")
		for range 100 {
			time.Sleep(time.Millisecond)
			g.commit(orders(1), 0, 1)
		}
		require.Equal(t, 1+4, slabs(), "in a tenth of a second")
		time.Sleep(time.Minute)
		require.Equal(t, numbers(0, 101), g.target.got("copy", 0))

		waiting := func() int {
			synctest.Wait()
			return int(g.partition(orders(1).ID, 0).HighWatermark()) - len(g.target.got("copy", 0))
		}
		began := time.Now()
		g.commit(orders(1), 0, 3*laneRecords)
		require.Zero(t, waiting(), "a backlog waits for nothing")
		g.commit(orders(1), 0, laneRecords-1)
		require.Equal(t, laneRecords-1, waiting())
		g.commit(orders(1), 0, 1)
		require.Zero(t, waiting(), "nor does a slab that is full")
		require.Zero(t, time.Since(began))
	})
}
