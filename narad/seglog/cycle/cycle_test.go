package cycle

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job is a request of a test; run says in which cycle it was.
type job struct {
	id, size int
	cycle    int
}

// recorder makes a Cycle whose cycles last a second each.
func recorder(limit int64) (c *Cycle[*job], cycles *[][]int) {
	cycles = new([][]int)
	c = New(func(jobs []*job) {
		time.Sleep(time.Second)
		var ids []int
		for _, j := range jobs {
			ids = append(ids, j.id)
			j.cycle = len(*cycles) + 1
		}
		*cycles = append(*cycles, ids)
	}, func(j *job) int64 { return int64(j.size) }, limit)
	return c, cycles
}

func TestWaitingRequestsShareTheNextCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cycles := recorder(10)
		var wg sync.WaitGroup
		for id, size := range []int{1, 4, 4, 4, 50, 1, 1} {
			wg.Go(func() {
				j := &job{id: id, size: size}
				require.NoError(t, c.Do(t.Context(), j))
				require.NotZero(t, j.cycle)
			})
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, [][]int{{0}, {1, 2}, {3}, {4}, {5, 6}}, *cycles, "in order, within the limit, a large one alone")
	})
}

func TestWithdrawing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cycles := recorder(100)
		do := func(id int, patience time.Duration) chan error {
			done := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				done <- c.Do(ctx, &job{id: id})
			}()
			synctest.Wait()
			return done
		}
		first := do(0, 500*time.Millisecond)
		gone, stays := do(1, 100*time.Millisecond), do(2, time.Minute)
		taken := do(3, 1500*time.Millisecond)
		require.ErrorIs(t, <-gone, context.DeadlineExceeded)
		require.NoError(t, <-first, "a request in work learns the true outcome")
		require.NoError(t, <-stays)
		require.NoError(t, <-taken)
		require.Equal(t, [][]int{{0}, {2, 3}}, *cycles)
		require.ErrorIs(t, <-do(4, 0), context.DeadlineExceeded)
		require.Len(t, *cycles, 2)
	})
}

// Whoever gives up at the very moment that it is named the next leader must lead all the same, or all others wait for ever.
func TestALeaderWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			c, _ := recorder(2)
			var wg sync.WaitGroup
			for id := range 6 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(id%3+1)*time.Second)
					defer cancel()
					_ = c.Do(ctx, &job{id: id, size: 1}) // done or withdrawn, both will do
				})
			}
			wg.Wait()
			require.NoError(t, c.Do(t.Context(), &job{id: 9}))
		}
	})
}

func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cycles := recorder(1)
		var wg sync.WaitGroup
		for id := range 3 {
			wg.Go(func() { require.NoError(t, c.Do(t.Context(), &job{id: id, size: 1})) })
			synctest.Wait()
		}
		c.Close()
		require.Len(t, *cycles, 3)
		require.ErrorIs(t, c.Do(t.Context(), &job{}), ErrClosed)
		c.Close()
		wg.Wait()
	})
}

func TestSignal(t *testing.T) {
	var s Signal
	s.Fire()
	a, b := s.Wait(), s.Wait()
	select {
	case <-a:
		t.Fatal("an earlier Fire woke a later waiter")
	default:
	}
	s.Fire()
	<-a
	<-b
	select {
	case <-s.Wait():
		t.Fatal("the signal stayed fired")
	default:
	}
}
