package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"

	"narad.example/narad/access"
	"narad.example/narad/audit"
	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server over fakes of its ports. stored lists what any port was asked to change, so that a test can say that a
// refusal stores nothing.
type world struct {
	*meta.State
	t      testing.TB
	server *Server
	index  uint64
	log    bytes.Buffer
	audit  bytes.Buffer

	mu       sync.Mutex // guards the rest
	stored   []string
	recs     []wire.NewRecord
	fail     error // what every port answers, when not nil
	stub     error // what a produce without records answers
	out      []wire.Delivery
	waited   time.Duration
	observed []string
	panics   bool
	block    chan struct{} // a consume waits for it, when not nil
	begun    chan struct{}
	stopping bool
}

func (w *world) Propose(_ context.Context, e meta.Entry) (uint64, error) {
	w.index++
	w.note("propose")
	return w.index, w.Apply(w.index, e)
}

func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored = append(w.stored, what)
}

func newWorld(t *testing.T, change ...func(*Options)) *world { return newWorldOf(t, change...) }

func newWorldOf(t testing.TB, change ...func(*Options)) *world {
	w := &world{State: meta.NewState(), t: t}
	c := access.New(access.Options{State: w, Cost: bcrypt.MinCost})
	b := access.Bootstrap{Control: c, Propose: w, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, b.EnsureRoot(t.Context(), "root-password"))
	users := access.NewUsers(c, w)
	root := access.Identity{Name: "admin", Admin: true, Root: true}
	for _, u := range []wire.CreateUser{
		{Username: "writer", Password: "pw", Grants: []wire.Grant{{Action: wire.ActionProduce, Patterns: []string{"orders*", "missing", "stub"}}}},
		{Username: "reader", Password: "pw", Grants: []wire.Grant{{Action: wire.ActionConsume, Patterns: []string{"*"}}}},
		{Username: "maker", Password: "pw", Grants: []wire.Grant{{Action: wire.ActionCreate, Patterns: []string{"new*"}}}},
		{Username: "nobody", Password: "pw"},
	} {
		_, err := users.Create(t.Context(), &root, u)
		require.NoError(t, err)
	}
	one := []string{"n1"}
	w.put(meta.CreateTopic{Topic: meta.Topic{Name: "orders", ID: "00000000000000aa", Partitions: 1, Nodes: one, Owner: "maker"}})
	w.put(meta.CreateTopic{Topic: meta.Topic{Name: "parent", ID: "00000000000000bb", Partitions: 1, Nodes: one, Owner: "maker"}})
	w.put(meta.CreateTopic{Topic: meta.Topic{Name: "late", ID: "00000000000000cc", Partitions: 1, Nodes: one, Owner: "maker"}})
	w.put(meta.AttachChild{Parent: "orders", ParentID: "00000000000000aa", Child: "late", ChildID: "00000000000000cc", Epoch: "0000000000000001",
		DelayMS: 1000, Offsets: []int64{0}})
	w.put(meta.PutRemote{Remote: meta.Remote{Name: "berlin", ID: "00000000000000dd", URL: "https://b.example", Revision: 1},
		Salt: make([]byte, meta.SaltBytes)})
	w.put(meta.AttachRemote{ParentID: "00000000000000bb", ParentPartitions: 1, Topic: meta.Topic{
		Name: "stub", ID: "00000000000000ee", Parent: "parent", AttachEpoch: "0000000000000002", AttachOffsets: []int64{0},
		Remote: &meta.RemoteLink{Remote: "berlin", Topic: "t", Lanes: 1, From: wire.FromAttach, CreatedBy: "admin", PausedBy: "admin"},
	}})
	w.stored = nil
	o := Options{
		Control: c, Users: users, Topics: w.topics(), Listing: ports{w}, Links: ports{w}, Remotes: ports{w}, Moves: ports{w}, Members: members{w}, Producer: ports{w},
		Consumer: ports{w}, Health: ports{w}, Audit: audit.New(slog.New(slog.NewJSONHandler(&w.audit, nil))),
		Logger: slog.New(slog.NewJSONHandler(&w.log, nil)),
		Observe: func(route, method string, status int, _ time.Duration) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.observed = append(w.observed, method+" "+route+" "+http.StatusText(status))
		},
	}
	for _, f := range change {
		f(&o)
	}
	w.server = New(o)
	return w
}

func (w *world) put(e meta.Entry) {
	_, err := w.Propose(w.t.Context(), e)
	require.NoError(w.t, err)
}

// req is one request of a test; the zero members are a root admin's JSON request.
type req struct {
	user, method, path, body string
	header                   map[string]string
}

