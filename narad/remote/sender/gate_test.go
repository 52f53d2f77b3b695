package sender

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// gateModel is the gate in a page: what the rules say, with no waiters in it. It takes the backoff's draws from the real one.
type gateModel struct {
	open       bool
	probing    bool
	row        int
	ceiling    time.Duration // of the next wait that doubles
	from, till time.Time     // the wait ends between these
	state      wire.LinkState
}

func (m *gateModel) close(now time.Time, v *verdict, doubles bool) {
	low, high := backoffFloor, backoffFirst
	switch fixed := fixedWait(v); {
	case fixed > 0:
		low, high = fixed, fixed
	case doubles:
		high = m.ceiling
		m.ceiling = min(30*time.Second, 2*m.ceiling)
	}
	if m.open {
		m.from, m.till = time.Time{}, time.Time{}
	}
	m.open, m.row, m.state = false, 0, v.state
	m.from, m.till = later(m.from, now.Add(low)), later(m.till, now.Add(high))
}

func (m *gateModel) answer(now time.Time, probe, stale bool, v *verdict) {
	switch {
	case probe && (v.effect == aboutAccepted || v.effect == aboutRecord):
		m.open, m.row, m.state = true, 0, wire.Running
	case probe:
		m.close(now, v, true)
	case stale && !m.open && v.effect != aboutAccepted && v.effect != aboutRecord:
		m.state = wire.Worse(m.state, v.state)
		if d := fixedWait(v); d > 0 {
			m.from, m.till = later(m.from, now.Add(d)), later(m.till, now.Add(d))
		}
	case stale:
		if v.effect != aboutTransient {
			m.row = 0
		}
	case v.effect == aboutRemote:
		m.close(now, v, true)
	case v.effect == aboutTransient:
		if m.row++; m.row == 3 {
			m.close(now, v, true)
		}
	default:
		m.row = 0
	}
	if probe {
		m.probing = false
	}
	if v.effect == aboutAccepted && !stale {
		m.ceiling = backoffFirst
	}
}

// covers: GAT-01, GAT-02, GAT-03
func TestTheGateAgreesWithItsModel(t *testing.T) {
	answers := []verdict{
		{rule: rules["ANS-01"]}, {rule: rules["ANS-09"]}, {rule: rules["ANS-16"]}, {rule: rules["ANS-16"]}, {rule: rules["ANS-16"]},
		{rule: rules["ANS-08"]}, {rule: rules["ANS-14"]}, {rule: rules["ANS-14"], retryAfter: 7 * time.Second}, {rule: rules["ANS-21"]},
		{rule: rules[target.RowLoop]}, {rule: rules["ANS-17"]}, {rule: rules[rowGood]}, // of a check
	}
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		steps := make([]int, rapid.IntRange(1, 300).Draw(rt, "steps"))
		r := rand.New(rand.NewPCG(seed, 7))
		for i := range steps {
			steps[i] = r.IntN(100)
		}
		synctest.Test(t, func(*testing.T) {
			defer func() {
				if wrong := recover(); wrong != nil {
					rt.Fatalf("seed %d, %d steps: %v", seed, len(steps), wrong)
				}
			}()
			g := newGate(&dice{r: rand.New(rand.NewPCG(seed, seed))}, "eu", func(string, time.Duration) {})
			m := &gateModel{ceiling: backoffFirst, state: wire.Running}
			c := &Cursor{}
			type out struct {
				p   pass
				era int
			}
			var onWire []out
			era := 0
			for _, step := range steps {
				switch {
				case step < 45: // ask, and send if allowed
					k := g.join(c, toSend)
					now := time.Now()
					switch granted := closed(k.grant); {
					case m.open || !m.probing && !now.Before(m.till):
						must(granted, "the gate is open, or the wait is over")
					case m.probing || now.Before(m.from):
						must(!granted, "only the probe goes through a closed gate, and only when the wait is over")
					}
					if !closed(k.grant) {
						g.leave(k)
						break
					}
					p, ok := g.take(k)
					must(ok && p.probe == !m.open, "the probe is the first one through")
					if p.probe && step%2 == 0 { // it was a check, and its cursor reads a slab; a chunk comes or not
						v := answers[len(answers)-1-step%3]
						g.read(c, &v)
						if step%4 == 0 {
							k = g.join(c, toSend)
							must(closed(k.grant) && k.checked != nil, "the reader's chunk is part of the probe")
							p, ok = g.take(k)
							must(ok && p.probe, "it is the probe")
						} else {
							time.Sleep(readTurn)
							synctest.Wait()
							was := m.open
							m.answer(time.Now(), true, false, &v)
							if m.open != was {
								era++
							}
							break
						}
					}
					m.probing = m.probing || p.probe
					onWire = append(onWire, out{p, era})
				case step < 85 && len(onWire) > 0: // an answer comes
					i := step % len(onWire)
					o := onWire[i]
					onWire = append(onWire[:i], onWire[i+1:]...)
					v := answers[r.IntN(len(answers))]
					was := m.open
					stale := !o.p.probe && o.era != era
					m.answer(time.Now(), o.p.probe, stale, &v)
					if m.open != was {
						era++
					}
					shut, late := g.done(o.p, &v)
					must(shut == !m.open && late == stale, "open as the model, and late as it")
				default:
					time.Sleep(time.Duration(step) * 100 * time.Millisecond)
				}
				n := g.notice()
				must(n.closed == !m.open && n.state == m.state, fmt.Sprintf("shows %v, the model %v", n, m.state))
				must(m.open || !m.probing || g.probing, "one probe")
				must(m.ceiling == min(gateCeiling, max(backoffFirst, 2*g.backoff.present)), "only a 202 starts the backoff over")
			}
		})
	})
}

