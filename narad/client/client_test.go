package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// node answers every request alike and remembers the last one.
type node struct {
	status int
	header map[string]string
	body   string

	seen *http.Request
	sent string
	hits int
}

func (n *node) RoundTrip(r *http.Request) (*http.Response, error) {
	n.hits++
	n.seen = r
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	n.sent = strings.TrimSpace(string(b))
	rec := httptest.NewRecorder()
	for k, v := range n.header {
		rec.Header().Set(k, v)
	}
	rec.WriteHeader(n.status)
	if n.body != "" {
		_, err = rec.WriteString(n.body)
	}
	return rec.Result(), err
}

func newClient(n *node) *Client {
	return New(Options{BaseURL: "http://node:7942/", User: "u", Password: "p", HTTP: &http.Client{Transport: n}})
}

// covers: BRK-14
func TestRequests(t *testing.T) {
	five := 5
	retention := int64(0)
	ctx := context.Background()
	cases := []struct {
		call   func(c *Client) error
		status int
		line   string
		sent   string
	}{
		{func(c *Client) error { _, err := c.Health(ctx); return err }, 200, "GET /healthz", ""},
		{func(c *Client) error { _, err := c.Ready(ctx); return err }, 200, "GET /readyz", ""},
		{func(c *Client) error { _, err := c.Metrics(ctx); return err }, 200, "GET /metrics", ""},
		{func(c *Client) error {
			_, err := c.CreateTopic(ctx, wire.CreateTopic{Name: "a<b", RetentionMS: &retention})
			return err
		}, 201, "POST /v1/topics", `{"name":"a<b","retention_ms":0}`},
		{func(c *Client) error { _, err := c.Topic(ctx, "a/b", &five); return err }, 200, "GET /v1/topics/a%2Fb?partition=5", ""},
		{func(c *Client) error { _, err := c.Topics(ctx, 5, "t"); return err }, 200, "GET /v1/topics?limit=5&page_token=t", ""},
		{func(c *Client) error {
			_, err := c.AlterTopic(ctx, "a", wire.AlterTopic{Partitions: &five})
			return err
		}, 200, "PATCH /v1/topics/a", `{"partitions":5}`},
		{func(c *Client) error { return c.DeleteTopic(ctx, "a", true) }, 204, "DELETE /v1/topics/a?force=true", ""},
		{func(c *Client) error { _, err := c.AttachChild(ctx, "a", wire.AttachChild{Child: "b"}); return err }, 200, "POST /v1/topics/a/children", `{"child":"b"}`},
		{func(c *Client) error {
			_, err := c.AttachRemote(ctx, "a", wire.AttachChild{Child: "b", Remote: "r", DryRun: true})
			return err
		}, 201, "POST /v1/topics/a/children", `{"child":"b","remote":"r"}`},
		{func(c *Client) error {
			_, err := c.DryRunAttach(ctx, "a", wire.AttachChild{Child: "b", Remote: "r"})
			return err
		}, 200, "POST /v1/topics/a/children", `{"child":"b","remote":"r","dry_run":true}`},
		{func(c *Client) error { _, err := c.Children(ctx, "a", true); return err }, 200, "GET /v1/topics/a/children?partitions=true", ""},
		{func(c *Client) error { return c.Detach(ctx, "a", "b", false) }, 204, "DELETE /v1/topics/a/children/b", ""},
		{func(c *Client) error { _, err := c.Pause(ctx, "a", "b", "why"); return err }, 200, "POST /v1/topics/a/children/b/pause", `{"reason":"why"}`},
		{func(c *Client) error { _, err := c.Resume(ctx, "a", "b", false); return err }, 200, "POST /v1/topics/a/children/b/resume", `{}`},
		{func(c *Client) error { _, err := c.Resume(ctx, "a", "b", true); return err }, 200, "POST /v1/topics/a/children/b/resume", `{"accept_target":true}`},
		{func(c *Client) error { _, err := c.Skip(ctx, "a", "b", 0, 7); return err }, 200, "POST /v1/topics/a/children/b/skip", `{"partition":0,"offset":7}`},
		{func(c *Client) error {
			_, err := c.Remotes().Test(ctx, "r", wire.TestRemote{Topic: "t", Source: "s"})
			return err
		}, 200, "POST /v1/remotes/r/test", `{"topic":"t","source":"s"}`},
		{func(c *Client) error { _, err := c.Remotes().Reencrypt(ctx); return err }, 200, "POST /v1/cluster/reencrypt-remotes", ""},
		{func(c *Client) error {
			return c.Produce(ctx, "a", []byte("x"), ProduceOptions{Key: "k&", Partition: &five})
		}, 202, "POST /v1/topics/a/produce?key=k%26&partition=5", "x"},
		{func(c *Client) error {
			return c.ProduceBatch(ctx, "a", "id", []wire.NewRecord{{Key: []byte("\xff"), Payload: []byte("x"), Partition: -1}, {Payload: []byte("y"), Partition: 0}})
		}, 202, "POST /v1/topics/a/produce/batch", `{"messages":[{"key":"/w==","key_encoding":"base64","payload":"eA==","payload_encoding":"base64"},{"payload":"eQ==","payload_encoding":"base64","partition":0}]}`},
		{func(c *Client) error {
			_, err := c.Consume(ctx, "a", ConsumeOptions{Partition: &five, Wait: time.Second})
			return err
		}, 204, "GET /v1/topics/a/consume?partition=5&wait=1s", ""},
		{func(c *Client) error { _, err := c.ConsumeBatch(ctx, "a", 5, ConsumeOptions{}); return err }, 204, "GET /v1/topics/a/consume?max=5", ""},
		{func(c *Client) error { _, err := c.Replay(ctx, "a", 1, 7); return err }, 204, "GET /v1/topics/a/consume?offset=7&partition=1", ""},
		{func(c *Client) error { return c.Settle(ctx, "a", "0:1:n", Ack) }, 204, "POST /v1/topics/a/ack?receipt_handle=0%3A1%3An", ""},
		{func(c *Client) error { return c.Settle(ctx, "a", "h", Nack) }, 204, "POST /v1/topics/a/ack?extend=0&receipt_handle=h", ""},
		{func(c *Client) error { _, err := c.SettleBatch(ctx, "a", []string{"h"}, Extend); return err }, 200, "POST /v1/topics/a/ack?extend=true", `{"receipt_handles":["h"]}`},
		{func(c *Client) error { _, err := c.Users().Create(ctx, wire.CreateUser{Username: "x"}); return err }, 201, "POST /v1/users", `{"username":"x","password":""}`},
		{func(c *Client) error { _, err := c.Users().Get(ctx, "x"); return err }, 200, "GET /v1/users/x", ""},
		{func(c *Client) error { return c.Users().Delete(ctx, "x") }, 204, "DELETE /v1/users/x", ""},
		{func(c *Client) error { _, err := c.Users().ReplaceGrants(ctx, "x", nil); return err }, 200, "PUT /v1/users/x/grants", `{"grants":[]}`},
		{func(c *Client) error {
			return c.Users().ChangePassword(ctx, "x", wire.ChangePassword{NewPassword: "n"})
		}, 204, "PUT /v1/users/x/password", `{"new_password":"n"}`},
		{func(c *Client) error { _, err := c.Remotes().Create(ctx, wire.CreateRemote{Name: "r"}); return err }, 201, "POST /v1/remotes", `{"name":"r","url":"","username":"","password":""}`},
		{func(c *Client) error { _, err := c.Remotes().List(ctx, false); return err }, 200, "GET /v1/remotes?nodes=false", ""},
		{func(c *Client) error { _, err := c.Remotes().Get(ctx, "r", true); return err }, 200, "GET /v1/remotes/r", ""},
		{func(c *Client) error {
			_, err := c.Remotes().Patch(ctx, "r", wire.PatchRemote{CAPEM: new(string)})
			return err
		}, 200, "PATCH /v1/remotes/r", `{"ca_pem":""}`},
		{func(c *Client) error { return c.Remotes().Delete(ctx, "r", true) }, 204, "DELETE /v1/remotes/r?force=true", ""},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			n := &node{status: c.status}
			require.NoError(t, c.call(newClient(n)))
			require.Equal(t, c.line, n.seen.Method+" "+n.seen.URL.RequestURI())
			require.Equal(t, c.sent, n.sent)
			require.Equal(t, "application/json", n.seen.Header.Get("Accept"))
			require.NotEmpty(t, n.seen.Header.Get("User-Agent"))
			require.NotEmpty(t, n.seen.Header.Get(wire.HeaderClient))
			user, password, found := n.seen.BasicAuth()
			require.True(t, found && user == "u" && password == "p")
			// Every status but the one is an error, and nothing is sent twice.
			n = &node{status: 418}
			var e *Error
			require.ErrorAs(t, c.call(newClient(n)), &e)
			require.Equal(t, 418, e.Status)
			require.Equal(t, 1, n.hits)
		})
	}
}

