package cluster

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What one node says to the other goes at a pace, on connections that were there and on new ones, of what the pace carries alone; an end keeps it
// too. Afterwards everything passes as before.
//
// covers: HAR-02
func TestAMeshSlowsOneDirection(t *testing.T) {
	n := meshOf(t)
	const late = 200 * time.Millisecond
	mine, theirs := n.goes(out)
	byRPC, theirRPC := n.goes(rpc)
	pace, err := n.rig.Pace(t.Context(), Pace{From: []string{"a"}, To: []string{"b"}, Carries: CarriesRaft, Latency: late})
	require.NoError(t, err)
	require.Equal(t, 1, n.rig.Pacings())
	slow := func(do func()) {
		t.Helper()
		begin := time.Now()
		do()
		require.GreaterOrEqual(t, time.Since(begin), late)
	}
	slow(func() { n.passes(mine, theirs, "was there") })
	n.passes(theirs, mine, "back")
	n.passes(byRPC, theirRPC, "elsewhere")
	fresh, far := n.goes(out)
	slow(func() { n.passes(fresh, far, "is new") })
	other, others := n.goes(back)
	slow(func() { n.passes(others, other, "who dialled does not matter") })
	require.Zero(t, pace.Met(), "all this was the harness' own")
	slow(func() {
		require.NoError(t, fresh.Close())
		_, rerr := io.ReadAll(far)
		require.NoError(t, rerr)
	})
	dialled := n.dials(door{"b", CarriesRaft})
	came := n.next("b")
	slow(func() { n.passes(dialled, came, "a node's") })
	require.Equal(t, int64(len("a node's")), pace.Met())
	require.NoError(t, pace.Mend(t.Context()))
	require.Zero(t, n.rig.Pacings())
	n.passes(mine, theirs, "after")
	_, err = n.rig.Pace(t.Context(), Pace{From: []string{"a"}, To: []string{"z"}, Latency: late})
	require.ErrorIs(t, err, ErrUnsupported)
}

// covers: HAR-02
func TestAMeshSlowsByRateAndByPieces(t *testing.T) {
	n := meshOf(t)
	mine, theirs := n.goes(out)
	for _, p := range []Pace{{Rate: 10 << 10}, {Slice: 512, Pause: 50 * time.Millisecond}} { // 2 KiB take two tenths of a second
		p.From, p.To = []string{"a"}, []string{"b"}
		pace, err := n.rig.Pace(t.Context(), p)
		require.NoError(t, err)
		begin := time.Now()
		_, err = mine.Write(make([]byte, 2<<10))
		require.NoError(t, err)
		_, err = io.ReadFull(theirs, make([]byte, 2<<10))
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begin), 199*time.Millisecond, "%+v", p)
		require.NoError(t, pace.Mend(t.Context()))
	}
}

// The way of one node to the target is a way like others, and a cut of it meets no other.
//
// covers: HAR-02
func TestAMeshPartsANodeFromTheTarget(t *testing.T) {
	n := meshOf(t)
	n.rig.nodes = append(n.rig.nodes, Target)
	require.NoError(t, n.open(door{Target, ""}, loopback(0), n.behind(door{"b", CarriesRPC})))
	far := way{"a", Target, ""}
	mine, err := n.try(far, 10*time.Second)
	require.NoError(t, err)
	theirs := n.next("b")
	n.passes(mine, theirs, "before")
	others, err := n.try(way{"c", Target, ""}, 10*time.Second)
	require.NoError(t, err)
	met := n.next("b")
	cut := n.cut(Cut{From: []string{"a"}, To: []string{Target}, Carries: CarriesAll})
	_, err = hears(mine, 10*time.Second)
	require.True(t, isReset(err), "%v", err)
	_, err = n.try(far, 10*time.Second)
	require.True(t, isReset(err), "%v", err)
	n.passes(others, met, "another node's way is open")
	require.Equal(t, CutMet{Ended: 1, Dials: 1}, cut.Met())
	require.NoError(t, cut.Mend(t.Context()))
	_, err = n.try(far, 10*time.Second)
	require.NoError(t, err)
	n.next("b")
}
