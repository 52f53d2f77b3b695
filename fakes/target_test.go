package fakes

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

var credential = base64.StdEncoding.EncodeToString([]byte(user + ":" + password))

func when(route string, r Reply) Step { return Step{When: When{Route: route}, Answer: r} }

// covers: HAR-03
func TestCatalogueAnswersAsItSays(t *testing.T) {
	three := 3
	cases := []struct {
		reply   Reply
		status  int // 0: no answer
		body    string
		header  [2]string
		outcome string
	}{
		{Reply{Name: "202"}, 202, `{"accepted":2}`, [2]string{"X-Narad-Request-Id", "00000000000000ff"}, ledger.WireAccepted},
		{Reply{Name: "400-index", Index: &three}, 400, `"message 3: `, [2]string{"Content-Type", "application/json"}, ledger.WireRefused},
		{Reply{Name: "400"}, 400, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "422"}, 422, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "422", Status: 451}, 451, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "409"}, 409, "delayed child topic is not allowed", [2]string{}, ledger.WireRefused},
		{Reply{Name: "412"}, 412, "another incarnation", [2]string{}, ledger.WireRefused},
		{Reply{Name: "413"}, 413, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "401"}, 401, `"error"`, [2]string{"Www-Authenticate", `Basic realm="narad"`}, ledger.WireRefused},
		{Reply{Name: "403"}, 403, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "narad-404"}, 404, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "bare-404"}, 404, "404 page not found\n", [2]string{"Content-Type", "text/plain; charset=utf-8"}, ledger.WireRefused},
		{Reply{Name: "302"}, 302, "", [2]string{"Location", "https://elsewhere.invalid/v1/topics/orders/produce/batch"}, ledger.WireRefused},
		{Reply{Name: "429", RetryAfter: "-5"}, 429, `"error"`, [2]string{"Retry-After", "-5"}, ledger.WireRefused},
		{Reply{Name: "429"}, 429, `"error"`, [2]string{"Retry-After", ""}, ledger.WireRefused},
		{Reply{Name: "408"}, 408, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "500"}, 500, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "502", Status: 599}, 599, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "503", RetryAfter: "7"}, 503, `"error"`, [2]string{"Retry-After", "7"}, ledger.WireRefused},
		{Reply{Name: "stored-then-503"}, 503, `"error"`, [2]string{}, ledger.WireAccepted},
		{Reply{Name: "hang", DelayMS: 20}, 0, "", [2]string{}, ledger.WireHung},
		{Reply{Name: "stored-then-hang", DelayMS: 20}, 0, "", [2]string{}, ledger.WireAccepted},
		{Reply{Name: "early-close"}, 0, "", [2]string{}, ledger.WireCut},
		{Reply{Name: "reset"}, 0, "", [2]string{}, ledger.WireCut},
		{Reply{Name: "truncated", Bytes: 4}, 0, "", [2]string{}, ledger.WireCut},
		{Reply{Name: "head-only"}, 0, "", [2]string{}, ledger.WireCut},
		{Reply{Name: "cut-upload", Bytes: 5}, 0, "", [2]string{}, ledger.WireCut},
		{Reply{Name: "stored-then-cut"}, 0, "", [2]string{}, ledger.WireAccepted},
		{Reply{Name: "html"}, 200, "<!doctype html>", [2]string{"Content-Type", "text/html"}, ledger.WireAnswered},
		{Reply{Name: "empty"}, 200, "", [2]string{"X-Narad-Request-Id", ""}, ledger.WireAnswered},
		{Reply{Name: "200"}, 200, `{"accepted":2}`, [2]string{}, ledger.WireAnswered},
		{Reply{Name: "wrong-count"}, 202, `{"accepted":1}`, [2]string{}, ledger.WireAnswered},
		{Reply{Name: "wrong-type"}, 202, "accepted", [2]string{"Content-Type", "text/plain"}, ledger.WireAnswered},
		{Reply{Name: "huge", Bytes: 100_000}, 200, "xxxx", [2]string{}, ledger.WireAnswered},
		{Reply{Name: "huge", Bytes: 100_000, Status: 202}, 202, "xxxx", [2]string{}, ledger.WireAnswered},
		{Reply{Name: "wrong-request-id"}, 202, `{"accepted":2}`, [2]string{"X-Narad-Request-Id", "0123456789abcdef"}, ledger.WireAccepted},
		{Reply{Name: "429-twice", RetryAfter: "3"}, 429, `"error"`, [2]string{"Retry-After", "3"}, ledger.WireRefused},
		{Reply{Name: "interim"}, 202, `{"accepted":2}`, [2]string{"X-Narad-Request-Id", "00000000000000ff"}, ledger.WireAccepted},
		{Reply{Name: "http-1.0"}, 202, `{"accepted":2}`, [2]string{"Content-Length", ""}, ledger.WireAccepted},
		{Reply{Name: "endless-interim"}, 0, "", [2]string{}, ledger.WireAccepted},
		{Reply{Name: "101"}, 101, "", [2]string{"Upgrade", "websocket"}, ledger.WireAnswered},
		{Reply{Name: "not-http"}, 0, "", [2]string{}, ledger.WireAnswered},
		{Reply{Name: "endless-header"}, 0, "", [2]string{}, ledger.WireAnswered},
		{Reply{Name: "echo", Status: 403}, 403, "Basic " + credential + " user " + user + " password " + password, [2]string{"X-Echo", "Basic " + credential + " user " + user + " password " + password}, ledger.WireRefused},
		{Reply{Name: "old-listing"}, 200, `{"children":[],"parent":"orders"}`, [2]string{}, ledger.WireAnswered},
		{Reply{Name: "recreated-listing"}, 200, `"parent_id":"00000000deadbeef"`, [2]string{}, ledger.WireAnswered},
		{Reply{Name: "chained-listing"}, 200, `"remote":"c"`, [2]string{}, ledger.WireAnswered},
		{Reply{Name: "delay-topic"}, 200, `"fanout_delay_ms":60000`, [2]string{}, ledger.WireAnswered},
		{Reply{Name: "html", Status: 202}, 202, "<!doctype html>", [2]string{"Content-Type", "text/html"}, ledger.WireAnswered},
		{Reply{Name: "empty", Status: 202}, 202, "", [2]string{"X-Narad-Request-Id", ""}, ledger.WireAnswered},
		{Reply{Name: "415"}, 415, `"error"`, [2]string{}, ledger.WireRefused},
		{Reply{Name: "invalid-json", Headers: map[string]string{"x-more": "1"}}, 400, "invalid json", [2]string{"X-More", "1"}, ledger.WireRefused},
	}
	names := []string{"endless-body", "415-zstd", "no-zstd", "over-100", "400-raw", "unasked", "elsewhere"} // tests of their own
	g := newRig(t, Net{})
	for _, c := range cases {
		names = append(names, c.reply.Name)
		t.Run(c.reply.Name, func(t *testing.T) {
			f := g.target(t, Script{Steps: []Step{when("produce", c.reply)}})
			res := g.batch(t.Context(), "https://"+f.Addr(), body(1, 2), "X-Narad-Request-Id", "00000000000000ff")
			require.Equal(t, c.status == 0, res.err != nil, "%v", res.err)
			if c.status != 0 {
				require.Equal(t, c.status, res.status)
				require.Contains(t, res.body, c.body)
				if c.header[0] != "" {
					require.Equal(t, c.header[1], res.header.Get(c.header[0]))
				}
			}
			list := requests(t, f)
			require.Len(t, list, 1)
			require.Equal(t, c.outcome, list[0].Outcome)
			require.Equal(t, "1 "+c.reply.Name, list[0].Step)
			stored := g.do(t.Context(), http.MethodGet, "https://"+f.Addr()+"/v1/topics/orders", "")
			want := 0
			if c.outcome == ledger.WireAccepted {
				want = 2
			}
			require.Equal(t, want, kept(t, stored.body))
			require.Equal(t, 1, f.Steps()[0].Used)
		})
	}
	for _, e := range Catalogue {
		require.Contains(t, names, e.Name, "an entry without a test")
	}
}

