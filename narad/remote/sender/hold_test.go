package sender

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

func (b *budget) total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

func (c *counts) holds() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// lend gives records out as a reader does: their memory is used for something else once it was given back.
func lend(recs []Record) (lent []Record, release func()) {
	lent = make([]Record, len(recs))
	for i := range recs {
		lent[i] = Record{Offset: recs[i].Offset, Key: []byte(string(recs[i].Key)), Payload: []byte(string(recs[i].Payload))}
	}
	return lent, func() {
		for i := range lent {
			clear(lent[i].Key)
			clear(lent[i].Payload)
			lent[i] = Record{Offset: -7}
		}
	}
}

// reads runs a fan-out cursor in short over one slab, and counts how often it is read and how often a slab is out.
func reads(ctx context.Context, c *Cursor, recs []Record, times, out, most *atomic.Int64) <-chan Outcome {
	done := make(chan Outcome, 1)
	go func() {
		for {
			if c.Wait(ctx) != nil {
				done <- Stopped
				return
			}
			times.Add(1)
			for now := out.Add(1); now > most.Load(); {
				most.Store(now)
			}
			var back atomic.Bool
			lent, release := lend(recs)
			o := c.Ship(ctx, lent, func() { back.Store(true); out.Add(-1); release() })
			if !back.Load() {
				out.Add(-1)
			}
			if o != ReadAgain {
				done <- o
				return
			}
		}
	}()
	return done
}

// covers: GAT-07, GAT-09
func TestALaneThatWaitsHoldsCopiesAndTheSlabGoesBack(t *testing.T) {
	for name, hold := range map[string]func(f *fakeTarget, n *node, l *link) (free func()){
		"the gate": func(f *fakeTarget, _ *node, _ *link) func() {
			f.set(always(page(503), nil))
			return func() { f.set(takesAll) }
		},
		"a stall": func(f *fakeTarget, _ *node, _ *link) func() {
			f.set(always(shaped(403, "no"), nil))
			return func() { f.set(takesAll) }
		},
		"a pause": func(_ *fakeTarget, _ *node, l *link) func() {
			l.set(func(v *LinkLive) { v.Paused = true })
			return func() { l.set(func(v *LinkLive) { v.Paused = false }) }
		},
		"a blocked record": func(f *fakeTarget, _ *node, _ *link) func() {
			f.set(refuses(100, 409, false, never))
			return func() { f.set(takesAll) }
		},
		"the remote": func(_ *fakeTarget, n *node, _ *link) func() {
			n.change(func(r *Remote) { r.State = wire.CredentialUnreadable })
			return func() { n.change(func(r *Remote) { r.State = "" }) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeTarget{}
				n := newNode(t, f)
				l := newLink()
				c := n.open(l, 0, 4)
				free := hold(f, n, l)
				recs := records(100, 400)
				lent, release := lend(recs)
				var back, released atomic.Int64
				out := make(chan Outcome, 1)
				begun := time.Now()
				go func() {
					out <- c.Ship(t.Context(), lent, func() { back.Add(1); released.Store(int64(time.Since(begun))); release() })
				}()
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, int64(1), back.Load())
				require.GreaterOrEqual(t, time.Duration(released.Load()), holdAfter)
				require.Positive(t, n.seen.holds())
				require.Equal(t, n.seen.holds(), n.senders.held.total())
				free()
				require.Equal(t, Committed, <-out)
				require.ElementsMatch(t, offsetsOf(recs), f.stored())
				require.Zero(t, n.seen.holds())
				require.Equal(t, int64(1), back.Load())
			})
		})
	}
}

// covers: GAT-08, CUR-06, CUR-07
func TestWithoutRoomTheSlabIsReadAgainAndOnlyWhatIsMissingIsSent(t *testing.T) {
	for _, limit := range []int64{0, 1000} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeTarget{}
			n := newNode(t, f)
			n.senders.held.limit = limit
			c := n.open(newLink(), 0, 4)
			recs := records(0, 400)
			f.set(refuses(70, 409, false, never)) // 3 lanes finish, one blocks in its middle
			var times, slabs, most atomic.Int64
			out := reads(t.Context(), c, recs, &times, &slabs, &most)
			time.Sleep(10*time.Minute + 5*time.Second)
			synctest.Wait()
			require.Empty(t, out)
			require.Equal(t, int64(0), slabs.Load(), "nothing is kept")
			require.InDelta(t, 21, times.Load(), 1, "read again for each try of the blocked record")
			require.Equal(t, int64(70), blockedAt(c.Status()), "blocks and states stay")
			logged := strings.Count(strings.Join(n.logs.take(t), "\n"), "ERROR remote child reads its records again after each wait")
			if limit == 0 {
				require.Zero(t, logged, "that is how it was set")
			} else {
				require.InDelta(t, 10, logged, 1, "once a minute")
			}
			f.set(takesAll)
			require.Equal(t, Committed, <-out)
			require.ElementsMatch(t, offsetsOf(recs), f.stored(), "once each")
			require.Zero(t, n.seen.holds())
		})
	}
}

