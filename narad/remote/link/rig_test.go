package link

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/narad/audit"
	"narad.example/narad/cluster"
	"narad.example/narad/meta"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/vault"
	"narad.example/narad/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is the password of every remote here (CRD-13).
const canary = "c4n4ry-p4ssw0rd-of-the-remote"

var root = Caller{Name: "admin", Admin: true, RequestID: "00000000000000aa"}

// raft applies entries at once.
type raft struct {
	*meta.State
	mu      sync.Mutex // guards all below
	index   uint64
	entries [][]byte
	gate    error
	behind  error
	propose error
	term    uint64 // 0 while another node leads
	barrier error
	moved   chan struct{} // as LeaderMoved
}

func (r *raft) ProposeLocal(_ context.Context, data []byte) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.propose != nil {
		return 0, r.propose
	}
	e, err := meta.Decode(data)
	if err != nil {
		return 0, err
	}
	r.index++
	r.entries = append(r.entries, data)
	return r.index, r.ApplyIn(r.term, r.index, e)
}

func (r *raft) IsLeader() bool { return r.Term() != 0 }

func (r *raft) Term() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.term
}

func (r *raft) LeaderMoved() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moved
}

// leads makes this node the leader of a term, 0 of none.
func (r *raft) leads(term uint64, barrier error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term, r.barrier = term, barrier
	close(r.moved)
	r.moved = make(chan struct{})
}

func (r *raft) WaitApplied(context.Context, uint64) error { return r.behind }

func (r *raft) Barrier(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.barrier
}

func (r *raft) ReleaseGate() error { return r.gate }

type leader struct {
	s      *Service
	bodies []string
	err    error
}

func (l *leader) RemoteWrite(ctx context.Context, body []byte) ([]byte, error) {
	l.bodies = append(l.bodies, string(body))
	if l.err != nil {
		return nil, l.err
	}
	return l.s.ServeRemoteWrite(ctx, body)
}

// owners answers for the parent's partitions and the members.
type owners struct {
	order   []string
	offsets error
	backlog BacklogReport
	lag     LagReport
	blocked []wire.BlockedAt
	silent  error
	asked   func() // before the owner answers
}

func (o *owners) StartOffsets(_ context.Context, parent meta.Topic, from string) ([]int64, error) {
	o.order = append(o.order, "offsets "+from)
	out := make([]int64, parent.Partitions)
	for i := range out {
		out[i] = int64(i + 10)
	}
	return out, o.offsets
}

func (o *owners) Backlog(context.Context, meta.Topic) BacklogReport {
	o.order = append(o.order, "backlog")
	return o.backlog
}

func (o *owners) Lag(context.Context, meta.Topic) LagReport {
	o.order = append(o.order, "lag")
	return o.lag
}

func (o *owners) Blocked(context.Context, meta.Topic, meta.Topic, int) ([]wire.BlockedAt, error) {
	if o.asked != nil {
		o.asked()
	}
	return o.blocked, o.silent
}

// journal is what was logged: the credential cache logs beside the test.
type journal struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// rig is one node that leads, and one scripted target.
type rig struct {
	*Service
	t      *testing.T
	raft   *raft
	leader *leader
	owners *owners
	logs   journal
	ca     string
	target http.HandlerFunc // of the topic and its children listing
	door   http.HandlerFunc // of everything else a check asks; nil is a target as it should be

	expires time.Time // of the target's certificate
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, raft: &raft{State: meta.NewState(), term: 1, moved: make(chan struct{})}, leader: &leader{}, owners: &owners{lag: LagReport{Complete: true}}}
	server := httptest.NewTLSServer(http.HandlerFunc(r.serve))
	r.expires = server.Certificate().NotAfter
	r.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	r.target = topicAnswer(`{"name":"orders","id":"00000000000000ff"}`)
	guard, err := outbound.NewGuard([]int{443, 7942}, nil, nil)
	require.NoError(t, err)
	keys, err := vault.NewKeys(strings.Repeat("a1", 32), "")
	require.NoError(t, err)
	dial := func(ctx context.Context, network, _ string, control func(network, address string) error) (net.Conn, error) {
		if err := control(network, "10.0.0.1:7942"); err != nil {
			return nil, err
		}
		var d net.Dialer
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	}
	log := slog.New(slog.NewJSONHandler(&r.logs, nil))
	v := vault.New(vault.Options{State: r.raft.State, Keys: keys, Guard: guard, Dial: dial, Logger: log})
	o := Options{
		NodeID: "n1", State: r.raft.State, Raft: r.raft, Leader: r.leader, Vault: v, Keys: keys, Guard: guard, Fan: r.owners,
		Backlog: r.owners, Lag: r.owners, Cursors: r.owners, Audit: audit.New(log), View: func(m meta.Topic) wire.Topic { return cluster.View(m, nil) },
		Settings: Settings{Security: true, APIHopEncrypted: true},
		Rates:    Rates{RemoteWrites: 1000, ChildWrites: 1000, CheckEvery: 1}, // no test but those of the rates meets them
	}
	for _, f := range change {
		f(&o)
	}
	r.Service = New(o)
	r.leader.s = r.Service
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		server.Close()
		require.NoError(t, <-done)
		r.noSecrets(r.logs.String(), strings.Join(r.leader.bodies, "\n"))
		for _, e := range r.raft.entries {
			r.noSecrets(string(e))
		}
	})
	return r
}

