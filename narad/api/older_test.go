package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// A server that poses as a release before remotes answers their routes in Go's words, knows no member of a remote attach, takes 100
// messages and no zstd, shows no parent_id and does not look at X-Narad-If-Topic-Id. One of the present release does all of it.
//
// covers: RUN-09, SND-11, WRT-02
func TestAnOlderRelease(t *testing.T) {
	messages := func(n int) string {
		return `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"payload":1},`, n), ",") + `]}`
	}
	zstd := map[string]string{"Content-Encoding": "zstd"}
	for _, one := range []struct {
		r              req
		now, then      int // the status of the present and of the older release
		says, saysThen string
	}{
		{r: req{method: "GET", path: "/v1/remotes"}, now: 200, then: 404, saysThen: "404 page not found"},
		{r: req{method: "POST", path: "/v1/remotes/berlin/test", body: `{"topic":"orders"}`}, now: 200, then: 404, saysThen: "404 page not found"},
		{r: req{method: "POST", path: "/v1/topics/parent/children/stub/pause", body: `{"reason":"r"}`}, now: 200, then: 404, saysThen: "404 page not found"},
		{r: req{method: "POST", path: "/v1/topics/orders/children", body: `{"child":"c","remote":"berlin"}`}, now: 201, then: 400, saysThen: "unknown field"},
		{r: req{user: "maker", method: "POST", path: "/v1/topics/parent/children", body: `{"child":"orders"}`}, now: 200, then: 200},
		{r: req{method: "POST", path: batchPath, body: messages(100)}, now: 202, then: 202},
		{r: req{method: "POST", path: batchPath, body: messages(101)}, now: 202, then: 400, saysThen: "too many messages"},
		{r: req{method: "POST", path: batchPath, body: compressed(t, "zstd", []byte(messages(1))), header: zstd}, now: 202, then: 415},
		{r: req{
			method: "POST", path: batchPath, body: messages(1), header: map[string]string{wire.HeaderIfTopicID: "00000000000000ab"},
		}, now: 412, then: 202, says: wire.HeaderIfTopicID},
	} {
		for older, status := range map[bool]int{false: one.now, true: one.then} {
			w := newWorld(t, func(o *Options) { o.Older = older })
			got := w.do(one.r)
			what := fmt.Sprintf("%s %s of an older release: %t", one.r.method, one.r.path, older)
			require.Equal(t, status, got.Code, what)
			require.Contains(t, got.Body.String(), map[bool]string{false: one.says, true: one.saysThen}[older], what)
		}
	}
	for older, has := range map[bool]bool{false: true, true: false} {
		w := newWorld(t, func(o *Options) { o.Older = older })
		var l map[string]any
		require.NoError(t, json.Unmarshal(w.do(req{method: "GET", path: "/v1/topics/parent/children"}).Body.Bytes(), &l))
		_, there := l["parent_id"]
		require.Equal(t, has, there)
		require.Contains(t, l, "children")
	}
}
