package sender

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

const remoteChild = `[{"name":"local"},{"name":"copy","remote":"us","state":"running"}]`

// covers: RUN-01, RUN-03
func TestNoChunkGoesBeforeTheFirstCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		f.list(func(*got) (*outbound.Answer, error) {
			time.Sleep(5 * time.Second)
			return lists(`[]`), nil
		})
		n := newNode(t, f)
		begun := time.Now()
		c := n.begin(newLink(), 0, 8)
		require.True(t, c.Status().LastCheck.IsZero())
		require.Equal(t, Committed, c.Ship(t.Context(), records(0, 100), nil))
		for _, g := range f.requests() {
			require.GreaterOrEqual(t, g.at.Sub(begun), 5*time.Second)
		}
		require.Len(t, f.checked(), 1)
		require.Equal(t, begun.Add(5*time.Second), c.Status().LastCheck)
	})
}

// covers: RUN-01, NET-08
func TestAnIdleCursorChecksEveryIntervalWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 1)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		gaps := func(all []got, around time.Duration) {
			low, high := time.Hour, time.Duration(0)
			for i := 1; i < len(all); i++ {
				gap := all[i].at.Sub(all[i-1].at)
				low, high = min(low, gap), max(high, gap)
			}
			require.GreaterOrEqual(t, low, around*8/10)
			require.Less(t, low, around*85/100)
			require.LessOrEqual(t, high, around*12/10)
			require.Greater(t, high, around*115/100)
		}
		gaps(f.checked(), time.Minute)
		require.Less(t, time.Since(c.Status().LastCheck), 72*time.Second)
		n.change(func(r *Remote) { r.Limits.CheckIntervalMS = 10_000 })
		before := len(f.checked())
		time.Sleep(time.Hour)
		synctest.Wait()
		gaps(f.checked()[before:], 10*time.Second)
		require.Empty(t, f.requests())
		require.Empty(t, n.logs.take(t))
	})
}

// covers: RUN-03, RUN-04, RUN-09, RUN-11, LOG-02, LOG-03
func TestACheckThatFindsALoopOrAnotherTopicStopsTheLink(t *testing.T) {
	old := func(id string) func(g *got) (*outbound.Answer, error) { // serves no parent_id (RUN-09)
		return func(g *got) (*outbound.Answer, error) {
			if g.path == "/v1/topics/a%20b" {
				return answer(200, `{"name":"a b"`+id+`}`), nil
			}
			return answer(200, `{"parent":"a b","children":[{"name":"local"}]}`), nil
		}
	}
	for name, k := range map[string]struct {
		listing func(g *got) (*outbound.Answer, error)
		state   wire.LinkState
	}{
		"a remote child":             {always(lists(remoteChild), nil), wire.TargetHasRemoteChildren},
		"another ID":                 {always(answer(200, `{"parent":"a b","parent_id":"bb","children":[]}`), nil), wire.TargetReplaced},
		"another ID, an old target":  {old(`,"id":"bb"`), wire.TargetReplaced},
		"no ID, a much older target": {old(``), wire.TargetReplaced},
		"no topic, an older target":  {func(g *got) (*outbound.Answer, error) { return notThere(old(``), g) }, wire.TargetMissing},
		"the listing is forbidden":   {always(shaped(403, "no"), nil), wire.Forbidden},
		"the topic is gone":          {always(shaped(404, "no"), nil), wire.TargetMissing},
		"the listing is elsewhere":   {always(answer(302, ""), nil), wire.RedirectRefused},
		"the address guard refuses":  {always(nil, &outbound.Failure{Class: outbound.Refused}), wire.DestinationRefused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeTarget{delay: 10 * time.Second}
				n := newNode(t, f)
				c := n.open(newLink(), 0, 4)
				idle := n.open(newLink(), 1, 4)
				f.list(k.listing)
				out := ship(t.Context(), c, records(0, 4*9000))
				time.Sleep(85 * time.Second) // every cursor has checked again, and what was on the wire has ended
				synctest.Wait()
				stopped := len(f.requests())
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				require.Len(t, f.requests(), stopped, "no chunk after that answer")
				require.Empty(t, out)
				for _, c := range []*Cursor{c, idle} {
					require.Equal(t, k.state, c.Status().State)
				}
				waited := make(chan error, 1)
				go func() { waited <- idle.Wait(t.Context()) }()
				f.list(always(page(503), nil))
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				require.Len(t, f.requests(), stopped, "an errored check clears nothing")
				require.Empty(t, waited, "nor is a slab read")
				lines := n.logs.take(t)
				require.Len(t, lines, 2, "once each: %v", lines)
				require.Contains(t, lines[0], "ERROR remote child stalled "+string(k.state))
				if k.listing != nil {
					f.list(nil)
				}
				require.NoError(t, <-waited)
				require.Equal(t, Committed, <-out)
				synctest.Wait()
				require.Equal(t, wire.Running, c.Status().State)
				require.Equal(t, wire.Running, idle.Status().State, "without a record too")
				require.Equal(t, []string{"INFO remote child running again", "INFO remote child running again"}, n.logs.take(t))
			})
		})
	}
}