// covers: HAR-03
func TestAnEndlessBodyEndsWithTheCaller(t *testing.T) {
	g := newRig(t, Net{})
	f := g.target(t, Script{Steps: []Step{when("produce", Reply{Name: "endless-body"})}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+f.Addr()+"/v1/topics/orders/produce/batch", strings.NewReader(body(1, 2)))
	require.NoError(t, err)
	res, err := g.client.Do(req)
	require.NoError(t, err)
	n, err := io.CopyN(io.Discard, res.Body, 1<<20)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, n)
	g.client.CloseIdleConnections()
	require.NoError(t, f.Close(), "with the flood still on the wire")
	_ = res.Body.Close()
	list := requests(t, f)
	require.Len(t, list, 1)
	require.Equal(t, ledger.WireAnswered, list[0].Outcome)
	require.Equal(t, 200, list[0].Status)
}

// covers: HAR-03
func TestAnswersThatChooseTheirRequests(t *testing.T) {
	g := newRig(t, Net{})
	always := func(name string) Step {
		return Step{When: When{Route: "produce"}, Answer: Reply{Name: name}, Times: Always}
	}
	f := g.target(t, Script{Steps: []Step{always("400-raw"), always("415-zstd"), always("over-100")}})
	base := "https://" + f.Addr()
	encoded := `{"messages":[{"payload":"MQ==","payload_encoding":"base64"}]}`
	require.Equal(t, 202, g.batch(t.Context(), base, encoded).status)
	half := g.batch(t.Context(), base, strings.Replace(encoded, `]}`, `,{"payload":2}]}`, 1))
	require.Equal(t, 400, half.status)
	require.Contains(t, half.body, "message 1: ", "the place of the first that came raw")
	require.Equal(t, 415, g.batch(t.Context(), base, encoded, "Content-Encoding", "gzip").status)
	empty := `{"messages":[` + strings.Repeat(`{"payload_encoding":"base64"},`, 100) + `{}]}`
	require.Contains(t, g.batch(t.Context(), base, empty).body, "too many messages")
	require.Contains(t, g.batch(t.Context(), base, strings.Replace(empty, `,{}`, ``, 1)).body, "message 0: ")
	used := map[string]int{}
	for _, st := range f.Steps() {
		used[st.Name] = st.Used
	}
	require.Equal(t, map[string]int{"1 400-raw": 1, "2 415-zstd": 1, "3 over-100": 1}, used)

	small := always("413")
	small.Answer.Bytes = len(encoded)
	f = g.target(t, Script{Steps: []Step{small}})
	require.Equal(t, 202, g.batch(t.Context(), "https://"+f.Addr(), encoded).status)
	require.Equal(t, 413, g.batch(t.Context(), "https://"+f.Addr(), encoded+" ").status, "a body that is larger")

	f = g.target(t, Script{Steps: []Step{always("no-zstd")}})
	require.Equal(t, 202, g.batch(t.Context(), "https://"+f.Addr(), encoded).status)
	require.Contains(t, g.batch(t.Context(), "https://"+f.Addr(), encoded, "Content-Encoding", "zstd").body, "invalid json")
}

