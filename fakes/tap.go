package fakes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"narad.example/harness/ledger"
)

// PingPath is the route of tap and fake that sends a body back, for evidence that a link works (Probe). It is never recorded.
const PingPath = "/.chaos/ping"

// maxPing bounds the body of a ping.
const maxPing = 8 << 20

// lingering is how long the tap still waits for the target's answer after the caller went away: the target may store the
// request all the same.
const lingering = 30 * time.Second

// TapConfig is what a tap needs; it travels as JSON into a container.
type TapConfig struct {
	Name      string          `json:"name"`
	Listen    string          `json:"listen"`  // host:port of the TLS edge
	Control   string          `json:"control"` // host:port of the control endpoint, "" for none
	Upstreams []string        `json:"upstreams"`
	CAPEM     string          `json:"upstream_ca_pem,omitempty"` // for https upstreams
	Cert      Cert            `json:"cert"`
	Faces     map[string]Cert `json:"faces,omitempty"` // certificates of other faces (CA.Faces)
	Epoch     time.Time       `json:"epoch"`           // the run's start, from which the recorded times count
	Net       Net             `json:"-"`
}

// Tap is an HTTPS edge in front of the target's nodes.
type Tap struct {
	rec       *recorder
	upstreams []*url.URL
	next      atomic.Uint64
	transport *http.Transport
	edge      *server
	control   *server
	ctx       context.Context // ends at Close, and with it what lingers
	cancel    context.CancelFunc
}

// RunTap serves until ctx ends.
func RunTap(ctx context.Context, c TapConfig) error {
	t, err := StartTap(c)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return t.Close()
}

// StartTap listens and serves; Close ends it.
func StartTap(c TapConfig) (*Tap, error) {
	if len(c.Upstreams) == 0 {
		return nil, errors.New("tap: no upstream")
	}
	t := &Tap{rec: newRecorder(c.Name, c.Epoch)}
	for _, raw := range c.Upstreams {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" {
			return nil, errors.New("tap: an upstream is no base URL")
		}
		t.upstreams = append(t.upstreams, u)
	}
	edgeTLS, err := serverTLS(c.Cert)
	if err != nil {
		return nil, err
	}
	t.transport = &http.Transport{
		DialContext: c.Net.dial, DisableCompression: true, MaxIdleConnsPerHost: 256, IdleConnTimeout: 15 * time.Second,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	if c.CAPEM != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(c.CAPEM)) {
			return nil, errors.New("tap: upstream_ca_pem holds no certificate")
		}
		t.transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc(PingPath, ping)
	mux.HandleFunc("/", t.forward)
	if t.edge, err = c.Net.start(c.Listen, edgeTLS, c.Faces, mux); err != nil {
		return nil, fmt.Errorf("tap: %w", err)
	}
	if c.Control != "" {
		if t.control, err = c.Net.start(c.Control, nil, nil, controlRoutes(t.rec, nil, t.edge.faces)); err != nil {
			return nil, errors.Join(fmt.Errorf("tap control: %w", err), t.Close())
		}
	}
	return t, nil
}

// Addr is where the edge listens.
func (t *Tap) Addr() string { return t.edge.addr() }

// Show gives every connection that comes from now on another face; a bad one also ends those that are there.
func (t *Tap) Show(face string) error { return t.edge.faces.set(face) }

// Met is what the edge met so far, by face.
func (t *Tap) Met() map[string]FaceCount { return t.edge.faces.met() }

// ControlAddr is where the control endpoint listens, "" without one.
func (t *Tap) ControlAddr() string {
	if t.control == nil {
		return ""
	}
	return t.control.addr()
}

// Requests returns every request seen so far, in the order of the answers.
func (t *Tap) Requests(ctx context.Context) ([]ledger.WireRequest, error) {
	list, _, err := t.rec.requests(ctx, 1)
	return list, err
}

// Close cuts what is on the wire and waits for every handler.
func (t *Tap) Close() error {
	t.cancel()
	err := t.edge.close()
	if t.control != nil {
		err = errors.Join(err, t.control.close())
	}
	t.transport.CloseIdleConnections()
	return err
}

// ping sends the body back whole, after it came whole.
func ping(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPing))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(body) // a caller that is gone notices by itself
}

// batchTopic is the topic of a batch produce, "" for any other request.
func batchTopic(r *http.Request) string {
	topic, route := topicOf(r)
	if r.Method == http.MethodPost && route == "produce/batch" {
		return topic
	}
	return ""
}

// topicOf splits /v1/topics/{t}/{route}; topic is "" for any other path.
func topicOf(r *http.Request) (topic, route string) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/v1/topics/")
	if !ok {
		return "", ""
	}
	escaped, route, _ := strings.Cut(rest, "/")
	topic, err := url.PathUnescape(escaped)
	if err != nil {
		return "", ""
	}
	return topic, route
}
