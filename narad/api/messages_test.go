package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/wire"
)

const batchPath = "/v1/topics/orders/produce/batch"

// covers: BRK-08, BRK-12, BRK-14, RUN-12
func TestProduceRefusals(t *testing.T) {
	one := func(user, query, body string) req {
		return req{user: user, method: "POST", path: "/v1/topics/orders/produce" + query, body: body}
	}
	batch := func(query, body string) req {
		return req{user: "writer", method: "POST", path: batchPath + query, body: body}
	}
	with := func(r req, name, value string) req {
		r.header = map[string]string{name: value}
		return r
	}
	ok := `{"messages":[{"payload":1}]}`
	check(t, []row{
		{one("writer", "", "x"), 202, "", "produce", ""},
		{one("writer", "", ""), 400, "payload required", "", ""},
		{one("writer", "?partition=-1", "x"), 400, "bad partition", "", ""},
		{one("writer", "?partition=", "x"), 400, "bad partition", "", ""},
		{one("writer", "?partition=1&partition=2", "x"), 400, "more than once", "", ""},
		{one("writer", "?key=1&key=1", "x"), 400, "more than once", "", ""},
		{one("writer", "?key=%zz", "x"), 400, "bad query", "", ""},
		{one("writer", "?key="+strings.Repeat("k", wire.MaxKey+1), "x"), 400, "key too large", "", ""},
		{one("writer", "", strings.Repeat("x", wire.MaxPayload+1)), 413, "over", "", ""},
		{one("reader", "", "x"), 403, "no grant on this topic", "", ""},
		{one("maker", "", "x"), 403, "no grant on this topic", "", ""},
		{req{user: "writer", method: "POST", path: "/v1/topics/missing/produce", body: "x"}, 404, "no such topic", "", ""},
		{with(one("writer", "", "x"), wire.HeaderIfTopicID, "00000000000000ab"), 412, wire.HeaderIfTopicID, "", ""},

		{batch("", ok), 202, `{"accepted":1}`, "produce", ""},
		{with(batch("", ok), wire.HeaderIfTopicID, "00000000000000aa"), 202, "", "produce", ""},
		{with(batch("", "not looked at"), wire.HeaderIfTopicID, "00000000000000ab"), 412, wire.HeaderIfTopicID, "", ""},
		{batch("?key=k", ok), 400, "key belongs into each message", "", ""},
		{batch("?partition=1", ok), 400, "partition belongs into each message", "", ""},
		{batch("", `{"messages":[]}`), 400, "messages required", "", ""},
		{batch("", `{`), 400, "invalid json", "", ""},
		{batch("", ``), 400, "invalid json", "", ""},
		{batch("", `{"messages":[{"payload":1},{}]}`), 400, "message 1: payload required", "", ""},
		{batch("", `{"messages":[`+strings.Repeat(`{},`, 1000)+`{}]}`), 400, "too many messages", "", ""},
		{batch("", `{"messages":[{"payload":"`+strings.Repeat("x", 1<<20)+`"}]}`), 413, "message 0: message too large", "", ""},
		{batch("", strings.Repeat(" ", maxBatchBody+1)), 413, "over", "", ""},
		{with(batch("", ok), "Content-Encoding", "br"), 415, "Content-Encoding must be zstd or gzip", "", ""},
		{with(batch("", ok), "Content-Encoding", "zstd"), 400, "invalid json", "", ""},
		{with(batch("", ok), "Content-Encoding", "gzip"), 400, "invalid json", "", ""},
		{with(batch("", ""), "Content-Encoding", "gzip"), 400, "invalid json", "", ""},
		{with(batch("", ""), "Content-Encoding", "zstd"), 400, "invalid json", "", ""},
	})
}

