package api

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"narad.example/narad/wire"
)

// appendMessage writes a record as consume answers it (wire.Message). Valid JSON is written as the very bytes that are stored
// (DEC-33), white space around it included, other UTF-8 as a JSON string, the rest as base64. JSON with strings that are not
// UTF-8 counts as the rest: no client could be sure to get its bytes back.
func appendMessage(b []byte, d *wire.Delivery) []byte {
	b = append(b, `{"topic":`...)
	b = appendString(b, d.Topic)
	b = append(b, `,"partition":`...)
	b = strconv.AppendInt(b, int64(d.Partition), 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, d.Offset, 10)
	if len(d.Key) > 0 {
		b = append(b, `,"key":`...)
		if utf8.Valid(d.Key) {
			b = appendString(b, string(d.Key))
		} else {
			b = appendBase64(b, d.Key)
			b = append(b, `,"key_encoding":"base64"`...)
		}
	}
	b = append(b, `,"payload":`...)
	switch text := utf8.Valid(d.Payload); {
	case text && wire.ValidJSON(d.Payload):
		b = append(b, d.Payload...)
	case text:
		b = appendString(b, string(d.Payload))
	default:
		b = appendBase64(b, d.Payload)
		b = append(b, `,"payload_encoding":"base64"`...)
	}
	b = append(b, `,"timestamp":`...)
	b = strconv.AppendInt(b, d.Committed.Unix(), 10)
	if d.Handle != "" {
		b = append(b, `,"receipt_handle":`...)
		b = appendString(b, d.Handle)
	}
	return append(b, '}')
}

func appendBase64(b, data []byte) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

// appendString writes valid UTF-8 as a JSON string.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}