func notThere(old func(g *got) (*outbound.Answer, error), g *got) (*outbound.Answer, error) {
	if g.path == "/v1/topics/a%20b" {
		return shaped(404, "no"), nil
	}
	return old(g)
}

// covers: RUN-04, RUN-09, RUN-11
func TestTheRecordedIDIsTheOneThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		f.list(func(g *got) (*outbound.Answer, error) {
			if g.path == "/v1/topics/a%20b" {
				return answer(200, `{"name":"a b"}`), nil
			}
			return answer(200, `{"parent":"a b","children":[]}`), nil
		})
		n := newNode(t, f)
		c := n.senders.Open(LinkConfig{Parent: "orders", Child: "c", Remote: "eu", TargetTopic: "a b", Lanes: 1})
		require.Equal(t, Committed, c.Ship(t.Context(), records(0, 10), nil), "no ID is recorded and none is served")
		f.list(always(answer(200, `{"parent":"a b","parent_id":"bb","children":[]}`), nil))
		time.Sleep(72 * time.Second)
		synctest.Wait()
		require.Equal(t, wire.TargetReplaced, c.Status().State, "an ID appeared")
		c.Close(t.Context())

		l := newLink()
		c = n.open(l, 0, 1)
		require.Equal(t, wire.TargetReplaced, c.Status().State)
		out := ship(t.Context(), c, records(0, 10))
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		require.Empty(t, out)
		accepted := time.Now()
		l.set(func(v *LinkLive) { v.TargetID = "bb" })
		require.Equal(t, Committed, <-out)
		require.Equal(t, accepted, time.Now(), "accept_target is acted on at once")
	})
}

// covers: RUN-02, RUN-08, LST-08
func TestAnErroredCheckBesideAnOpenGateHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 4)
		opened := time.Now()
		f.list(always(page(503), nil))
		at := int64(0)
		send := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); at += 10 {
				began := time.Now()
				require.Equal(t, Committed, c.Ship(t.Context(), records(at, 10), nil))
				require.Equal(t, began, time.Now(), "nothing waits")
				time.Sleep(time.Second)
			}
		}
		send(10*time.Minute - time.Since(opened) - time.Second)
		require.False(t, c.Status().Unverified)
		send(2 * time.Second)
		require.True(t, c.Status().Unverified)
		require.Equal(t, opened, c.Status().LastCheck)
		require.Equal(t, wire.Running, c.Status().State)
		checks := f.checked()[1:]
		require.Equal(t, len(checks), n.seen.checksFailed())
		for i := 1; i < len(checks); i++ {
			require.Equal(t, 30*time.Second, checks[i].at.Sub(checks[i-1].at))
		}
		n.change(func(r *Remote) { r.Limits.CheckIntervalMS = 10_000 })
		before := len(f.checked())
		send(100 * time.Second)
		checks = f.checked()[before:]
		require.GreaterOrEqual(t, len(checks), 9) // the first one's place depends on the one before
		for i := 1; i < len(checks); i++ {
			require.Equal(t, 10*time.Second, checks[i].at.Sub(checks[i-1].at), "the interval when that is shorter")
		}
		f.list(nil)
		send(11 * time.Second)
		require.False(t, c.Status().Unverified)
		require.Empty(t, n.logs.take(t))
	})
}