// covers: BRK-12
func TestProduceToWhatTakesNone(t *testing.T) {
	w := newWorld(t)
	w.stub = wire.Refuse(wire.Conflict, "produce to a delayed child topic is not allowed")
	for _, path := range []string{"/v1/topics/late/produce", "/v1/topics/stub/produce/batch"} {
		got := w.do(req{method: "POST", path: path, body: "anything"})
		require.Equal(t, 409, got.Code)
		require.Contains(t, got.Body.String(), "delayed child topic is not allowed")
	}
	text := `remote child \"stub\" lives on remote berlin; consume it there`
	check(t, []row{
		{req{method: "GET", path: "/v1/topics/stub/consume"}, 409, text, "", ""},
		{req{method: "POST", path: "/v1/topics/stub/ack?receipt_handle=1"}, 409, text, "", ""},
	})
}

func TestSingleProduceTakesTheIndexOff(t *testing.T) {
	w := newWorld(t)
	w.fail = wire.Refuse(wire.Invalid, "message 0: partition out of range")
	got := w.do(req{method: "POST", path: "/v1/topics/orders/produce?partition=99&key=a%2Fb", body: "x"})
	require.JSONEq(t, `{"error":"partition out of range"}`, got.Body.String())
	w.fail = nil
	w.do(req{method: "POST", path: "/v1/topics/orders/produce?partition=2&key=a%2Fb", body: " x\x00\xff"})
	require.Equal(t, []wire.NewRecord{{Key: []byte("a/b"), Payload: []byte(" x\x00\xff"), Partition: 2}}, w.recs)
	w.do(req{method: "POST", path: "/v1/topics/orders/produce?key=", body: "x"})
	require.Equal(t, []wire.NewRecord{{Payload: []byte("x"), Partition: -1}}, w.recs)
}

