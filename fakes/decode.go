package fakes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"narad.example/harness/ledger"
)

// Bounds of a batch (api.md, Limits). maxKept is what a tap keeps of a body, a little more than a target takes.
const (
	maxKept     = 17 << 20
	maxBatch    = 16 << 20
	maxPayload  = 1 << 20
	maxKey      = 64 << 10
	maxMessages = 1000
)

// record is one decoded message of a batch: the bytes as the target stores them.
type record struct {
	Key, Payload []byte
	Base64       bool
	partition    int // -1 lets the store choose
}

// refusal is an answer that refuses a batch.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

// message is one message of a batch body. The harness has its own reader of it on purpose: a mistake in the broker's must
// not hide on both sides.
type message struct {
	Payload         json.RawMessage `json:"payload"`
	PayloadEncoding *string         `json:"payload_encoding"`
	Key             *string         `json:"key"`
	KeyEncoding     *string         `json:"key_encoding"`
	Partition       *int            `json:"partition"`
}

// inflate undoes the Content-Encoding of a batch body.
func inflate(body []byte, encoding string) ([]byte, error) {
	switch encoding {
	case "", "identity":
		return body, nil
	case "zstd":
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxKept))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		defer dec.Close()
		plain, err := dec.DecodeAll(body, nil)
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			return nil, refuse(413, "request body too large")
		}
		if err != nil {
			return nil, refuse(400, "invalid json: the body is no zstd")
		}
		return plain, nil
	case "gzip":
		zr, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, refuse(400, "invalid json: the body is no gzip")
		}
		plain, err := io.ReadAll(io.LimitReader(zr, maxKept))
		if err != nil {
			return nil, refuse(400, "invalid json: the body is no gzip")
		}
		return plain, nil
	}
	return nil, refuse(415, "unsupported content encoding")
}

// decodeBatch reads a batch body as api.md describes it: one message at a time, the format of every message first. The error
// is a *refusal; the records before it are returned with it.
func decodeBatch(body []byte, encoding string) ([]record, error) {
	plain, err := inflate(body, encoding)
	if err != nil {
		return nil, err
	}
	if len(plain) > maxBatch {
		return nil, refuse(413, "request body too large")
	}
	messages, err := readMessages(plain)
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, refuse(400, "messages required")
	}
	records := make([]record, 0, len(messages))
	for i := range messages {
		rec, bad := messages[i].decode()
		if bad != nil {
			return records, refuse(bad.status, "message %d: %s", i, bad.text)
		}
		records = append(records, rec)
	}
	return records, nil
}

// readMessages reads {"messages":[...]} and nothing else, and stops at the 1,001st message.
func readMessages(plain []byte) ([]message, error) {
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	expect := func(want json.Delim) error {
		tok, err := dec.Token()
		if err != nil {
			return refuse(400, "invalid json: the body ends early or is malformed")
		}
		if d, ok := tok.(json.Delim); !ok || d != want {
			return refuse(400, "invalid json: %q expected", want.String())
		}
		return nil
	}
	if err := expect('{'); err != nil {
		return nil, err
	}
	var out []message
	for dec.More() {
		name, err := dec.Token()
		if err != nil || name != "messages" {
			return nil, refuse(400, "invalid json: unknown field")
		}
		if err = expect('['); err != nil {
			return nil, err
		}
		for dec.More() {
			if len(out) == maxMessages {
				return nil, refuse(400, "too many messages")
			}
			var m message
			if err = dec.Decode(&m); err != nil {
				return nil, refuse(400, "invalid json: message %d does not decode", len(out))
			}
			out = append(out, m)
		}
		if err = expect(']'); err != nil {
			return nil, err
		}
	}
	if err := expect('}'); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse(400, "invalid json: more after the end")
	}
	return out, nil
}

// decode gives the bytes of one message as they are stored (DEC-33): a raw payload is the very bytes of its JSON value.
func (m *message) decode() (record, *refusal) {
	rec := record{partition: -1}
	key, bad := text(m.Key, m.KeyEncoding, "key")
	if bad != nil {
		return rec, bad
	}
	if len(key) > maxKey {
		return rec, refuse(400, "key too large")
	}
	if len(key) > 0 {
		rec.Key = key
	}
	if len(m.Payload) == 0 || bytes.Equal(m.Payload, []byte("null")) {
		return rec, refuse(400, "payload required")
	}
	rec.Payload = m.Payload
	if m.PayloadEncoding != nil {
		var words string
		if json.Unmarshal(m.Payload, &words) != nil {
			return rec, refuse(400, "payload with an encoding is no string")
		}
		if rec.Payload, bad = text(&words, m.PayloadEncoding, "payload"); bad != nil {
			return rec, bad
		}
		rec.Base64 = true
	} else if !utf8.Valid(m.Payload) {
		return rec, refuse(400, "payload is no UTF-8")
	}
	if len(rec.Payload) == 0 {
		return rec, refuse(400, "payload required")
	}
	if len(rec.Payload) > maxPayload {
		return rec, refuse(413, "message too large")
	}
	if m.Partition != nil {
		if *m.Partition < 0 {
			return rec, refuse(400, "partition out of range")
		}
		rec.partition = *m.Partition
	}
	return rec, nil
}

// text decodes a string member with its encoding, which is absent or base64.
func text(words, encoding *string, what string) ([]byte, *refusal) {
	if encoding != nil && *encoding != "base64" {
		return nil, refuse(400, "%s_encoding must be base64", what)
	}
	if words == nil {
		return nil, nil
	}
	if encoding == nil {
		return []byte(*words), nil
	}
	raw, err := base64.StdEncoding.DecodeString(*words)
	if err != nil {
		return nil, refuse(400, "%s is no base64", what)
	}
	return raw, nil
}

// pinned tells whether a record names its partition, which a sender must leave to the target (SND-08).
func pinned(records []record) bool {
	return slices.ContainsFunc(records, func(r record) bool { return r.partition >= 0 })
}

// wireRecords is the ledger's form of decoded records.
func wireRecords(records []record) []ledger.WireRecord {
	if len(records) == 0 {
		return nil
	}
	out := make([]ledger.WireRecord, len(records))
	for i, r := range records {
		out[i] = ledger.WireRecord{
			ID: ledger.IDOf(r.Key, r.Payload), Key: ledger.KeyText(r.Key), Payload: ledger.Hash(r.Payload), Base64: r.Base64,
		}
	}
	return out
}
