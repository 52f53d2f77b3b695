package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// bubble runs a client against an in-memory target in virtual time. serve gets each connection after the handshake.
func bubble(t *testing.T, serve func(c net.Conn), test func(t *testing.T, c *Client, dials *int)) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		conf := &tls.Config{Certificates: []tls.Certificate{ca.leaf(t, time.Now().Add(1000*time.Hour), "target.test")}}
		guard, err := NewGuard([]int{443}, nil, nil)
		require.NoError(t, err)
		var servers sync.WaitGroup
		dials := 0
		c, err := New(Config{URL: "https://target.test", CAPEM: ca.pem, Guard: guard, Dial: func(context.Context, string, string, func(string, string) error) (net.Conn, error) {
			dials++
			near, far := net.Pipe()
			servers.Go(func() {
				serve(tls.Server(far, conf))
				_ = far.Close()
			})
			return near, nil
		}})
		require.NoError(t, err)
		test(t, c, &dials)
		c.Close()
		c.Wait()
		servers.Wait()
	})
}

// covers: NET-07, NET-08
func TestConnectionsAgeAndIdle(t *testing.T) {
	bubble(t, answerOK, func(t *testing.T, c *Client, dials *int) {
		start := time.Now()
		for time.Since(start) < 299*time.Second {
			require.NoError(t, get(t, c))
			time.Sleep(10 * time.Second)
		}
		require.Equal(t, 1, *dials, "kept while it is busy and young")
		time.Sleep(time.Second)
		require.NoError(t, get(t, c))
		require.Equal(t, 2, *dials, "five minutes are its age, however busy it is")
		time.Sleep(29 * time.Second)
		require.NoError(t, get(t, c))
		require.Equal(t, 2, *dials)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Zero(t, c.Idle(), "closed when it was idle for 30 s, without a request to notice it")
		require.NoError(t, get(t, c))
		require.Equal(t, 3, *dials)
	})
}

// covers: NET-07
func TestABusyConnectionIsRecycledAfterItsRequest(t *testing.T) {
	slow := func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			if _, _, err := readRequest(br); err != nil {
				return
			}
			time.Sleep(25 * time.Second)
			if _, err := io.WriteString(c, "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n"); err != nil {
				return
			}
		}
	}
	bubble(t, slow, func(t *testing.T, c *Client, dials *int) {
		for range 12 { // the twelfth ends at 300 s
			require.NoError(t, get(t, c))
		}
		require.Equal(t, 1, *dials)
		require.Zero(t, c.Idle())
		require.NoError(t, get(t, c))
		require.Equal(t, 2, *dials)
	})
}

// covers: ANS-17
func TestOneTimeBoundsTheWholeRequest(t *testing.T) {
	dribble := func(c net.Conn) {
		if _, _, err := readRequest(bufio.NewReader(c)); err != nil {
			return
		}
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n")
		for err == nil {
			time.Sleep(time.Second) // never silent for long
			_, err = io.WriteString(c, "x")
		}
	}
	bubble(t, dribble, func(t *testing.T, c *Client, _ *int) {
		start := time.Now()
		_, err := post(t, c, 100)
		f := failure(t, err)
		require.Equal(t, 30*time.Second, time.Since(start))
		require.Equal(t, Timeout, f.Class)
		require.True(t, f.TimedOut)
		require.True(t, f.UploadBegan)

		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		start = time.Now()
		_, err = c.Do(ctx, &Request{Method: "GET", Path: "/"})
		require.Equal(t, 7*time.Second, time.Since(start), "the caller's own bound (TGT-01)")
		require.Equal(t, Timeout, failure(t, err).Class)
	})
}