func compressed(t *testing.T, coding string, body []byte) string {
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if coding == "zstd" {
		var err error
		w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		require.NoError(t, err)
	}
	_, err := w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// covers: BRK-12
func TestCompressedBatches(t *testing.T) {
	w := newWorld(t)
	body := []byte(`{"messages":[{"key":"k","payload":{"a": 1}},{"payload":"` + strings.Repeat("abc ", 100_000) + `"}]}`)
	for _, coding := range []string{"zstd", "gzip", "identity", "ZSTD"} {
		for range 3 { // a decoder is used again
			sent := string(body)
			if coding != "identity" {
				sent = compressed(t, strings.ToLower(coding), body)
			}
			got := w.do(req{method: "POST", path: batchPath, body: sent, header: map[string]string{"Content-Encoding": coding}})
			require.Equal(t, 202, got.Code, got.Body.String())
			require.Len(t, w.recs, 2)
			require.Equal(t, `{"a": 1}`, string(w.recs[0].Payload))
		}
	}
	require.Zero(t, w.server.budget.used.Load())

	// A bomb is refused when it grows too large, and what it held is given back. A cut one is not decoded to its half.
	w.stored = nil
	bomb := bytes.Repeat([]byte(" "), 40<<20)
	for _, coding := range []string{"zstd", "gzip"} {
		header := map[string]string{"Content-Encoding": coding}
		got := w.do(req{method: "POST", path: batchPath, body: compressed(t, coding, bomb), header: header})
		require.Equal(t, 413, got.Code, got.Body.String())
		whole := compressed(t, coding, body)
		got = w.do(req{method: "POST", path: batchPath, body: whole[:len(whole)-3], header: header})
		require.Equal(t, 400, got.Code)
		require.Contains(t, got.Body.String(), "invalid json")
	}
	require.Zero(t, w.server.budget.used.Load())
	require.Empty(t, w.stored)
}

// covers: BRK-12
func TestBudgetOfLargeBodies(t *testing.T) {
	refused := 0
	w := newWorld(t, func(o *Options) {
		o.Limits.BatchBytesInFlight = 4 << 20
		o.BudgetRefused = func() { refused++ }
	})
	large := `{"messages":[{"payload":1}]` + strings.Repeat(" ", 3<<20) + `}`
	require.Equal(t, 202, w.do(req{method: "POST", path: batchPath, body: large}).Code)
	w.server.budget.used.Store(2 << 20) // as if another were being read
	got := w.do(req{method: "POST", path: batchPath, body: large})
	require.Equal(t, 503, got.Code)
	require.Equal(t, "1", got.Header().Get("Retry-After"))
	got = w.do(req{method: "POST", path: batchPath, body: compressed(t, "zstd", []byte(large)), header: map[string]string{"Content-Encoding": "zstd"}})
	require.Equal(t, 503, got.Code)
	require.Equal(t, 2, refused)
	require.EqualValues(t, 2<<20, w.server.budget.used.Load())
	small := `{"messages":[{"payload":1}]` + strings.Repeat(" ", 900<<10) + `}`
	require.Equal(t, 202, w.do(req{method: "POST", path: batchPath, body: small}).Code, "up to 1 MiB needs no budget")
	require.Len(t, w.stored, 2)
}

type brokenBody struct{ sent *strings.Reader }

func (b brokenBody) Read(p []byte) (int, error) {
	if b.sent.Len() > 0 {
		return b.sent.Read(p)
	}
	return 0, io.ErrUnexpectedEOF
}

// A cut upload must not look like a bad record to a sender: it is retried, not split.
// covers: BRK-12
func TestCutBody(t *testing.T) {
	w := newWorld(t)
	for _, coding := range []string{"", "zstd", "gzip"} {
		for _, path := range []string{batchPath, "/v1/topics/orders/produce"} {
			h := httptest.NewRequest(http.MethodPost, path, brokenBody{strings.NewReader(`{"messages":[{"payload":1}]}`)})
			h.SetBasicAuth("writer", "pw")
			h.Header.Set(wire.HeaderClient, "t")
			if coding != "" {
				h.Header.Set("Content-Encoding", coding)
				h.Body = io.NopCloser(brokenBody{strings.NewReader(compressed(t, coding, []byte(`{"messages":[{"payload":1}]}`))[:12])})
			}
			got := httptest.NewRecorder()
			w.server.ServeHTTP(got, h)
			require.Equal(t, 408, got.Code, "%s %s", coding, got.Body.String())
		}
	}
	require.Empty(t, w.stored)
}

// covers: BRK-05, BRK-12, BRK-14
func TestConsumeParameters(t *testing.T) {
	get := func(query string) req {
		return req{user: "reader", method: "GET", path: "/v1/topics/orders/consume" + query}
	}
	noClient := get("?max=1")
	noClient.header = map[string]string{wire.HeaderClient: ""}
	check(t, []row{
		{get(""), 204, "", "", ""},
		{get("?max=5"), 204, "", "", ""},
		{noClient, 400, wire.HeaderClient, "", ""},
		{get("?max=0"), 400, "max must be 1 to 100", "", ""},
		{get("?max=101"), 400, "max must be 1 to 100", "", ""},
		{get("?max=5&partition=0&offset=1"), 400, "exclude", "", ""},
		{get("?offset=1"), 400, "offset needs partition", "", ""},
		{get("?partition=0&offset=-1"), 400, "bad offset", "", ""},
		{get("?partition=x"), 400, "bad partition", "", ""},
		{get("?wait=5"), 400, "bad wait", "", ""},
		{get("?wait=-1s"), 400, "bad wait", "", ""},
		{get("?partition=0&offset=1&wait=nonsense"), 204, "", "", ""},
		{req{user: "writer", method: "GET", path: "/v1/topics/orders/consume"}, 403, "no grant", "", ""},
	})
	w := newWorld(t)
	require.Equal(t, "10s", w.do(get("?wait=1m")).Header().Get(wire.HeaderClamped))
	require.Equal(t, 10*time.Second, w.waited)
	require.Empty(t, w.do(get("?wait=500ms")).Header().Get(wire.HeaderClamped))
	require.Equal(t, 500*time.Millisecond, w.waited)
	w.fail = wire.Refuse(wire.Gone, "offset aged out of retention (oldest retained: 7)")
	got := w.do(get("?partition=0&offset=1"))
	require.Equal(t, 410, got.Code)
	require.Contains(t, got.Body.String(), "aged out of retention (oldest retained: 7)")
}

// covers: BRK-12
func TestConsumesAtOnce(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Limits.ConsumesPerIdentity = 1 })
	w.block, w.begun = make(chan struct{}), make(chan struct{})
	get := req{user: "reader", method: "GET", path: "/v1/topics/orders/consume"}
	done := make(chan int)
	go func() { done <- w.do(get).Code }()
	<-w.begun
	require.Equal(t, 429, w.do(get).Code)
	close(w.block)
	require.Equal(t, 204, <-done)
	go func() { <-w.begun }()
	require.Equal(t, 204, w.do(get).Code)
}

