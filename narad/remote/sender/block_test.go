package sender

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// refuses answers a chunk that has the record like a target that refuses it, unless the record went in a form that ok allows.
func refuses(offset int64, status int, indexed bool, ok func(coded bool) bool) func(*got) (*outbound.Answer, error) {
	return func(g *got) (*outbound.Answer, error) {
		i := slices.Index(g.offsets, offset)
		switch {
		case i < 0 || ok(g.base64[i]):
			return accepted(len(g.offsets)), nil
		case indexed:
			return shaped(status, "message "+string(rune('0'+i/100%10))+string(rune('0'+i/10%10))+string(rune('0'+i%10))+": no"), nil
		}
		return shaped(status, "no"), nil
	}
}

func never(bool) bool { return false }

// covers: ANS-02, ANS-03, ANS-04, SND-09, LOG-06, CUR-09
func TestALaneBlocksOnTheRecordThatIsRefused(t *testing.T) {
	for name, script := range map[string]func(*got) (*outbound.Answer, error){
		"named":     refuses(77, 400, true, never),
		"not named": refuses(77, 400, false, never),
		"422":       refuses(77, 422, false, never),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeTarget{script: script}
				n := newNode(t, f)
				l := newLink()
				c := n.open(l, 2, 4)
				recs := records(0, 200)
				out := ship(t.Context(), c, recs)
				time.Sleep(time.Second)
				synctest.Wait()
				st := c.Status()
				require.Equal(t, wire.RejectedRecord, st.State)
				require.Equal(t, int64(77), blockedAt(st))
				require.Equal(t, wire.RejectedRecord, st.Blocked[0].State)
				status := map[bool]string{true: "422", false: "400"}[name == "422"]
				require.Equal(t, []string{
					"ERROR remote child blocked on a record the target refuses rejected_record " + status + " 77",
					"ERROR remote child stalled rejected_record " + status,
				}, n.logs.take(t))
				lane := laneOf(&recs[77], 4)
				for i := range recs {
					stored := slices.Contains(f.stored(), recs[i].Offset)
					require.Equal(t, laneOf(&recs[i], 4) != lane || i < 77, stored, "the other lanes finish the slab: %d", i)
				}
				tried := len(f.requests())
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				for _, g := range f.requests()[tried:] {
					require.Equal(t, []int64{77}, g.offsets)
				}
				require.Len(t, f.requests()[tried:], 2*20, "raw and as base64, every 30 s")
				require.Empty(t, n.logs.take(t))

				l.set(func(v *LinkLive) { v.Skips = func(o int64) bool { return o == 77 } })
				require.Equal(t, Committed, <-out)
				require.Equal(t, wire.Running, c.Status().State)
				require.Equal(t, []string{"INFO remote child running again"}, n.logs.take(t))
				require.NotContains(t, f.stored(), int64(77))
				require.Len(t, f.stored(), 199)
				_, skipped, _ := n.seen.get()
				require.Equal(t, 1, skipped)
				c.Close(t.Context())
			})
		})
	}
}

// A target that names a record which it takes (BR-13 C) costs requests and no record: the named one goes alone before the lane blocks, so
// that nobody is asked to skip it, and the record that is refused is found.
//
// covers: ANS-02, LOG-06, CUR-09
func TestAnIndexThatLiesWithinTheChunkBlocksNoOtherRecord(t *testing.T) {
	for _, named := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeTarget{script: func(g *got) (*outbound.Answer, error) {
				if !slices.Contains(g.offsets, 77) {
					return accepted(len(g.offsets)), nil
				}
				return shaped(400, "message "+string(rune('0'+min(named, len(g.offsets)-1)))+": no"), nil
			}}
			n := newNode(t, f)
			l := newLink()
			c := n.open(l, 0, 1)
			recs := records(0, 100)
			for i := range recs {
				recs[i].Payload = append([]byte(" "), recs[i].Payload...) // white space around: base64 is its one form
			}
			out := ship(t.Context(), c, recs)
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, int64(77), blockedAt(c.Status()))
			require.Equal(t, []string{
				"ERROR remote child blocked on a record the target refuses rejected_record 400 77",
				"ERROR remote child stalled rejected_record 400",
			}, n.logs.take(t))
			require.Equal(t, offsetsOf(recs[:77]), f.stored())
			require.LessOrEqual(t, len(f.requests()), 2*78+2, "a refused chunk and the named record alone for each")
			l.set(func(v *LinkLive) { v.Skips = func(o int64) bool { return o == 77 } })
			require.Equal(t, Committed, <-out)
			require.Len(t, f.stored(), 99)
			c.Close(t.Context())
		})
	}
}

// covers: SND-09, ANS-02, ANS-03
func TestARecordThatIsRefusedRawGoesOnceAsBase64(t *testing.T) {
	for _, indexed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeTarget{script: refuses(7, 400, indexed, func(coded bool) bool { return coded })}
			n := newNode(t, f)
			c := n.open(newLink(), 0, 1)
			require.Equal(t, Committed, c.Ship(t.Context(), records(0, 20), nil))
			require.Equal(t, offsetsOf(records(0, 20)), f.stored())
			for _, g := range f.requests() {
				if slices.Contains(g.base64, true) {
					require.Equal(t, []int64{7}, g.offsets)
				}
			}
			require.Empty(t, n.logs.take(t))
			c.Close(t.Context())
		})
	}
}