// covers: HAR-03, NET-03
func TestElsewhereWritesDownWhatComes(t *testing.T) {
	g := newRig(t, Net{})
	f, err := StartTarget(TargetConfig{
		Name: "fake", Listen: "127.0.0.1:0", Elsewhere: "127.0.0.1:0", Cert: g.cert, Epoch: time.Now(), Users: map[string]string{user: password},
		Script: Script{Topics: []ScriptTopic{{Name: "orders"}}, Steps: []Step{when("produce", Reply{Name: "elsewhere"})}},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	res := g.batch(t.Context(), "https://"+f.Addr(), body(1, 2))
	require.Equal(t, 307, res.status)
	to := res.header.Get("Location")
	require.True(t, strings.HasSuffix(to, "/v1/topics/orders/produce/batch"), to)
	require.NotContains(t, to, f.Addr())
	require.Equal(t, 202, g.do(t.Context(), http.MethodPost, to, body(1, 2)).status)
	require.Equal(t, 202, g.do(t.Context(), http.MethodPost, to, body(1, 2), "Authorization", "").status)
	var steps []string
	for _, r := range requests(t, f) {
		if r.Outcome == ledger.WireElsewhere {
			steps = append(steps, r.Step)
		}
	}
	require.Equal(t, []string{ledger.ElsewhereCredential, ledger.ElsewhereBare}, steps)
}

// covers: HAR-03
func TestAnUnaskedAnswerComesBehindTheFirst(t *testing.T) {
	g := newRig(t, Net{})
	f := g.target(t, Script{Steps: []Step{when("produce", Reply{Name: "unasked"})}})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(g.ca.PEM()))
	c, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", f.Addr())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://link/v1/topics/orders/produce/batch", strings.NewReader(body(1, 2)))
	require.NoError(t, err)
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	require.NoError(t, req.Write(c))
	in := bufio.NewReader(c)
	for range 2 {
		res, err := http.ReadResponse(in, req)
		require.NoError(t, err)
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, "{\"accepted\":2}\n", string(b))
		require.NoError(t, res.Body.Close())
	}
	require.Len(t, requests(t, f), 1)
}

