package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/mem"

	"narad.example/narad/wire"
)

const service = "narad.Peer"

// maxMessage bounds one call and one answer: a commit of 8 MiB to a peer, with room for its encoding.
const maxMessage = 64 << 20

// What one call, and all of a connection, may send before the other side has taken it, and what is read and written at once: as much as one answer
// of a move, which would wait for the other side dozens of times with gRPC's own (BenchmarkAnswers).
const (
	callWindow = 4 << 20
	connWindow = 8 << 20
	connBuffer = 256 << 10
)

// rawCodec hands byte slices through gRPC as they are.
type rawCodec struct{}

// Marshal takes a *[]byte, or a *framed.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	switch b := v.(type) {
	case *[]byte:
		return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
	case *framed:
		return mem.BufferSlice{mem.SliceBuffer{b.kind}, mem.SliceBuffer(b.body)}, nil
	case *Lent:
		return b.slices(), nil
	}
	return nil, fmt.Errorf("peer: cannot send a %T", v)
}

// Unmarshal fills a *[]byte with a copy: in the memory that is there already, where that is large enough.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("peer: cannot receive a %T", v)
	}
	if size := data.Len(); size <= cap(*b) {
		*b = (*b)[:size]
		data.CopyTo(*b)
		return nil
	}
	*b = data.Materialize()
	return nil
}

// Name is the content subtype.
func (rawCodec) Name() string { return "narad-raw" }

// The first byte of an answer says what follows.
const (
	answerBody    byte = 0
	answerProblem byte = 1
)

// framed is an answer with its first byte, which spares a long one a copy.
type framed struct {
	kind byte
	body []byte
}

// problem is a *wire.Problem on the wire.
type problem struct {
	Kind         wire.Kind      `json:"kind"`
	Text         string         `json:"text"`
	RetryAfterMS int64          `json:"retry_after_ms,omitempty"`
	Fields       map[string]any `json:"fields,omitempty"`
}

func frameProblem(p *wire.Problem) (*framed, error) {
	body, err := json.Marshal(problem{Kind: p.Kind, Text: p.Text, RetryAfterMS: p.RetryAfter.Milliseconds(), Fields: p.Fields})
	if err != nil {
		return nil, fmt.Errorf("encode a refusal: %w", err)
	}
	return &framed{answerProblem, body}, nil
}

// unframe returns the body of an answer, or the *wire.Problem in it. Numbers of Fields come back as json.Number.
func unframe(answer []byte) ([]byte, error) {
	if len(answer) == 0 {
		return nil, errors.New("peer: an answer without its first byte")
	}
	switch answer[0] {
	case answerBody:
		return answer[1:], nil
	case answerProblem:
		dec := json.NewDecoder(bytes.NewReader(answer[1:]))
		dec.UseNumber()
		var p problem
		if err := dec.Decode(&p); err != nil {
			return nil, errors.New("peer: a refusal that does not decode")
		}
		return nil, &wire.Problem{
			Kind: p.Kind, Text: p.Text, RetryAfter: time.Duration(p.RetryAfterMS) * time.Millisecond, Fields: p.Fields,
		}
	}
	return nil, errors.New("peer: an answer of an unknown kind")
}