// covers: ANS-05
func TestA409BlocksOnTheFirstRecordWithoutBase64(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{script: always(shaped(409, "stub"), nil)}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 1)
		out := ship(t.Context(), c, records(5, 20))
		time.Sleep(31 * time.Second)
		synctest.Wait()
		require.Equal(t, int64(5), blockedAt(c.Status()))
		require.Len(t, f.requests(), 2)
		require.Equal(t, []int64{5}, f.requests()[1].offsets)
		require.False(t, f.requests()[1].base64[0])
		f.set(takesAll)
		changed := time.Now()
		n.change(func(r *Remote) { r.Limits.RequestTimeoutMS++ })
		require.Equal(t, Committed, <-out)
		require.Equal(t, changed, time.Now(), "a changed remote is tried at once")
		c.Close(t.Context())
	})
}

// Every lane that is stuck shows its record, the lowest first, and any of them may be skipped (DEC-37).
//
// covers: WRT-10, LST-04
func TestEveryStuckLaneIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		f.set(func(g *got) (*outbound.Answer, error) {
			if slices.ContainsFunc(g.offsets, func(o int64) bool { return o == 6 || o == 9 }) {
				return page(413), nil
			}
			return accepted(len(g.offsets)), nil
		})
		n := newNode(t, f)
		l := newLink()
		c := n.open(l, 0, 4)
		out := ship(t.Context(), c, records(0, 16))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		stuck := func(o int64) wire.BlockedAt {
			return wire.BlockedAt{Partition: c.cfg.Partition, Offset: o, State: wire.RecordTooLarge}
		}
		require.Equal(t, []wire.BlockedAt{stuck(6), stuck(9)}, c.Status().Blocked)
		l.set(func(v *LinkLive) { v.Skips = func(o int64) bool { return o == 9 } })
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []wire.BlockedAt{stuck(6)}, c.Status().Blocked, "the higher one was skipped first")
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
		c.Close(t.Context())
	})
}

// A skip of a record that the lane has not reached passes it in its place and loses nothing below it (BR-04, DEC-35).
func TestASkipMovesNoMarkOverUnsentRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{script: always(page(503), nil)}
		n := newNode(t, f)
		l := newLink()
		c := n.open(l, 0, 4)
		recs := records(0, 2000)
		out := ship(t.Context(), c, recs)
		time.Sleep(time.Minute)
		l.set(func(v *LinkLive) { v.Skips = func(o int64) bool { return o == 900 } })
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []int64{-1, -1, -1, -1}, c.Marks())
		_, skipped, _ := n.seen.get()
		require.Zero(t, skipped)
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
		require.NotContains(t, f.stored(), int64(900))
		require.Len(t, f.stored(), 1999)
		_, skipped, _ = n.seen.get()
		require.Equal(t, 1, skipped)
		c.Close(t.Context())
	})
}

// covers: SND-04
func TestATargetThatTakesFewGetsFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{script: func(g *got) (*outbound.Answer, error) {
			if len(g.offsets) > 100 {
				return shaped(400, "too many messages"), nil
			}
			return accepted(len(g.offsets)), nil
		}}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 1)
		require.Equal(t, Committed, c.Ship(t.Context(), records(0, 1000), nil))
		require.Len(t, f.requests(), 1+10)
		require.Equal(t, Committed, c.Ship(t.Context(), records(1000, 1000), nil))
		require.Len(t, f.requests(), 1+20, "it is remembered")
		require.Equal(t, offsetsOf(records(0, 2000)), f.stored())
		require.Empty(t, n.logs.take(t))
		c.Close(t.Context())
	})
}

// covers: SND-04
func TestTheBatchSizeIsAskedForOncePerRemoteAndCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, 101, strings.Count(string(target.SizeBody), "{}"))
		f := &fakeTarget{}
		n := newNode(t, f)
		var cursors []*Cursor
		for i := range 10 {
			cursors = append(cursors, n.open(newLink(), i, 1))
		}
		largest := func(from int64) int {
			before := len(f.requests())
			require.Equal(t, Committed, cursors[0].Ship(t.Context(), records(from, 2000), nil))
			most := 0
			for _, g := range f.requests()[before:] {
				most = max(most, len(g.offsets))
			}
			return most
		}
		require.Equal(t, 1000, largest(0))
		f.change(func() { f.few = true })
		n.change(func(r *Remote) { r.Limits.MaxInFlight++ })
		time.Sleep(time.Hour)
		require.Len(t, f.sized(), 1)
		require.Equal(t, "/v1/topics/a%20b/produce/batch", f.sized()[0].path)
		n.change(func(r *Remote) { r.CredentialVersion++ })
		synctest.Wait()
		require.Len(t, f.sized(), 2)
		require.Equal(t, 100, largest(2000))

		f.change(func() { f.few = false })
		f.change(func() { f.sizing = always(page(503), nil) })
		n.change(func(r *Remote) { r.CredentialVersion++ })
		synctest.Wait()
		require.Len(t, f.sized(), 3)
		require.Equal(t, 100, largest(4000), "one that is not answered leaves 100")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.GreaterOrEqual(t, len(f.sized()), 5, "and is repeated")
		f.change(func() { f.sizing = nil })
		time.Sleep(100 * time.Second)
		synctest.Wait()
		require.Equal(t, 1000, largest(6000))
		resent, _, _ := n.seen.get()
		require.Zero(t, resent)

		asked := len(f.sized())
		f.change(func() { f.sizing = always(shaped(401, "no"), nil) })
		n.change(func(r *Remote) { r.CredentialVersion++ })
		synctest.Wait()
		require.Len(t, f.sized(), asked+1)
		require.Equal(t, wire.AuthFailed, cursors[3].Status().State, "its answer counts at the gate")
	})
}

