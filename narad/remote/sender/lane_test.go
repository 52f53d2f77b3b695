package sender

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// always answers every chunk alike.
func always(a *outbound.Answer, err error) func(*got) (*outbound.Answer, error) {
	return func(*got) (*outbound.Answer, error) { return a, err }
}

// takesAll accepts every chunk and refuses what is none as a target of ours does not.
func takesAll(g *got) (*outbound.Answer, error) { return accepted(len(g.offsets)), nil }

// covers: ANS-01, SND-01, SND-02, SND-14, CUR-06, CUR-09
func TestASlabGoesThroughItsLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{delay: 10 * time.Millisecond}
		n := newNode(t, f)
		c := n.open(newLink(), 3, 4)
		require.Equal(t, Status{State: wire.Running, LastCheck: time.Now()}, c.Status())
		require.Equal(t, []int64{-1, -1, -1, -1}, c.Marks())
		require.NoError(t, c.Wait(t.Context()))
		recs := records(100, 2000)
		require.Equal(t, Committed, c.Ship(t.Context(), recs, nil))
		require.ElementsMatch(t, offsetsOf(recs), f.stored())
		ids := map[string]bool{}
		for _, g := range f.requests() {
			require.Equal(t, "/v1/topics/a%20b/produce/batch", g.path)
			require.Equal(t, "00000000000000aa", g.targetID)
			require.Regexp(t, "^[0-9a-f]{16}$", g.id)
			require.True(t, slices.IsSorted(g.offsets))
			ids[g.id] = true
		}
		require.Len(t, ids, len(f.requests()))
		require.Len(t, f.requests(), 4)
		require.Equal(t, int64(2099), slices.Max(c.Marks()))
		require.False(t, c.Status().LastSuccess.IsZero())
		require.Empty(t, n.logs.take(t))
		c.Close(t.Context())
		require.Equal(t, []wire.LinkState{wire.Running, ""}, n.seen.states)
		require.ErrorIs(t, waitClosed(t, c), ErrClosed)
	})
}

// waitClosed makes Wait look twice, since an open gate lets even a closed cursor's reader through.
func waitClosed(t *testing.T, c *Cursor) error {
	if err := c.Wait(t.Context()); err != nil {
		return err
	}
	if c.Ship(t.Context(), records(0, 1), nil) == Stopped {
		return ErrClosed
	}
	return nil
}

