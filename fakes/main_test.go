package fakes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	user     = "link-b"
	password = "a-password-of-the-tests-only"
)

// rig is a tap or a fake with a client that trusts it.
type rig struct {
	ca     *CA
	cert   Cert
	client *http.Client
}

func newRig(t *testing.T, n Net) *rig {
	t.Helper()
	ca, err := NewCA(time.Now())
	require.NoError(t, err)
	cert, err := ca.Issue(time.Now(), "127.0.0.1", "link")
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(ca.PEM())))
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DialContext: n.dial, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &rig{ca: ca, cert: cert, client: &http.Client{
		Transport: tr, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (g *rig) tap(t *testing.T, upstreams ...string) *Tap {
	t.Helper()
	tap, err := StartTap(TapConfig{
		Name: "edge", Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Upstreams: upstreams, Cert: g.cert, Epoch: time.Now(), CAPEM: g.ca.PEM(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tap.Close()) })
	return tap
}

func (g *rig) target(t *testing.T, s Script) *Target {
	t.Helper()
	if s.Topics == nil {
		s.Topics = []ScriptTopic{{Name: "orders", ID: "00000000000000aa"}}
	}
	f, err := StartTarget(TargetConfig{
		Name: "fake", Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Cert: g.cert, Users: map[string]string{user: password}, Script: s, Epoch: time.Now(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// got is an answer read whole, or the error of it.
type got struct {
	status int
	header http.Header
	body   string
	err    error
}

func (g *rig) do(ctx context.Context, method, url, body string, set ...string) got {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return got{err: err}
	}
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(set); i += 2 {
		if set[i+1] == "" && set[i] != "User-Agent" { // an empty User-Agent keeps Go from adding its own
			req.Header.Del(set[i])
		} else {
			req.Header.Set(set[i], set[i+1])
		}
	}
	res, err := g.client.Do(req)
	if err != nil {
		return got{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return got{status: res.StatusCode, header: res.Header, body: string(b), err: err}
}

func (g *rig) batch(ctx context.Context, base, body string, set ...string) got {
	return g.do(ctx, http.MethodPost, base+"/v1/topics/orders/produce/batch", body, set...)
}

// eventually polls until ok, or reports what it last saw.
func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	require.Eventually(t, ok, patience, 5*time.Millisecond, what)
}

// memnet is a network of net.Pipe connections, for tests in a bubble.
type memnet struct {
	mu        sync.Mutex // guards listeners
	listeners map[string]*memListener
}

type memListener struct {
	addr string
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
}

func newMemnet() *memnet { return &memnet{listeners: map[string]*memListener{}} }

func (n *memnet) Net() Net { return Net{Listen: n.listen, Dial: n.dial} }

func (n *memnet) listen(_, address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &memListener{addr: address, ch: make(chan net.Conn), done: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

func (n *memnet) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	select {
	case l.ch <- far:
		return near, nil
	case <-l.done:
	case <-ctx.Done():
	}
	return nil, errors.Join(errors.New("connection refused"), near.Close(), far.Close())
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ch:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *memListener) Addr() net.Addr { return memAddr(l.addr) }

type memAddr string

func (memAddr) Network() string  { return "tcp" }
func (a memAddr) String() string { return string(a) }