// covers: RUN-05, RUN-06, GAT-05
func TestAWrongPasswordCostsOneCheckPerHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{script: always(shaped(401, "no"), nil)}
		n := newNode(t, f)
		var cursors []*Cursor
		for i := range 40 {
			cursors = append(cursors, n.open(newLink(), i, 2))
		}
		f.list(always(shaped(401, "no"), nil))
		n.change(func(r *Remote) { r.CredentialVersion++ })
		for _, c := range cursors[:20] {
			ship(t.Context(), c, records(0, 20))
		}
		synctest.Wait()
		before := len(f.checked()) - 1
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		require.Empty(t, f.requests(), "no chunk behind such a check")
		checks := f.checked()[before:]
		require.Len(t, checks, 120)
		for i := 1; i < len(checks); i++ {
			require.Equal(t, 30*time.Second, checks[i].at.Sub(checks[i-1].at))
		}
		for _, c := range cursors {
			require.Equal(t, wire.AuthFailed, c.Status().State, "the idle ones too (DEC-47)")
		}
		require.Len(t, n.logs.take(t), 40)
	})
}

// covers: RUN-05, RUN-07, GAT-05, ANS-24
func TestATargetWhoseListingFailsTakesChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		var cursors []*Cursor
		var outs []<-chan Outcome
		for i := range 10 {
			cursors = append(cursors, n.open(newLink(), i, 2))
		}
		f.list(always(page(503), nil))
		f.set(always(page(503), nil))
		for _, c := range cursors {
			outs = append(outs, ship(t.Context(), c, records(0, 20)))
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		checks, sent := len(f.checked()), len(f.requests())
		time.Sleep(time.Hour)
		synctest.Wait()
		probes := len(f.requests()) - sent
		require.Greater(t, probes, 100)
		require.InDelta(t, probes, len(f.checked())-checks, 1, "a probe is a check and a chunk")
		var owed atomic.Bool
		f.list(func(*got) (*outbound.Answer, error) {
			if !cursors[0].remote.look().gate.notice().closed {
				owed.Store(true)
				time.Sleep(7 * time.Second)
			}
			return page(503), nil
		})
		f.set(takesAll)
		before := len(f.requests())
		time.Sleep(31 * time.Second)
		for _, out := range outs {
			require.Equal(t, Committed, <-out)
		}
		require.True(t, owed.Load())
		for _, g := range f.requests()[before+1:] {
			require.GreaterOrEqual(t, g.at.Sub(f.requests()[before].at), 7*time.Second, "after the probe the check is owed")
		}
	})
}