// serve is the scripted target: what is asked without a credential, of users or as a batch is the door's.
func (r *rig) serve(w http.ResponseWriter, req *http.Request) {
	asksTopic := req.Method == http.MethodGet && strings.HasPrefix(req.URL.Path, "/v1/topics/")
	switch {
	case asksTopic && req.Header.Get("Authorization") != "":
		r.target(w, req)
	case r.door != nil:
		r.door(w, req)
	default:
		goodDoor(w, req)
	}
}

// goodDoor is a target that asks who one is and takes this credential for a producer's, 1,000 messages at a time.
func goodDoor(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	switch {
	case req.Header.Get("Authorization") == "":
		answer(401, `{"error":"unauthorized"}`)(w, req)
	case req.URL.Path == "/v1/users":
		answer(403, `{"error":"admin required"}`)(w, req)
	case req.Header.Get("Content-Encoding") == "" && strings.Contains(string(body), "[]"):
		answer(400, `{"error":"messages required"}`)(w, req)
	default:
		answer(400, `{"error":"message 0: payload required"}`)(w, req)
	}
}

// noSecrets looks for the password in every spelling that it has anywhere.
func (r *rig) noSecrets(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		require.NotContains(r.t, text, canary)
		require.NotContains(r.t, text, "Y29waWVyOm") // base64 of "copier:"
	}
}

// topicAnswer is a target whose topic is body and has no children.
func topicAnswer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/children") {
			var topic wire.Topic
			_ = json.Unmarshal([]byte(body), &topic) // a body that is no topic has no ID
			answer(200, fmt.Sprintf(`{"parent":"orders","parent_id":%q,"children":[]}`, topic.ID))(w, req)
			return
		}
		answer(200, body)(w, req)
	}
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// topic puts a topic into the metadata.
func (r *rig) topic(name string, retentionMS int64) meta.Topic {
	r.t.Helper()
	m := meta.Topic{Name: name, ID: meta.NewID(), Partitions: 3, RetentionMS: retentionMS, Owner: "owner", Nodes: []string{"n1", "n1", "n1"}}
	r.apply(meta.CreateTopic{Topic: m})
	return m
}

func (r *rig) apply(e meta.Entry) {
	r.t.Helper()
	data, err := meta.Encode(e)
	require.NoError(r.t, err)
	_, err = r.raft.ProposeLocal(r.t.Context(), data)
	require.NoError(r.t, err)
}

func (r *rig) create(name string) wire.CreateRemote {
	return wire.CreateRemote{Name: name, URL: "https://example.com:7942", Username: "copier", Password: canary, CAPEM: r.ca}
}

func (r *rig) remote(name string) wire.Remote {
	r.t.Helper()
	got, err := r.CreateRemote(r.t.Context(), root, r.create(name))
	require.NoError(r.t, err)
	return got
}

// lines returns the audit lines as "event target outcome", and every line whole.
func (r *rig) lines() (short []string, whole []map[string]any) {
	r.t.Helper()
	for text := range strings.Lines(r.logs.String()) {
		var m map[string]any
		require.NoError(r.t, json.Unmarshal([]byte(text), &m))
		if m["component"] == "audit" {
			short = append(short, fmt.Sprintf("%v %v %v", m["event"], m["target"], m["outcome"]))
			whole = append(whole, m)
		}
	}
	return short, whole
}

func (r *rig) refused(err error, kind wire.Kind) {
	r.t.Helper()
	require.NotNil(r.t, r.refusal(err, kind))
}

// refusal is the problem in err, for a test that reads more of it.
func (r *rig) refusal(err error, kind wire.Kind) *wire.Problem {
	r.t.Helper()
	var p *wire.Problem
	require.ErrorAs(r.t, err, &p)
	require.Equal(r.t, kind, p.Kind, p.Text)
	r.noSecrets(p.Text, fmt.Sprintf("%+v %#v", p.Fields, p))
	return p
}

func ptr[T any](v T) *T { return &v }

// sound is the posture of the rig's node.
func sound() *wire.Posture { return &wire.Posture{Security: true, APIHopEncrypted: true} }
