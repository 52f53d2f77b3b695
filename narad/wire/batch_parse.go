package wire

import (
	"encoding/base64"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of one message of a batch (api.md, limits).
const (
	MaxMessages = 1_000
	MaxPayload  = 1 << 20
	MaxKey      = 64 << 10
)

// ParseBatch decodes the body of POST .../produce/batch in one pass and calls fn for each message in order. Key and Payload
// point into body, which the parser changes in place where it unescapes a key or decodes base64: the body belongs to the
// records afterwards, and a caller that needs the bytes as they came copies them first.
//
// The error is a *Problem as api.md words it, and fn may have been called before it is known: what fn got counts only when the
// error is nil. Decoding comes first: `invalid json: ...`, and `too many messages` at the one after limit, whatever stands in
// the messages or follows them. Then the format of every message, `message N: ...` for the first that fails: encodings, an
// absent, empty or null payload (DEC-50), sizes, a negative partition. Schema and partition range are not the parser's.
//
// A raw payload is kept as the very bytes of its JSON value (DEC-33). Member names are exact, and a member that stands twice
// is refused: encoding/json would let the last one win, and which record was meant could not be known. A null key, encoding
// or partition is an absent one. A key that is not valid UTF-8 is refused, since it can only travel as base64.
func ParseBatch(body []byte, limit int, fn func(NewRecord)) error {
	p := batchParser{scanner: scanner{b: body}, max: limit, fn: fn}
	if p.document() {
		if p.refused != nil {
			return p.refused
		}
		if p.n == 0 {
			return Refuse(Invalid, "messages required")
		}
		return nil
	}
	if p.tooMany {
		return Refuse(Invalid, "too many messages")
	}
	return Refuse(Invalid, "invalid json: %s at byte %d", p.why, p.i)
}

type batchParser struct {
	scanner
	max     int
	n       int // messages begun
	fn      func(NewRecord)
	tooMany bool
	refused *Problem // the first message whose format is wrong
}

func (p *batchParser) document() bool {
	p.space()
	if !p.expect('{', "an object is expected") {
		return false
	}
	seen := false
	more, ok := p.first('}'), true
	for ; ok && more; more, ok = p.next('}') {
		name, found := p.name()
		if !found {
			return false
		}
		if string(name) != "messages" {
			return p.fail("unknown member")
		}
		if seen {
			return p.fail("a member stands twice")
		}
		seen = true
		if !p.messages() {
			return false
		}
	}
	if !ok {
		return false
	}
	p.space()
	if p.i != len(p.b) {
		return p.fail("text after the end")
	}
	return true
}

// first passes the white space after an opening bracket and tells whether an element follows.
func (p *batchParser) first(closing byte) (more bool) {
	p.space()
	if p.peek() == closing {
		p.i++
		return false
	}
	return true
}

// next passes what follows an element: a comma (more) or the closing bracket.
func (p *batchParser) next(closing byte) (more, ok bool) {
	p.space()
	switch p.peek() {
	case ',':
		p.i++
		p.space()
		return true, true
	case closing:
		p.i++
		return false, true
	}
	return false, p.fail("a comma or the end of a list is missing")
}

// name passes a member name with its colon and the white space around.
func (p *batchParser) name() ([]byte, bool) {
	if p.peek() != '"' {
		return nil, p.fail("a member name is missing")
	}
	t, ok := p.str()
	if !ok {
		return nil, false
	}
	p.space()
	if !p.expect(':', "a colon is missing") {
		return nil, false
	}
	p.space()
	return p.unescaped(t), true
}

// unescaped is the content of a string, unescaped in place.
func (p *batchParser) unescaped(t text) []byte {
	raw := p.b[t.from:t.to:t.to]
	if !t.escaped {
		return raw
	}
	return unescape(raw)
}

func (p *batchParser) messages() bool {
	if p.peek() == 'n' {
		return p.literal("null")
	}
	if !p.expect('[', "messages must be an array") {
		return false
	}
	more, ok := p.first(']'), true
	for ; ok && more; more, ok = p.next(']') {
		if p.n == p.max {
			p.tooMany = true
			return p.fail("too many messages")
		}
		p.n++
		if !p.message() {
			return false
		}
	}
	return ok
}

// parsed is one message as it stands in the body.
type parsed struct {
	seen                      uint8
	key, keyEnc, payEnc       text // from 0 is none: the body starts with a bracket
	payloadFrom, payloadTo    int
	payloadText               text
	payloadString, payloadNil bool
	partition                 int
}

const (
	sawKey = 1 << iota
	sawKeyEncoding
	sawPayload
	sawPayloadEncoding
	sawPartition
)

func (p *batchParser) message() bool {
	if !p.expect('{', "a message must be an object") {
		return false
	}
	m := parsed{partition: -1}
	more, ok := p.first('}'), true
	for ; ok && more; more, ok = p.next('}') {
		name, found := p.name()
		if !found || !p.member(name, &m) {
			return false
		}
	}
	if ok && p.refused == nil {
		p.finish(&m)
	}
	return ok
}

func (p *batchParser) member(name []byte, m *parsed) bool {
	var bit uint8
	switch string(name) {
	case "key":
		bit = sawKey
	case "payload":
		bit = sawPayload
	case "key_encoding":
		bit = sawKeyEncoding
	case "payload_encoding":
		bit = sawPayloadEncoding
	case "partition":
		bit = sawPartition
	default:
		return p.fail("unknown member")
	}
	if m.seen&bit != 0 {
		return p.fail("a member stands twice")
	}
	m.seen |= bit
	switch bit {
	case sawKey:
		return p.optionalString(&m.key)
	case sawKeyEncoding:
		return p.optionalString(&m.keyEnc)
	case sawPayloadEncoding:
		return p.optionalString(&m.payEnc)
	case sawPartition:
		return p.partition(m)
	}
	return p.payload(m)
}

func (p *batchParser) optionalString(t *text) bool {
	switch p.peek() {
	case 'n':
		return p.literal("null")
	case '"':
		var ok bool
		*t, ok = p.str()
		return ok
	}
	return p.fail("a string is expected")
}

func (p *batchParser) partition(m *parsed) bool {
	c := p.peek()
	if c == 'n' {
		return p.literal("null")
	}
	from := p.i
	if c != '-' && (c < '0' || c > '9') {
		return p.fail("partition must be an integer")
	}
	if !p.number() {
		return false
	}
	n, err := strconv.Atoi(string(p.b[from:p.i]))
	if err != nil {
		return p.fail("partition must be an integer")
	}
	m.partition = n
	if n < 0 {
		m.partition = -2 // -1 is what an absent one means to the broker
	}
	return true
}

func (p *batchParser) payload(m *parsed) bool {
	m.payloadFrom = p.i
	var ok bool
	switch p.peek() {
	case '"':
		m.payloadString = true
		m.payloadText, ok = p.str()
	case 'n':
		m.payloadNil = true
		ok = p.literal("null")
	default:
		ok = p.value(0)
	}
	m.payloadTo = p.i
	return ok
}

// refuse keeps the first message whose format is wrong; the rest of the body is still parsed.
func (p *batchParser) refuse(k Kind, why string) {
	p.refused = Refuse(k, "message %d: %s", p.n-1, why)
}

// finish checks the format of a message and hands it on.
func (p *batchParser) finish(m *parsed) {
	keyCoded, ok := p.encoding(m.keyEnc)
	if !ok {
		p.refuse(Invalid, "key_encoding must be absent or base64")
		return
	}
	payloadCoded, ok := p.encoding(m.payEnc)
	if !ok {
		p.refuse(Invalid, "payload_encoding must be absent or base64")
		return
	}
	if m.seen&sawPayload == 0 || m.payloadNil {
		p.refuse(Invalid, "payload required")
		return
	}
	rec := NewRecord{Payload: p.b[m.payloadFrom:m.payloadTo:m.payloadTo], Partition: m.partition}
	if payloadCoded {
		if !m.payloadString {
			p.refuse(Invalid, "payload must be a string of base64")
			return
		}
		if rec.Payload, ok = decodeInPlace(p.unescaped(m.payloadText)); !ok {
			p.refuse(Invalid, "payload is not base64")
			return
		}
	}
	switch {
	case len(rec.Payload) == 0:
		p.refuse(Invalid, "payload required")
	case len(rec.Payload) > MaxPayload:
		p.refuse(TooLarge, "message too large")
	case m.partition == -2:
		p.refuse(Invalid, "bad partition")
	case p.key(m, keyCoded, &rec):
		p.fn(rec)
	}
}

func (p *batchParser) key(m *parsed, coded bool, rec *NewRecord) bool {
	if m.key.from == m.key.to {
		return true // an empty key is none
	}
	key := p.unescaped(m.key)
	if coded {
		var ok bool
		if key, ok = decodeInPlace(key); !ok {
			p.refuse(Invalid, "key is not base64")
			return false
		}
	} else if !utf8.Valid(key) {
		p.refuse(Invalid, "key is not UTF-8 and must travel as base64")
		return false
	}
	if len(key) > MaxKey {
		p.refuse(Invalid, "key too large")
		return false
	}
	if len(key) > 0 {
		rec.Key = key
	}
	return true
}

// encoding tells whether an encoding member says base64; ok is false when it says something else.
func (p *batchParser) encoding(t text) (coded, ok bool) {
	if t.from == t.to {
		return false, true
	}
	if string(p.unescaped(t)) == Base64 {
		return true, true
	}
	return false, false
}

// decodeInPlace decodes standard base64 over itself: the decoder never writes beyond what it has read.
func decodeInPlace(b []byte) ([]byte, bool) {
	n, err := base64.StdEncoding.Decode(b, b)
	return b[:n:n], err == nil
}

// unescape undoes the escapes of a string that the scanner has passed, in place: no escape is shorter than what it stands
// for. Half a surrogate pair becomes U+FFFD, as encoding/json has it.
func unescape(b []byte) []byte {
	out := b[:0]
	for i := 0; i < len(b); {
		c := b[i]
		if c != '\\' {
			out = append(out, c)
			i++
			continue
		}
		if b[i+1] != 'u' {
			out = append(out, unescapeByte(b[i+1]))
			i += 2
			continue
		}
		r := hex4(b[i:])
		i += 6
		if utf16.IsSurrogate(r) {
			if pair := utf16.DecodeRune(r, hex4(b[i:])); pair != utf8.RuneError {
				r = pair
				i += 6
			} else {
				r = utf8.RuneError
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out[:len(out):len(out)]
}

func unescapeByte(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}
