package node_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/fakes"
	"narad.example/harness/cluster/sim"
	"narad.example/narad/client"
	"narad.example/narad/config"
	"narad.example/narad/move"
	"narad.example/narad/node"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Canaries: none of them may be seen outside of the node (CRD-13).
const (
	adminPassword  = "c4n4ry-admin-password"
	clusterSecret  = "6334a46ea479202d636c75737465722d7365637265742d33322d627974657321"
	remotePassword = "c4n4ry-remote-password-24"
)

const apiPort = "7942"

// bubble is a network in memory with machines on it, in virtual time.
type bubble struct {
	t    *testing.T
	net  *sim.Network
	http *http.Client

	machines []*machine
	atStep   func(ctx context.Context, s move.Step) // of moves to any machine that is started from now on
	last     lastWord
}

// inBubble runs a test in virtual time. Every machine is stopped and every goroutine gone when it ends.
func inBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		defer b.close()
		test(t, b)
	})
}

func newBubble(t *testing.T) *bubble {
	b := &bubble{t: t, net: sim.NewNetwork()}
	from := b.net.Host("client")
	b.http = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return from.Dial(ctx, network, addr, nil)
		},
	}}
	return b
}

// close ends what a failed test left running too, so that its own words are the last ones.
func (b *bubble) close() {
	for _, m := range b.machines {
		if m.node != nil {
			m.host.Freeze(false)
			m.node.Kill()
		}
	}
	b.http.CloseIdleConnections()
	b.net.Close()
}

// machine is a host with a disk that outlives the node on it.
type machine struct {
	b       *bubble
	name    string
	host    *sim.Host
	disk    *vfs.Mem
	raft    string
	config  config.Config
	secrets config.Secrets
	log     lines
	now     func() time.Time // nil is the bubble's
	older   bool             // the next start poses as a release before remotes
	node    *node.Node
}

func (b *bubble) machine(name string) *machine {
	b.t.Helper()
	c := config.Default()
	c.HTTP.Addr, c.Cluster.Addr, c.Cluster.NodeID = ":"+apiPort, "127.0.0.1:7943", name
	c.Storage.DataDir, c.Storage.SegmentBytes = "/"+name, 1<<20
	c.Remotes.AllowedPorts, c.Remotes.APIHopEncrypted = []int{7942}, true
	m := &machine{b: b, name: name, host: b.net.Host(name), disk: vfs.NewMem(), raft: b.t.TempDir(), config: c,
		secrets: config.Secrets{AdminPassword: adminPassword, ClusterSecret: clusterSecret}}
	m.disk.SetSyncDelay(time.Millisecond)
	b.machines = append(b.machines, m)
	return m
}