func (w *world) do(r req) *httptest.ResponseRecorder {
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	h := httptest.NewRequestWithContext(w.t.Context(), r.method, r.path, body)
	switch r.user {
	case "":
		h.SetBasicAuth("admin", "root-password")
	case "none":
	default:
		h.SetBasicAuth(r.user, "pw")
	}
	h.Header.Set("Content-Type", "application/json")
	h.Header.Set(wire.HeaderClient, "test")
	for k, v := range r.header {
		h.Header.Del(k)
		if v != "" {
			h.Header.Set(k, v)
		}
	}
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, h)
	return rec
}

func (w *world) lines() []map[string]any {
	var out []map[string]any
	d := json.NewDecoder(bytes.NewReader(w.audit.Bytes()))
	for {
		var m map[string]any
		if d.Decode(&m) != nil {
			return out
		}
		out = append(out, m)
	}
}

func (w *world) change(what string) error {
	if w.fail != nil {
		return w.fail
	}
	if w.panics {
		panic("a password stands here")
	}
	w.note(what)
	return nil
}

// ports are the fakes; a type of its own because a port's method may be named like one of the state.
type ports struct{ w *world }

type topicPort struct{ ports }

func (w *world) topics() Topics { return topicPort{ports{w}} }

func (p topicPort) Create(_ context.Context, actor string, r wire.CreateTopic) (wire.Topic, error) {
	return wire.Topic{Name: r.Name, Owner: actor}, p.w.change("create " + r.Name + r.Owner)
}

func (p topicPort) Get(_ context.Context, name string, _ *int) (wire.TopicDetail, error) {
	return wire.TopicDetail{Topic: p.w.stubShape(name)}, p.w.fail
}

func (w *world) stubShape(name string) wire.Topic {
	t := wire.Topic{Name: name}
	if name == "stub" {
		t.Parent = "parent"
		t.Remote = &wire.Link{Name: "berlin", CreatedBy: "admin", PausedBy: "admin"}
	}
	return t
}

func (p topicPort) List(_ context.Context, limit int, _ string, visible func(wire.Topic) bool) (wire.TopicPage, error) {
	var page wire.TopicPage
	for _, t := range p.w.Topics() {
		shape := p.w.stubShape(t.Name)
		shape.Owner = t.Owner
		if visible(shape) && len(page.Topics) < limit {
			page.Topics = append(page.Topics, shape)
		}
	}
	return page, p.w.fail
}

func (p topicPort) Alter(_ context.Context, name string, _ wire.AlterTopic) (wire.TopicDetail, error) {
	return wire.TopicDetail{Topic: wire.Topic{Name: name}}, p.w.change("alter " + name)
}

func (p topicPort) Schemas(_ context.Context, name string) (wire.SchemaHistory, error) {
	return wire.SchemaHistory{Topic: name, Versions: []wire.SchemaVersion{}}, p.w.fail
}

func (p topicPort) Delete(_ context.Context, name string) error { return p.w.change("delete " + name) }

func (p topicPort) AttachLocal(_ context.Context, parent string, r wire.AttachChild) (wire.Topic, error) {
	return wire.Topic{Name: parent}, p.w.change("attach " + parent + "/" + r.Child)
}

func (p topicPort) DetachLocal(_ context.Context, parent, child string) error {
	return p.w.change("detach " + parent + "/" + child)
}

func (p ports) Listing(_ context.Context, parent string, _ bool) (wire.Children, error) {
	return wire.Children{Parent: parent}, p.w.fail
}

func (p ports) Attach(_ context.Context, c Caller, parent string, r wire.AttachChild) (wire.Attached, error) {
	if r.DryRun {
		return wire.Attached{Topic: wire.Topic{AttachOffsets: []int64{5}}}, p.w.fail
	}
	return wire.Attached{Topic: wire.Topic{Name: r.Child}}, p.w.change("link " + parent + "/" + r.Child + " " + c.Name + " " + c.RequestID)
}

func (p ports) Detach(_ context.Context, _ Caller, parent, child string, _ bool) error {
	return p.w.change("unlink " + parent + "/" + child)
}

func (p ports) DeleteTopic(_ context.Context, _ Caller, name string, _ bool) error {
	return p.w.change("delete linked " + name)
}

func (p ports) Pause(_ context.Context, _ Caller, parent, child, reason string) (wire.Topic, error) {
	return p.w.stubShape(child), p.w.change("pause " + parent + "/" + child + " " + reason)
}

func (p ports) Resume(_ context.Context, _ Caller, parent, child string, accept bool) (wire.Topic, error) {
	return p.w.stubShape(child), p.w.change(fmt.Sprintf("resume %s/%s %t", parent, child, accept))
}