func kept(t *testing.T, body string) (n int) {
	t.Helper()
	var d wire.TopicDetail
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	for _, p := range d.PartitionStats {
		n += int(p.HighWatermark)
	}
	return n
}

// Every row of the answer table can be met, but those that no answer of a target brings about (NOT_IMITATED.md).
func TestCatalogueCoversTheAnswerTable(t *testing.T) {
	without := []string{"ANS-20", "ANS-21"}
	for _, row := range wire.Answers {
		has := slices.ContainsFunc(Catalogue, func(e Entry) bool { return slices.Contains(e.Rows, row.ID) })
		require.Equal(t, !slices.Contains(without, row.ID), has, row.ID)
	}
	for _, e := range Catalogue {
		for _, row := range e.Rows {
			require.True(t, slices.ContainsFunc(wire.Answers, func(a wire.Answer) bool { return a.ID == row }), "%s names row %s", e.Name, row)
		}
	}
}

func TestRetryAfterSpellings(t *testing.T) {
	for _, s := range []string{"30", "-1", "0", "soon", "99999999999999999999", "1.5"} {
		require.Equal(t, s, retryAfter(s))
	}
	at, err := time.Parse(http.TimeFormat, retryAfter("date+30s"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(30*time.Second), at, 3*time.Second)
	at, err = time.Parse(http.TimeFormat, retryAfter("date-1h"))
	require.NoError(t, err)
	require.True(t, at.Before(time.Now()))
}

func TestScriptOrder(t *testing.T) {
	g := newRig(t, Net{})
	f := g.target(t, Script{Steps: []Step{
		{Name: "twice", When: When{Route: "produce"}, Answer: Reply{Name: "503"}, Times: 2},
		{Name: "listing", When: When{Route: "children"}, Answer: Reply{Name: "html"}, Times: Always},
		{Name: "record", When: When{Route: "produce", Record: ledger.NewID(9)}, Answer: Reply{Name: "400-index"}, Times: Always},
		{Name: "anonymous", When: When{Credential: "none"}, Answer: Reply{Name: "502"}},
		{Name: "never", When: When{Topic: "payments"}, Answer: Reply{Name: "html"}},
	}})
	base := "https://" + f.Addr()
	ctx := t.Context()
	require.Equal(t, 503, g.batch(ctx, base, body(1)).status)
	require.Equal(t, 200, g.do(ctx, http.MethodGet, base+"/v1/topics/orders/children", "").status)
	require.Equal(t, 503, g.batch(ctx, base, body(9)).status, "steps go in order")
	require.Equal(t, 202, g.batch(ctx, base, body(1)).status, "then the store")
	res := g.batch(ctx, base, body(1, 2, 9))
	require.Equal(t, 400, res.status)
	require.Contains(t, res.body, "message 2: ", "the matched record's place")
	require.Equal(t, 502, g.do(ctx, http.MethodGet, base+"/v1/topics/orders", "", "Authorization", "").status)
	require.Equal(t, []ledger.Step{
		{Name: "twice", Want: 2, Used: 2}, {Name: "listing", Used: 1}, {Name: "record", Used: 1},
		{Name: "anonymous", Want: 1, Used: 1}, {Name: "never", Want: 1},
	}, f.Steps())
}

func TestScriptCheck(t *testing.T) {
	for name, s := range map[string]Step{
		"route":     when("batches", Reply{Name: "html"}),
		"answer":    when("produce", Reply{Name: "teapot"}),
		"parameter": when("produce", Reply{Name: "html", RetryAfter: "1"}),
		"status":    when("produce", Reply{Name: "302", Status: 200}),
		"times":     {Answer: Reply{Name: "html"}, Times: -2},
		"record":    {When: When{Record: "x"}, Answer: Reply{Name: "cut-upload"}},
	} {
		require.Error(t, (&Script{Steps: []Step{s}}).Check(), name)
	}
	require.Error(t, (&Script{Topics: []ScriptTopic{{Name: "a"}, {Name: "a"}}}).Check())
}

func TestStoreBehavesLikeNarad(t *testing.T) {
	g := newRig(t, Net{})
	f := g.target(t, Script{Topics: []ScriptTopic{{Name: "orders", ID: "00000000000000aa", Partitions: 4, Children: []ScriptChild{{Name: "down", Remote: "c"}}}}})
	base := "https://" + f.Addr()
	ctx := t.Context()
	get := func(path string) got { return g.do(ctx, http.MethodGet, base+path, "") }

	require.Equal(t, 401, g.do(ctx, http.MethodGet, base+"/v1/topics/orders", "", "Authorization", "Basic eA==").status)
	require.Equal(t, 415, g.batch(ctx, base, body(1), "Content-Type", "text/plain").status)
	require.Equal(t, 404, g.do(ctx, http.MethodPost, base+"/v1/topics/none/produce/batch", body(1)).status)
	require.Equal(t, 412, g.batch(ctx, base, "rubbish", "X-Narad-If-Topic-Id", "00000000000000bb").status)
	res := g.batch(ctx, base, `{"messages":[]}`)
	require.Equal(t, 400, res.status)
	require.Contains(t, res.body, "messages required")
	require.Equal(t, 403, get("/v1/users").status)
	require.Equal(t, "404 page not found\n", get("/v1/nothing").body)

	var listing wire.Children
	require.NoError(t, json.Unmarshal([]byte(get("/v1/topics/orders/children").body), &listing))
	require.Equal(t, "00000000000000aa", listing.ParentID)
	require.Equal(t, "c", listing.Children[0].Remote)

	require.Equal(t, 202, g.batch(ctx, base, `{"messages":[
		{"payload":{"a" : 1},"partition":3},{"payload":"AP8=","payload_encoding":"base64","partition":3},
		{"payload":"PGI+","payload_encoding":"base64","partition":3,"key":"/w==","key_encoding":"base64"}]}`).status)
	require.Equal(t, 400, g.batch(ctx, base, `{"messages":[{"payload":1},{"payload":1,"partition":4}]}`).status, "all or none")
	require.Equal(t, 3, kept(t, get("/v1/topics/orders").body))
	replay := func(offset string) string { return get("/v1/topics/orders/consume?partition=3&offset=" + offset).body }
	require.Contains(t, replay("0"), `"payload":{"a" : 1}}`)
	require.Contains(t, replay("1"), `"payload_encoding":"base64","payload":"AP8="}`)
	var m wire.Message
	require.NoError(t, json.Unmarshal([]byte(replay("2")), &m))
	require.Equal(t, wire.Base64, m.KeyEncoding)
	require.JSONEq(t, `"<b>"`, string(m.Payload))
	require.Equal(t, 204, get("/v1/topics/orders/consume?partition=3&offset=3").status)
	require.Equal(t, 400, get("/v1/topics/orders/consume").status)
}

func TestHangEndsWithTheCaller(t *testing.T) {
	g := newRig(t, Net{})
	f := g.target(t, Script{Steps: []Step{when("produce", Reply{Name: "hang"})}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- g.batch(ctx, "https://"+f.Addr(), body(1)).err }()
	eventually(t, func() bool { return f.Steps()[0].Used == 1 }, "met")
	cancel()
	require.Error(t, <-failed)
	eventually(t, func() bool { list := requests(t, f); return len(list) == 1 && list[0].Outcome == ledger.WireHung }, "hung")
}

func TestConfigReadsItself(t *testing.T) {
	c := TargetConfig{Name: "fake", Listen: ":1", Users: map[string]string{"a": "b"}, Epoch: time.Unix(5, 0).UTC(), Script: Script{Topics: []ScriptTopic{{Name: "t"}}}}
	text, err := json.Marshal(c)
	require.NoError(t, err)
	t.Setenv(ConfigEnv, string(text))
	got, err := ReadConfig[TargetConfig]("")
	require.NoError(t, err)
	require.Equal(t, c, got)
	t.Setenv(ConfigEnv, string(bytes.Replace(text, []byte("users"), []byte("usres"), 1)))
	_, err = ReadConfig[TargetConfig]("")
	require.Error(t, err)
	_, err = ReadConfig[TapConfig](t.TempDir() + "/none.json")
	require.Error(t, err)
}

func TestCertificatesHoldAYear(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	ca, err := NewCA(at)
	require.NoError(t, err)
	require.Equal(t, at.Add(validity), ca.cert.NotAfter)
	c, err := ca.Issue(at, "link", "127.0.0.1")
	require.NoError(t, err)
	cfg, err := serverTLS(c)
	require.NoError(t, err)
	require.NoError(t, cfg.Certificates[0].Leaf.CheckSignatureFrom(ca.cert))
	require.NoError(t, cfg.Certificates[0].Leaf.VerifyHostname("link"))
	require.NoError(t, cfg.Certificates[0].Leaf.VerifyHostname("127.0.0.1"))
	require.Error(t, cfg.Certificates[0].Leaf.VerifyHostname("other"))
}