func (m *machine) tryStart() error {
	n, err := node.Start(m.b.t.Context(), node.Options{
		Config: m.config, Network: m.host, FS: m.disk, RaftDir: m.raft, Fast: true, Seed: 1, Now: m.now,
		Secrets: m.secrets, AtMoveStep: m.b.atStep, Older: m.older,
		Unaudited: func(request string, _ uint64) { m.b.last.at(m.name, request) },
		Logger:    slog.New(slog.NewJSONHandler(&m.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	m.node = n
	return err
}

func (m *machine) start() {
	m.b.t.Helper()
	require.NoError(m.b.t, m.config.Validate())
	require.NoError(m.b.t, m.tryStart())
}

func (m *machine) stop() {
	m.b.t.Helper()
	failure, stopped := m.node.Failure(), m.node.Stop(context.Background())
	m.node = nil
	require.NoError(m.b.t, failure)
	require.NoError(m.b.t, stopped)
}

// kill is a SIGKILL, with power the plug is pulled: what was never synced is gone.
func (m *machine) kill(power bool) {
	m.disk.Freeze()
	m.log.mute(true)
	m.host.Cut()
	m.b.last.letGo() // what was held can reach nobody any more
	m.node.Kill()
	m.node = nil
	m.log.mute(false)
	if power {
		m.disk.DropUnsynced()
	}
	m.disk.Thaw()
}

func (m *machine) client() *client.Client {
	scheme := "http://"
	if m.config.HTTP.TLSCertFile != "" {
		scheme = "https://"
	}
	return client.New(client.Options{BaseURL: scheme + m.name + ":" + apiPort, User: "admin", Password: adminPassword, HTTP: m.b.http})
}

func (m *machine) create(name string) wire.Topic {
	m.b.t.Helper()
	topic, err := m.client().CreateTopic(m.b.t.Context(), wire.CreateTopic{Name: name})
	require.NoError(m.b.t, err)
	return topic
}

func (m *machine) produce(topic, key, payload string) {
	m.b.t.Helper()
	require.NoError(m.b.t, m.client().Produce(m.b.t.Context(), topic, []byte(payload), client.ProduceOptions{Key: key}))
}

// stored reads a topic by replay: the payloads of each partition in offset order.
func (m *machine) stored(topic string) [][]string {
	m.b.t.Helper()
	out := make([][]string, 3)
	for p := range out {
		for {
			msg, err := m.client().Replay(m.b.t.Context(), topic, p, int64(len(out[p])))
			require.NoError(m.b.t, err)
			if msg == nil {
				break
			}
			body, err := client.Payload(msg, false)
			require.NoError(m.b.t, err)
			out[p] = append(out[p], string(body))
		}
	}
	return out
}

// count is how many records a topic has.
func (m *machine) count(topic string) int {
	d, err := m.client().Topic(m.b.t.Context(), topic, nil)
	require.NoError(m.b.t, err)
	n := int64(0)
	for _, s := range d.PartitionStats {
		n += s.HighWatermark
	}
	return int(n)
}

// eventually waits in virtual time.
func (b *bubble) eventually(what string, ok func() bool) {
	b.t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Fail(b.t, "this never came", what)
}

// serveTLS gives the machine's API a certificate for its name and returns the CA.
func (m *machine) serveTLS() (caPEM string) { return m.serveTLSFrom(time.Now()) }

// serveTLSFrom is serveTLS with a certificate that was issued at that time.
func (m *machine) serveTLSFrom(issued time.Time) (caPEM string) {
	m.b.t.Helper()
	ca, err := fakes.NewCA(time.Now())
	require.NoError(m.b.t, err)
	cert, err := ca.Issue(issued, m.name)
	require.NoError(m.b.t, err)
	dir := m.b.t.TempDir()
	m.config.HTTP.TLSCertFile, m.config.HTTP.TLSKeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(m.b.t, os.WriteFile(m.config.HTTP.TLSCertFile, []byte(cert.CertPEM), 0o600))
	require.NoError(m.b.t, os.WriteFile(m.config.HTTP.TLSKeyFile, []byte(cert.KeyPEM), 0o600))
	m.b.trust(ca.PEM())
	return ca.PEM()
}

// trust lets the bubble's client trust a CA.
func (b *bubble) trust(caPEM string) {
	roots := x509.NewCertPool()
	require.True(b.t, roots.AppendCertsFromPEM([]byte(caPEM)))
	b.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// read reads a file of the machine's disk.
func (m *machine) read(name string) string {
	m.b.t.Helper()
	raw, err := vfs.ReadFile(m.disk, name)
	require.NoError(m.b.t, err)
	return string(raw)
}

// get asks for a page as admin, or as nobody.
func (m *machine) get(path string, admin bool) (status int, body string) {
	m.b.t.Helper()
	req, err := http.NewRequestWithContext(m.b.t.Context(), http.MethodGet, "http://"+m.name+":"+apiPort+path, nil)
	require.NoError(m.b.t, err)
	if admin {
		req.SetBasicAuth("admin", adminPassword)
	}
	res, err := m.b.http.Do(req)
	require.NoError(m.b.t, err)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	require.NoError(m.b.t, err)
	return res.StatusCode, string(raw)
}

// lines is a node's log.
type lines struct {
	mu    sync.Mutex // guards what follows
	all   bytes.Buffer
	muted bool
}

// mute drops what a killed node says: a dead process says nothing.
func (l *lines) mute(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.muted = on
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.muted {
		return len(p), nil
	}
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// with lists the records that have this message.
func (l *lines) with(msg string) (out []map[string]any) {
	for line := range strings.Lines(l.String()) {
		var rec map[string]any
		if json.Unmarshal([]byte(line), &rec) == nil && rec["msg"] == msg {
			out = append(out, rec)
		}
	}
	return out
}

// id makes the payload of a record.
func id(key string, n int) string { return fmt.Sprintf("%s-%06d", key, n) }
