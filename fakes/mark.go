package fakes

import (
	"bytes"
	"maps"
	"strings"

	"narad.example/harness/ledger"
)

// markHeader carries the marker on every answer.
const markHeader = "X-Chaos-Answer"

const errorHead = `{"error":"`

// mark puts ledger.AnswerMarker behind the text of a Narad-shaped refusal, where a careless line of a log would show it. Any other body
// stays as it is.
func mark(body []byte) []byte {
	trimmed := bytes.TrimRight(body, " \n")
	if !bytes.HasPrefix(trimmed, []byte(errorHead)) || !bytes.HasSuffix(trimmed, []byte(`"}`)) {
		return body
	}
	out := append([]byte(nil), trimmed[:len(trimmed)-2]...)
	return append(out, " "+ledger.AnswerMarker+"\"}\n"...)
}

// marked is the answer with the marker: in a header, in the text of a refusal, and behind a page. An answer that is written by hand, a torn
// one and Go's bare 404 keep their bodies, whose bytes are what they are for.
func (a answer) marked() answer {
	if a.how == verbatim {
		return a
	}
	a.header = maps.Clone(a.header)
	if a.header == nil {
		a.header = map[string]string{}
	}
	a.header[markHeader] = ledger.AnswerMarker
	switch kind := a.header["Content-Type"]; {
	case a.how != whole:
	case kind == "application/json" && a.status >= 300:
		a.body = mark(a.body)
	case kind == "text/html" || kind == "text/plain":
		a.body = append(bytes.Clone(a.body), " "+ledger.AnswerMarker...)
	}
	return a
}

// retryAfter is the answer's Retry-After for the ledger.
func (a answer) retryAfter() string {
	var all []string
	if v := a.header["Retry-After"]; v != "" {
		all = append(all, v)
	}
	if a.also[0] == "Retry-After" {
		all = append(all, a.also[1])
	}
	return strings.Join(all, ", ")
}
