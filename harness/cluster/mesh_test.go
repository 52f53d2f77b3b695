package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// talkers is a mesh of two nodes, a and b, that keep every connection which comes to them. Whoever dials a door is a.
type talkers struct {
	*mesh
	rig  *meshed
	t    *testing.T
	at   map[door]string // the doors
	came map[string]chan *net.TCPConn

	strange atomic.Bool // nobody knows who dials
}

func meshOf(t *testing.T) *talkers {
	t.Helper()
	n := &talkers{t: t, at: map[door]string{}, came: map[string]chan *net.TCPConn{}}
	m, err := newMesh(loopback(0), func(net.Conn) string {
		if n.strange.Load() {
			return ""
		}
		return "a"
	})
	require.NoError(t, err)
	n.mesh, n.rig = m, &meshed{nodes: []string{"a", "b", "c"}, at: func(context.Context) (string, error) { return m.ways.Addr().String(), nil }}
	var all sync.WaitGroup
	var listeners []net.Listener
	for _, d := range []door{{"a", CarriesRaft}, {"b", CarriesRaft}, {"b", CarriesRPC}} {
		l, err := net.Listen("tcp", loopback(0))
		require.NoError(t, err)
		listeners = append(listeners, l)
		came := n.came[d.node]
		if came == nil {
			came = make(chan *net.TCPConn, 10)
			n.came[d.node] = came
		}
		all.Go(func() {
			for {
				c, aerr := l.Accept()
				if aerr != nil {
					return
				}
				came <- c.(*net.TCPConn)
			}
		})
		require.NoError(t, m.open(d, loopback(0), l.Addr().String()))
		n.at[d] = m.doors[len(m.doors)-1].Addr().String()
	}
	t.Cleanup(func() {
		m.close()
		for _, l := range listeners {
			require.NoError(t, l.Close())
		}
		all.Wait()
		for _, came := range n.came {
			close(came)
			for c := range came {
				_ = c.Close()
			}
		}
	})
	return n
}

// goes takes a way and meets who is there.
func (n *talkers) goes(w way) (mine net.Conn, theirs *net.TCPConn) {
	n.t.Helper()
	mine, err := n.try(w, 10*time.Second)
	require.NoError(n.t, err)
	return mine, n.next(w.to)
}

func (n *talkers) next(node string) *net.TCPConn {
	n.t.Helper()
	theirs := <-n.came[node]
	n.t.Cleanup(func() { _ = theirs.Close() })
	return theirs
}

