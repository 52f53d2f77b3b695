package fakes

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// how says in which way an answer leaves the fake.
type how uint8

const (
	whole      how = iota
	closeFirst     // the connection is closed instead of an answer
	resetFirst     // the same with a reset
	tear           // headers and a part of the body, then the end
	silence        // nothing until the caller goes away
	verbatim       // the body is the whole answer, its status line included
)

// answer is what a fake sends.
type answer struct {
	how    how
	status int
	header map[string]string
	body   []byte
	part   int       // tear: bytes of the body that still go out
	resets bool      // tear: the end is a reset
	also   [2]string // a header that is sent beside one of the same name
	flood  []byte    // verbatim: written after the body, over and over until the caller goes away
	ends   int64     // verbatim: the flood ends after so many bytes, 0 never
	stays  bool      // verbatim: the connection stays until the caller goes away
}

// asked is what an entry may know of the request.
type asked struct {
	records int
	place   int // of the record that the step matched, -1 none
	path    string
	topicID string // X-Narad-If-Topic-Id
	topic   string // of the path
	id      string // of that topic in the store, "" when there is none
	parts   int    // its partitions

	requestID     string
	authorization string // the header as it came
	user, pass    string // what it says
	elsewhere     string // base URL of the other host, "" when there is none
}

// Entry is one name of the catalogue.
type Entry struct {
	Name  string
	Rows  []string // the rows of wire.Answers that it makes the sender meet
	Says  string   // what goes over the wire
	Takes []string // parameters: status, retry_after, index, bytes (delay_ms and headers are everyone's)

	stores    bool                                                                      // the store takes the request first; its answer is thrown away
	only      func(r *http.Request, body []byte, records []record) (place int, ok bool) // the requests that it answers, nil for all
	over      bool                                                                      // with bytes it answers larger bodies alone
	early     bool                                                                      // answers while the body is still coming
	low, high int                                                                       // of a status that may be chosen
	build     func(Reply, asked) answer
}

