package outbound

import (
	"crypto/tls"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// canary stands in for the password: it must reach no text of ours (CRD-13).
const canary = "c4n4ry-p4ssw0rd-of-the-remote"

// rig is one listener on loopback with a handler for each connection, and a client that trusts it.
type rig struct {
	t        testing.TB
	ca       *authority
	l        net.Listener
	conf     *tls.Config // nil: no TLS
	accepted atomic.Int64
	serve    func(c net.Conn)
	wg       sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

// newRig serves each accepted connection, after the handshake when conf is not nil, with serve.
func newRig(t testing.TB, ca *authority, conf *tls.Config, serve func(c net.Conn)) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &rig{t: t, ca: ca, l: l, conf: conf, serve: serve}
	r.wg.Go(r.loop)
	t.Cleanup(r.stop)
	return r
}

// good is a rig with a valid certificate.
func good(t *testing.T, serve func(c net.Conn)) *rig {
	ca := newAuthority(t)
	leaf := ca.leaf(t, time.Now().Add(time.Hour), "127.0.0.1")
	return newRig(t, ca, &tls.Config{Certificates: []tls.Certificate{leaf}}, serve)
}

func (r *rig) loop() {
	for {
		c, err := r.l.Accept()
		if err != nil {
			return
		}
		r.accepted.Add(1)
		if r.conf != nil {
			c = tls.Server(c, r.conf)
		}
		r.mu.Lock()
		r.conns = append(r.conns, c)
		r.mu.Unlock()
		r.wg.Go(func() {
			r.serve(c)
			_ = c.Close()
		})
	}
}

func (r *rig) stop() {
	_ = r.l.Close()
	r.mu.Lock()
	for _, c := range r.conns {
		if tc, ok := c.(*tls.Conn); ok {
			c = tc.NetConn()
		}
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *rig) port() int { return r.l.Addr().(*net.TCPAddr).Port }

func (r *rig) url() string { return "https://127.0.0.1:" + strconv.Itoa(r.port()) }

func (r *rig) client(change ...func(*Config)) *Client {
	r.t.Helper()
	guard, err := NewGuard([]int{r.port()}, nil, []string{"127.0.0.1"})
	require.NoError(r.t, err)
	conf := Config{URL: r.url(), Authorization: "Basic " + canary, CAPEM: r.ca.pem, RequestTimeout: 20 * time.Second, Guard: guard}
	for _, f := range change {
		f(&conf)
	}
	c, err := New(conf)
	require.NoError(r.t, err)
	r.t.Cleanup(func() {
		c.Close()
		c.Wait()
	})
	return c
}

func failure(t *testing.T, err error) *Failure {
	t.Helper()
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.NotContains(t, f.Error(), canary)
	require.NotContains(t, f.Error(), "127.0.0.1")
	return f
}