// heldStates are the answers that hold the cursor, with what it shows and how often the target is asked while they last.
var heldStates = []struct {
	name     string
	answer   *outbound.Answer
	err      error
	state    wire.LinkState
	log      string
	every    [2]time.Duration // bounds of the waits from the second request on
	requests [2]int           // in ten minutes
	resent   bool
}{
	{"401", shaped(401, "no"), nil, wire.AuthFailed, "ERROR remote child stalled auth_failed 401",
		[2]time.Duration{30 * time.Second, 30 * time.Second}, [2]int{21, 21}, false},
	{"403", shaped(403, "no"), nil, wire.Forbidden, "ERROR remote child stalled forbidden 403",
		[2]time.Duration{30 * time.Second, 30 * time.Second}, [2]int{21, 21}, false},
	{"404", shaped(404, "no"), nil, wire.TargetMissing, "ERROR remote child stalled target_missing 404",
		[2]time.Duration{30 * time.Second, 30 * time.Second}, [2]int{21, 21}, false},
	{"302", answer(302, ""), nil, wire.RedirectRefused, "ERROR remote child stalled redirect_refused 302",
		[2]time.Duration{30 * time.Second, 30 * time.Second}, [2]int{21, 21}, false},
	{"412", shaped(412, "not 00000000000000aa"), nil, wire.TargetReplaced, "ERROR remote child stalled target_replaced 412",
		[2]time.Duration{30 * time.Second, 30 * time.Second}, [2]int{21, 21}, false},
	{"guard", nil, &outbound.Failure{Class: outbound.Refused}, wire.DestinationRefused, "ERROR remote child stalled destination_refused",
		[2]time.Duration{30 * time.Second, 30 * time.Second}, [2]int{21, 21}, false},
	{"409", shaped(409, "no"), nil, wire.RejectedRecord, "ERROR remote child stalled rejected_record 409",
		[2]time.Duration{30 * time.Second, 30 * time.Second}, [2]int{21, 21}, false},
	{"429 for 7 s", shaped(429, "no", "Retry-After", "7"), nil, wire.TargetThrottled, "WARN remote child stalled throttled 429",
		[2]time.Duration{7 * time.Second, 7 * time.Second}, [2]int{86, 86}, false},
	{"429 for ever", shaped(429, "no", "Retry-After", "999999"), nil, wire.TargetThrottled, "WARN remote child stalled throttled 429",
		[2]time.Duration{60 * time.Second, 60 * time.Second}, [2]int{11, 11}, false},
	{"429", shaped(429, "no"), nil, wire.TargetThrottled, "WARN remote child stalled throttled 429",
		[2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, false},
	{"tls", nil, &outbound.Failure{Class: outbound.TLS}, wire.TLSFailed, "ERROR remote child stalled tls_failed",
		[2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, false},
	{"408", page(408), nil, wire.TargetUnavailable, "WARN remote child stalled unavailable 408",
		[2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, true},
	{"503", page(503), nil, wire.TargetUnavailable, "WARN remote child stalled unavailable 503",
		[2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, true},
	{"reset", nil, failure(outbound.Unreachable), wire.TargetUnavailable, "WARN remote child stalled unavailable",
		[2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, true},
	{"connection refused", nil, &outbound.Failure{Class: outbound.Unreachable}, wire.TargetUnavailable,
		"WARN remote child stalled unavailable", [2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, false},
	{"timeout", nil, failure(outbound.Timeout), wire.TargetUnavailable, "WARN remote child stalled unavailable",
		[2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, true},
	{"HTML", page(200), nil, wire.TargetUnavailable, "WARN remote child stalled unavailable 200",
		[2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, true},
	{"202 of too few", accepted(1), nil, wire.TargetUnavailable, "WARN remote child stalled unavailable 202",
		[2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, true},
	{"bare 404 of an edge", bare404(), nil, wire.TargetUnavailable, "WARN remote child stalled unavailable 404",
		[2]time.Duration{250 * time.Millisecond, 30 * time.Second}, [2]int{25, 120}, true},
}

// ceilingsOf are the bounds of the first waits in milliseconds: the gate's; before them, for a transient failure, two of the lane,
// since the third one in a row closes the gate (GAT-01, GAT-06, DEC-44).
func ceilingsOf(s wire.LinkState) []int {
	gate := []int{500, 1000, 2000, 4000, 8000, 16000, 30000}
	if s == wire.TargetUnavailable {
		return append([]int{500, 1000}, gate...)
	}
	return gate
}

// covers: ANS-08, ANS-09, ANS-10, ANS-12, ANS-13, ANS-14, ANS-15, ANS-16, ANS-17, ANS-18, ANS-19, ANS-20, ANS-21, ANS-24, LOG-02, LOG-03, LOG-04, LOG-05, CUR-08, CUR-09, GAT-02
func TestEveryStateHoldsAndClearsByItself(t *testing.T) {
	for _, h := range heldStates {
		t.Run(h.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeTarget{}
				n := newNode(t, f)
				c := n.open(newLink(), 0, 1)
				require.Equal(t, Committed, c.Ship(t.Context(), records(0, 10), nil)) // the gate is open
				f.set(always(h.answer, h.err))
				if h.name == "bare 404 of an edge" {
					f.list(always(bare404(), nil)) // so the lookup does not come through either
				}
				before := len(f.requests())
				recs := records(10, 50)
				out := ship(t.Context(), c, recs)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				require.Empty(t, out)
				require.Equal(t, h.state, c.Status().State)
				require.Equal(t, []int64{9}, c.Marks())
				seen := chunks(f.requests()[before:])
				require.GreaterOrEqual(t, len(seen), h.requests[0])
				require.LessOrEqual(t, len(seen), h.requests[1])
				for i := 1; i < len(seen); i++ {
					gap := seen[i].at.Sub(seen[i-1].at)
					require.GreaterOrEqual(t, gap, h.every[0])
					require.LessOrEqual(t, gap, h.every[1])
					if ceilings := ceilingsOf(h.state); h.every[0] == backoffFloor && i <= len(ceilings) {
						require.LessOrEqual(t, gap, time.Duration(ceilings[i-1])*time.Millisecond, i)
					}
				}
				resent, _, _ := n.seen.get()
				want := 0
				if h.resent {
					want = 50 * len(seen)
				}
				require.Equal(t, want, resent)
				logged := n.logs.take(t)
				if h.state == wire.RejectedRecord {
					require.Equal(t, "ERROR remote child blocked on a record the target refuses rejected_record 409 10", logged[0])
					logged = logged[1:]
				}
				require.Equal(t, []string{h.log}, logged)

				f.set(takesAll)
				f.list(nil)
				time.Sleep(61 * time.Second)
				synctest.Wait()
				require.Equal(t, Committed, <-out)
				require.Equal(t, wire.Running, c.Status().State)
				require.Equal(t, int64(-1), blockedAt(c.Status()))
				require.Equal(t, append(offsetsOf(records(0, 10)), offsetsOf(recs)...), f.stored())
				require.Equal(t, []string{"INFO remote child running again"}, n.logs.take(t))
				c.Close(t.Context())
			})
		})
	}
}

// chunks drops what is no batch produce.
func chunks(all []got) []got {
	return slices.DeleteFunc(slices.Clone(all), func(g got) bool { return len(g.offsets) == 0 })
}

// covers: ANS-11
func TestABare404OfATargetThatListsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{script: always(bare404(), nil)}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 1)
		out := ship(t.Context(), c, records(0, 5))
		time.Sleep(95 * time.Second)
		synctest.Wait()
		require.Equal(t, wire.NoBatchProduce, c.Status().State)
		require.Len(t, f.requests(), 4)
		require.Len(t, f.checked(), 1+4+3) // at the start, the lookup behind each chunk, before each retry
		require.Equal(t, "/v1/topics/a%20b/children", f.checked()[1].path)
		require.Equal(t, []string{"ERROR remote child stalled no_batch_produce 404"}, n.logs.take(t))
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
		c.Close(t.Context())
	})
}

// covers: ANS-09, GAT-03
func TestAStallIsTriedAtOnceWhenTheRemoteChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{script: always(shaped(403, "no"), nil), delay: 10 * time.Millisecond}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 8)
		out := ship(t.Context(), c, records(0, 100))
		time.Sleep(70 * time.Second)
		synctest.Wait()
		require.Equal(t, wire.Forbidden, c.Status().State)
		tried := len(f.requests())
		require.Equal(t, 8+2, tried, "one lane tries again for all")
		f.set(takesAll)
		changed := time.Now()
		n.change(func(r *Remote) { r.CredentialVersion = 2 })
		require.Equal(t, Committed, <-out)
		require.Equal(t, changed.Add(20*time.Millisecond), time.Now(), "the probe of the fresh gate, then the other lanes")
		c.Close(t.Context())
	})
}

