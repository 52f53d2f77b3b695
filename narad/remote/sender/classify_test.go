package sender

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

const html = "<html>nothing here</html>"

func shaped(status int, text string, header ...string) *outbound.Answer {
	return answer(status, `{"error":"`+text+`"}`, header...)
}

func page(status int) *outbound.Answer {
	return &outbound.Answer{Status: status, Header: map[string][]string{"Content-Type": {"text/html"}}, Body: []byte(html)}
}

func bare404() *outbound.Answer {
	return &outbound.Answer{
		Status: 404, Header: map[string][]string{"Content-Type": {"text/plain; charset=utf-8"}}, Body: []byte("404 page not found\n"),
	}
}

func failure(c outbound.FailureClass) error { return &outbound.Failure{Class: c, UploadBegan: true} }

// answersToAChunk is every kind of answer, with its row. Chunks are of 5 records unless n says otherwise.
var answersToAChunk = []struct {
	row    string
	name   string
	n      int
	answer *outbound.Answer
	err    error
	landed bool
	index  int
	zstd   bool
}{
	{row: "ANS-22", name: "415 to zstd", zstd: true, answer: shaped(415, "no")},
	{row: "ANS-22", name: "415 of something in front", zstd: true, answer: page(415)},
	{row: "ANS-22", name: "invalid json", zstd: true, answer: shaped(400, "invalid json: invalid character")},
	{row: "ANS-03", name: "invalid json, plain", answer: shaped(400, "invalid json: invalid character")},
	{row: "ANS-19", name: "415 of something in front, plain", answer: page(415), landed: true},
	{row: "ANS-02", name: "message 3: invalid json", zstd: true, answer: shaped(400, "message 3: invalid json"), index: 3},
	{row: target.RowTooMany, name: "too many messages, zstd", zstd: true, answer: shaped(400, "too many messages")},
	{row: "ANS-01", name: "202", answer: accepted(5)},
	{row: "ANS-01", name: "202 with our ID", answer: answer(202, `{"accepted":5}`, wire.HeaderRequestID, "me")},
	{row: "ANS-02", name: "message 3", answer: shaped(400, "message 3: schema"), index: 3},
	{row: "ANS-02", name: "message 0 of one", n: 1, answer: shaped(400, "message 0: schema")},
	{row: "ANS-03", name: "400", answer: shaped(400, "no")},
	{row: "ANS-03", name: "message 5 is out of range", answer: shaped(400, "message 5: schema")},
	{row: "ANS-03", name: "message -1", answer: shaped(400, "message -1: schema")},
	{row: "ANS-03", name: "message text", answer: shaped(400, "message x: schema")},
	{row: "ANS-03", name: "message huge", answer: shaped(400, "message 99999999999999999999: schema")},
	{row: "ANS-03", name: "too many messages, one record", n: 1, answer: shaped(400, "too many messages")},
	{row: target.RowTooMany, name: "too many messages", answer: shaped(400, "too many messages")},
	{row: "ANS-04", name: "422", answer: shaped(422, "no")},
	{row: "ANS-04", name: "415", answer: shaped(415, "no")},
	{row: "ANS-04", name: "412 without the ID", answer: shaped(412, "no")},
	{row: target.RowReplaced, name: "412 with the ID", answer: shaped(412, "topic is not 00000000000000aa")},
	{row: target.RowReplaced, name: "412 of a target of ours", answer: shaped(412,
		"the topic is another incarnation than the one in X-Narad-If-Topic-Id")},
	{row: "ANS-05", name: "409", answer: shaped(409, "delayed child topic is not allowed")},
	{row: "ANS-06", name: "413", answer: page(413)},
	{row: "ANS-07", name: "413, one", n: 1, answer: shaped(413, "message 0: message too large")},
	{row: "ANS-08", name: "401", answer: shaped(401, "unauthorized")},
	{row: "ANS-08", name: "401 of an auth page", answer: page(401)},
	{row: "ANS-09", name: "403", answer: shaped(403, "denied")},
	{row: "ANS-09", name: "403 of a firewall", answer: page(403)},
	{row: "ANS-10", name: "404", answer: shaped(404, "topic not found")},
	{row: target.RowBare404, name: "bare 404", answer: bare404()},
	{row: "ANS-13", name: "302", answer: answer(302, "", "Location", "https://elsewhere.invalid/")},
	{row: "ANS-13", name: "308", answer: page(308)},
	{row: "ANS-14", name: "429", answer: page(429)},
	{row: "ANS-15", name: "408", answer: page(408), landed: true},
	{row: "ANS-16", name: "500", answer: shaped(500, "internal error"), landed: true},
	{row: "ANS-16", name: "503", answer: page(503), landed: true},
	{row: "ANS-17", name: "timeout", err: failure(outbound.Timeout), landed: true},
	{row: "ANS-17", name: "timeout before the upload", err: &outbound.Failure{Class: outbound.Timeout}},
	{row: "ANS-18", name: "reset", err: failure(outbound.Unreachable), landed: true},
	{row: "ANS-18", name: "connection refused", err: &outbound.Failure{Class: outbound.Unreachable}},
	{row: "ANS-18", name: "an error of another kind", err: errOther, landed: true},
	{row: "ANS-19", name: "not HTTP", err: failure(outbound.Malformed), landed: true},
	{row: "ANS-19", name: "no answer at all", landed: true},
	{row: "ANS-19", name: "200", answer: answer(200, `{"accepted":5}`), landed: true},
	{row: "ANS-19", name: "201", answer: answer(201, `{"accepted":5}`), landed: true},
	{row: "ANS-19", name: "204", answer: answer(204, ``), landed: true},
	{row: "ANS-19", name: "101", answer: answer(101, ``), landed: true},
	{row: "ANS-19", name: "202 HTML", answer: page(202), landed: true},
	{row: "ANS-19", name: "202 of another type", landed: true, answer: &outbound.Answer{
		Status: 202, Header: map[string][]string{"Content-Type": {"text/html"}}, Body: []byte(`{"accepted":5}`),
	}},
	{row: "ANS-19", name: "202 empty", answer: answer(202, ``), landed: true},
	{row: "ANS-19", name: "202 of fewer", answer: accepted(4), landed: true},
	{row: "ANS-19", name: "202 without the count", answer: answer(202, `{}`), landed: true},
	{row: "ANS-19", name: "202 with more behind", answer: answer(202, `{"accepted":5}{}`), landed: true},
	{row: "ANS-19", name: "202 too long", landed: true, answer: &outbound.Answer{
		Status: 202, Header: map[string][]string{}, Body: []byte(`{"accepted":5}`), Truncated: true,
	}},
	{row: "ANS-19", name: "202 of another request", answer: answer(202, `{"accepted":5}`, wire.HeaderRequestID, "not me"), landed: true},
	{row: "ANS-19", name: "401 of another request", answer: shaped(401, "no", wire.HeaderRequestID, "not me"), landed: true},
	{row: "ANS-19", name: "400 HTML", answer: page(400), landed: true},
	{row: "ANS-19", name: "404 HTML", answer: page(404), landed: true},
	{row: "ANS-19", name: "404 empty", answer: answer(404, ``), landed: true},
	{row: "ANS-19", name: "409 HTML", answer: page(409), landed: true},
	{row: "ANS-19", name: "418 without an error", answer: answer(418, `{"error":""}`), landed: true},
	{row: "ANS-19", name: "status 999", answer: answer(999, ``), landed: true},
	{row: "ANS-20", name: "refused dial", err: &outbound.Failure{Class: outbound.Refused}},
	{row: "ANS-21", name: "TLS", err: &outbound.Failure{Class: outbound.TLS}},
	{row: target.RowCut, name: "cut", err: failure(outbound.Canceled), landed: true},
	{row: target.RowCut, name: "never begun", err: &outbound.Failure{Class: outbound.Canceled}},
}

