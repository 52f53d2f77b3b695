package sim

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/stretchr/testify/require"
)

func toxic(name string, t toxics.Toxic) *toxics.ToxicWrapper {
	w := &toxics.ToxicWrapper{Toxic: t, Name: name, Toxicity: 1}
	if b, ok := t.(toxics.BufferedToxic); ok {
		w.BufferSize = b.GetBufferSize()
	}
	return w
}

// rig is a client and a server end with two lines between.
type ends struct {
	net            *Network
	client, server net.Conn
	up, down       *line
}

func connect(t *testing.T) *ends {
	t.Helper()
	n := NewNetwork()
	front, err := n.Host("link").Listen("tcp", ":1")
	require.NoError(t, err)
	back, err := n.Host("edge").Listen("tcp", ":2")
	require.NoError(t, err)
	client, err := n.Host("source").Dial(t.Context(), "tcp", "link:1", nil)
	require.NoError(t, err)
	in, err := front.Accept()
	require.NoError(t, err)
	out, err := n.Host("link").Dial(t.Context(), "tcp", "edge:2", nil)
	require.NoError(t, err)
	server, err := back.Accept()
	require.NoError(t, err)
	e := &ends{net: n, client: client, server: server}
	e.up, e.down = join(in.(*tracked), out.(*tracked), nil, nil)
	return e
}

func (e *ends) close() {
	e.net.Close()
	e.up.wait()
	e.down.wait()
}

// TestBytesCrossInOrderWhileToxicsComeAndGo is a property over the chain: nothing is lost, doubled or swapped by a change.
func TestBytesCrossInOrderWhileToxicsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := connect(t)
		defer e.close()
		want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
		go func() {
			_, _ = e.client.Write(want)
			_ = e.client.Close()
		}()
		var changes sync.WaitGroup
		changes.Go(func() {
			for range 20 {
				e.up.add(toxic("latency", &toxics.LatencyToxic{Latency: 20}))
				time.Sleep(7 * time.Millisecond)
				e.up.add(toxic("bandwidth", &toxics.BandwidthToxic{Rate: 4096}))
				time.Sleep(11 * time.Millisecond)
				e.up.remove("latency")
				e.up.remove("bandwidth")
			}
		})
		got, err := io.ReadAll(e.server)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "%d bytes of %d", len(got), len(want))
		changes.Wait()
	})
}

func TestResetPeerResetsBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := connect(t)
		defer e.close()
		e.up.add(toxic("reset", &toxics.ResetToxic{}))
		_, err := e.client.Write([]byte("x"))
		require.NoError(t, err)
		_, err = e.client.Read(make([]byte, 1))
		require.ErrorContains(t, err, "reset")
		_, err = e.server.Read(make([]byte, 1))
		require.ErrorContains(t, err, "reset")
	})
}

func TestLatencyTakesVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := connect(t)
		defer e.close()
		e.down.add(toxic("latency", &toxics.LatencyToxic{Latency: 300}))
		start := time.Now()
		_, err := e.server.Write([]byte("x"))
		require.NoError(t, err)
		_, err = e.client.Read(make([]byte, 1))
		require.NoError(t, err)
		require.Equal(t, 300*time.Millisecond, time.Since(start))
	})
}

func TestFreezeHoldsAndLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := connect(t)
		defer e.close()
		e.net.Host("edge").Freeze(true)
		_, err := e.client.Write([]byte("x"))
		require.NoError(t, err)
		require.NoError(t, e.server.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = e.server.Read(make([]byte, 1))
		require.ErrorContains(t, err, "timeout")
		require.NoError(t, e.server.SetReadDeadline(time.Time{}))
		e.net.Host("edge").Freeze(false)
		_, err = e.server.Read(make([]byte, 1))
		require.NoError(t, err)
	})
}

func TestCutEndsAHostsConnectionsAndListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := connect(t)
		defer e.close()
		e.net.Host("edge").Cut()
		_, err := e.client.Read(make([]byte, 1))
		require.Error(t, err)
		_, err = e.net.Host("source").Dial(t.Context(), "tcp", "edge:2", nil)
		require.ErrorContains(t, err, "refused")
	})
}
