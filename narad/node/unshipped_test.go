package node_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// racers produce through every node now and then, and note when each record's 202 came.
type racers struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu       sync.Mutex // guards the rest
	accepted map[string]time.Time
}

func race(t *testing.T, all []*machine, round int) *racers {
	ctx, stop := context.WithCancel(t.Context())
	r := &racers{stop: stop, accepted: map[string]time.Time{}}
	for n, m := range all {
		c := m.client()
		r.all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				payload := fmt.Sprintf("r%d-%d-%d", round, n, i)
				if c.Produce(ctx, "orders", []byte(payload), client.ProduceOptions{Key: fmt.Sprint("k", i%5)}) == nil {
					r.mu.Lock()
					r.accepted[payload] = time.Now()
					r.mu.Unlock()
				}
				time.Sleep(time.Duration(1900+170*n+7*round) * time.Millisecond) // room for a delete to find nothing unshipped
			}
		})
	}
	return r
}

// next waits until another record is accepted.
func (r *racers) next() {
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.accepted)
	}
	for n := count(); count() == n; {
		time.Sleep(time.Millisecond)
	}
}

func (r *racers) end() { r.stop(); r.all.Wait() }

// Produces through three nodes race detaches that use no force: whatever was accepted before the delete that went through began is on the
// target, each round, wherever the delete fell.
//
// covers: UNS-06, UNS-01
func TestADeleteLosesNothingThatWasAcceptedBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, target := farLink(t, b)
		for _, m := range all {
			m.disk.SetSyncDelay(20 * time.Millisecond) // a record is on its way from the ingress to its partition for a while
		}
		require.NoError(t, all[0].client().Detach(t.Context(), "orders", "orders-dr", true))
		decided := 0
		for round := range 6 {
			b.eventually("attached again", func() bool { // with a delay, so that no request on the wire makes good what a delete overlooked
				time.Sleep(6 * time.Second) // between two checks of the remote (TGT-13)
				_, err := all[0].client().AttachRemote(t.Context(), "orders", wire.AttachChild{Child: "orders-dr", Remote: "dr", Lanes: 2, DelayMS: 300})
				return err == nil
			})
			b.everywhere(all, "orders-dr")
			r := race(t, all, round)
			var began time.Time
			phases := []int{0, 3, 7, 12, 15, 19, 25, 45, 120, 700}
			try := 0
			b.eventually("the detach goes through", func() bool {
				time.Sleep(10 * time.Second) // between two checks (UNS-04)
				r.next()
				time.Sleep(time.Duration(phases[try%len(phases)]) * time.Millisecond)
				try++
				began = time.Now()
				err := all[round%3].client().Detach(t.Context(), "orders", "orders-dr", false)
				if status := statusOf(err); err != nil {
					require.Contains(t, []int{409, 429, 503}, status, "%v", err)
					return false
				}
				return true
			})
			r.end()
			stored := map[string]bool{}
			for _, partition := range target.stored("orders") {
				for _, payload := range partition {
					stored[payload] = true
				}
			}
			for payload, at := range r.accepted {
				if at.Before(began) {
					decided++
					require.True(t, stored[payload], "%s was accepted %s before the delete", payload, began.Sub(at))
				}
			}
		}
		require.Greater(t, decided, 50)
		for _, m := range append(all, target) {
			m.stop()
		}
	})
}
