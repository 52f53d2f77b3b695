package sim

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/cluster"
)

// echoes is a network of three hosts that echo on the ports of Raft and of the node RPC.
type echoes struct {
	*Network
	t *testing.T
}

func onEchoes(t *testing.T, f func(t *testing.T, n *echoes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &echoes{NewNetwork(), t}
		defer n.Close()
		for _, name := range []string{"a", "b", "c"} {
			for _, port := range []string{":7943", ":7944"} {
				l, err := n.Host(name).Listen("tcp", port)
				require.NoError(t, err)
				go func() {
					for {
						c, aerr := l.Accept()
						if aerr != nil {
							return
						}
						go echo(c)
					}
				}()
			}
		}
		f(t, n)
	})
}

func echo(c net.Conn) {
	defer func() { _ = c.Close() }()
	buf := make([]byte, 16)
	for {
		k, err := c.Read(buf)
		if err != nil {
			return
		}
		if _, err = c.Write(buf[:k]); err != nil {
			return
		}
	}
}

// dial connects for half a second at most.
func (n *echoes) dial(from, to string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), 500*time.Millisecond)
	defer cancel()
	return n.Host(from).Dial(ctx, "tcp", to, nil)
}

func (n *echoes) open(from, to string) net.Conn {
	n.t.Helper()
	c, err := n.dial(from, to)
	require.NoError(n.t, err)
	return c
}

// says sends a byte and waits half a second for it to come back.
func says(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		return err
	}
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 1))
	return err
}

// covers: HAR-02
func TestALoudCutResetsAndRefuses(t *testing.T) {
	onEchoes(t, func(t *testing.T, n *echoes) {
		there, back, other := n.open("a", "b:7943"), n.open("b", "a:7944"), n.open("a", "c:7943")
		p := n.part(cluster.Cut{From: []string{"a"}, To: []string{"b"}})
		require.ErrorIs(t, says(there), syscall.ECONNRESET)
		require.ErrorIs(t, says(back), syscall.ECONNRESET)
		require.NoError(t, says(other), "c is none of the parties")
		_, err := n.dial("a", "b:7944")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		_, err = n.dial("b", "a:7943")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, cluster.CutMet{Ended: 2, Dials: 2}, p.Met())
		require.NoError(t, p.Mend(t.Context()))
		require.NoError(t, says(n.open("a", "b:7944")))
		require.NoError(t, says(n.open("b", "a:7943")))
		require.ErrorIs(t, says(there), syscall.ECONNRESET, "a connection that was cut does not come back")
	})
}

// covers: HAR-02
func TestALoudOneWayCutLeavesTheOtherDirection(t *testing.T) {
	onEchoes(t, func(t *testing.T, n *echoes) {
		there, back := n.open("a", "b:7943"), n.open("b", "a:7943")
		p := n.part(cluster.Cut{From: []string{"a"}, To: []string{"b", "c"}, OneWay: true, Carries: cluster.CarriesRaft})
		require.ErrorIs(t, says(there), syscall.ECONNRESET)
		require.NoError(t, says(back), "b still reaches a")
		_, err := n.dial("a", "c:7943")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.NoError(t, says(n.open("c", "a:7943")))
		require.NoError(t, says(n.open("a", "b:7944")), "the node RPC is not cut")
		require.NoError(t, p.Mend(t.Context()))
		require.NoError(t, says(n.open("a", "c:7943")))
	})
}

// covers: HAR-02
func TestASilentCutHoldsWhatIsSentUntilItHeals(t *testing.T) {
	onEchoes(t, func(t *testing.T, n *echoes) {
		there, back := n.open("a", "b:7943"), n.open("b", "a:7944")
		p := n.part(cluster.Cut{From: []string{"a"}, To: []string{"b"}, Silent: true})
		require.ErrorIs(t, says(there), os.ErrDeadlineExceeded)
		require.ErrorIs(t, says(back), os.ErrDeadlineExceeded)
		_, err := n.dial("a", "b:7943")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = n.dial("b", "a:7943")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		patient := make(chan error, 1)
		go func() {
			c, derr := n.Host("a").Dial(t.Context(), "tcp", "b:7943", nil)
			patient <- errors.Join(derr, says(c))
		}()
		synctest.Wait()
		require.Empty(t, patient)
		require.Equal(t, cluster.CutMet{Ended: 2, Dials: 3}, p.Met())
		require.NoError(t, p.Mend(t.Context()))
		require.NoError(t, <-patient, "a dial that waited so long comes about")
		require.NoError(t, there.SetDeadline(time.Now().Add(time.Second)))
		_, err = there.Read(make([]byte, 1))
		require.NoError(t, err, "what was held arrives")
		require.NoError(t, says(back))
	})
}

// covers: HAR-02
func TestASilentOneWayCutHoldsOneDirection(t *testing.T) {
	onEchoes(t, func(t *testing.T, n *echoes) {
		l, err := n.Host("b").Listen("tcp", ":9000")
		require.NoError(t, err)
		mine := n.open("a", "b:9000")
		theirs, err := l.Accept()
		require.NoError(t, err)
		p := n.part(cluster.Cut{From: []string{"a"}, To: []string{"b"}, OneWay: true, Silent: true})
		for _, c := range []net.Conn{mine, theirs} {
			_, err = c.Write([]byte{1})
			require.NoError(t, err)
		}
		buf := make([]byte, 1)
		require.NoError(t, theirs.SetDeadline(time.Now().Add(time.Second)))
		_, err = theirs.Read(buf)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nothing goes from a to b")
		require.NoError(t, mine.SetDeadline(time.Now().Add(time.Second)))
		_, err = mine.Read(buf)
		require.NoError(t, err, "what b sends arrives")
		for _, way := range [][2]string{{"a", "b:7943"}, {"b", "a:7943"}} {
			_, err = n.dial(way[0], way[1])
			require.ErrorIs(t, err, context.DeadlineExceeded, "no connection comes about without answers")
		}
		require.NoError(t, p.Mend(t.Context()))
		require.NoError(t, theirs.SetDeadline(time.Now().Add(time.Second)))
		_, err = theirs.Read(buf)
		require.NoError(t, err)
	})
}

// A connection moves again only when neither of its hosts is paused and no cut holds it.
// covers: HAR-02
func TestPausesAndCutsDoNotUndoEachOther(t *testing.T) {
	onEchoes(t, func(t *testing.T, n *echoes) {
		c := n.open("a", "b:7943")
		n.Host("a").Freeze(true)
		n.Host("b").Freeze(true)
		p := n.part(cluster.Cut{From: []string{"b"}, To: []string{"a"}, Silent: true})
		silent := func() { require.ErrorIs(t, says(c), os.ErrDeadlineExceeded) }
		silent()
		n.Host("b").Freeze(false)
		silent()
		require.NoError(t, p.Mend(t.Context()))
		silent()
		n.Host("a").Freeze(false)
		require.NoError(t, says(c))
	})
}
