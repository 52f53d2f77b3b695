package node_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
)

// What a node stamps, it stamps by its wall clock at that moment: a step forward moves the times of the successes and checks that come after
// it and of what an admin does, a step back does not move those that are there, and neither makes the link wait.
//
// covers: LST-04
func TestStampsFollowTheWallClock(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var step atomic.Int64
		wall := func() time.Time { return time.Now().Round(0).Add(time.Duration(step.Load())) }
		source := b.machine("source")
		source.now = wall
		p := linkFrom(t, b, source)
		p.produce(0, 6)
		p.shipped(6)
		near := func(what string, text *string, want time.Time) {
			t.Helper()
			require.NotNil(t, text, what)
			at, err := time.Parse(time.RFC3339, *text)
			require.NoError(t, err)
			require.WithinDuration(t, want, at, 3*time.Minute, what)
		}
		step.Store(int64(25 * time.Hour))
		time.Sleep(2 * time.Minute) // a check comes by itself
		p.produce(6, 12)
		p.shipped(12)
		_, e := p.lag()
		near("success", e.LastSuccessAt, wall())
		near("check", e.TargetVerifiedAt, wall())
		ahead := wall()
		stub, err := p.source.client().Pause(client.WithRequestID(t.Context(), "00000000000000c1"), "orders", "orders-dr", "clock")
		require.NoError(t, err)
		require.WithinDuration(t, ahead, time.UnixMilli(stub.Remote.PausedAtMS), time.Minute)
		step.Store(0)
		_, e = p.lag()
		near("success", e.LastSuccessAt, ahead)
		require.GreaterOrEqual(t, e.LagSeconds, 0.0)
		p.source.stop()
		p.target.stop()
	})
}