// covers: RUN-01, ANS-05, ANS-09
func TestAStallAResumeAnda409AskForACheckFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		n.change(func(r *Remote) { r.Limits.CheckIntervalMS = 3_600_000 })
		l := newLink()
		c := n.open(l, 0, 4)
		first := func(from int) []time.Time { // the times of the checks
			var out []time.Time
			for _, g := range f.checked()[from:] {
				out = append(out, g.at)
			}
			return out
		}
		f.set(always(shaped(403, "no"), nil))
		begun, before := time.Now(), len(f.checked())
		out := ship(t.Context(), c, records(0, 40))
		time.Sleep(65 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Time{begun.Add(30 * time.Second), begun.Add(60 * time.Second)}, first(before))
		l.set(func(v *LinkLive) { v.Paused = true })
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Len(t, first(before), 2, "none while paused")
		require.Equal(t, wire.Paused, c.Status().State)
		f.set(takesAll)
		resumed := time.Now()
		f.list(func(*got) (*outbound.Answer, error) { time.Sleep(time.Second); return lists(`[]`), nil })
		l.set(func(v *LinkLive) { v.Paused = false })
		require.Equal(t, Committed, <-out)
		require.Equal(t, resumed.Add(time.Second), time.Now(), "behind the check of the resume")
		require.Len(t, first(before), 3)

		f.list(nil)
		f.set(refuses(50, 409, false, never))
		begun, before = time.Now(), len(f.checked())
		out = ship(t.Context(), c, records(40, 40))
		time.Sleep(29 * time.Second)
		synctest.Wait()
		require.Equal(t, begun, first(before)[0], "a 409 asks for a check at once")
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
	})
}

// covers: ANS-14, RUN-10
func TestAChecksRefusalActsOnTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 1)
		f.list(always(shaped(429, "no", "Retry-After", "50"), nil))
		time.Sleep(72 * time.Second)
		synctest.Wait()
		throttled := f.checked()[1].at
		require.Len(t, f.checked(), 2)
		require.Equal(t, wire.TargetThrottled, c.Status().State)
		require.Zero(t, n.seen.checksFailed(), "a refusal of the remote is no errored check")
		out := ship(t.Context(), c, records(0, 1))
		f.list(nil)
		require.Equal(t, Committed, <-out)
		require.Equal(t, throttled.Add(50*time.Second), time.Now())
	})
}

// DEC-48: a check that an admin asked for closes the gate with a 401 or a 429 under the present credential, and does nothing else.
func TestAnAdminsCheckTouchesTheGateOnlyWithARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 1)
		shut := func() bool { return c.remote.look().gate.notice().closed }
		says := func(row string) error { return &target.Error{Reading: target.Reading{Row: row, Status: 400}} }
		for _, row := range []string{"ANS-09", "ANS-10", "ANS-16", "ANS-18", "ANS-19", "ANS-21"} {
			for range 5 {
				n.senders.Refused("eu", 1, says(row))
			}
			require.False(t, shut(), row)
		}
		n.senders.Refused("eu", 0, says("ANS-08"))
		require.False(t, shut(), "another credential version")
		n.senders.Refused("eu", 1, says("ANS-08"))
		require.True(t, shut())
		synctest.Wait()
		require.Equal(t, wire.AuthFailed, c.Status().State)
		begun := time.Now()
		require.Equal(t, Committed, c.Ship(t.Context(), records(0, 1), nil))
		require.Equal(t, 30*time.Second, time.Since(begun))
	})
}

// covers: RUN-01, RUN-02
func TestAResumeOwesACheckAndAnIdleCursorProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		l := newLink()
		c := n.open(l, 0, 4)
		l.set(func(v *LinkLive) { v.Paused = true })
		out := ship(t.Context(), c, records(0, 40))
		time.Sleep(time.Second)
		f.list(func(*got) (*outbound.Answer, error) { time.Sleep(time.Second); return lists(`[]`), nil })
		resumed := time.Now()
		l.set(func(v *LinkLive) { v.Paused = false })
		require.Equal(t, Committed, <-out)
		// Nothing went out before a check that began after the resume had ended. One of the goroutines that reads the pause in the very
		// instant of the resume may ask for one more, which costs a check and nothing else.
		waited := time.Since(resumed)
		require.True(t, waited == time.Second || waited == 2*time.Second, "%v", waited)

		f.list(always(page(503), nil))
		before := len(f.checked())
		n.change(func(r *Remote) { r.CredentialVersion++ })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.GreaterOrEqual(t, len(f.checked()[before:]), 4, "an errored check is made before every probe")
		require.Equal(t, wire.TargetUnavailable, c.Status().State)
		f.list(nil)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, wire.Running, c.Status().State)
	})
}
