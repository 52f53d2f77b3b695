package sender

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

const (
	missingLine  = "ERROR remote child stalled target_missing 404"
	replacedLine = "ERROR remote child stalled target_replaced 200"
	againLine    = "INFO remote child running again"
)

// awayAndBack is a target whose topic goes away under two lanes and comes back as another one, until the check that tells so. What was
// logged is taken.
func awayAndBack(t *testing.T, f *fakeTarget, n *node, l *link) (c *Cursor, out <-chan Outcome) {
	c = n.open(l, 0, 2)
	gone, other := shaped(404, "no"), answer(200, `{"parent":"a b","parent_id":"bb","children":[]}`)
	f.set(always(gone, nil))
	f.list(always(gone, nil))
	out = ship(t.Context(), c, records(0, 40))
	time.Sleep(65 * time.Second) // two checks find it missing too
	synctest.Wait()
	require.Equal(t, []string{missingLine}, n.logs.take(t))
	f.list(always(other, nil))
	time.Sleep(65 * time.Second)
	synctest.Wait()
	require.Equal(t, wire.TargetReplaced, c.Status().State)
	require.Equal(t, []string{replacedLine}, n.logs.take(t))
	return c, out
}

func acceptOther(l *link) { l.set(func(v *LinkLive) { v.TargetID = "bb" }) }

// A chunk's stall that shows again when a check's ends has its line already, until an answer tells of it anew.
// covers: LOG-02, LOG-03, LOG-05, RUN-11
func TestAStallThatShowsAgainIsNotLoggedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		l := newLink()
		c, out := awayAndBack(t, f, n, l)
		f.set(takesAll)
		f.change(func() { f.delay = time.Second })
		acceptOther(l)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, wire.TargetMissing, c.Status().State, "until a 202 (DEC-37)")
		require.Empty(t, n.logs.take(t))
		require.Equal(t, Committed, <-out)
		synctest.Wait()
		require.Equal(t, []string{againLine}, n.logs.take(t))
		require.Equal(t, wire.Running, c.Status().State)

		f.set(always(shaped(404, "no"), nil))
		out = ship(t.Context(), c, records(40, 40))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{missingLine}, n.logs.take(t), "another stall")
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
		synctest.Wait()
		require.Equal(t, []string{againLine}, n.logs.take(t))
	})
}

// covers: LOG-02, LOG-05
func TestAnAnswerAfterTheCheckThatFoundWorseIsAnotherStall(t *testing.T) {
	t.Run("a chunk's", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeTarget{}
			n := newNode(t, f)
			l := newLink()
			_, out := awayAndBack(t, f, n, l)
			acceptOther(l)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			require.Equal(t, []string{missingLine}, n.logs.take(t), "once, whatever the retries")
			f.set(takesAll)
			require.Equal(t, Committed, <-out)
			synctest.Wait()
			require.Equal(t, []string{againLine}, n.logs.take(t))
		})
	})
	t.Run("a check's", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeTarget{}
			n := newNode(t, f)
			l := newLink()
			_, out := awayAndBack(t, f, n, l)
			f.list(always(shaped(404, "no"), nil))
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			require.Equal(t, []string{missingLine}, n.logs.take(t), "once, whatever the retries")
			f.list(nil)
			f.set(takesAll)
			require.Equal(t, Committed, <-out)
			synctest.Wait()
			require.Equal(t, []string{againLine}, n.logs.take(t))
		})
	})
}

// covers: LOG-02, LOG-05
func TestEachEntryIntoAStallHasOneLine(t *testing.T) {
	missing, replaced := trouble{wire.TargetMissing, 404}, trouble{wire.TargetReplaced, 200}
	forbidden, denied := trouble{wire.Forbidden, 403}, trouble{wire.AuthFailed, 401}
	const forbiddenLine, deniedLine = "ERROR remote child stalled forbidden 403", "ERROR remote child stalled auth_failed 401"
	for name, k := range map[string]struct {
		happens func(b *signboard)
		lines   []string
	}{
		"a chunk's answer that comes late": {func(b *signboard) {
			b.hold(missing, 1)
			b.distrust(replaced)
			b.hold(missing, 2)
			b.verify(3, false)
		}, []string{missingLine, replacedLine}},
		"a chunk's answer that was never told of": {func(b *signboard) {
			b.distrust(replaced)
			b.hold(missing, 1)
			b.verify(2, false)
			b.hold(missing, 2)
		}, []string{replacedLine, missingLine}},
		"a check that found less": {func(b *signboard) {
			b.hold(forbidden, 1)
			b.distrust(missing)
			b.verify(2, false)
			b.hold(forbidden, 2)
		}, []string{forbiddenLine}},
		"a check that found the same": {func(b *signboard) {
			b.hold(forbidden, 1)
			b.distrust(forbidden)
			b.verify(2, false)
			b.hold(forbidden, 2)
		}, []string{forbiddenLine}},
		"lanes that fail alike, under a worse stall for a while": {func(b *signboard) {
			b.fail(0, denied)
			b.fail(1, denied)
			b.distrust(replaced)
			b.clear(0)
			b.verify(1, false)
			b.fail(1, denied)
		}, []string{deniedLine, replacedLine}},
		"a stall that ended": {func(b *signboard) {
			b.hold(missing, 1)
			b.distrust(replaced)
			b.verify(2, true)
			b.hold(missing, 2)
			b.accept(0, 3, true)
		}, []string{missingLine, replacedLine, againLine, missingLine, againLine}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t, &fakeTarget{})
				k.happens(newSignboard(n.senders.logger, n.seen, &LinkConfig{Parent: "orders", Child: "orders-copy", Remote: "eu", Lanes: 2}, time.Now))
				require.Equal(t, k.lines, n.logs.take(t))
			})
		})
	}
}
