package fakes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

// maxVerdict is how much of a batch produce's answer is read before it goes on, enough for every answer of a Narad.
const maxVerdict = 64 << 10

// hopHeaders belong to one connection and are not passed on (RFC 9110, 7.6.1).
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// exchange is one request on its way through the tap.
type exchange struct {
	tap   *Tap
	r     *http.Request
	at    int64
	topic string // of a batch produce, else ""
	body  *tee
	batch chan []record // the decoded batch, exactly one value
}

func (t *Tap) forward(w http.ResponseWriter, r *http.Request) {
	x := &exchange{tap: t, r: r, at: t.rec.now(), topic: batchTopic(r), batch: make(chan []record, 1)}
	x.body = newTee(r.Body, r.ContentLength, x.topic != "")
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { x.watch(cancel, over) })
	wg.Go(func() { x.decode(over) })
	defer wg.Wait()
	defer cancel()
	defer close(over)

	res, err := t.transport.RoundTrip(x.outgoing(ctx))
	if err != nil {
		x.cut()
	}
	defer func() { _ = res.Body.Close() }()
	var verdict []byte
	if x.topic != "" {
		if verdict, err = io.ReadAll(io.LimitReader(res.Body, maxVerdict)); err != nil {
			x.cut()
		}
	}
	seq := t.rec.take()
	line := x.seen(res.StatusCode, verdict)
	line.RetryAfter = strings.Join(res.Header.Values("Retry-After"), ", ")
	t.rec.fill(seq, line)
	if res.StatusCode >= 400 {
		verdict = mark(verdict)
		res.Header.Del("Content-Length")
	}
	res.Header.Set(markHeader, ledger.AnswerMarker)
	whole := false
	defer func() { t.rec.sent(seq, whole && r.Context().Err() == nil) }()
	whole = pass(w, res, verdict)
	if !whole {
		panic(http.ErrAbortHandler) // the answer is torn: the caller must see that
	}
}

// watch ends the upstream request when the tap closes, and some time after the caller went away.
func (x *exchange) watch(cancel context.CancelFunc, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-x.tap.ctx.Done():
		cancel()
		return
	case <-x.r.Context().Done():
	}
	t := time.NewTimer(lingering)
	defer t.Stop()
	select {
	case <-over:
	case <-x.tap.ctx.Done():
	case <-t.C:
	}
	cancel()
}

// decode reads the batch as soon as it went through whole, while the target works on it.
func (x *exchange) decode(over <-chan struct{}) {
	if x.topic == "" {
		x.batch <- nil
		return
	}
	select {
	case <-x.body.whole:
		records, _ := decodeBatch(x.body.kept(), x.r.Header.Get("Content-Encoding")) // what does not decode has no records
		x.batch <- records
	case <-over:
	}
}

// outgoing is the request as the target gets it: the same, for another host.
func (x *exchange) outgoing(ctx context.Context) *http.Request {
	up := x.tap.upstreams[(x.tap.next.Add(1)-1)%uint64(len(x.tap.upstreams))]
	in := x.r.URL
	out := (&http.Request{
		Method: x.r.Method, Host: x.r.Host, Header: x.r.Header.Clone(), ContentLength: x.r.ContentLength, Body: x.body,
		URL: &url.URL{Scheme: up.Scheme, Host: up.Host, Path: in.Path, RawPath: in.RawPath, RawQuery: in.RawQuery, ForceQuery: in.ForceQuery},
	}).WithContext(ctx)
	for _, h := range hopHeaders {
		out.Header.Del(h)
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "") // else the transport adds its own
	}
	if x.r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	return out
}

// cut records that no answer came and ends the caller's connection without one.
func (x *exchange) cut() {
	seq := x.tap.rec.take()
	x.tap.rec.fill(seq, x.record(0, ledger.WireCut, x.records()))
	x.tap.rec.sent(seq, false)
	reset(x.r)
}

// records is the decoded batch, nil when the body did not go through whole.
func (x *exchange) records() []record {
	select {
	case <-x.body.whole:
		return <-x.batch
	default:
		return nil
	}
}

// seen is the ledger's line of an answered request.
func (x *exchange) seen(status int, verdict []byte) ledger.WireRequest {
	records := x.records()
	outcome := ledger.WireAnswered
	var ok wire.Accepted
	switch {
	case status >= 300:
		outcome = ledger.WireRefused
	case x.topic == "" || status != http.StatusAccepted:
	case json.Unmarshal(verdict, &ok) == nil && ok.Accepted > 0 && ok.Accepted == len(records):
		outcome = ledger.WireAccepted // DEC-01: only an answer that counts the chunk commits it
	}
	return x.record(status, outcome, records)
}

func (x *exchange) record(status int, outcome string, records []record) ledger.WireRequest {
	line := requestLine(x.r)
	line.At, line.Done, line.Status, line.Outcome = x.at, x.tap.rec.now(), status, outcome
	line.Bytes, line.Records = x.body.size(), wireRecords(records)
	line.Pinned = line.Pinned || pinned(records)
	return line
}

// requestLine fills in what the request itself says. The query stays out: it may carry a key.
func requestLine(r *http.Request) ledger.WireRequest {
	topic, _ := topicOf(r)
	return ledger.WireRequest{
		Method: r.Method, Path: r.URL.EscapedPath(), Topic: topic, RequestID: r.Header.Get(wire.HeaderRequestID),
		TopicID: r.Header.Get(wire.HeaderIfTopicID), Encoding: r.Header.Get("Content-Encoding"), Pinned: r.URL.Query().Has("partition"),
	}
}

// pass writes the target's answer to the caller and tells whether all of it went out.
func pass(w http.ResponseWriter, res *http.Response, verdict []byte) bool {
	h := w.Header()
	for name, values := range res.Header {
		h[name] = values
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
	if _, ok := res.Header["Date"]; !ok {
		h["Date"] = nil // else the server adds its own
	}
	if _, ok := res.Header["Content-Type"]; !ok {
		h["Content-Type"] = nil
	}
	w.WriteHeader(res.StatusCode)
	if len(verdict) > 0 {
		if _, err := w.Write(verdict); err != nil {
			return false
		}
	}
	if _, err := io.Copy(w, res.Body); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// tee is a request body that keeps what is read from it, up to maxKept bytes.
type tee struct {
	src   io.ReadCloser
	want  int64 // Content-Length, -1 unknown
	keep  bool
	whole chan struct{} // closed when all of it was read

	mu  sync.Mutex // guards what follows; never held during a read
	buf []byte
	n   int
	end bool
}

func newTee(src io.ReadCloser, want int64, keep bool) *tee {
	t := &tee{src: src, want: want, keep: keep, whole: make(chan struct{})}
	if want == 0 {
		t.end = true
		close(t.whole)
	}
	return t
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.src.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n += n
	if t.keep && len(t.buf)+n <= maxKept {
		t.buf = append(t.buf, p[:n]...)
	}
	if !t.end && (errors.Is(err, io.EOF) || t.want > 0 && int64(t.n) == t.want) {
		t.end = true
		close(t.whole)
	}
	return n, err
}

func (t *tee) Close() error { return t.src.Close() }

func (t *tee) kept() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf
}

func (t *tee) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}
