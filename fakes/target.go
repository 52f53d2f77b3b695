package fakes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

// TargetConfig is what a scripted target needs; it travels as JSON into a container.
type TargetConfig struct {
	Name    string            `json:"name"`
	Listen  string            `json:"listen"`  // host:port of the TLS edge
	Control string            `json:"control"` // host:port of the control endpoint, "" for none
	Cert    Cert              `json:"cert"`
	Faces   map[string]Cert   `json:"faces,omitempty"` // certificates of other faces (CA.Faces)
	Users   map[string]string `json:"users"`           // name to password
	Script  Script            `json:"script"`
	// Elsewhere is where another host of the rig listens, to which a script may redirect, and ElsewhereURL how the caller would find it;
	// "" for none.
	Elsewhere    string `json:"elsewhere,omitempty"`
	ElsewhereURL string `json:"elsewhere_url,omitempty"`

	Epoch time.Time `json:"epoch"` // the run's start, from which the recorded times count
	Net   Net       `json:"-"`
}

// Target is a scripted HTTPS target. It keeps all that it saw.
type Target struct {
	rec     *recorder
	play    *play
	store   *store
	users   map[string]string
	edge    *server
	control *server
	other   *server         // the host of a redirect
	ctx     context.Context // ends at Close, and with it what hangs
	cancel  context.CancelFunc

	elsewhereURL string
}

// RunTarget serves until ctx ends.
func RunTarget(ctx context.Context, c TargetConfig) error {
	f, err := StartTarget(c)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return f.Close()
}

