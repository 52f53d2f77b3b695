package target

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// one answers every request alike and keeps the last.
type one struct {
	answer *outbound.Answer
	err    error
	last   *outbound.Request
}

func (o *one) Do(_ context.Context, r *outbound.Request) (*outbound.Answer, error) {
	o.last = r
	return o.answer, o.err
}

func says(status int, contentType, body string) *outbound.Answer {
	return &outbound.Answer{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(body)}
}

func ours(status int, body string) *outbound.Answer {
	return says(status, "application/json; charset=utf-8", body)
}

// covers: TGT-05, TGT-06
func TestATopicAndItsChildrenAreRead(t *testing.T) {
	c := &one{answer: ours(200, `{"name":"a/b","id":"00000000000000aa","partitions":3,"schema_version":2,"schema":{"a":1},"future":1}`)}
	info, err := Topic(t.Context(), c, "a/b")
	require.NoError(t, err)
	require.Equal(t, Info{Exists: true, ID: "00000000000000aa", SchemaVersion: 2, Schema: []byte(`{"a":1}`)}, info)
	require.Equal(t, "GET", c.last.Method)
	require.Equal(t, "/v1/topics/a%2Fb", c.last.Path)
	require.Regexp(t, "^[0-9a-f]{16}$", c.last.RequestID)

	c.answer = ours(200, `{"name":"t","fanout_delay_ms":5}`)
	info, err = Topic(t.Context(), c, "t")
	require.NoError(t, err)
	require.Equal(t, Info{Exists: true, DelayChild: true}, info)

	c.answer = ours(200, `{"name":"t","id":"aa","remote":{"name":"x","topic":"t"}}`)
	info, err = Topic(t.Context(), c, "t")
	require.NoError(t, err)
	require.True(t, info.Stub)

	c.answer = ours(404, `{"error":"topic not found"}`)
	info, err = Topic(t.Context(), c, "t")
	require.NoError(t, err)
	require.Equal(t, Info{}, info)

	c.answer = ours(200, `{"parent":"t","parent_id":"aa","children":[{"name":"x","remote":"eu","state":"running"},{"name":"y"}]}`)
	l, err := Listing(t.Context(), c, "t")
	require.NoError(t, err)
	require.Equal(t, "/v1/topics/t/children", c.last.Path)
	require.Equal(t, "aa", l.ParentID)
	require.Len(t, l.Children, 2)
	require.Equal(t, "eu", l.Children[0].Remote)
	require.Nil(t, l.Children[1].RemoteEntry)

	c.answer = ours(200, `{"parent":"t","children":[]}`) // v3.1.0 (RUN-09)
	l, err = Listing(t.Context(), c, "t")
	require.NoError(t, err)
	require.Empty(t, l.ParentID)
}

// covers: RUN-10, LOG-01
func TestWhatAReadIsAnsweredHasItsClass(t *testing.T) {
	secret := "wrong password hunter2"
	for name, c := range map[string]struct {
		answer *outbound.Answer
		err    error
		row    string
		class  string
	}{
		"401":         {ours(401, `{"error":"`+secret+`"}`), nil, "ANS-08", "auth_failed"},
		"403":         {says(403, "text/html", secret), nil, "ANS-09", "forbidden"},
		"302":         {says(302, "text/html", secret), nil, "ANS-13", "redirect_refused"},
		"429":         {says(429, "text/html", secret), nil, "ANS-14", "throttled"},
		"503":         {ours(503, `{"error":"`+secret+`"}`), nil, "ANS-16", "unavailable"},
		"bare 404":    {says(404, "text/plain", "404 page not found\n"), nil, "ANS-19", EdgeClass},
		"HTML 404":    {says(404, "text/html", secret), nil, "ANS-19", EdgeClass},
		"HTML 200":    {says(200, "text/html", secret), nil, "ANS-19", EdgeClass},
		"another 200": {ours(200, `{"something":"else"}`), nil, "ANS-19", EdgeClass},
		"204":         {ours(204, ``), nil, "ANS-19", EdgeClass},
		"409":         {ours(409, `{"error":"`+secret+`"}`), nil, "ANS-19", EdgeClass},
		"413":         {ours(413, `{"error":"`+secret+`"}`), nil, "ANS-19", EdgeClass},
		"nothing":     {nil, nil, "ANS-19", EdgeClass},
		"guard":       {nil, &outbound.Failure{Class: outbound.Refused}, "ANS-20", "destination_refused"},
		"tls":         {nil, &outbound.Failure{Class: outbound.TLS}, "ANS-21", "tls_failed"},
		"timeout":     {nil, &outbound.Failure{Class: outbound.Timeout}, "ANS-17", "unavailable"},
		"refused":     {nil, &outbound.Failure{Class: outbound.Unreachable}, "ANS-18", "unavailable"},
		"no HTTP":     {nil, &outbound.Failure{Class: outbound.Malformed}, "ANS-19", EdgeClass},
		"too long": {&outbound.Answer{Status: 200, Header: http.Header{}, Body: []byte(`{"name":"t","parent":"t","children":[]}`), Truncated: true},
			nil, "ANS-19", EdgeClass},
	} {
		_, topicErr := Topic(t.Context(), &one{answer: c.answer, err: c.err}, "t")
		_, listErr := Listing(t.Context(), &one{answer: c.answer, err: c.err}, "t")
		for _, err := range []error{topicErr, listErr} {
			var e *Error
			require.ErrorAs(t, err, &e, name)
			require.Equal(t, c.row, e.Row, name)
			require.Equal(t, c.class, e.Class, name)
			require.NotContains(t, err.Error(), "hunter2")
			require.NotEqual(t, wire.UnknownState, e.State, name)
		}
	}
	_, err := Listing(t.Context(), &one{answer: ours(404, `{"error":"topic not found"}`)}, "t")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, wire.TargetMissing, e.State)
}

// covers: ANS-14
func TestACheckGetsTheTimeThatA429AsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := says(429, "text/html", "")
		a.At = time.Now().Add(-2 * time.Hour) // a node whose clock is behind measures by its own
		a.Header.Set("Retry-After", a.At.Add(45*time.Second).UTC().Format(http.TimeFormat))
		_, err := Topic(t.Context(), &one{answer: a}, "t")
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, 45*time.Second, e.RetryAfter)
	})
}