// A single produce and a batch count alike; without the setting nothing is counted.
//
// covers: BRK-12
func TestProducesAtOnce(t *testing.T) {
	single := req{user: "writer", method: "POST", path: "/v1/topics/orders/produce", body: "x"}
	for _, second := range []req{single, {user: "writer", method: "POST", path: "/v1/topics/orders/produce/batch", body: `{"messages":[{"payload":1}]}`}} {
		for limit, want := range map[int]int{0: 202, 1: 429, 2: 202} {
			w := newWorld(t, func(o *Options) { o.Limits.ProducesPerIdentity = limit })
			w.block, w.begun = make(chan struct{}), make(chan struct{}, 3)
			first, then := make(chan int), make(chan *httptest.ResponseRecorder)
			go func() { first <- w.do(single).Code }()
			<-w.begun
			go func() { then <- w.do(second) }()
			if want == 202 {
				<-w.begun
			} else {
				got := <-then
				require.Equal(t, 429, got.Code)
				require.Equal(t, "1", got.Header().Get("Retry-After"))
				go func() { then <- w.do(req{method: "POST", path: "/v1/topics/orders/produce", body: "x"}) }()
				<-w.begun // another user is not held up
			}
			close(w.block)
			require.Equal(t, 202, <-first)
			require.Equal(t, 202, (<-then).Code)
			require.Equal(t, 202, w.do(second).Code)
		}
	}
}

// Servers that are simulated apart share no decoder: a bubble that met another one's would crash.
func TestDecodersStayWithTheirServer(t *testing.T) {
	body := compressed(t, "zstd", []byte(`{"messages":[{"payload":1}]}`))
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			for range 2 {
				r := req{method: "POST", path: batchPath, body: body, header: map[string]string{"Content-Encoding": "zstd"}}
				require.Equal(t, 202, w.do(r).Code)
			}
		})
	}
}

// covers: BRK-05, BRK-12
func TestMessageBytes(t *testing.T) {
	at := time.Unix(1700000000, 999)
	d := func(key, payload string) wire.Delivery {
		return wire.Delivery{Topic: "orders", Partition: 1, Offset: 2, Key: []byte(key), Payload: []byte(payload), Committed: at, Handle: "1:2:n"}
	}
	head, tail := `{"topic":"orders","partition":1,"offset":2,`, `,"timestamp":1700000000,"receipt_handle":"1:2:n"}`
	for _, c := range []struct{ key, payload, want string }{
		{"", `{ "a":1.0, "b":"<é\u0041>" }`, `"payload":{ "a":1.0, "b":"<é\u0041>" }`},
		{"k\"", `plain <text>`, `"key":"k\"","payload":"plain <text>"`},
		{"\xff", "\xfe", `"key":"/w==","key_encoding":"base64","payload":"/g==","payload_encoding":"base64"`},
		{"", "\"\xff\"", `"payload":"Iv8i","payload_encoding":"base64"`},
		{"", "a\x00\n", `"payload":"a\u0000\n"`},
	} {
		m := d(c.key, c.payload)
		require.Equal(t, head+c.want+tail, string(appendMessage(nil, &m)))
	}
	rapid.Check(t, func(t *rapid.T) {
		m := d(string(rapid.SliceOf(rapid.Byte()).Draw(t, "key")), rapid.String().Draw(t, "payload"))
		var got wire.Message
		require.NoError(t, json.Unmarshal(appendMessage(nil, &m), &got))
		if !json.Valid(m.Payload) {
			var text string
			require.NoError(t, json.Unmarshal(got.Payload, &text))
			require.Equal(t, string(m.Payload), text)
		}
		if got.KeyEncoding == "" {
			require.Equal(t, string(m.Key), got.Key)
		}
	})
}

