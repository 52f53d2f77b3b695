package fakes

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

func body(ids ...uint64) string {
	out := `{"messages":[`
	for i, id := range ids {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprintf(`{"key":"k","payload":{"id":%q}}`, ledger.NewID(id))
	}
	return out + "]}"
}

func requests(t *testing.T, of interface {
	Requests(context.Context) ([]ledger.WireRequest, error)
}) []ledger.WireRequest {
	t.Helper()
	list, err := of.Requests(t.Context())
	require.NoError(t, err)
	return list
}

func TestTapPassesAllUnchanged(t *testing.T) {
	var seen *http.Request
	var sent string
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen, sent = r, string(b)
		w.Header().Set("X-Odd", "yes")
		w.Header()["Date"] = nil
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}))
	defer up.Close()
	g := newRig(t, Net{})
	tap := g.tap(t, up.URL)
	res := g.do(t.Context(), http.MethodPost, "https://"+tap.Addr()+"/v1/topics/a%2Fb/x?y=%20z", "hello", "X-Narad-Request-Id", "00000000000000ff", "User-Agent", "")
	require.NoError(t, res.err)
	require.Equal(t, 418, res.status)
	require.Equal(t, "short and stout", res.body)
	require.Equal(t, "yes", res.header.Get("X-Odd"))
	require.NotContains(t, res.header, "Date")
	require.Equal(t, "hello", sent)
	require.Equal(t, "/v1/topics/a%2Fb/x?y=%20z", seen.URL.RequestURI())
	require.Equal(t, tap.Addr(), seen.Host)
	name, pass, _ := seen.BasicAuth()
	require.Equal(t, user+password, name+pass)
	require.NotContains(t, seen.Header, "User-Agent", "nothing is added on the way")

	list := requests(t, tap)
	require.Len(t, list, 1)
	require.Equal(t, ledger.WireRefused, list[0].Outcome)
	require.Equal(t, "a/b", list[0].Topic)
	require.Equal(t, "/v1/topics/a%2Fb/x", list[0].Path)
	require.Equal(t, "00000000000000ff", list[0].RequestID)
	require.Equal(t, 5, list[0].Bytes)
	require.Empty(t, list[0].Records)
}

// covers: HAR-05, HAR-06
func TestTapRecordsBatches(t *testing.T) {
	g := newRig(t, Net{})
	f := g.target(t, Script{Steps: []Step{
		{When: When{Route: "produce", Nth: 2}, Answer: Reply{Name: "503"}},
		{When: When{Route: "produce", Nth: 3}, Answer: Reply{Name: "200"}},
		{When: When{Route: "produce", Nth: 4}, Answer: Reply{Name: "wrong-count"}},
	}})
	tap := g.tap(t, "https://"+f.Addr())
	for i := range 5 {
		res := g.batch(t.Context(), "https://"+tap.Addr(), body(uint64(i)*2, uint64(i)*2+1), "X-Narad-If-Topic-Id", "00000000000000aa")
		require.NoError(t, res.err)
	}
	// Sent is written after the answer; the last one may need a moment.
	eventually(t, func() bool { list := requests(t, tap); return list[4].Sent }, "the answer was sent")
	var outcomes []string
	for i, r := range requests(t, tap) {
		outcomes = append(outcomes, r.Outcome)
		require.EqualValues(t, i+1, r.Seq)
		require.Equal(t, "orders", r.Topic)
		require.Equal(t, "00000000000000aa", r.TopicID)
		require.Len(t, r.Records, 2)
		require.Equal(t, ledger.NewID(uint64(i)*2), r.Records[0].ID)
		require.Equal(t, ledger.Hash(fmt.Appendf(nil, `{"id":%q}`, ledger.NewID(uint64(i)*2+1))), r.Records[1].Payload)
	}
	require.Equal(t, []string{ledger.WireAccepted, ledger.WireRefused, ledger.WireAnswered, ledger.WireAnswered, ledger.WireAccepted}, outcomes)
}

