package run

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// memRig is a rig in memory: two clusters of one node each that know the few routes that a run asks, and a pump that plays the sender. Its
// faults are switches for what a broken product would do.
type memRig struct {
	spec           cluster.Spec
	source, target *memNode
	link           *memLink
	stop           context.CancelFunc
	pumped         sync.WaitGroup

	skip    string        // a record with this ID is never sent
	leak    bool          // the password of the remote goes into a log
	silent  bool          // the leader writes no audit line
	left    []string      // what is still there after Close
	repeats bool          // every request is sent twice and nobody counts it
	kills   time.Duration // until a kill answers, as an engine's may when the node is long dead
	starts  time.Duration
	steered steering
	dark    int // looks at the listing that show no state yet; guarded by mu

	mu   sync.Mutex // guards what follows and the topics of both nodes
	wire []ledger.WireRequest
	next map[int]int
}

type memRecord struct {
	key, payload []byte
}

type memNode struct {
	rig  *memRig
	name string
	side string
	log  *bytes.Buffer // guarded by rig.mu
	mux  *http.ServeMux

	mu      sync.Mutex // guards running and paused
	running bool
	paused  chan struct{} // closed at the resume, nil while awake

	topics map[string][][]memRecord
	child  *wire.AttachChild
}

func newMemRig(spec cluster.Spec) *memRig {
	r := &memRig{spec: spec, link: &memLink{enabled: true, toxics: map[string]cluster.Toxic{}}, next: map[int]int{}}
	r.source, r.target = newMemNode(r, cluster.Source), newMemNode(r, cluster.Target)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.pumped.Go(func() {
		for sleep(ctx, 50*time.Millisecond) {
			r.pump()
		}
	})
	return r
}

// pump sends what each partition has, one request for each, while the way is free.
func (r *memRig) pump() {
	if !r.link.free() || !r.target.awake() || !r.source.awake() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source.child == nil || r.steered.holds() {
		return
	}
	for p, log := range r.source.topics["orders"] {
		if r.next[p] >= len(log) {
			continue
		}
		req := ledger.WireRequest{At: r.now(), Tap: "tap", Method: "POST", Topic: "orders", TopicID: "t-orders", Status: 202, Outcome: ledger.WireAccepted, Sent: true}
		ready := log[r.next[p]:]
		for i, rec := range ready {
			id := ledger.IDOf(rec.key, rec.payload)
			if r.steered.refuses(id, p, r.next[p]+i) {
				ready = ready[:i]
				break
			}
			if r.steered.skipped(p, r.next[p]+i) {
				continue
			}
			if r.skip != "" && id == r.skip {
				continue
			}
			req.Records = append(req.Records, ledger.WireRecord{ID: id, Key: ledger.KeyText(rec.key), Payload: ledger.Hash(rec.payload)})
			r.target.store("orders", rec)
		}
		r.next[p] += len(ready)
		if len(req.Records) == 0 {
			continue
		}
		for range map[bool]int{false: 1, true: 2}[r.repeats] {
			req.Seq, req.Done = int64(len(r.wire)+1), r.now()
			r.wire = append(r.wire, req)
		}
	}
}

func (r *memRig) now() int64 { return time.Since(r.spec.Epoch).Milliseconds() }

func (r *memRig) Nodes(side string) []cluster.Node {
	if side == cluster.Source {
		return []cluster.Node{r.source}
	}
	return []cluster.Node{r.target}
}

func (r *memRig) Node(name string) (cluster.Node, error) {
	for _, n := range []*memNode{r.source, r.target} {
		if n.name == name {
			return n, nil
		}
	}
	return nil, errors.New("no such node")
}

func (r *memRig) Link() cluster.Link             { return r.link }
func (r *memRig) Remote() cluster.Remote         { return cluster.Remote{URL: "https://edge", CAPEM: "pem"} }
func (r *memRig) Admin() (user, password string) { return "admin", "admin-password" }
func (r *memRig) Secrets() []string              { return []string{"admin-password"} }
func (r *memRig) Close(context.Context) error    { r.stop(); r.pumped.Wait(); return nil }
func (r *memRig) Wire(context.Context) ([]ledger.WireRequest, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]ledger.WireRequest(nil), r.wire...), nil
}

func newMemNode(r *memRig, side string) *memNode {
	n := &memNode{rig: r, name: side + "-1", side: side, running: true, log: &bytes.Buffer{}, mux: http.NewServeMux(), topics: map[string][][]memRecord{}}
	n.routes()
	return n
}

func (n *memNode) Name() string { return n.name }
func (n *memNode) Side() string { return n.side }

func (n *memNode) Client() *client.Client { return n.ClientAs("admin", "admin-password") }

func (n *memNode) ClientAs(user, password string) *client.Client {
	return client.New(client.Options{BaseURL: "http://" + n.name, User: user, Password: password, HTTP: &http.Client{Transport: n}})
}