// StartTarget checks the script, listens and serves; Close ends it.
func StartTarget(c TargetConfig) (*Target, error) {
	if err := c.Script.Check(); err != nil {
		return nil, err
	}
	f := &Target{
		rec: newRecorder(c.Name, c.Epoch), play: newPlay(c.Script), store: newStore(c.Script.Topics), users: maps.Clone(c.Users),
	}
	edgeTLS, err := serverTLS(c.Cert)
	if err != nil {
		return nil, err
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc(PingPath, ping)
	mux.HandleFunc("/", f.answer)
	if f.edge, err = c.Net.start(c.Listen, edgeTLS, c.Faces, mux); err != nil {
		return nil, fmt.Errorf("fake target: %w", err)
	}
	if c.Elsewhere != "" {
		if err = f.startElsewhere(c, edgeTLS); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if c.Control != "" {
		if f.control, err = c.Net.start(c.Control, nil, nil, controlRoutes(f.rec, f.play.uses, f.edge.faces)); err != nil {
			return nil, errors.Join(fmt.Errorf("fake target control: %w", err), f.Close())
		}
	}
	return f, nil
}

// Addr is where the edge listens.
func (f *Target) Addr() string { return f.edge.addr() }

// Show gives every connection that comes from now on another face; a bad one also ends those that are there.
func (f *Target) Show(face string) error { return f.edge.faces.set(face) }

// Met is what the edge met so far, by face.
func (f *Target) Met() map[string]FaceCount { return f.edge.faces.met() }

// ControlAddr is where the control endpoint listens, "" without one.
func (f *Target) ControlAddr() string {
	if f.control == nil {
		return ""
	}
	return f.control.addr()
}

// Requests returns every request seen so far, in the order of the answers.
func (f *Target) Requests(ctx context.Context) ([]ledger.WireRequest, error) {
	list, _, err := f.rec.requests(ctx, 1)
	return list, err
}

// Steps returns the script's steps with their use. A step used less than it wants makes the run inconclusive.
func (f *Target) Steps() []ledger.Step { return f.play.uses() }

// Close cuts what is on the wire and waits for every handler.
func (f *Target) Close() error {
	f.cancel()
	err := f.edge.close()
	for _, s := range []*server{f.control, f.other} {
		if s != nil {
			err = errors.Join(err, s.close())
		}
	}
	return err
}

// visit is one request at the fake.
type visit struct {
	f       *Target
	r       *http.Request
	line    ledger.WireRequest
	body    []byte
	records []record
}

func (f *Target) answer(w http.ResponseWriter, r *http.Request) {
	v := &visit{f: f, r: r, line: requestLine(r)}
	v.line.At = f.rec.now()
	if st := f.play.early(r); st != nil {
		n, _ := io.CopyN(io.Discard, r.Body, int64(max(st.Answer.Bytes, 1))) // a shorter body is cut all the same
		v.line.Bytes, v.line.Step = int(n), st.Name
		v.send(w, st.build(v, -1), ledger.WireCut)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxKept+1))
	v.body, v.line.Bytes = body, len(body)
	if err != nil {
		v.send(w, answer{how: closeFirst}, ledger.WireCut) // the caller went away in its upload
		return
	}
	if batchTopic(r) != "" {
		v.records, _ = decodeBatch(body, r.Header.Get("Content-Encoding")) // the store says what is wrong with it
		v.line.Records = wireRecords(v.records)
		v.line.Pinned = v.line.Pinned || pinned(v.records)
	}
	st, place := f.play.pick(r, body, v.records)
	if st == nil {
		v.fromStore(w)
		return
	}
	v.line.Step = st.Name
	if st.entry.build == nil {
		wait(v.r.Context(), time.Duration(st.Answer.DelayMS)*time.Millisecond)
		v.fromStore(w)
		return
	}
	v.script(w, st, place)
}

func (v *visit) fromStore(w http.ResponseWriter) {
	a := v.f.serve(v.r, v.body)
	outcome := ledger.WireAnswered
	switch {
	case a.status >= 300:
		outcome = ledger.WireRefused
	case len(v.records) > 0:
		outcome = ledger.WireAccepted
	}
	v.send(w, a, outcome)
}

// script sends the answer of a step. A request that the store took first is accepted, whatever the caller gets to see.
func (v *visit) script(w http.ResponseWriter, st *running, place int) {
	delay := time.Duration(st.Answer.DelayMS) * time.Millisecond
	a := st.build(v, place)
	outcome := ledger.WireRefused
	switch {
	case a.how == silence:
		outcome = ledger.WireHung
	case a.how != whole && a.how != verbatim:
		outcome = ledger.WireCut
	case a.status < 300:
		outcome = ledger.WireAnswered
	}
	if a.how != silence {
		wait(v.r.Context(), delay)
	}
	if st.entry.stores && v.f.serve(v.r, v.body).status == http.StatusAccepted {
		outcome = ledger.WireAccepted
		v.line.Doubt = !slices.Contains(st.entry.Rows, "ANS-01")
	}
	if a.how == silence {
		v.hang(delay, outcome)
		return
	}
	v.send(w, a, outcome)
}

// hang stays silent until the caller or the fake ends, or for d.
func (v *visit) hang(d time.Duration, outcome string) {
	seq := v.take(0, outcome)
	ctx, cancel := context.WithCancel(v.r.Context())
	stop := context.AfterFunc(v.f.ctx, cancel)
	if d == 0 {
		<-ctx.Done()
	}
	wait(ctx, d)
	stop()
	cancel()
	v.f.rec.sent(seq, false)
	reset(v.r)
}

func (st *running) build(v *visit, place int) answer {
	q := asked{
		records: len(v.records), place: place, path: v.r.URL.EscapedPath(), topicID: v.line.TopicID, requestID: v.line.RequestID,
		topic: v.line.Topic, authorization: v.r.Header.Get("Authorization"), elsewhere: v.f.elsewhereURL,
	}
	q.user, q.pass, _ = v.r.BasicAuth()
	q.id, q.parts = v.f.store.about(q.topic)
	a := st.entry.build(st.Answer, q)
	for name, value := range st.Answer.Headers {
		if a.header == nil {
			a.header = map[string]string{}
		}
		a.header[http.CanonicalHeaderKey(name)] = value
	}
	return a
}

// take writes the request down at the place of its answer.
func (v *visit) take(status int, outcome string) int64 {
	seq := v.f.rec.take()
	v.line.Status, v.line.Outcome, v.line.Done = status, outcome, v.f.rec.now()
	v.f.rec.fill(seq, v.line)
	return seq
}

// send writes the request down and answers it. It may end in a panic that closes the connection (net/http's way).
func (v *visit) send(w http.ResponseWriter, a answer, outcome string) {
	v.line.RetryAfter = a.retryAfter()
	seq := v.take(a.status, outcome)
	a = a.marked()
	sent := false
	defer func() { v.f.rec.sent(seq, sent) }()
	switch a.how {
	case closeFirst:
		panic(http.ErrAbortHandler)
	case resetFirst:
		reset(v.r)
	case tear:
		v.tear(w, a)
		return
	case verbatim:
		sent = v.verbatim(w, a)
		return
	}
	h := w.Header()
	if id := v.requestID(a); id != "" {
		h.Set(wire.HeaderRequestID, id)
	}
	if _, ok := a.header["Content-Type"]; !ok {
		h["Content-Type"] = nil // else the server guesses one
	}
	for name, value := range a.header {
		h.Set(name, value)
	}
	if a.also[0] != "" {
		h.Add(a.also[0], a.also[1])
	}
	w.WriteHeader(a.status)
	if len(a.body) > 0 {
		if _, err := w.Write(a.body); err != nil {
			return
		}
	}
	sent = http.NewResponseController(w).Flush() == nil && v.r.Context().Err() == nil
}

// requestID is echoed by whatever answers in Narad's shape; something in front of it would not know of it.
func (v *visit) requestID(a answer) string {
	if a.header["Content-Type"] != "application/json" && a.status != http.StatusNoContent {
		return ""
	}
	if v.line.RequestID != "" {
		return v.line.RequestID
	}
	return newID()
}

// tear sends the headers and a part of the body, then ends the connection.
func (v *visit) tear(w http.ResponseWriter, a answer) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = conn.Close() }()
	out := bufio.NewWriter(conn)
	_, _ = out.WriteString("HTTP/1.1 " + strconv.Itoa(a.status) + " " + http.StatusText(a.status) + "\r\n")
	h := http.Header{}
	for name, value := range a.header {
		h.Set(name, value)
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	if id := v.requestID(a); id != "" {
		h.Set(wire.HeaderRequestID, id)
	}
	_ = h.Write(out) // errors stay in out until Flush
	_, _ = out.WriteString("\r\n")
	_, _ = out.Write(a.body[:a.part])
	_ = out.Flush() // a caller that is gone was cut by itself
	if a.resets {
		reset(v.r)
	}
}
