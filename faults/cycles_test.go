package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/cluster"
)

// Toxics come and go a hundred times while connections carry data, and no call to toxiproxy takes long or is refused; afterwards the link is as it
// was (BR-37).
//
// covers: HAR-02
func TestAHundredCyclesUnderLoad(t *testing.T) {
	rig := start(t)
	link := rig.Link()
	loading, stop := context.WithCancel(t.Context())
	var loads sync.WaitGroup
	defer loads.Wait()
	defer stop()
	var passed atomic.Int64
	for range 4 {
		loads.Go(func() {
			for loading.Err() == nil {
				one, cancel := context.WithTimeout(loading, time.Second)
				if _, err := link.Probe(one, 4<<10); err == nil { // a toxic may end it
					passed.Add(1)
				}
				cancel()
			}
		})
	}
	kinds := []cluster.Toxic{
		cluster.Latency("", cluster.Upstream, time.Millisecond), cluster.Bandwidth("", cluster.Downstream, 1<<20),
		cluster.SlowClose("", cluster.Downstream, time.Millisecond), cluster.Stall("", cluster.Upstream, 0), cluster.ResetPeer("", cluster.Upstream, 0),
		cluster.Slicer("", cluster.Upstream, 512, time.Millisecond), cluster.LimitData("", cluster.Downstream, 1000),
	}
	for i := range 100 {
		toxic := kinds[i%len(kinds)]
		toxic.Name = fmt.Sprintf("cycle-%d", i)
		require.NoError(t, limited(t, func(ctx context.Context) error { return link.Add(ctx, toxic) }), toxic.Name)
		require.NoError(t, limited(t, func(ctx context.Context) error { return link.Remove(ctx, toxic.Name) }), toxic.Name)
	}
	stop()
	loads.Wait()
	require.Positive(t, passed.Load())
	up, set, err := link.State(t.Context())
	require.NoError(t, err)
	require.True(t, up)
	require.Empty(t, set)
	_, err = link.Probe(t.Context(), 4<<10)
	require.NoError(t, err)
}

// limited gives a control call the 5 s of BR-37.
func limited(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return call(ctx)
}