// RoundTrip is the network between a client and the node.
func (n *memNode) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	running, paused := n.running, n.paused
	n.mu.Unlock()
	if !running {
		return nil, syscall.ECONNREFUSED
	}
	if paused != nil {
		select {
		case <-paused:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	w := httptest.NewRecorder()
	n.mux.ServeHTTP(w, req)
	return w.Result(), nil
}

func (n *memNode) set(running bool, paused chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paused != nil && paused == nil {
		close(n.paused)
	}
	n.running, n.paused = running, paused
}

func (n *memNode) awake() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running && n.paused == nil
}

func (n *memNode) Start(context.Context) error {
	time.Sleep(n.rig.starts)
	n.set(true, nil)
	return nil
}
func (n *memNode) Stop(context.Context) error { n.set(false, nil); return nil }
func (n *memNode) Kill(context.Context) error {
	n.set(false, nil)
	time.Sleep(n.rig.kills)
	return nil
}
func (n *memNode) Pause(context.Context) error  { n.set(true, make(chan struct{})); return nil }
func (n *memNode) Resume(context.Context) error { n.set(true, nil); return nil }
func (n *memNode) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running
}

func (n *memNode) Log() ([]byte, error) {
	n.rig.mu.Lock()
	defer n.rig.mu.Unlock()
	return bytes.Clone(n.log.Bytes()), nil
}

func (n *memNode) Metrics(ctx context.Context) (string, error) {
	body, err := n.Client().Metrics(ctx)
	return string(body), err
}

// store appends a record; callers hold rig.mu.
func (n *memNode) store(topic string, rec memRecord) {
	h := fnv.New32a()
	_, _ = h.Write(rec.key)
	p := int(h.Sum32()) % len(n.topics[topic])
	n.topics[topic][p] = append(n.topics[topic][p], rec)
}

func (n *memNode) audit(r *http.Request, event, outcome string, status int) {
	l := slog.New(slog.NewJSONHandler(n.log, nil)).With("component", "audit")
	args := []any{"event", event, "actor", "admin", "target", "x", "outcome", outcome, "request_id", r.Header.Get(wire.HeaderRequestID)}
	if status != 0 {
		args = append(args, "status", status)
	} else {
		args = append(args, "index", 7)
	}
	l.Info("audit", args...)
}

func (n *memNode) routes() {
	handle := func(pattern, event string, status int, f func(r *http.Request, body []byte) any) {
		n.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			n.rig.mu.Lock()
			defer n.rig.mu.Unlock()
			out := f(r, body)
			if event != "" {
				if strings.HasPrefix(event, "remote") && !n.rig.silent {
					n.audit(r, event, "committed", 0)
				}
				n.audit(r, event, "ok", status)
			}
			if out == nil && status == http.StatusOK {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(out)
		})
	}
	handle("POST /v1/topics", "topic.create", 201, func(_ *http.Request, body []byte) any {
		var t wire.CreateTopic
		_ = json.Unmarshal(body, &t)
		n.topics[t.Name] = make([][]memRecord, t.Partitions)
		return wire.Topic{Name: t.Name}
	})
	handle("POST /v1/users", "user.create", 201, func(*http.Request, []byte) any { return wire.User{} })
	handle("POST /v1/remotes", "remote.create", 201, func(_ *http.Request, body []byte) any {
		var rm wire.CreateRemote
		_ = json.Unmarshal(body, &rm)
		if n.rig.leak {
			n.log.WriteString("dialling with " + base64.StdEncoding.EncodeToString([]byte(rm.Username+":"+rm.Password)) + "\n")
		}
		return wire.Remote{}
	})
	handle("POST /v1/topics/{t}/children", "remote_child.create", 201, func(_ *http.Request, body []byte) any {
		n.child = &wire.AttachChild{}
		_ = json.Unmarshal(body, n.child)
		return wire.Attached{Topic: n.stub()}
	})
	handle("GET /v1/topics/{t}/children", "", 200, func(*http.Request, []byte) any { return n.listing() })
	handle("GET /v1/topics/{t}", "", 200, func(r *http.Request, _ []byte) any { return n.describe(r.PathValue("t")) })
	handle("PUT /v1/users/{u}/password", "user.password", 204, func(*http.Request, []byte) any { return nil })
	n.steeringRoutes(handle)
	n.mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("narad_ingress_dispatch_backlog_records 0\nnarad_remote_resent_records_total{remote=\"b\"} 0\n"))
	})
	handle("POST /v1/topics/{t}/produce/batch", "", 202, func(r *http.Request, body []byte) any { return n.batch(r.PathValue("t"), body) })
	handle("GET /v1/topics/{t}/consume", "", 200, func(r *http.Request, _ []byte) any { return n.replay(r) })
}

func (n *memNode) stub() wire.Topic {
	return wire.Topic{Name: n.child.Child, AttachEpoch: "e1", AttachOffsets: []int64{0, 0, 0}, Remote: &wire.Link{
		Name: "b", Topic: "orders", TargetID: "t-orders", Lanes: 4, Paused: n.rig.steered.paused, Skip: n.rig.steered.skips,
	}}
}

