package queue

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// No mutex is held while a partition is opened, which waits for the disk: consumers of the topic's other partitions go on, and in
// a bubble with a slow disk the clock does.
//
// covers: BRK-05
func TestOpeningAPartitionHoldsNobodyUp(t *testing.T) {
	bubble(t, 3, Settings{}, func(r *rig) {
		r.mem.SetSyncDelay(50 * time.Millisecond)
		defer r.mem.SetSyncDelay(0)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				got, err := r.m.Consume(r.t.Context(), "t", nil, 1, time.Second)
				require.NoError(r.t, err)
				require.Empty(r.t, got)
			})
		}
		wg.Wait()
	})
}

// A topic that is forgotten or a queue that is closed while a partition of it is being opened leaves nothing open behind.
func TestALateOpeningIsGivenBack(t *testing.T) {
	bubble(t, 3, Settings{}, func(r *rig) {
		r.mem.SetSyncDelay(50 * time.Millisecond)
		defer r.mem.SetSyncDelay(0)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := r.m.Consume(r.t.Context(), "t", ptr(1), 1, time.Second)
			require.Error(r.t, err)
		})
		time.Sleep(time.Millisecond)
		require.NoError(r.t, r.m.Close())
		wg.Wait()
		require.EqualValues(r.t, -1, r.m.Frontier(r.info.ID, 1))
	})
}

// A partition is released, or moved, while its frontier is being synced: no mutex is held for as long as the disk takes, so that in a bubble
// the clock goes on.
//
// covers: BRK-05
func TestASlowSyncOfAFrontierHoldsNoMutex(t *testing.T) {
	bubble(t, 1, Settings{}, func(r *rig) {
		r.put(0, 2)
		held := r.take(nil, 2)
		r.ack(held[0])
		time.Sleep(2 * time.Second) // the file is there
		r.mem.SetSyncDelay(3 * time.Second)
		defer r.mem.SetSyncDelay(0)
		r.ack(held[1])
		var wg sync.WaitGroup
		wg.Go(func() { require.NoError(r.t, r.m.Hold(r.info.ID, 0)) })
		wg.Go(func() { require.NoError(r.t, r.m.Release(r.info.ID, 0)) })
		wg.Wait()
		r.m.Unhold(r.info.ID, 0)
		require.EqualValues(r.t, 2, r.m.Frontier(r.info.ID, 0))
	})
}
