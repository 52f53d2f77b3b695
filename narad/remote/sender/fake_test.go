package sender

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// got is one request as the fake target saw it.
type got struct {
	at         time.Time
	path       string
	offsets    []int64 // of a chunk
	base64     []bool
	bytes      int
	plain      int // bytes, without the compression
	compressed bool
	targetID   string
	id         string
	code       int // answered; 0 for a failure
	stored     bool
}

// fakeTarget answers chunks from a script and keeps all that it saw of them. The zero script accepts everything. Checks and
// batch-size probes are answered at once and kept apart: as a good target does, unless listing says otherwise.
type fakeTarget struct {
	mu      sync.Mutex // guards the fields below
	script  func(g *got) (*outbound.Answer, error)
	listing func(g *got) (*outbound.Answer, error)
	few     bool // takes 100 messages a request
	sizing  func(g *got) (*outbound.Answer, error)
	checks  []got
	sizes   []got
	delay   time.Duration
	seen    []got
	onWire  int
	most    int // on the wire at once, ever
}

func (f *fakeTarget) Do(ctx context.Context, r *outbound.Request) (*outbound.Answer, error) {
	g := got{at: time.Now(), path: r.Path, bytes: len(r.Body), targetID: r.Header.Get(wire.HeaderIfTopicID), id: r.RequestID}
	body := r.Body
	if g.compressed = r.ContentEncoding == "zstd"; g.compressed {
		body = unzstd(body)
	}
	g.plain = len(body)
	g.offsets, g.base64 = decodeChunk(body)
	if r.Method == http.MethodGet {
		return f.check(g)
	}
	f.mu.Lock()
	if bytes.Equal(r.Body, target.SizeBody) {
		defer f.mu.Unlock()
		return f.size(g)
	}
	f.onWire++
	f.most = max(f.most, f.onWire)
	delay, script := f.delay, f.script
	f.mu.Unlock()
	var err error
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			err = &outbound.Failure{Class: outbound.Canceled, UploadBegan: true}
		}
	}
	a := accepted(len(g.offsets))
	if err == nil && script != nil {
		a, err = script(&g)
	}
	if err != nil {
		a = nil
	} else {
		g.code = a.Status
		g.stored = a.Status == http.StatusAccepted && string(a.Body) == string(accepted(len(g.offsets)).Body)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onWire--
	f.seen = append(f.seen, g)
	return a, err
}

func (f *fakeTarget) check(g got) (*outbound.Answer, error) {
	f.mu.Lock()
	listing := f.listing
	f.checks = append(f.checks, g)
	f.mu.Unlock()
	if listing != nil {
		return listing(&g)
	}
	return lists(`[]`), nil
}

func (f *fakeTarget) size(g got) (*outbound.Answer, error) {
	f.sizes = append(f.sizes, g)
	if f.sizing != nil {
		return f.sizing(&g)
	}
	if f.few {
		return shaped(400, "too many messages"), nil
	}
	return shaped(400, "message 0: payload required"), nil
}

// lists is the children listing of the recorded topic.
func lists(children string) *outbound.Answer {
	return answer(200, `{"parent":"a b","parent_id":"00000000000000aa","children":`+children+`}`)
}

// list sets what checks are answered.
func (f *fakeTarget) list(listing func(g *got) (*outbound.Answer, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listing = listing
}

func (f *fakeTarget) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeTarget) sized() []got {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]got(nil), f.sizes...)
}

func (f *fakeTarget) checked() []got {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]got(nil), f.checks...)
}

func (f *fakeTarget) set(script func(g *got) (*outbound.Answer, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = script
}

func (f *fakeTarget) requests() []got {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]got(nil), f.seen...)
}

// stored lists the offsets of accepted requests, in the order of the answers.
func (f *fakeTarget) stored() []int64 {
	var out []int64
	for _, g := range f.requests() {
		if g.stored {
			out = append(out, g.offsets...)
		}
	}
	return out
}

func unzstd(b []byte) []byte {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil
	}
	defer d.Close()
	b, _ = d.DecodeAll(b, nil) // what cannot be read has no offsets
	return b
}

