package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// A lent answer comes whole, in the memory of whoever asked if it fits there, and its owner gets it back once.
func TestALentAnswer(t *testing.T) {
	var back atomic.Int32
	inBubble(t, secret, func(t *testing.T, w *world) {
		room := make([]byte, 1<<20)
		for _, size := range []int{0, 1, 900, 1 << 19, 1<<20 - 6, 1 << 20, 3 << 20} {
			back.Store(0)
			want := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
			got, err := w.client.CallInto(t.Context(), "a", "Lend", want, room)
			require.NoError(t, err)
			require.Equal(t, "head "+string(want), string(got))
			fits := len(got) < len(room) // the answer's first byte lies there too
			require.Equal(t, fits, &got[0] == &room[1], size)
			synctest.Wait()
			require.EqualValues(t, 1, back.Load(), size)
		}
		_, err := w.client.CallInto(t.Context(), "a", "Refuse", nil, room)
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, "not lent", p.Text)
		_, err = w.client.CallInto(t.Context(), "a", "Unknown", nil, room)
		require.ErrorIs(t, err, ErrUnknownOp)
	}, func(s *Server) {
		s.HandleLent("Lend", func(_ context.Context, body []byte) (*Lent, error) {
			return &Lent{Head: []byte("head "), Body: body, Done: func() { back.Add(1); clear(body) }}, nil
		})
		s.HandleLent("Refuse", func(context.Context, []byte) (*Lent, error) { return nil, wire.Refuse(wire.Conflict, "not lent") })
	})
}

// counted is a connection that counts its writes, and fails them when it is told to.
type counted struct {
	net.Conn
	writes [][]byte
	err    error
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes = append(c.writes, bytes.Clone(b))
	return len(b), c.err
}

// A connection that is closed while a write of it gets nowhere ends at once.
func TestCloseWaitsForNoWrite(t *testing.T) {
	cert, err := throwAway()
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		below := &gathering{Conn: near}
		s := session{tls.Client(below, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}), below}
		other := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true})
		var all sync.WaitGroup
		all.Go(func() { _ = other.HandshakeContext(t.Context()) })
		require.NoError(t, s.HandshakeContext(t.Context()))
		all.Wait()
		var wrote error
		all.Go(func() { _, wrote = s.Write(make([]byte, 1<<20)) })
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, s.Close())
		all.Wait()
		require.Error(t, wrote)
		require.Zero(t, time.Since(begun))
		require.NoError(t, far.Close())
	})
}

func TestWritesAreGathered(t *testing.T) {
	c := &counted{}
	g := &gathering{Conn: c}
	write := func(text string) {
		n, err := g.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	write("a")
	g.hold()
	write("b")
	write("c")
	require.Len(t, c.writes, 1)
	require.NoError(t, g.release())
	write("d")
	g.hold()
	require.NoError(t, g.release())
	require.Equal(t, "a|bc|d", string(bytes.Join(c.writes, []byte("|"))))

	g.hold()
	write("e")
	c.err = errors.New("cut")
	require.ErrorIs(t, g.release(), c.err)
	_, err := g.Write([]byte("f"))
	require.ErrorIs(t, err, c.err, "nothing follows what may have gone out in part")
	g.hold()
	_, err = g.Write([]byte("f"))
	require.ErrorIs(t, err, c.err)
	require.ErrorIs(t, g.release(), c.err)
	require.Len(t, c.writes, 4)
}