func TestErrors(t *testing.T) {
	n := &node{
		status: 503, body: `{"error":"come back","links":["a/b"]}`,
		header: map[string]string{"Retry-After": "2", wire.HeaderRequestID: "00112233aabbccdd"},
	}
	c := newClient(n)
	err := c.DeleteTopic(WithRequestID(t.Context(), "ffff00001111aaaa"), "a", false)
	require.Equal(t, "ffff00001111aaaa", n.seen.Header.Get(wire.HeaderRequestID))
	require.Equal(t, &Error{
		Status: 503, Text: "come back", RetryAfter: 2 * time.Second, RequestID: "00112233aabbccdd", Body: []byte(n.body),
	}, err)
	require.Equal(t, "narad answered 503: come back", err.Error())
	require.NotContains(t, err.Error(), "p@")

	n = &node{status: 302, header: map[string]string{"Location": "http://elsewhere/"}}
	_, err = newClient(n).Topic(t.Context(), "a", nil)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, 302, e.Status)
	require.Equal(t, 1, n.hits, "a redirect is not followed")
	require.Equal(t, "narad answered 302: Found", e.Error())
}

func TestPayload(t *testing.T) {
	for _, c := range []struct {
		answer, payload, key string
		quoted               bool
	}{
		{`{"payload":{"a": 1.0},"key":"k"}`, `{"a": 1.0}`, "k", false},
		{`{"payload":"text\n"}`, "text\n", "", false},
		{`{"payload":"text"}`, `"text"`, "", true},
		{`{"payload":"/w==","payload_encoding":"base64","key":"/w==","key_encoding":"base64"}`, "\xff", "\xff", true},
	} {
		var m wire.Message
		require.NoError(t, json.Unmarshal([]byte(c.answer), &m))
		p, err := Payload(&m, c.quoted)
		require.NoError(t, err)
		require.Equal(t, c.payload, string(p))
		k, err := Key(&m)
		require.NoError(t, err)
		require.Equal(t, c.key, string(k))
	}
}