// A 202 to a request that was sent before the stall began says nothing about it (DEC-37).
func TestALate202ClearsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 2)
		require.Equal(t, Committed, c.Ship(t.Context(), records(0, 1), nil))
		f.set(func(g *got) (*outbound.Answer, error) {
			if g.offsets[0]%2 == 0 {
				time.Sleep(100 * time.Millisecond)
				return shaped(403, "no"), nil
			}
			time.Sleep(time.Second)
			return accepted(len(g.offsets)), nil
		})
		recs := records(2, 2)
		recs[0].Key, recs[1].Key = nil, nil
		out := ship(t.Context(), c, recs)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, int64(3), c.Marks()[1])
		require.Equal(t, wire.Forbidden, c.Status().State)
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
		require.Equal(t, wire.Running, c.Status().State)
		c.Close(t.Context())
	})
}

// covers: CUR-08, CUR-09, ANS-18
func TestAStoppedSlabGoesOnWhereEachLaneWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{delay: time.Second}
		n := newNode(t, f)
		recs := records(0, 400)
		f.set(func(g *got) (*outbound.Answer, error) {
			if laneOf(&recs[g.offsets[0]], 4) == 2 {
				return page(503), nil
			}
			return accepted(len(g.offsets)), nil
		})
		c := n.open(newLink(), 0, 4)
		ctx, cancel := context.WithCancel(t.Context())
		out := ship(ctx, c, recs)
		time.Sleep(20 * time.Second)
		cancel()
		require.Equal(t, Stopped, <-out)
		marks := c.Marks()
		require.Equal(t, int64(-1), marks[2])
		c.Close(t.Context())

		next := n.open(newLink(), 0, 4, marks...) // as after a move: the marks came in the cursor file
		f.set(takesAll)
		n.change(func(r *Remote) { r.CredentialVersion++ })
		synctest.Wait()
		before := len(f.requests())
		require.Equal(t, Committed, next.Ship(t.Context(), recs, nil))
		require.Len(t, f.requests()[before:], 1, "only lane 2 had something left")
		require.ElementsMatch(t, offsetsOf(recs), f.stored())
		next.Close(t.Context())
	})
}