// dials a door, as the node a.
func (n *talkers) dials(d door) net.Conn {
	n.t.Helper()
	c, err := net.Dial("tcp", n.at[d])
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (n *talkers) try(w way, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), limit)
	defer cancel()
	c, err := n.rig.Reach(ctx, w.from, w.to, w.carries)
	if err == nil {
		n.t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func (n *talkers) cut(c Cut) Parting {
	n.t.Helper()
	p, err := n.rig.Part(n.t.Context(), c)
	require.NoError(n.t, err)
	return p
}

// hears reads what was said, for so long at most.
func hears(c net.Conn, limit time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	buf := make([]byte, 100)
	k, err := c.Read(buf)
	return string(buf[:k]), err
}

func (n *talkers) passes(from, to net.Conn, what string) {
	n.t.Helper()
	_, err := from.Write([]byte(what))
	require.NoError(n.t, err)
	said, err := hears(to, 10*time.Second)
	require.NoError(n.t, err)
	require.Equal(n.t, what, said)
}

// nothing comes while it is held, however long one waits.
const moment = 50 * time.Millisecond

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

var (
	out  = way{"a", "b", CarriesRaft}
	back = way{"b", "a", CarriesRaft}
	rpc  = way{"a", "b", CarriesRPC}
)

// covers: HAR-02
func TestALoudCutResetsBothEndsAndRefuses(t *testing.T) {
	for _, oneWay := range []bool{false, true} {
		n := meshOf(t)
		mine, theirs := n.goes(out)
		other, others := n.goes(back)
		byRPC, theirRPC := n.goes(rpc)
		n.passes(mine, theirs, "before")
		cut := n.cut(Cut{From: []string{"a"}, To: []string{"b"}, OneWay: oneWay, Carries: CarriesRaft})
		for _, c := range []net.Conn{mine, theirs} {
			_, err := hears(c, 10*time.Second)
			require.True(t, isReset(err), "%v", err)
		}
		_, err := n.try(out, 10*time.Second)
		require.True(t, isReset(err), "%v", err)
		want := CutMet{Ended: 1, Dials: 1}
		if oneWay {
			n.passes(other, others, "the other way lives")
			n.goes(back)
		} else {
			want = CutMet{Ended: 2, Dials: 2}
			_, err = hears(others, 10*time.Second)
			require.True(t, isReset(err), "%v", err)
			_, err = n.try(back, 10*time.Second)
			require.True(t, isReset(err), "%v", err)
		}
		n.passes(byRPC, theirRPC, "what is not cut lives")
		require.Equal(t, want, cut.Met())
		require.Equal(t, 1, n.rig.Partings())
		require.NoError(t, cut.Mend(t.Context()))
		require.Zero(t, n.rig.Partings())
		mine, theirs = n.goes(out)
		n.passes(mine, theirs, "after")
	}
}

// covers: HAR-02
func TestASilentCutHoldsAndLetsGo(t *testing.T) {
	for _, oneWay := range []bool{false, true} {
		n := meshOf(t)
		mine, theirs := n.goes(out)
		cut := n.cut(Cut{From: []string{"a"}, To: []string{"b"}, OneWay: oneWay, Silent: true})
		_, err := mine.Write([]byte("held"))
		require.NoError(t, err)
		_, err = hears(theirs, moment)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		if oneWay {
			n.passes(theirs, mine, "the other direction passes")
		} else {
			_, err = theirs.Write([]byte("held too"))
			require.NoError(t, err)
			_, err = hears(mine, moment)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
		for _, w := range []way{out, back} {
			_, err = n.try(w, moment)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, "no answer, no connection")
		}
		require.Eventually(t, func() bool { return cut.Met() == CutMet{Ended: 1, Dials: 2} }, 10*time.Second, time.Millisecond)
		require.NoError(t, cut.Mend(t.Context()))
		said, err := hears(theirs, 10*time.Second)
		require.NoError(t, err)
		require.Equal(t, "held", said)
		if !oneWay {
			said, err = hears(mine, 10*time.Second)
			require.NoError(t, err)
			require.Equal(t, "held too", said)
		}
		n.passes(mine, theirs, "it is the same connection")
	}
}

// covers: HAR-02
func TestASilentCutHoldsAnEndAndForgetsWhoGaveUp(t *testing.T) {
	n := meshOf(t)
	mine, theirs := n.goes(out)
	cut := n.cut(Cut{From: []string{"a"}, To: []string{"b"}, Silent: true})
	require.NoError(t, mine.Close())
	_, err := hears(theirs, moment)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "an end is held as well")
	gone, patient := n.dials(door{"b", CarriesRaft}), n.dials(door{"b", CarriesRaft})
	for c, what := range map[net.Conn]string{gone: "too late", patient: "in time"} {
		_, err = c.Write([]byte(what))
		require.NoError(t, err)
	}
	require.NoError(t, gone.Close())
	require.Eventually(t, func() bool { return cut.Met().Dials == 2 }, 10*time.Second, time.Millisecond)
	second := n.cut(Cut{From: []string{"b"}, To: []string{"a"}, Silent: true}) // who waits for one waits for the other too
	require.NoError(t, cut.Mend(t.Context()))
	require.Eventually(t, func() bool { return second.Met().Dials == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, second.Mend(t.Context()))
	_, err = hears(theirs, 10*time.Second)
	require.ErrorIs(t, err, io.EOF)
	said, err := hears(n.next("b"), 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "in time", said, "what a client said that has given up reaches nobody")
	require.NoError(t, patient.Close())
}

// covers: HAR-02
func TestAMeshPassesOnHowAConnectionEnds(t *testing.T) {
	n := meshOf(t)
	mine, theirs := n.goes(out)
	reset(theirs)
	_, err := hears(mine, 10*time.Second)
	require.True(t, isReset(err), "%v", err)
	mine, theirs = n.goes(out)
	_, err = theirs.Write([]byte("last"))
	require.NoError(t, err)
	require.NoError(t, theirs.Close())
	said, err := io.ReadAll(mine)
	require.NoError(t, err)
	require.Equal(t, "last", string(said))
	mine, theirs = n.goes(out)
	_, err = mine.Write([]byte("last"))
	require.NoError(t, err)
	require.NoError(t, mine.Close())
	said, err = io.ReadAll(theirs)
	require.NoError(t, err)
	require.Equal(t, "last", string(said))
}

// covers: HAR-02
func TestAMeshRefusesStrangersAndWhereNobodyIs(t *testing.T) {
	n := meshOf(t)
	n.strange.Store(true)
	c, err := net.Dial("tcp", n.at[door{"b", CarriesRaft}])
	if err == nil { // else it was reset before the dial was over
		_, err = hears(c, 10*time.Second)
		require.NoError(t, c.Close())
	}
	require.True(t, isReset(err), "%v", err)
	_, err = n.try(way{"a", "c", CarriesRaft}, 10*time.Second)
	require.True(t, isReset(err), "%v", err)
	require.NoError(t, n.open(door{"c", CarriesRaft}, loopback(0), "127.0.0.1:1"))
	_, err = n.try(way{"a", "c", CarriesRaft}, 10*time.Second)
	require.True(t, isReset(err), "%v", err)
	for _, rubbish := range []string{"rubbish", "{}"} {
		c, err = net.Dial("tcp", n.ways.Addr().String())
		require.NoError(t, err)
		_, err = c.Write([]byte(rubbish + "\n"))
		require.NoError(t, err)
		_, err = hears(c, 10*time.Second)
		require.True(t, isReset(err), "%v", err)
		require.NoError(t, c.Close())
	}
}