func TestTapCutsWhenTheTargetDoes(t *testing.T) {
	g := newRig(t, Net{})
	f := g.target(t, Script{Steps: []Step{
		{When: When{Route: "produce"}, Answer: Reply{Name: "reset"}},
		{When: When{Route: "produce"}, Answer: Reply{Name: "truncated", Bytes: 3}},
		{When: When{Route: "produce"}, Answer: Reply{Name: "cut-upload", Bytes: 10}},
	}})
	tap := g.tap(t, "https://"+f.Addr())
	for range 3 {
		require.Error(t, g.batch(t.Context(), "https://"+tap.Addr(), body(1)).err)
	}
	dead := g.tap(t, "http://127.0.0.1:1")
	require.Error(t, g.batch(t.Context(), "https://"+dead.Addr(), body(1)).err)
	for _, r := range append(requests(t, tap), requests(t, dead)...) {
		require.Equal(t, ledger.WireCut, r.Outcome)
		require.False(t, r.Sent)
		require.Zero(t, r.Status)
	}
}

// A caller that gave up does not unmake what the target stored.
func TestTapWaitsForTheTargetWithoutTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemnet()
		g := newRig(t, n.Net())
		f, err := StartTarget(TargetConfig{
			Name: "fake", Listen: "fake:443", Cert: g.cert, Users: map[string]string{user: password}, Epoch: time.Now(), Net: n.Net(),
			Script: Script{Topics: []ScriptTopic{{Name: "orders"}}, Steps: []Step{{Answer: Reply{Name: "202", DelayMS: 10_000}}}},
		})
		require.NoError(t, err)
		front, err := g.ca.Issue(time.Now(), "edge")
		require.NoError(t, err)
		tap, err := StartTap(TapConfig{
			Name: "edge", Listen: "edge:443", Upstreams: []string{"https://link"}, Cert: front, CAPEM: g.ca.PEM(), Epoch: time.Now(),
			Net: Net{Listen: n.listen, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return n.dial(ctx, network, "fake:443")
			}},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.Error(t, g.batch(ctx, "https://edge", body(4)).err)
		time.Sleep(20 * time.Second)
		list := requests(t, tap)
		require.Len(t, list, 1)
		require.Equal(t, ledger.WireAccepted, list[0].Outcome)
		require.False(t, list[0].Sent)
		require.EqualValues(t, 10_000, list[0].Done)
		require.Equal(t, ledger.NewID(4), list[0].Records[0].ID)
		g.client.CloseIdleConnections()
		require.NoError(t, tap.Close())
		require.NoError(t, f.Close())
	})
}

func TestTapGoesRoundAndPings(t *testing.T) {
	var hits [2]atomic.Int64
	var ups []string
	for i := range hits {
		up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits[i].Add(1) }))
		defer up.Close()
		ups = append(ups, up.URL)
	}
	g := newRig(t, Net{})
	tap := g.tap(t, ups...)
	for range 6 {
		require.Equal(t, 200, g.do(t.Context(), http.MethodGet, "https://"+tap.Addr()+"/healthz", "").status)
	}
	require.EqualValues(t, 3, hits[0].Load())
	require.EqualValues(t, 3, hits[1].Load())
	res := g.do(t.Context(), http.MethodPost, "https://"+tap.Addr()+PingPath, "echo this")
	require.Equal(t, "echo this", res.body)
	require.Len(t, requests(t, tap), 6, "a ping is no request of the product")
}

func TestReaderKeepsWhatIsSettled(t *testing.T) {
	g := newRig(t, Net{})
	f := g.target(t, Script{Steps: []Step{{Name: "late", When: When{Route: "users"}, Answer: Reply{Name: "403"}}}})
	rd := &Reader{HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	base := "http://" + f.ControlAddr()
	for i := range 5 {
		require.Equal(t, 202, g.batch(t.Context(), "https://"+f.Addr(), body(uint64(i))).status)
		eventually(t, func() bool {
			list, err := rd.Requests(t.Context(), base)
			return err == nil && len(list) == i+1 && list[i].Sent
		}, "the request is listed")
	}
	require.Len(t, rd.settled, 5)
	steps, err := rd.Steps(t.Context(), base)
	require.NoError(t, err)
	require.Equal(t, []ledger.Step{{Name: "late", Want: 1}}, steps)
	res := g.do(t.Context(), http.MethodPost, base+"/requests", "x")
	require.Equal(t, 405, res.status, "the control endpoint takes nothing")
}