func must(ok bool, what string) {
	if !ok {
		panic(what)
	}
}

// covers: GAT-01, GAT-05, GAT-02
func TestADeadRemoteSeesOneProbePerIntervalWhateverTheCursors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		var cursors []*Cursor
		var outs []<-chan Outcome
		for i := range 40 {
			cursors = append(cursors, n.open(newLink(), i, 2))
		}
		require.Equal(t, Committed, cursors[0].Ship(t.Context(), records(0, 2), nil))
		f.set(always(shaped(401, "no"), nil))
		before := len(f.requests())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, c := range cursors {
			outs = append(outs, ship(ctx, c, records(2, 20)))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		seen := f.requests()[before:]
		first := 0
		for first < len(seen) && seen[first].at.Equal(seen[0].at) {
			first++
		}
		require.LessOrEqual(t, first, 16, "what passed the open gate, at most the slots")
		require.Len(t, seen[first:], 120, "one failed login per 30 s")
		for i := first + 1; i < len(seen); i++ {
			require.Equal(t, 30*time.Second, seen[i].at.Sub(seen[i-1].at))
		}
		for _, c := range cursors {
			require.Equal(t, wire.AuthFailed, c.Status().State)
		}
		require.Len(t, n.logs.take(t), 40, "one line each")
		n.change(func(r *Remote) { r.CredentialVersion++ })
		f.set(takesAll)
		changed := time.Now()
		for _, out := range outs {
			require.Equal(t, Committed, <-out)
		}
		require.Equal(t, changed, time.Now(), "a new credential version does not wait (DEC-27)")
		require.Len(t, f.stored(), 2+40*20)
		require.Len(t, n.logs.take(t), 40)
		for _, c := range cursors {
			c.Close(t.Context())
		}
	})
}