// A batch-size probe takes a slot, and none goes while the gate is closed, on the heels of a probe.
//
// covers: SND-04, GAT-05
func TestTheBatchSizeProbeWaitsForASlotAndTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{delay: 10 * time.Second}
		n := newNode(t, f)
		n.change(func(r *Remote) { r.Limits.MaxInFlight = 1 })
		f.list(always(page(503), nil))
		f.set(always(page(503), nil))
		c := n.begin(newLink(), 0, 1)
		out := ship(t.Context(), c, records(0, 500))
		time.Sleep(10 * time.Minute)
		require.Empty(t, f.sized())
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
		require.Len(t, f.sized(), 1)
		for _, g := range f.requests() {
			if g.stored {
				require.False(t, f.sized()[0].at.Before(g.at) && f.sized()[0].at.After(g.at.Add(-f.delay)), "while a chunk has the slot")
			}
		}
	})
}

func TestAPauseStartsNothingAndLetsTheWireEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{delay: time.Second}
		n := newNode(t, f)
		l := newLink()
		c := n.open(l, 0, 1)
		out := ship(t.Context(), c, records(0, 2500))
		time.Sleep(500 * time.Millisecond)
		l.set(func(v *LinkLive) { v.Paused = true })
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, wire.Paused, c.Status().State)
		require.Equal(t, []int64{999}, c.Marks())
		require.Len(t, f.requests(), 1)
		waited := make(chan error, 1)
		go func() { waited <- c.Wait(t.Context()) }()
		synctest.Wait()
		require.Empty(t, waited)
		l.set(func(v *LinkLive) { v.Paused = false })
		require.NoError(t, <-waited)
		require.Equal(t, Committed, <-out)
		require.Equal(t, offsetsOf(records(0, 2500)), f.stored())
		require.Empty(t, n.logs.take(t))
		c.Close(t.Context())
	})
}

// covers: LOG-02, LOG-03
func TestANodeThatCannotSendHoldsAndWakes(t *testing.T) {
	for _, state := range []wire.LinkState{wire.RemoteMissing, wire.CredentialUnreadable, wire.NodeInsecure} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeTarget{}
			n := newNode(t, f)
			n.change(func(r *Remote) { *r = Remote{State: state} })
			c := n.open(newLink(), 0, 2)
			waited := make(chan error, 1)
			go func() { waited <- c.Wait(t.Context()) }()
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Empty(t, waited)
			require.Equal(t, state, c.Status().State)
			out := ship(t.Context(), c, records(0, 10))
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Empty(t, out)
			require.Empty(t, f.requests())
			require.Equal(t, []string{"ERROR remote child stalled " + string(state)}, n.logs.take(t))
			n.change(func(r *Remote) { *r = Remote{Client: f, CredentialVersion: 9, ID: "r2"} })
			require.NoError(t, <-waited)
			require.Equal(t, Committed, <-out)
			synctest.Wait()
			require.Equal(t, []string{"INFO remote child running again"}, n.logs.take(t))
			c.Close(t.Context())
		})
	}
}

// covers: LOG-04, LOG-05
func TestWarningsComeAtMostOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := true
		f := &fakeTarget{}
		f.set(func(g *got) (*outbound.Answer, error) { // every second request fails
			fails = !fails
			if fails {
				return page(503), nil
			}
			return accepted(len(g.offsets)), nil
		})
		n := newNode(t, f)
		c := n.open(newLink(), 0, 1)
		begun := time.Now()
		for i := range int64(1000) {
			require.Equal(t, Committed, c.Ship(t.Context(), records(i, 1), nil))
			time.Sleep(100 * time.Millisecond)
		}
		logged := n.logs.take(t)
		warned := 0
		for i, line := range logged {
			if line == "WARN remote child stalled unavailable 503" {
				warned++
				require.Equal(t, "INFO remote child running again", logged[i+1])
			}
		}
		require.Len(t, logged, 2*warned)
		require.LessOrEqual(t, warned, 1+int(time.Since(begun)/time.Minute))
		require.Greater(t, warned, 1)
		c.Close(t.Context())
	})
}
