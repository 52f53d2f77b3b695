package bench

import (
	"bytes"
	"errors"
)

// record is one message of a floor body; its slices point into the body.
type record struct{ key, payload []byte }

var errBody = errors.New("floor: not a body of this floor")

const (
	bodyOpen  = `{"messages":[`
	bodyClose = `]}`
	keyOpen   = `{"key":"`
	keyClose  = `","payload":`
)

// appendRecord adds one message to a body that began with bodyOpen. Keys of the floor need no escaping.
func appendRecord(body []byte, r record) []byte {
	if len(body) > len(bodyOpen) {
		body = append(body, ',')
	}
	body = append(append(append(body, keyOpen...), r.key...), keyClose...)
	return append(append(body, r.payload...), '}')
}

// floorParse reads what appendRecord wrote and checks every payload against the JSON grammar, since a broker that promises
// that JSON stays JSON must do that much. It is the floor's own and shares nothing with the broker's parser, so that a slow
// parser there cannot lower the floor.
func floorParse(body []byte, into []record) ([]record, error) {
	rest, ok := bytes.CutPrefix(body, []byte(bodyOpen))
	for ok && len(rest) > 0 && rest[0] != ']' {
		if len(into) > 0 {
			if rest, ok = bytes.CutPrefix(rest, []byte(",")); !ok {
				break
			}
		}
		if rest, ok = bytes.CutPrefix(rest, []byte(keyOpen)); !ok {
			break
		}
		var k []byte
		if k, rest, ok = bytes.Cut(rest, []byte(keyClose)); !ok {
			break
		}
		end := value(rest, 0)
		if end < 0 || end >= len(rest) || rest[end] != '}' {
			return into, errBody
		}
		into = append(into, record{k, rest[:end]})
		rest = rest[end+1:]
	}
	if !ok || string(rest) != bodyClose {
		return into, errBody
	}
	return into, nil
}

// value returns the index after the JSON value that starts at b[p], or -1.
func value(b []byte, p int) int {
	if p >= len(b) {
		return -1
	}
	switch b[p] {
	case '"':
		return text(b, p)
	case '{', '[':
		return group(b, p)
	case 't':
		return word(b, p, "true")
	case 'f':
		return word(b, p, "false")
	case 'n':
		return word(b, p, "null")
	}
	return number(b, p)
}

// group reads an object or an array without white space, which the floor's payloads have none of.
func group(b []byte, p int) int {
	open := b[p]
	for p++; p < len(b); p++ {
		if b[p] == open+2 {
			return p + 1
		}
		if open == '{' {
			if p = text(b, p); p < 0 || p >= len(b) || b[p] != ':' {
				return -1
			}
			p++
		}
		if p = value(b, p); p < 0 || p >= len(b) {
			return -1
		}
		if b[p] == open+2 {
			return p + 1
		}
		if b[p] != ',' {
			return -1
		}
	}
	return -1
}

func text(b []byte, p int) int {
	if p >= len(b) || b[p] != '"' {
		return -1
	}
	for p++; p < len(b); p++ {
		switch c := b[p]; {
		case c == '"':
			return p + 1
		case c == '\\':
			p++
		case c < 0x20:
			return -1
		}
	}
	return -1
}

func word(b []byte, p int, w string) int {
	if bytes.HasPrefix(b[p:], []byte(w)) {
		return p + len(w)
	}
	return -1
}

func number(b []byte, p int) int {
	start := p
	for p < len(b) && (b[p] >= '0' && b[p] <= '9' || b[p] == '-' || b[p] == '+' || b[p] == '.' || b[p]|32 == 'e') {
		p++
	}
	if p == start {
		return -1
	}
	return p
}