// covers: BRK-05, BRK-12
func TestBatchConsumeIsCutAt8MiB(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.out = append(w.out, wire.Delivery{
			Topic: "orders", Offset: int64(i), Payload: bytes.Repeat([]byte{1}, 400_000), Handle: fmt.Sprint("h", i), // six times as long escaped
		})
	}
	got := w.do(req{user: "reader", method: "GET", path: "/v1/topics/orders/consume?max=20"})
	require.Equal(t, 200, got.Code)
	require.LessOrEqual(t, got.Body.Len(), maxAnswer+16)
	var ms wire.Messages
	require.NoError(t, json.Unmarshal(got.Body.Bytes(), &ms))
	require.Len(t, ms.Messages, 3)
	require.Len(t, w.stored, 17)
	require.Equal(t, "nack h3", w.stored[0])
	w.out = w.out[:1]
	w.out[0].Payload = bytes.Repeat([]byte{1}, 1<<21)
	require.Equal(t, 200, w.do(req{user: "reader", method: "GET", path: "/v1/topics/orders/consume?max=20"}).Code)
	one := w.do(req{user: "reader", method: "GET", path: "/v1/topics/orders/consume"})
	require.True(t, strings.HasPrefix(one.Body.String(), `{"topic":"orders"`))
}

// covers: BRK-05, BRK-12, BRK-14
func TestAck(t *testing.T) {
	post := func(query, body string) req {
		return req{user: "reader", method: "POST", path: "/v1/topics/orders/ack" + query, body: body}
	}
	many := strings.TrimSuffix(strings.Repeat(`"h",`, 101), ",")
	check(t, []row{
		{post("?receipt_handle=0%3A1%3An", "not read"), 204, "", "ack 0:1:n", ""},
		{post("?receipt_handle=h&extend=false", ""), 204, "", "ack h", ""},
		{post("?receipt_handle=h&extend=true", ""), 204, "", "extend h", ""},
		{post("?receipt_handle=h&extend=1", ""), 204, "", "extend h", ""},
		{post("?receipt_handle=h&extend=0", ""), 204, "", "nack h", ""},
		{post("?receipt_handle=h&extend=2", ""), 400, "extend must be", "", ""},
		{post("?receipt_handle=gone", ""), 410, "the lease is gone", "", ""},
		{post("", `{"receipt_handles":[]}`), 400, "receipt_handles must be 1 to 100", "", ""},
		{post("", `{"receipt_handles":[`+many+`]}`), 400, "receipt_handles must be 1 to 100", "", ""},
		{post("", over(64<<10)), 413, "over", "", ""},
		{post("", ``), 400, "invalid json", "", ""},
		{post("?extend=1", `{"receipt_handles":["a","gone","b"]}`), 200,
			`{"results":[{"status":204},{"status":410,"error":"the lease is gone"},{"status":204}]}`, "extend a,extend b", ""},
		{req{user: "writer", method: "POST", path: "/v1/topics/orders/ack?receipt_handle=h"}, 403, "no grant", "", ""},
	})
	w := newWorld(t)
	w.fail = errors.New("inner cause")
	got := w.do(post("", `{"receipt_handles":["a"]}`))
	require.JSONEq(t, `{"results":[{"status":500,"error":"internal error"}]}`, got.Body.String())
}

// BenchmarkProduceBatch is everything between the socket and the ingress.
func BenchmarkProduceBatch(b *testing.B) {
	w := newWorldOf(b)
	one := `{"key":"customer-000001","payload":{"text":"` + strings.Repeat("x", 1000) + `"}},`
	body := `{"messages":[` + strings.TrimSuffix(strings.Repeat(one, 900), ",") + `]}`
	w.server.o.Producer = discard{}
	b.ReportAllocs()
	for b.Loop() {
		require.Equal(b, 202, w.do(req{method: "POST", path: batchPath, body: body}).Code)
	}
}

type discard struct{}

func (discard) Produce(context.Context, string, string, []wire.NewRecord) error { return nil }