// decodeChunk reads a body with encoding/json alone. A payload of the tests is {"o":offset,...}, or "raw offset" in bytes that
// are no JSON.
func decodeChunk(body []byte) (offsets []int64, coded []bool) {
	var b struct {
		Messages []struct {
			Payload  json.RawMessage `json:"payload"`
			Encoding string          `json:"payload_encoding"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &b) != nil {
		return nil, nil
	}
	for _, m := range b.Messages {
		payload := []byte(m.Payload)
		if m.Encoding == wire.Base64 {
			var s string
			_ = json.Unmarshal(m.Payload, &s) // a bad one shows as a wrong offset
			payload, _ = base64.StdEncoding.DecodeString(s)
		}
		var p struct{ O int64 }
		if json.Unmarshal(payload, &p) != nil {
			_, _ = fmt.Sscanf(string(payload), "raw %d", &p.O) // -1 marks what it cannot read
		}
		offsets, coded = append(offsets, p.O), append(coded, m.Encoding == wire.Base64)
	}
	return offsets, coded
}

func answer(status int, body string, header ...string) *outbound.Answer {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &outbound.Answer{Status: status, Header: h, Body: []byte(body)}
}

func accepted(n int) *outbound.Answer { return answer(202, fmt.Sprintf(`{"accepted":%d}`, n)) }

// node is what the tests' cursors share: one remote, its senders, the log.
type node struct {
	t       *testing.T
	senders *Senders
	logs    *lines
	seen    *counts

	mu      sync.Mutex // guards the fields below
	remote  Remote
	changed chan struct{}
}

func newNode(t *testing.T, target *fakeTarget) *node {
	n := &node{t: t, logs: &lines{}, seen: &counts{errors: map[string]int{}}, changed: make(chan struct{})}
	n.remote = Remote{Client: target, CredentialVersion: 1, ID: "r1", Limits: wire.DefaultLimits()}
	n.senders = New(Options{
		Remotes: n, Logger: slog.New(slog.NewJSONHandler(n.logs, nil)), Observer: n.seen, MaxHeld: 256 << 20, Rand: rand.New(rand.NewPCG(1, 2)),
	})
	return n
}

func (n *node) Remote(string) Remote {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.remote
}

func (n *node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *node) change(change func(r *Remote)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.remote)
	close(n.changed)
	n.changed = make(chan struct{})
}

// link is a live link of the tests.
type link struct {
	mu      sync.Mutex // guards the fields below
	live    LinkLive
	changed chan struct{}
}

func newLink() *link { return &link{changed: make(chan struct{})} }

func (l *link) set(change func(v *LinkLive)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.live)
	close(l.changed)
	l.changed = make(chan struct{})
}

// open opens a cursor whose first check and batch-size probe have been answered.
func (n *node) open(l *link, partition, lanes int, marks ...int64) *Cursor {
	c := n.begin(l, partition, lanes, marks...)
	synctest.Wait()
	return c
}

func (n *node) begin(l *link, partition, lanes int, marks ...int64) *Cursor {
	c := n.senders.Open(LinkConfig{
		Parent: "orders", Child: "orders-copy", Remote: "eu", TargetTopic: "a b", TargetID: "00000000000000aa", Partition: partition,
		Lanes: lanes, Marks: marks,
		Live: func() LinkLive {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.live
		},
		Changed: func() <-chan struct{} {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.changed
		},
	})
	n.t.Cleanup(func() { // after a failed test too, so that the bubble ends and tells which one failed
		over, cancel := context.WithCancel(context.Background())
		cancel()
		c.Close(over)
	})
	return c
}

// ship runs Ship aside and returns where its outcome comes.
func ship(ctx context.Context, c *Cursor, recs []Record) <-chan Outcome {
	out := make(chan Outcome, 1)
	go func() { out <- c.Ship(ctx, recs, nil) }()
	return out
}

// blockedAt is the lowest blocked record, -1 when none is.
func blockedAt(s Status) int64 {
	if len(s.Blocked) == 0 {
		return -1
	}
	return s.Blocked[0].Offset
}

// records makes n records of JSON from an offset on; every third has no key.
func records(from int64, n int) []Record {
	out := make([]Record, n)
	for i := range out {
		o := from + int64(i)
		out[i] = Record{Offset: o, Payload: fmt.Appendf(nil, `{"o":%d}`, o)}
		if o%3 != 0 {
			out[i].Key = fmt.Appendf(nil, "key-%d", o%7)
		}
	}
	return out
}

func offsetsOf(recs []Record) []int64 {
	var out []int64
	for i := range recs {
		out = append(out, recs[i].Offset)
	}
	return out
}

// lines is a log.
type lines struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// take returns the lines so far as "LEVEL msg state status offset" and forgets them.
func (l *lines) take(t *testing.T) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for line := range strings.Lines(l.buf.String()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		for _, name := range []string{"parent", "partition", "child", "remote"} {
			require.Contains(t, m, name)
			delete(m, name)
		}
		s := fmt.Sprint(m["level"], " ", m["msg"])
		for _, name := range []string{"state", "status", "offset"} {
			if v, ok := m[name]; ok {
				s += fmt.Sprint(" ", v)
			}
			delete(m, name)
		}
		require.Len(t, m, 3, "nothing but time, level and msg is left: %s", line) // LOG-01
		out = append(out, s)
	}
	l.buf.Reset()
	return out
}

// counts is an Observer.
type counts struct {
	silent
	mu         sync.Mutex // guards the fields below
	resent     int
	skipped    int
	failed     int // checks
	lowest     int
	errors     map[string]int
	states     []wire.LinkState
	backoff    time.Duration
	wire, body int
	held       int64
}

func (c *counts) Held(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = n
}

func (c *counts) Request(_, _ string, _ time.Duration, body, wire int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wire += wire
	c.body += body
}

func (c *counts) Error(_, class string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors[class]++
}

func (c *counts) Resent(_ string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resent += n
}

func (c *counts) Skipped(_, _ string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skipped += n
}

func (c *counts) ChunkLimit(_ string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lowest = n
}

func (c *counts) GateBackoff(_ string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.backoff = d
}

func (c *counts) State(_, _ string, _ int, s wire.LinkState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states = append(c.states, s)
}

func (c *counts) CheckFailed(string, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed++
}

func (c *counts) checksFailed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *counts) get() (resent, skipped, lowest int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resent, c.skipped, c.lowest
}

var errOther = errors.New("some other error")