// covers: GAT-01, GAT-06
func TestCursorsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, most := map[int64]int{}, 0
		f := &fakeTarget{delay: time.Second} // so that all have come before the first answer
		begun := time.Now()
		f.set(func(g *got) (*outbound.Answer, error) {
			if time.Since(begun) > 10*time.Second { // the gate has closed
				turns[g.offsets[0]/2]++
				f.mu.Lock()
				most = max(most, f.onWire)
				f.mu.Unlock()
			}
			return nil, failure(outbound.Timeout)
		})
		n := newNode(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		var outs []<-chan Outcome
		for i := range 5 {
			c := n.open(newLink(), i, 2)
			two := records(2*int64(i), 2)
			two[0].Key, two[1].Key = nil, nil // a lane each
			outs = append(outs, ship(ctx, c, two))
			defer c.Close(t.Context())
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		least, greatest := 1<<30, 0
		for _, k := range turns {
			least, greatest = min(least, k), max(greatest, k)
		}
		require.Len(t, turns, 5)
		require.LessOrEqual(t, greatest-least, 2, "one for the start, one for the end")
		require.LessOrEqual(t, most, 1)
		cancel()
		for _, out := range outs {
			require.Equal(t, Stopped, <-out)
		}
	})
}

// covers: GAT-04
func TestADeadRemoteCostsOneReadPerProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reads := make(chan int, 1000)
		done := make(chan struct{}, 20)
		for i := range 20 {
			c := n.open(newLink(), i, 1)
			go func() { // a fan-out cursor in short
				defer func() { done <- struct{}{} }()
				for at := int64(0); c.Wait(ctx) == nil; at++ {
					reads <- i
					if c.Ship(ctx, records(at, 1), nil) != Committed {
						break
					}
					time.Sleep(time.Second)
				}
				c.Close(ctx)
			}()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Greater(t, len(reads), 100, "an open gate lets everyone read")
		f.set(always(page(503), nil))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for len(reads) > 0 {
			<-reads
		}
		before := len(f.requests())
		time.Sleep(time.Hour)
		synctest.Wait()
		probes := len(f.requests()) - before
		require.Greater(t, probes, 100)
		require.LessOrEqual(t, len(reads), 20, "each cursor reads at most once, then holds its chunk")
		cancel()
		for range 20 {
			<-done
		}
	})
}

// covers: GAT-03, GAT-04, RUN-06, RUN-07
func TestAReaderWithoutAChunkIsOverAfterASecond(t *testing.T) {
	for name, c := range map[string]struct {
		listing *outbound.Answer
		err     error
		opens   bool
		reads   bool
		state   wire.LinkState
	}{
		"a good check opens the gate":                 {listing: lists(`[]`), opens: true, reads: true, state: wire.Running},
		"an errored check alone is a failed probe":    {listing: page(503), reads: true, state: wire.TargetUnavailable},
		"nothing is read behind a refusal":            {listing: shaped(401, "no"), state: wire.AuthFailed},
		"nothing is read behind TLS":                  {err: failure(outbound.TLS), state: wire.TLSFailed},
		"nothing is read behind a check that stopped": {listing: shaped(403, "no"), opens: true, state: wire.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeTarget{listing: always(c.listing, c.err)}
				n := newNode(t, f)
				n.change(func(r *Remote) { r.State = wire.NodeInsecure })
				cursor := n.open(newLink(), 0, 1)
				waited := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { waited <- cursor.Wait(ctx) }()
				synctest.Wait()
				n.change(func(r *Remote) { r.State = "" })
				time.Sleep(900 * time.Millisecond) // the cursor's own check may have been the first probe
				synctest.Wait()
				require.Equal(t, c.reads, len(waited) == 1)
				time.Sleep(readTurn)
				synctest.Wait()
				g := cursor.remote.look().gate
				require.Equal(t, c.opens, !g.notice().closed)
				require.Equal(t, c.state, cursor.Status().State)
				cancel()
				if err := <-waited; err != nil {
					require.ErrorIs(t, err, context.Canceled)
				}
				cursor.Close(t.Context())
			})
		})
	}
}