func (n *memNode) describe(topic string) any {
	if n.child != nil && topic == n.child.Child {
		return wire.TopicDetail{Topic: n.stub()}
	}
	d := wire.TopicDetail{Topic: wire.Topic{Name: topic, ID: "t-" + topic, Partitions: len(n.topics[topic])}}
	for i, log := range n.topics[topic] {
		d.PartitionStats = append(d.PartitionStats, wire.PartitionStats{Index: i, HighWatermark: int64(len(log)), Status: "ok"})
	}
	return d
}

func (n *memNode) listing() wire.Children {
	var lag int64
	var parts []wire.ChildPartition
	for p, log := range n.topics["orders"] {
		next := int64(n.rig.next[p])
		lag += int64(len(log)) - next
		parts = append(parts, wire.ChildPartition{Partition: p, Node: n.name, NextOffset: &next})
	}
	state := wire.Running
	if !n.rig.link.free() || !n.rig.target.awake() {
		state = wire.TargetUnavailable
	}
	if n.rig.steered.paused {
		state = wire.Paused
	}
	if n.rig.dark > 0 {
		n.rig.dark--
		state = wire.UnknownState
	}
	return wire.Children{Parent: "orders", Children: []wire.ChildEntry{{
		Name: "orders-to-b", LagMessages: lag, LagComplete: true, RemoteEntry: &wire.RemoteEntry{Remote: "b", State: state, BlockedAt: n.rig.steered.blocked, Partitions: parts},
	}}}
}

func (n *memNode) batch(topic string, body []byte) any {
	var b struct {
		Messages []struct {
			Payload         json.RawMessage `json:"payload"`
			PayloadEncoding string          `json:"payload_encoding"`
			Key             string          `json:"key"`
		} `json:"messages"`
	}
	_ = json.Unmarshal(body, &b)
	for _, m := range b.Messages {
		payload := []byte(m.Payload)
		if m.PayloadEncoding != "" {
			var text string
			_ = json.Unmarshal(m.Payload, &text)
			payload, _ = base64.StdEncoding.DecodeString(text)
		}
		key, _ := base64.StdEncoding.DecodeString(m.Key)
		n.store(topic, memRecord{key, payload})
	}
	return wire.Accepted{Accepted: len(b.Messages)}
}

func (n *memNode) replay(r *http.Request) any {
	p, _ := strconv.Atoi(r.URL.Query().Get("partition"))
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	log := n.topics[r.PathValue("t")][p]
	if offset >= len(log) {
		return nil
	}
	rec := log[offset]
	encoded, _ := json.Marshal(rec.payload)
	return wire.Message{
		Partition: p, Offset: int64(offset), Key: base64.StdEncoding.EncodeToString(rec.key), KeyEncoding: wire.Base64, Payload: encoded, PayloadEncoding: wire.Base64,
	}
}

// memLink is a link that can be cut; a toxic on it stops everything too.
type memLink struct {
	mu      sync.Mutex // guards what follows
	enabled bool
	toxics  map[string]cluster.Toxic
	useless bool // toxics do nothing
}

func (l *memLink) with(f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	return nil
}

func (l *memLink) free() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enabled && (l.useless || len(l.toxics) == 0)
}

func (l *memLink) Enable(context.Context) error  { return l.with(func() { l.enabled = true }) }
func (l *memLink) Disable(context.Context) error { return l.with(func() { l.enabled = false }) }
func (l *memLink) Add(_ context.Context, t cluster.Toxic) error {
	return l.with(func() { l.toxics[t.Name] = t })
}
func (l *memLink) Remove(_ context.Context, name string) error {
	return l.with(func() { delete(l.toxics, name) })
}
func (l *memLink) Reset(context.Context) error {
	return l.with(func() { l.enabled, l.toxics = true, map[string]cluster.Toxic{} })
}

func (l *memLink) State(context.Context) (enabled bool, toxics []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.toxics {
		toxics = append(toxics, name)
	}
	return l.enabled, toxics, nil
}

func (l *memLink) Probe(context.Context, int) (time.Duration, error) {
	if !l.free() {
		return 0, errors.New("cut")
	}
	return time.Millisecond, nil
}

func (l *memLink) Hold(context.Context) (cluster.Held, error) { return memHeld{l}, nil }

type memHeld struct{ link *memLink }

func (h memHeld) Ping(ctx context.Context, n int) (time.Duration, error) { return h.link.Probe(ctx, n) }
func (h memHeld) Close() error                                           { return nil }

// memBackend starts memRigs.
type memBackend struct{ spoil func(*memRig) }

func (memBackend) Name() string                    { return "sim" }
func (memBackend) Available(context.Context) error { return nil }
func (memBackend) Sweep(context.Context) error     { return nil }
func (b memBackend) Start(_ context.Context, spec cluster.Spec) (cluster.Rig, error) {
	if spec.Source.Nodes != 1 {
		return nil, fmt.Errorf("%w: one node a side", cluster.ErrTrouble)
	}
	r := newMemRig(spec)
	if b.spoil != nil {
		b.spoil(r)
	}
	return r, nil
}