// Find returns the catalogue's entry of that name.
func Find(name string) (Entry, bool) {
	for _, e := range Catalogue {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Catalogue is every answer that a script can name. NOT_IMITATED.md says what is missing.
var Catalogue = []Entry{
	{Name: "202", Rows: []string{"ANS-01", "ANS-23", "ANS-24"}, Says: "what the store answers: 202 when all is well", build: nil},
	{Name: "400-index", Rows: []string{"ANS-02"}, Says: "400 with message N:", Takes: []string{"index"}, build: badRecord},
	{Name: "400", Rows: []string{"ANS-03"}, Says: "400 without an index", build: narad(400, "request refused")},
	{Name: "422", Rows: []string{"ANS-04"}, Says: "another Narad-shaped 4xx, 422 unless named", Takes: []string{"status"}, low: 402, high: 499, build: narad(422, "unprocessable")},
	{Name: "409", Rows: []string{"ANS-05"}, Says: "409 of a delay child", build: narad(409, "produce to a delayed child topic is not allowed")},
	{Name: "412", Rows: []string{"ANS-04"}, Says: "412 that names another incarnation, as the store gives it (RUN-12)", build: replaced},
	{Name: "413", Rows: []string{"ANS-06", "ANS-07"}, Says: "413, with bytes to larger bodies alone", Takes: []string{"bytes"}, over: true, build: narad(413, "request body too large")},
	{Name: "401", Rows: []string{"ANS-08"}, Says: "401", build: unauthorized},
	{Name: "403", Rows: []string{"ANS-09"}, Says: "403", build: narad(403, "no grant on this topic")},
	{Name: "narad-404", Rows: []string{"ANS-10"}, Says: "Narad's 404", build: narad(404, "topic not found")},
	{Name: "bare-404", Rows: []string{"ANS-11", "ANS-12"}, Says: "Go's bare 404", build: bare404},
	{Name: "302", Rows: []string{"ANS-13"}, Says: "302 unless named, to another host", Takes: []string{"status"}, low: 300, high: 399, build: redirect},
	{Name: "elsewhere", Rows: []string{"ANS-13"}, Says: "307 unless named, to another host of the rig, which writes down what comes", Takes: []string{"status"}, low: 300, high: 399, build: toElsewhere},
	{Name: "429", Rows: []string{"ANS-14"}, Says: "429", Takes: []string{"retry_after"}, build: narad(429, "too many requests")},
	{Name: "429-twice", Rows: []string{"ANS-14"}, Says: "429 with a second Retry-After of 45 seconds", Takes: []string{"retry_after"}, build: twice},
	{Name: "408", Rows: []string{"ANS-15"}, Says: "408", build: narad(408, "request timeout")},
	{Name: "500", Rows: []string{"ANS-16"}, Says: "500", build: narad(500, "internal error")},
	{Name: "502", Rows: []string{"ANS-16"}, Says: "another 5xx, 502 unless named", Takes: []string{"status", "retry_after"}, low: 500, high: 599, build: narad(502, "bad gateway")},
	{Name: "503", Rows: []string{"ANS-16"}, Says: "503", Takes: []string{"retry_after"}, build: narad(503, "draining")},
	{Name: "stored-then-503", Rows: []string{"ANS-16"}, Says: "the records are stored, then 503", stores: true, build: narad(503, "draining")},
	{Name: "hang", Rows: []string{"ANS-17"}, Says: "no answer, the connection stays", build: leave(silence)},
	{Name: "stored-then-hang", Rows: []string{"ANS-17"}, Says: "the records are stored, then no answer", stores: true, build: leave(silence)},
	{Name: "early-close", Rows: []string{"ANS-18"}, Says: "the whole request is read, then the connection closes", build: leave(closeFirst)},
	{Name: "reset", Rows: []string{"ANS-18"}, Says: "the whole request is read, then a reset", build: leave(resetFirst)},
	{Name: "truncated", Rows: []string{"ANS-18"}, Says: "a 202 torn in its body", Takes: []string{"bytes"}, build: torn},
	{Name: "head-only", Rows: []string{"ANS-18"}, Says: "the headers of a 202, then a reset", build: headOnly},
	{Name: "cut-upload", Rows: []string{"ANS-18"}, Says: "a reset after some bytes of the request's body", Takes: []string{"bytes"}, early: true, build: leave(resetFirst)},
	{Name: "stored-then-cut", Rows: []string{"ANS-18"}, Says: "the records are stored, then the connection closes", stores: true, build: leave(closeFirst)},
	{Name: "html", Rows: []string{"ANS-12", "ANS-19"}, Says: "a page, 200 unless named", Takes: []string{"status"}, low: 200, high: 599, build: plain(200, "text/html", "<!doctype html><title>Welcome</title>")},
	{Name: "empty", Rows: []string{"ANS-19"}, Says: "no body, 200 unless named", Takes: []string{"status"}, low: 200, high: 599, build: plain(200, "", "")},
	{Name: "200", Rows: []string{"ANS-19"}, Says: "another 2xx with the body of a 202, 200 unless named", Takes: []string{"status"}, low: 200, high: 299, build: other2xx},
	{Name: "wrong-count", Rows: []string{"ANS-19"}, Says: "202 that counts one record too few, nothing stored", build: wrongCount},
	{Name: "wrong-type", Rows: []string{"ANS-19"}, Says: "202 of plain text, nothing stored", build: plain(202, "text/plain", "accepted")},
	{Name: "huge", Rows: []string{"ANS-19"}, Says: "200 unless named with a body of 64 MiB unless named; it may say 10 GiB", Takes: []string{"bytes", "status"}, low: 200, high: 299, build: hugeBody},
	{Name: "wrong-request-id", Rows: []string{"ANS-19"}, Says: "stored, then a 202 that carries another request's ID (SND-14)", stores: true, build: wrongRequestID},
	{Name: "interim", Rows: []string{"ANS-01"}, Says: "stored, then three 103 and the 202", stores: true, build: interim},
	{Name: "http-1.0", Rows: []string{"ANS-01"}, Says: "stored, then the 202 as HTTP/1.0 without a length", stores: true, build: oldHTTP},
	{Name: "endless-interim", Rows: []string{"ANS-19"}, Says: "stored, then 103 without end", stores: true, build: endlessInterim},
	{Name: "101", Rows: []string{"ANS-19"}, Says: "101 to another protocol", build: switching},
	{Name: "not-http", Rows: []string{"ANS-19"}, Says: "the greeting of a mail server", build: notHTTP},
	{Name: "endless-body", Rows: []string{"ANS-19"}, Says: "200 with a body without end", build: endlessBody},
	{Name: "endless-header", Rows: []string{"ANS-19"}, Says: "202 with headers without end", build: endlessHeader},
	{Name: "unasked", Rows: []string{"ANS-01"}, Says: "stored, then the 202 and right behind it another 202 that nobody asked for", stores: true, build: unasked},
	{Name: "echo", Rows: []string{"ANS-08"}, Says: "401 unless named that says the credential back: in the reason, headers, Location, body and trailer", Takes: []string{"status"}, low: 300, high: 599, build: echo},
	{Name: "400-raw", Rows: []string{"ANS-02"}, Says: "400 message N: to a record that came raw; as base64 it is stored (SND-09)", only: raw, build: badRecord},
	{Name: "415-zstd", Rows: []string{"ANS-22"}, Says: "415 to what came compressed", only: compressed, build: narad(415, "unsupported content encoding")},
	{Name: "no-zstd", Rows: []string{"ANS-22"}, Says: "400 invalid json to what came compressed, as a release without zstd has it", only: compressed, build: narad(400, "invalid json: unexpected byte")},
	{Name: "over-100", Says: "400 too many messages to more than 100, as a release with that limit has it (SND-02)", only: overHundred, build: narad(400, "too many messages")},
	{Name: "old-listing", Says: "a children listing without parent_id and remote objects, as a release before remote children has it (RUN-09)", build: oldListing},
	{Name: "recreated-listing", Says: "the children listing of another incarnation of the topic (RUN-07)", build: recreatedListing},
	{Name: "chained-listing", Says: "a children listing with a remote child (RUN-06)", build: chainedListing},
	{Name: "delay-topic", Says: "the description of a topic that is a delay child (TGT-05)", build: delayTopic},
	{Name: "415", Rows: []string{"ANS-22"}, Says: "415", build: narad(415, "unsupported content encoding")},
	{Name: "invalid-json", Rows: []string{"ANS-22"}, Says: "400 invalid json", build: narad(400, "invalid json: unexpected byte")},
}

// narad makes an answer in Narad's shape. A status that the step names wins.
func narad(status int, text string) func(Reply, asked) answer {
	return func(r Reply, _ asked) answer {
		a := answer{status: status, header: map[string]string{"Content-Type": "application/json"}, body: errorBody(text)}
		if r.Status != 0 {
			a.status = r.Status
		}
		if r.RetryAfter != "" {
			a.header["Retry-After"] = retryAfter(r.RetryAfter)
		}
		return a
	}
}

func errorBody(text string) []byte { return fmt.Appendf(nil, "{\"error\":%q}\n", text) }

// retryAfter spells the header: "date+30s" and "date-1h" are HTTP dates around now, anything else stands as it is.
func retryAfter(words string) string {
	if offset, ok := strings.CutPrefix(words, "date"); ok {
		if d, err := time.ParseDuration(offset); err == nil {
			return time.Now().Add(d).UTC().Format(http.TimeFormat)
		}
	}
	return words
}

func badRecord(r Reply, q asked) answer {
	n := max(q.place, 0)
	if r.Index != nil {
		n = *r.Index
	}
	return narad(400, fmt.Sprintf("message %d: payload does not match the schema", n))(r, q)
}

func unauthorized(r Reply, q asked) answer {
	a := narad(401, "unauthorized")(r, q)
	a.header["WWW-Authenticate"] = `Basic realm="narad"`
	return a
}

// replaced is the refusal of a chunk that is meant for another incarnation; it names the one that the request names (DEC-46).
func replaced(r Reply, q asked) answer {
	return narad(http.StatusPreconditionFailed, otherIncarnation(q.topicID))(r, q)
}

func bare404(Reply, asked) answer {
	return answer{status: 404, body: []byte("404 page not found\n"), header: map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff",
	}}
}

func redirect(r Reply, q asked) answer {
	a := plain(302, "text/html", "<a href=\"https://elsewhere.invalid/\">moved</a>")(r, q)
	a.header["Location"] = "https://elsewhere.invalid" + q.path
	return a
}

func leave(h how) func(Reply, asked) answer {
	return func(Reply, asked) answer { return answer{how: h} }
}

func torn(r Reply, q asked) answer {
	a := accepted(q.records)
	a.how, a.part = tear, len(a.body)/2
	if r.Bytes > 0 {
		a.part = min(r.Bytes, len(a.body)-1)
	}
	return a
}

func headOnly(_ Reply, q asked) answer {
	a := accepted(q.records)
	a.how, a.part, a.resets = tear, 0, true
	return a
}

func plain(status int, contentType, body string) func(Reply, asked) answer {
	return func(r Reply, _ asked) answer {
		a := answer{status: cmp.Or(r.Status, status), header: map[string]string{}, body: []byte(body)}
		if contentType != "" {
			a.header["Content-Type"] = contentType
		}
		return a
	}
}

// accepted is Narad's answer to a batch of n records.
func accepted(n int) answer {
	return answer{
		status: http.StatusAccepted, header: map[string]string{"Content-Type": "application/json"},
		body: []byte(`{"accepted":` + strconv.Itoa(n) + "}\n"),
	}
}

func other2xx(r Reply, q asked) answer {
	a := accepted(q.records)
	a.status = http.StatusOK
	if r.Status != 0 {
		a.status = r.Status
	}
	return a
}

func wrongCount(_ Reply, q asked) answer { return accepted(q.records - 1) }

func wrongRequestID(_ Reply, q asked) answer {
	a := accepted(q.records)
	a.header["X-Narad-Request-Id"] = "0123456789abcdef"
	return a
}