// The check that opens the gate may find that the link must stop; whoever waits at the gate runs beside it. No order of the two is
// forced, so that it is tried often.
//
// covers: GAT-04, RUN-06
func TestNobodyReadsBehindTheCheckThatStoppedTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 300 {
			n := newNode(t, &fakeTarget{listing: always(shaped(403, "no"), nil)})
			n.change(func(r *Remote) { r.State = wire.NodeInsecure })
			cursor := n.open(newLink(), 0, 1)
			ctx, cancel := context.WithCancel(t.Context())
			waited := make(chan error, 1)
			go func() { waited <- cursor.Wait(ctx) }()
			synctest.Wait()
			n.change(func(r *Remote) { r.State = "" })
			time.Sleep(readTurn)
			synctest.Wait()
			require.Empty(t, waited)
			cancel()
			require.ErrorIs(t, <-waited, context.Canceled)
			cursor.Close(t.Context())
		}
	})
}

// The same for lanes that have their records already.
//
// covers: RUN-06
func TestNothingIsSentBehindTheCheckThatStoppedTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 300 {
			f := &fakeTarget{listing: always(shaped(403, "no"), nil)}
			n := newNode(t, f)
			n.change(func(r *Remote) { r.State = wire.NodeInsecure })
			cursor := n.open(newLink(), 0, 4)
			out := ship(t.Context(), cursor, records(0, 40))
			synctest.Wait()
			n.change(func(r *Remote) { r.State = "" })
			time.Sleep(readTurn)
			synctest.Wait()
			require.Empty(t, f.requests())
			cursor.Close(t.Context())
			require.Equal(t, Stopped, <-out)
		}
	})
}

// covers: SND-12
func TestSlotsAreSharedAndResizedLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		n.change(func(r *Remote) { r.Limits.MaxInFlight = 3 })
		var cursors []*Cursor
		for i := range 6 {
			cursors = append(cursors, n.open(newLink(), i, 4))
		}
		require.Equal(t, Committed, cursors[0].Ship(t.Context(), records(0, 1), nil))
		f.delay = time.Second
		var outs []<-chan Outcome
		for _, c := range cursors {
			outs = append(outs, ship(t.Context(), c, records(1, 12000)))
		}
		limits := []int{3, 8, 1, 5}
		for i, limit := range limits {
			n.change(func(r *Remote) { r.Limits.MaxInFlight = limit })
			time.Sleep(2500 * time.Millisecond)
			f.mu.Lock()
			f.most = f.onWire
			f.mu.Unlock()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			f.mu.Lock()
			require.Equal(t, limit, f.most, i)
			f.mu.Unlock()
		}
		n.change(func(r *Remote) { r.Limits.MaxInFlight = 64 })
		for _, out := range outs {
			require.Equal(t, Committed, <-out)
		}
		for _, c := range cursors {
			c.Close(t.Context())
		}
	})
}

func TestAProbeThatIsNotSentPassesItsTurnOn(t *testing.T) {
	g := newGate(&dice{r: rand.New(rand.NewPCG(1, 2))}, "eu", func(string, time.Duration) {})
	first, second := g.join(&Cursor{}, toSend), g.join(&Cursor{}, toSend)
	require.True(t, closed(first.grant))
	require.False(t, closed(second.grant))
	g.leave(first)
	require.True(t, closed(second.grant))
	p, ok := g.take(second)
	require.True(t, ok && p.probe)
	shut, _ := g.done(p, &verdict{rule: rules["ANS-01"]})
	require.False(t, shut)
}

// covers: GAT-03
func TestAReadersChunkThatIsNotSentLeavesItsCheckAsTheProbe(t *testing.T) {
	for _, good := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(&dice{r: rand.New(rand.NewPCG(1, 2))}, "eu", func(string, time.Duration) {})
			c := &Cursor{}
			k := g.join(c, toRead)
			p, ok := g.take(k)
			require.True(t, ok && p.probe && p.checked == nil)
			v := verdict{rule: rules["ANS-16"]}
			if good {
				v = verdict{rule: rules[rowGood]}
			}
			g.read(c, &v)
			other := g.join(&Cursor{}, toSend)
			require.False(t, closed(other.grant), "the turn is the reader's for a second")
			k = g.join(c, toSend)
			require.True(t, closed(k.grant) && k.probe && k.checked != nil)
			g.leave(k)
			require.Equal(t, good, closed(other.grant))
			require.Equal(t, good, !g.notice().closed)
		})
	}
}