// covers: CUR-08
func TestCloseWaitsForTheWireThenCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{delay: 3 * time.Second}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 1)
		out := ship(t.Context(), c, records(0, 1500))
		time.Sleep(time.Second)
		within, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		c.Close(within)
		require.Equal(t, Stopped, <-out)
		require.Equal(t, []int64{999}, c.Marks(), "the request on the wire ended, no other one began")

		f.delay = time.Hour
		c = n.open(newLink(), 0, 1, 999)
		out = ship(t.Context(), c, records(0, 1500))
		time.Sleep(time.Second)
		begun := time.Now()
		within, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		c.Close(within)
		require.Equal(t, 5*time.Second, time.Since(begun))
		require.Equal(t, Stopped, <-out)
		require.Equal(t, []int64{999}, c.Marks())
		resent, _, _ := n.seen.get()
		require.Equal(t, 500, resent)

		c = n.open(newLink(), 0, 1, 999)
		ctx, stop := context.WithCancel(t.Context())
		out = ship(ctx, c, records(0, 1500))
		time.Sleep(time.Second)
		begun = time.Now()
		stop()
		require.Equal(t, Stopped, <-out)
		require.Equal(t, stopGrace, time.Since(begun), "a Ship whose context ended waits as long")
		c.Close(t.Context())
	})
}

// covers: SND-05, ANS-17, ANS-06, ANS-07
func TestTheByteCapHalvesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{script: always(nil, failure(outbound.Timeout))}
		n := newNode(t, f)
		big := records(0, 30)
		for i := range big {
			big[i].Payload = fmt.Appendf(nil, `{"o":%d,"x":"%s"}`, i, strings.Repeat("x", 60<<10))
		}
		c := n.open(newLink(), 0, 1)
		out := ship(t.Context(), c, big)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		seen := f.requests()
		limits := []int{960 << 10, 480 << 10, 240 << 10, 120 << 10, 64 << 10, 64 << 10}
		for i, limit := range limits {
			require.LessOrEqual(t, seen[i].bytes, limit)
			require.Greater(t, seen[i].bytes, limit-62<<10, "as much as fits")
		}
		_, _, lowest := n.seen.get()
		require.Equal(t, 64<<10, lowest)
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
		_, _, lowest = n.seen.get()
		require.Equal(t, 128<<10, lowest, "20 in a row doubled it")
		require.Equal(t, Committed, c.Ship(t.Context(), records(30, 1), nil))

		f.set(func(g *got) (*outbound.Answer, error) {
			if len(g.offsets) > 4 {
				return page(413), nil
			}
			return accepted(len(g.offsets)), nil
		})
		before := len(f.requests())
		require.Equal(t, Committed, c.Ship(t.Context(), records(31, 16), nil))
		require.Len(t, f.requests()[before:], 2+4)
		_, _, lowest = n.seen.get()
		require.Equal(t, 64<<10, lowest)
		require.Equal(t, wire.Running, c.Status().State)

		f.set(func(g *got) (*outbound.Answer, error) {
			if slices.Contains(g.offsets, 50) {
				return page(413), nil
			}
			return accepted(len(g.offsets)), nil
		})
		out = ship(t.Context(), c, records(47, 9))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, wire.RecordTooLarge, c.Status().State)
		require.Equal(t, int64(50), blockedAt(c.Status()))
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
		c.Close(t.Context())
	})
}