func (p ports) Skip(_ context.Context, _ Caller, parent, child string, partition int, offset int64) (wire.Topic, error) {
	return p.w.stubShape(child), p.w.change(fmt.Sprintf("skip %s/%s %d %d", parent, child, partition, offset))
}

func (p ports) Test(_ context.Context, _ Caller, name string, req wire.TestRemote) (wire.RemoteTest, error) {
	return wire.RemoteTest{Remote: name, Result: wire.CheckPass}, p.w.change("test " + name + " " + req.Topic + " " + req.Source)
}

func (p ports) Reencrypt(context.Context, Caller) (wire.Reencrypted, error) {
	return wire.Reencrypted{
		KeyVersion: "aa", Reencrypted: []string{"berlin"}, AlreadyCurrent: []string{}, Failed: []wire.ReencryptError{{Name: "oslo", Reason: wire.KeyUnknown}},
	}, p.w.change("reencrypt")
}

func (p ports) CreateRemote(_ context.Context, _ Caller, r wire.CreateRemote) (wire.Remote, error) {
	return wire.Remote{Name: r.Name, Links: []string{"a/b"}}, p.w.change("remote " + r.Name)
}

func (p ports) PatchRemote(_ context.Context, _ Caller, name string, _ wire.PatchRemote) (wire.Remote, error) {
	return wire.Remote{Name: name}, p.w.change("patch " + name)
}

func (p ports) DeleteRemote(_ context.Context, _ Caller, name string, _ bool) error {
	return p.w.change("delete remote " + name)
}

func (p ports) Remotes(_ context.Context, _ bool) (wire.Remotes, error) {
	nodes := []wire.RemoteNode{{Node: "n1"}}
	return wire.Remotes{Allowlist: "none", Remotes: []wire.Remote{{Name: "berlin", Nodes: nodes}}, NotAnswering: []string{"n2"}}, p.w.fail
}

func (p ports) Remote(_ context.Context, name string, _ bool) (wire.Remote, error) {
	return wire.Remote{Name: name, Nodes: []wire.RemoteNode{{Node: "n1"}}}, p.w.fail
}

func (p ports) Produce(_ context.Context, _, _ string, recs []wire.NewRecord) error {
	if len(recs) == 0 {
		return p.w.stub
	}
	if p.w.block != nil {
		p.w.begun <- struct{}{}
		<-p.w.block
	}
	if err := p.w.change("produce"); err != nil {
		return err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.recs = nil
	for _, r := range recs { // the handler reuses the memory
		p.w.recs = append(p.w.recs, wire.NewRecord{Key: bytes.Clone(r.Key), Payload: bytes.Clone(r.Payload), Partition: r.Partition})
	}
	return nil
}

func (p ports) Consume(_ context.Context, _ string, _ *int, limit int, wait time.Duration) ([]wire.Delivery, error) {
	if p.w.block != nil {
		p.w.begun <- struct{}{}
		<-p.w.block
	}
	p.w.mu.Lock()
	p.w.waited = wait
	p.w.mu.Unlock()
	return p.w.out[:min(limit, len(p.w.out))], p.w.fail
}

func (p ports) Replay(_ context.Context, _ string, _ int, offset int64) (*wire.Delivery, error) {
	if p.w.fail != nil || offset >= int64(len(p.w.out)) {
		return nil, p.w.fail
	}
	return &p.w.out[offset], nil
}

func (p ports) Ack(_ context.Context, _, handle string) error    { return p.w.settle("ack", handle) }
func (p ports) Nack(_ context.Context, _, handle string) error   { return p.w.settle("nack", handle) }
func (p ports) Extend(_ context.Context, _, handle string) error { return p.w.settle("extend", handle) }

func (w *world) settle(how, handle string) error {
	if handle == "gone" {
		return wire.Refuse(wire.Gone, "the lease is gone")
	}
	return w.change(how + " " + handle)
}

func (p ports) Stopping() bool { return p.w.stopping }

func (p ports) Ready(context.Context) (string, error) { return "", p.w.fail }

func (p ports) Moves(context.Context) (wire.Moves, error) {
	return wire.Moves{Moves: []wire.Move{{Topic: "orders", Partition: 2, From: "n1", To: "n2", FromStatus: "alive", ToStatus: "alive"}}}, p.w.fail
}

func (p ports) Abort(_ context.Context, topic string, partition int) (wire.AbortedMove, error) {
	return wire.AbortedMove{Move: wire.Move{Topic: topic, Partition: partition}, Note: "n"}, p.w.change(fmt.Sprint("abort ", topic, partition))
}
