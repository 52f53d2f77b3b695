package wire

import (
	"encoding/base64"
	"unicode/utf8"
)

// AppendBatchOpen begins the body of a batch produce. The body is built by appending, without encoding/json: a payload that
// goes raw must arrive byte for byte (SND-07), and a marshaller compacts and escapes what it embeds.
func AppendBatchOpen(dst []byte) []byte { return append(dst, `{"messages":[`...) }

// AppendBatchClose ends the body that AppendBatchOpen began.
func AppendBatchClose(dst []byte) []byte { return append(dst, `]}`...) }

// AppendMessage appends one record to a batch body; first tells that no message stands before it. No partition is named: the
// target's partitioner places the record (SND-08). It reports whether the payload went raw, which is when RawPayload holds
// and forceBase64 does not. An empty key is no key.
func AppendMessage(dst []byte, first bool, key, payload []byte, forceBase64 bool) (out []byte, raw bool) {
	if !first {
		dst = append(dst, ',')
	}
	dst = append(dst, '{')
	if len(key) > 0 {
		dst = appendKey(dst, key)
	}
	if !forceBase64 && RawPayload(payload) {
		dst = append(dst, `"payload":`...)
		dst = append(dst, payload...)
		return append(dst, '}'), true
	}
	dst = append(dst, `"payload":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, payload)
	return append(dst, `","payload_encoding":"base64"}`...), false
}

// appendKey appends the members of a key that is not empty, with the comma behind them.
func appendKey(dst, key []byte) []byte {
	dst = append(dst, `"key":"`...)
	if !utf8.Valid(key) {
		dst = base64.StdEncoding.AppendEncode(dst, key)
		return append(dst, `","key_encoding":"base64",`...)
	}
	from := 0
	for i, c := range key {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, key[from:i]...)
		from = i + 1
		if c == '"' || c == '\\' {
			dst = append(dst, '\\', c)
			continue
		}
		const hex = "0123456789abcdef"
		dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	dst = append(dst, key[from:]...)
	return append(dst, `",`...)
}

// RawPayload tells whether a payload may travel as it is: exactly one JSON value, valid UTF-8, no white space around it, and
// not null, which a target may read as no payload at all (SND-07, DEC-08). A value that nests deeper than a batch body can
// carry (ValidJSON) travels as base64 too.
func RawPayload(payload []byte) bool {
	if len(payload) == 0 || payload[0] == 'n' || jsonSpace(payload[0]) || jsonSpace(payload[len(payload)-1]) {
		return false
	}
	return ValidJSON(payload) && utf8.Valid(payload)
}

func jsonSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
