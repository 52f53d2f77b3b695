package sender

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
)

// A failure that comes late begins no wait of the gate, so the lane waits its own, however soon the gate lets a probe through.
//
// covers: GAT-06
func TestALateFailureWaitsForItsOwnBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		slow, fast := n.open(newLink(), 0, 1), n.open(newLink(), 1, 1)
		require.Equal(t, Committed, slow.Ship(t.Context(), records(0, 1), nil))
		require.Equal(t, Committed, fast.Ship(t.Context(), records(0, 1), nil))
		answer := make(chan struct{})
		f.set(func(g *got) (*outbound.Answer, error) {
			if g.offsets[0] == 100 {
				<-answer
			}
			return shaped(503, "no"), nil
		})
		out := ship(t.Context(), slow, records(100, 1))
		synctest.Wait()
		ship(t.Context(), fast, records(200, 1))
		gate := slow.remote.look().gate
		for !gate.notice().closed {
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		fast.Close(t.Context()) // the slow one is the next to be the probe
		gate.mu.Lock()
		opens := gate.until
		gate.mu.Unlock()
		time.Sleep(time.Until(opens) - 10*time.Millisecond)
		before, late := len(f.requests()), time.Now()
		close(answer)
		time.Sleep(backoffFloor - time.Millisecond)
		synctest.Wait()
		require.Len(t, f.requests(), before+1, "the chunk whose failure came late went again %s after it", time.Since(late))
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
		slow.Close(t.Context())
	})
}

// DEC-28: one who finds the gate closed gives its slot back.
func TestNobodySendsPastAGateThatClosedWhileItWaitedForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		n.change(func(r *Remote) { r.Limits.MaxInFlight = 1 })
		cursors := []*Cursor{n.open(newLink(), 0, 1), n.open(newLink(), 1, 1), n.open(newLink(), 2, 1)}
		require.Equal(t, Committed, cursors[0].Ship(t.Context(), records(0, 1), nil))
		f.set(always(shaped(401, "no"), nil))
		f.delay = time.Second
		var outs []<-chan Outcome
		for _, c := range cursors {
			outs = append(outs, ship(t.Context(), c, records(1, 1)))
		}
		time.Sleep(30 * time.Second)
		require.Len(t, f.requests(), 2)
		f.set(takesAll)
		for _, out := range outs {
			require.Equal(t, Committed, <-out)
		}
		for _, c := range cursors {
			c.Close(t.Context())
		}
	})
}
