package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Marker opens every record ID; IDLength is the length of a whole one.
const (
	Marker   = "nrd-"
	IDLength = len(Marker) + 16
)

// AnswerMarker stands in every answer of a fake, and in every refusal that passes a tap. Nothing of it may be seen anywhere but on the wire:
// a target's answer is neither logged nor returned (LOG-01).
const AnswerMarker = "answer-mark-7c1e94d25f0b"

// NewID is the marker of record number seq of a run: "nrd-" and 16 hex digits.
func NewID(seq uint64) string { return fmt.Sprintf("%s%016x", Marker, seq) }

// IDOf finds the marker of a record: "nrd-" and 16 characters of 0-9 and a-z, in the payload, else in the key. It is "" when
// neither has one. A payload too small for a marker comes with a unique key that carries it.
func IDOf(key, payload []byte) string {
	if id := find(payload); id != "" {
		return id
	}
	return find(key)
}

func find(b []byte) string {
	for {
		i := bytes.Index(b, []byte(Marker))
		if i < 0 || len(b)-i < IDLength {
			return ""
		}
		if id := b[i : i+IDLength]; isID(id[len(Marker):]) {
			return string(id)
		}
		b = b[i+len(Marker):]
	}
}

func isID(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Hash is the SHA-256 of b in hex, the form in which the ledger knows a payload.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// KeyText is the ledger's form of a key: base64 of its bytes, "" for none.
func KeyText(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

// Visible is what a consumer can tell of a payload: JSON without the white space around it, the words of a JSON string or of a
// text (they look alike in an answer), and any other bytes as they are. Records read back through the API are compared in
// this form; at the tap they are compared byte for byte (harness.md, A scenario).
func Visible(payload []byte) []byte {
	if !utf8.Valid(payload) || !json.Valid(payload) {
		return payload
	}
	trimmed := bytes.Trim(payload, " \t\r\n")
	if len(trimmed) > 0 && trimmed[0] == '"' {
		var words string
		if json.Unmarshal(trimmed, &words) == nil {
			return []byte(words)
		}
	}
	return trimmed
}

// FromAnswer brings a payload of an answer (payload and payload_encoding of a message) into the form of Visible.
func FromAnswer(payload json.RawMessage, encoding string) ([]byte, error) {
	trimmed := bytes.Trim(payload, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, fmt.Errorf("payload absent from the message")
	}
	if trimmed[0] != '"' {
		if encoding != "" {
			return nil, fmt.Errorf("payload with an encoding is no string")
		}
		return trimmed, nil
	}
	var words string
	if err := json.Unmarshal(trimmed, &words); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	if encoding == "" {
		return []byte(words), nil
	}
	raw, err := base64.StdEncoding.DecodeString(words)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	// A target may hand JSON out as base64; what it means is the same.
	return Visible(raw), nil
}