// covers: GAT-04, GAT-08
func TestADeadRemoteWithoutRoomCostsOneReadPerProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		n.senders.held.limit = 0
		var times, slabs, most atomic.Int64
		var outs []<-chan Outcome
		var cursors []*Cursor
		for i := range 10 {
			cursors = append(cursors, n.open(newLink(), i, 2))
		}
		f.list(always(page(503), nil))
		f.set(always(page(503), nil))
		for _, c := range cursors {
			outs = append(outs, reads(t.Context(), c, records(0, 20), &times, &slabs, &most))
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		read, sent := times.Load(), len(f.checked())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.LessOrEqual(t, int(times.Load()-read), len(f.checked())-sent)
		f.list(nil)
		f.set(takesAll)
		for _, out := range outs {
			require.Equal(t, Committed, <-out)
		}
	})
}

// DEC-39: a paused cursor's share goes to a lane that finds no room, the longest pause first, and nothing is logged.
//
// covers: GAT-07
func TestAPausedCursorMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		recs := records(0, 100)
		each := int64(0)
		for i := range recs {
			each += int64(len(recs[i].Key)+len(recs[i].Payload)) + recordOverhead
		}
		n.senders.held.limit = 2*each + 10
		var times, slabs, most [3]atomic.Int64
		var outs [3]<-chan Outcome
		var links [3]*link
		var cursors [3]*Cursor
		for i := range 3 {
			links[i] = newLink()
			cursors[i] = n.open(links[i], i, 1)
		}
		start := func(i int) {
			outs[i] = reads(t.Context(), cursors[i], recs, &times[i], &slabs[i], &most[i])
			synctest.Wait()
			time.Sleep(5 * time.Second)
		}
		f.set(always(shaped(403, "no"), nil))
		start(0)
		start(1)
		require.Equal(t, 2*each, n.seen.holds())
		for _, i := range []int{1, 0} { // the second to come is paused first
			links[i].set(func(v *LinkLive) { v.Paused = true })
			time.Sleep(5 * time.Second)
		}
		start(2)
		require.Equal(t, 2*each, n.seen.holds())
		links[0].set(func(v *LinkLive) { v.Paused = false })
		f.set(takesAll)
		require.Equal(t, Committed, <-outs[0])
		require.Equal(t, int64(1), times[0].Load(), "the shorter pause kept its records")
		links[1].set(func(v *LinkLive) { v.Paused = false })
		require.Equal(t, Committed, <-outs[1])
		require.Equal(t, int64(2), times[1].Load(), "the longest pause gave its share")
		require.Equal(t, Committed, <-outs[2])
		require.NotContains(t, strings.Join(n.logs.take(t), "\n"), "max_held_bytes")
		require.Zero(t, n.seen.holds())
	})
}

// A cursor that was paused before it held anything makes room like one that was paused later.
func TestACursorThatHoldsUnderAPauseMakesRoomToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		n.senders.held.limit = 12_000
		l := newLink()
		paused, stalled := n.open(l, 0, 1), n.open(newLink(), 1, 1)
		l.set(func(v *LinkLive) { v.Paused = true })
		given := ship(t.Context(), paused, records(0, 100))
		time.Sleep(5 * time.Second)
		f.set(always(shaped(403, "no"), nil))
		out := ship(t.Context(), stalled, records(0, 100))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, ReadAgain, <-given)
		require.Empty(t, out)
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
	})
}

// covers: GAT-10, NET-08
func TestAtMostMaxInFlightCursorsHaveASlabThatIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		n.change(func(r *Remote) { r.Limits.MaxInFlight = 3 })
		var times, slabs, most atomic.Int64
		var cursors []*Cursor
		for i := range 20 {
			cursors = append(cursors, n.open(newLink(), i, 1))
		}
		f.delay = 20 * time.Second
		f.set(func(*got) (*outbound.Answer, error) { return page(503), nil })
		var outs []<-chan Outcome
		for _, c := range cursors {
			outs = append(outs, reads(t.Context(), c, records(0, 20), &times, &slabs, &most))
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, int64(3), most.Load())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, int64(3), most.Load())
		require.Equal(t, int64(3), times.Load(), "none reads while others hold records (DEC-24)")
		f.delay = 0
		f.set(takesAll)
		for _, out := range outs {
			require.Equal(t, Committed, <-out)
		}
		require.Zero(t, slabs.Load())
	})
}