// covers: ANS-01, ANS-22, ANS-08, ANS-10, ANS-14, ANS-15, ANS-16, ANS-17, ANS-18, ANS-19, ANS-20, ANS-21, SND-14
func TestEveryAnswerHasItsRow(t *testing.T) {
	met := map[string]bool{}
	for _, c := range answersToAChunk {
		n := 5
		if c.n > 0 {
			n = c.n
		}
		v := classify(sent{records: n, compressed: c.zstd, targetID: "00000000000000aa", requestID: "me"}, c.answer, c.err)
		require.Equal(t, c.row, v.row, c.name)
		require.Equal(t, c.landed, v.landed, c.name)
		require.Equal(t, c.index, v.index, c.name)
		require.NotEmpty(t, v.action, c.name)
		require.NotEmpty(t, v.state, c.name)
		require.Equal(t, v.edge, v.class() == target.EdgeClass)
		met[v.row] = true
	}
	// The rows that are no answer to a chunk by themselves: two are the lookup's, one is a 202 to a lone
	// record, one says that every state ends with its cause.
	elsewhere := []string{"ANS-11", "ANS-12", "ANS-23", "ANS-24"}
	for _, row := range wire.Answers {
		if r, ok := rules[row.ID]; ok {
			require.Equal(t, row.Action, r.action)
			require.Equal(t, row.State, r.state)
		}
		require.NotEqual(t, met[row.ID], strings.Contains(strings.Join(elsewhere, " "), row.ID), row.ID)
	}
}

// covers: ANS-14
func TestRetryAfterInAllItsSpellings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT") }
		for _, c := range []struct {
			want   time.Duration
			header []string
		}{
			{5 * time.Second, []string{"5"}}, {0, []string{"0"}}, {0, []string{"-1"}}, {time.Minute, []string{"999999"}},
			{time.Minute, []string{"99999999999999999999"}}, {0, []string{"1.5"}}, {0, []string{"soon"}}, {0, nil}, {0, []string{"5", "7"}},
			{0, []string{""}}, {0, []string{"+5"}}, {45 * time.Second, []string{date(45 * time.Second)}},
			{time.Minute, []string{date(2 * time.Hour)}}, {0, []string{date(-time.Hour)}}, {0, []string{"Tue, 05 Jan 1999 15:04:05 GMT"}},
		} {
			a := page(429)
			a.At = time.Now()
			a.Header["Retry-After"] = c.header
			require.Equal(t, c.want, classify(sent{records: 1}, a, nil).retryAfter, "%q", c.header)
		}
	})
}
