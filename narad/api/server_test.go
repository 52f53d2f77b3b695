package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// covers: BRK-08, BRK-12
func TestOrderOfRefusals(t *testing.T) {
	cross := map[string]string{"Content-Type": "text/plain", wire.HeaderClient: ""}
	cases := []struct {
		name   string
		r      req
		status int
		text   string
	}{
		{"401 before 415", req{user: "none", method: "POST", path: "/v1/topics", header: cross}, 401, "unauthorized"},
		{"401 before 404", req{user: "none", method: "GET", path: "/nothing"}, 401, "unauthorized"},
		{"415 before 404", req{method: "POST", path: "/nothing", header: cross}, 415, "Content-Type"},
		{"415 before 405", req{method: "PUT", path: "/v1/topics", header: cross}, 415, "Content-Type"},
		{"415 without a body", req{method: "POST", path: "/v1/topics/orders/ack", header: cross}, 415, "Content-Type"},
		{"415 before 403", req{user: "nobody", method: "POST", path: "/v1/topics/orders/produce", header: cross}, 415, "Content-Type"},
		{"no guard on DELETE", req{method: "DELETE", path: "/nothing", header: cross}, 404, "404 page not found"},
		{"404", req{method: "GET", path: "/v1/nothing"}, 404, "404 page not found"},
		{"later routes", req{method: "POST", path: "/v1/topics/p/children/c/later"}, 404, "404 page not found"},
		{"trailing slash", req{method: "GET", path: "/v1/topics/"}, 404, "404 page not found"},
		{"unclean", req{method: "GET", path: "/v1//topics"}, 404, "404 page not found"},
		{"dots", req{method: "GET", path: "/v1/topics/../users"}, 404, "404 page not found"},
		{"405", req{method: "PUT", path: "/v1/topics"}, 405, "Method Not Allowed"},
		{"HEAD of a consume", req{method: "HEAD", path: "/v1/topics/orders/consume"}, 405, ""},
		{"parameters of the type", req{method: "POST", path: "/nothing", header: map[string]string{
			"Content-Type": "Application/JSON; charset=utf-8", wire.HeaderClient: "",
		}}, 404, "404"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			got := w.do(c.r)
			require.Equal(t, c.status, got.Code)
			require.Contains(t, got.Body.String(), c.text)
			require.Empty(t, w.stored)
			require.Len(t, got.Header().Get(wire.HeaderRequestID), 16)
			require.Empty(t, got.Header().Get("Location"))
			switch c.status {
			case 401:
				require.Equal(t, `Basic realm="narad"`, got.Header().Get("WWW-Authenticate"))
				require.Empty(t, w.lines())
			case 405:
				require.NotEmpty(t, got.Header().Get("Allow"))
			}
		})
	}
}

// covers: SND-14
func TestRequestID(t *testing.T) {
	w := newWorld(t)
	for sent, same := range map[string]bool{"00112233AAbbccdd": true, "": false, "0011": false, "00112233aabbccdg": false} {
		got := w.do(req{user: "none", method: "GET", path: "/healthz", header: map[string]string{wire.HeaderRequestID: sent}})
		id := got.Header().Get(wire.HeaderRequestID)
		require.Len(t, id, 16)
		require.Equal(t, same, id == sent)
	}
}

// covers: BRK-13
func TestProbesAndMetrics(t *testing.T) {
	numbers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("narad_up 1\n")) })
	w := newWorld(t, func(o *Options) { o.Metrics = numbers })
	get := func(user, path string) *httptest.ResponseRecorder {
		return w.do(req{user: user, method: "GET", path: path})
	}
	require.JSONEq(t, `{"status":"ok"}`, get("none", "/healthz").Body.String())
	require.JSONEq(t, `{"status":"ready"}`, get("none", "/readyz").Body.String())
	require.Equal(t, 401, get("none", "/metrics").Code)
	require.Equal(t, "narad_up 1\n", get("nobody", "/metrics").Body.String())
	w.fail = errors.New("no leader since 10 s")
	require.Equal(t, 503, get("none", "/readyz").Code)
	require.JSONEq(t, `{"error":"not ready"}`, get("none", "/readyz").Body.String())
	w.fail, w.stopping = nil, true
	require.Equal(t, 503, get("none", "/healthz").Code)
	require.Equal(t, 503, get("none", "/readyz").Code)
	require.Contains(t, w.observed, "GET /healthz Service Unavailable")

	w = newWorld(t, func(o *Options) { o.Metrics, o.MetricsAccess = numbers, MetricsEveryone })
	require.Equal(t, 200, w.do(req{user: "none", method: "GET", path: "/metrics"}).Code)
	w = newWorld(t, func(o *Options) { o.Metrics, o.MetricsAccess = numbers, MetricsElsewhere })
	require.Equal(t, 404, w.do(req{method: "GET", path: "/metrics"}).Code)
	plain := httptest.NewRecorder()
	w.server.Plain().ServeHTTP(plain, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, 200, plain.Code)
	plain = httptest.NewRecorder()
	w.server.Plain().ServeHTTP(plain, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	require.JSONEq(t, `{"status":"ok"}`, plain.Body.String())
	require.Equal(t, 404, w.do(req{method: "GET", path: "/v2"}).Code)
	require.Contains(t, w.observed, "GET unmatched Not Found")
}

