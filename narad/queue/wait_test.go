package queue

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// covers: BRK-05
func TestALongPollWakes(t *testing.T) {
	consume := func(r *rig, index *int) chan []wire.Delivery {
		got := make(chan []wire.Delivery, 1)
		go func() {
			list, err := r.m.Consume(context.Background(), "t", index, 10, 10*time.Second)
			assert.NoError(r.t, err)
			got <- list
		}()
		synctest.Wait()
		return got
	}
	t.Run("by a record", func(t *testing.T) {
		bubble(t, 3, Settings{}, func(r *rig) {
			began := time.Now()
			anyOne, second := consume(r, nil), consume(r, ptr(2))
			time.Sleep(time.Second)
			r.put(1, 1)
			require.Len(t, <-anyOne, 1)
			require.Equal(t, time.Second, time.Since(began))
			r.put(2, 1)
			require.Len(t, <-second, 1)
			require.Equal(t, time.Second, time.Since(began))
		})
	})
	t.Run("by the end of its wait", func(t *testing.T) {
		bubble(t, 3, Settings{}, func(r *rig) {
			began := time.Now()
			require.Empty(t, <-consume(r, nil))
			require.Equal(t, 10*time.Second, time.Since(began))
		})
	})
	t.Run("by a nack", func(t *testing.T) {
		bubble(t, 1, Settings{}, func(r *rig) {
			r.put(0, 1)
			d := r.take(nil, 1)[0]
			got := consume(r, nil)
			require.NoError(t, r.m.Nack(r.t.Context(), "t", d.Handle))
			require.Len(t, <-got, 1)
		})
	})
	t.Run("by a lease that runs out", func(t *testing.T) {
		bubble(t, 1, Settings{VisibilityTimeout: 4 * time.Second}, func(r *rig) {
			began := time.Now()
			r.put(0, 2)
			first := r.take(nil, 1)[0]
			time.Sleep(time.Second)
			r.take(nil, 1)
			require.NoError(t, r.m.Extend(r.t.Context(), "t", first.Handle)) // both end after 5 s now
			got := consume(r, nil)
			require.Len(t, <-got, 2)
			require.Equal(t, 5*time.Second, time.Since(began))
		})
	})
	t.Run("by an ack below a cap", func(t *testing.T) {
		bubble(t, 1, Settings{MaxInFlight: 2}, func(r *rig) {
			r.put(0, 5)
			held := r.take(nil, 5)
			require.Len(t, held, 2)
			got := consume(r, nil)
			time.Sleep(time.Second)
			r.ack(held[1])
			require.Equal(t, []int64{2}, offsetsOf(<-got))
		})
	})
	t.Run("by its context and by Close", func(t *testing.T) {
		bubble(t, 1, Settings{}, func(r *rig) {
			ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
			defer cancel()
			_, err := r.m.Consume(ctx, "t", nil, 1, time.Minute)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			r.put(0, 1)
			_, err = r.m.Consume(ctx, "t", nil, 1, time.Minute)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Len(t, r.take(nil, 1), 1, "nothing was leased for a consumer who is gone")
			closed := make(chan error, 1)
			go func() {
				_, err := r.m.Consume(context.Background(), "t", nil, 1, time.Minute)
				closed <- err
			}()
			synctest.Wait()
			require.NoError(t, r.m.Close())
			r.refused(wire.Unavailable, <-closed)
		})
	})
}

// Every one of many waiting consumers gets a record when so many come at once, although each arrival wakes only one.
func TestManyWaitersShareWhatComes(t *testing.T) {
	bubble(t, 4, Settings{}, func(r *rig) {
		var wg sync.WaitGroup
		var mu sync.Mutex // guards seen
		seen := map[string]bool{}
		for range 100 {
			wg.Go(func() {
				got, err := r.m.Consume(context.Background(), "t", nil, 1, time.Minute)
				require.NoError(t, err)
				require.Len(t, got, 1)
				mu.Lock()
				defer mu.Unlock()
				require.False(t, seen[string(got[0].Payload)], "given twice")
				seen[string(got[0].Payload)] = true
			})
		}
		synctest.Wait()
		began := time.Now()
		r.put(2, 60)
		r.put(0, 40)
		wg.Wait()
		require.Len(t, seen, 100)
		require.Equal(t, began, time.Now())
	})
}

// A consumer whose wait ends at the moment it is woken passes the news on, else the record would lie there unseen.
func TestAWokenConsumerWhoGoesWakesTheNext(t *testing.T) {
	bubble(t, 1, Settings{VisibilityTimeout: 24 * time.Hour}, func(r *rig) {
		for range 100 {
			began := time.Now()
			var wg sync.WaitGroup
			var mu sync.Mutex // guards got
			got := 0
			for _, wait := range []time.Duration{time.Second, time.Minute} {
				wg.Go(func() {
					list, err := r.m.Consume(context.Background(), "t", nil, 10, wait)
					require.NoError(t, err)
					mu.Lock()
					defer mu.Unlock()
					got += len(list)
				})
				synctest.Wait()
			}
			time.Sleep(time.Second)
			r.put(0, 1)
			synctest.Wait()
			mu.Lock()
			require.Equal(t, 1, got)
			mu.Unlock()
			r.put(0, 1) // for whoever still waits
			wg.Wait()
			require.Equal(t, time.Second, time.Since(began))
			for len(r.take(nil, 10)) > 0 {
			}
		}
	})
}
