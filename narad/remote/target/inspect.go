package target

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// What a target takes in one batch (SND-04).
const (
	FewMessages = 100  // one that says `too many messages` to SizeBody
	MaxMessages = 1000 // any other
)

// SizeBody is one message more than a target with the small bound takes, none with a payload: every target refuses it and stores nothing.
var SizeBody = []byte(`{"messages":[` + strings.Repeat(`{},`, FewMessages) + `{}]}`)

var packedEmpty = sync.OnceValue(func() []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constants
	}
	return w.EncodeAll(SizeBody, nil)
})

// AsksWho tells whether the target refuses its topic to somebody without a credential with 401, so that its security is on (TGT-04).
// What something in front of it answered, or a target that cannot be read, is an *Error.
func AsksWho(ctx context.Context, c Doer, topic string) (bool, error) {
	a, r := send(ctx, c, &outbound.Request{Method: http.MethodGet, Path: topicPath(topic), Anonymous: true})
	switch r.Row {
	case "ANS-08":
		return true, nil
	case RowNone, "ANS-10":
		return false, nil
	}
	return false, refused(a, r)
}

// MayProduce sends a batch without messages, which whoever may produce is told is none; nothing is written (TGT-07). The error is an
// *Error: forbidden without the grant, no_batch_produce when a target that has answered its listing does not know the route.
func MayProduce(ctx context.Context, c Doer, topic string) error {
	a, r := send(ctx, c, batch(topic, []byte(`{"messages":[]}`), ""))
	switch {
	case r.Row == RowNone && r.Status == http.StatusBadRequest && strings.Contains(r.Text, "messages required"):
		return nil
	case r.Row == RowBare404:
		return &Error{Reading: r, Class: string(wire.NoBatchProduce), State: wire.NoBatchProduce}
	}
	return refused(a, r)
}

// ListsUsers tells whether the credential may list the target's users, which only an admin's may (TGT-08). The error is an *Error.
func ListsUsers(ctx context.Context, c Doer) (bool, error) {
	a, r := send(ctx, c, &outbound.Request{Method: http.MethodGet, Path: "/v1/users"})
	switch {
	case r.Row == "ANS-09":
		return false, nil
	case r.Row == RowNone && r.Status < 300:
		return true, nil
	}
	return false, refused(a, r)
}

// Takes asks how many messages a request may have and whether the target decodes zstd (TGT-12). It stores nothing there. The error is an *Error.
func Takes(ctx context.Context, c Doer, topic string) (wire.Capabilities, error) {
	a, r := send(ctx, c, batch(topic, packedEmpty(), "zstd"))
	if most := mostOf(r); most != 0 {
		return wire.Capabilities{MaxMessages: most, Zstd: true}, nil
	}
	if r.Row != RowNone || r.Status != http.StatusUnsupportedMediaType && r.Status != http.StatusBadRequest {
		return wire.Capabilities{}, refused(a, r)
	}
	a, r = send(ctx, c, batch(topic, SizeBody, ""))
	if most := mostOf(r); most != 0 {
		return wire.Capabilities{MaxMessages: most}, nil
	}
	return wire.Capabilities{}, refused(a, r)
}

// mostOf reads the answer to SizeBody; 0 when it tells nothing.
func mostOf(r Reading) int {
	switch {
	case r.Row != RowNone || r.Status != http.StatusBadRequest:
		return 0
	case strings.HasPrefix(r.Text, "message 0:"):
		return MaxMessages
	case strings.Contains(r.Text, "too many messages"):
		return FewMessages
	}
	return 0
}

func topicPath(topic string) string { return "/v1/topics/" + url.PathEscape(topic) }

func batch(topic string, body []byte, encoding string) *outbound.Request {
	return &outbound.Request{
		Method: http.MethodPost, Path: topicPath(topic) + "/produce/batch", Body: body, ContentEncoding: encoding,
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

// send sends one request under an ID of its own.
func send(ctx context.Context, c Doer, q *outbound.Request) (*outbound.Answer, Reading) {
	q.RequestID = requestID()
	a, err := c.Do(ctx, q)
	return a, Read(a, err)
}

// refused is the *Error of an answer that a route of Narad's has no other meaning for.
func refused(a *outbound.Answer, r Reading) *Error {
	if r.Row == RowBare404 || r.Row == RowNone {
		return edge(r.Status)
	}
	e := &Error{Reading: r, State: StateOf(r.Row)}
	if e.Class = string(e.State); r.Edge {
		e.Class = EdgeClass
	}
	if r.Row == "ANS-14" {
		e.RetryAfter = RetryAfter(a.Header, a.At)
	}
	return e
}