// covers: BRK-12, CRD-13
func TestEveryKindHasItsStatus(t *testing.T) {
	for kind, status := range statuses {
		w := newWorld(t)
		w.fail = wire.Refuse(kind, "told <why>").After(1500*time.Millisecond).With("links", []string{"a/b"}).With("error", "other")
		got := w.do(req{method: "DELETE", path: "/v1/topics/orders"})
		require.Equal(t, status, got.Code)
		require.Equal(t, "application/json", got.Header().Get("Content-Type"))
		if kind == wire.Internal {
			require.JSONEq(t, `{"error":"internal error"}`, got.Body.String())
			continue
		}
		//nolint:testifylint // the very bytes matter: the order of the members, and that < and > are not escaped
		require.Equal(t, `{"error":"told <why>","links":["a/b"]}`+"\n", got.Body.String())
		require.Equal(t, "2", got.Header().Get("Retry-After"))
	}
	w := newWorld(t)
	w.fail = errors.New("disk on fire")
	got := w.do(req{method: "DELETE", path: "/v1/topics/orders"})
	require.Equal(t, 500, got.Code)
	require.NotContains(t, got.Body.String(), "fire")
	require.Contains(t, w.log.String(), "disk on fire")
}

// covers: CRD-13, WRT-11
func TestPanicIsAnInternalError(t *testing.T) {
	w := newWorld(t)
	w.panics = true
	body := `{"name":"paris","url":"https://p.example","username":"u","password":"secret-secret-secret-secret"}`
	got := w.do(req{method: "POST", path: "/v1/remotes", body: body})
	require.Equal(t, 500, got.Code)
	require.JSONEq(t, `{"error":"internal error"}`, got.Body.String())
	require.NotContains(t, w.log.String(), "secret")
	require.NotContains(t, w.log.String(), "a password stands here")
	require.Contains(t, w.log.String(), "panic in a request")
	require.Equal(t, "failed", w.lines()[0]["outcome"])
}

func TestClientThatLeftIsCounted(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.fail = context.Canceled
	h := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/topics/orders/consume", nil)
	h.SetBasicAuth("reader", "pw")
	var status int
	w.server.o.Observe = func(_, _ string, s int, _ time.Duration) { status = s }
	w.server.ServeHTTP(httptest.NewRecorder(), h)
	require.Equal(t, 499, status)
}

// covers: LST-07, BRK-12
func TestSecurityHeadersAndHiddenNames(t *testing.T) {
	w := newWorld(t)
	for path, guarded := range map[string]bool{
		"/v1/remotes": true, "/v1/remotes/berlin": true, "/v1/topics/parent/children": true, "/v1/topics/parent": false, "/v1/remotesx": false,
	} {
		for _, user := range []string{"", "none"} {
			h := w.do(req{user: user, method: "GET", path: path}).Header()
			require.Equal(t, guarded, h.Get("Cache-Control") == "no-store", path)
			if guarded {
				require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
			}
		}
	}
	for _, path := range []string{"/v1/topics/stub", "/v1/topics"} {
		require.Contains(t, w.do(req{method: "GET", path: path}).Body.String(), `"created_by":"admin"`)
		plain := w.do(req{user: "maker", method: "GET", path: path}).Body.String()
		require.Contains(t, plain, `"stub"`, "the parent's owner reads the stub")
		require.NotContains(t, plain, "created_by")
		require.NotContains(t, plain, "paused_by")
	}
	require.NotContains(t, w.do(req{user: "nobody", method: "GET", path: "/v1/topics"}).Body.String(), "stub")
	require.JSONEq(t, `{"topics":[],"next_page_token":""}`, w.do(req{user: "nobody", method: "GET", path: "/v1/topics"}).Body.String())
}

// covers: CRD-13
func TestNoSecretInLogOrAudit(t *testing.T) {
	w := newWorld(t)
	secret := "hunter2-hunter2-hunter2-hunter2"
	for _, body := range []string{
		`{"name":"paris","url":"https://host.example","username":"spy","password":"` + secret + `"}`,
		`{"name":"` + secret + `!","url":"https://host.example","username":"spy","password":"` + secret + `"}`,
		`{"name":"paris","` + secret + `":1}`, `{"name":1,"password":"` + secret, `{"password":["` + secret + `"]}`,
	} {
		got := w.do(req{method: "POST", path: "/v1/remotes", body: body})
		if got.Code >= 400 {
			require.NotContains(t, got.Body.String(), "hunter2")
		}
	}
	w.do(req{method: "PUT", path: "/v1/users/writer/password", body: `{"new_password":"` + secret + `","x":1}`})
	all := w.log.String() + w.audit.String()
	require.NotContains(t, all, "hunter2")
	require.NotContains(t, all, "host.example")
	require.NotContains(t, all, "spy")
	require.Equal(t, 6, strings.Count(w.audit.String(), `"msg":"audit"`))
}
