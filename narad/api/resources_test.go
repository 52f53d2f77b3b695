package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// row is a request, its status, a text of the answer, what was stored (none for a refusal), and the audit line (event outcome).
type row struct {
	r      req
	status int
	text   string
	stored string
	audit  string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, c := range rows {
		t.Run(fmt.Sprintf("%s %s %.60s as %q", c.r.method, c.r.path, c.r.body, c.r.user), func(t *testing.T) {
			w := newWorld(t)
			got := w.do(c.r)
			require.Equal(t, c.status, got.Code, got.Body.String())
			require.Contains(t, got.Body.String(), c.text)
			if c.status >= 400 {
				var body map[string]any
				require.NoError(t, json.Unmarshal(got.Body.Bytes(), &body))
				require.NotEmpty(t, body["error"])
			}
			stored := strings.Join(w.stored, ",")
			require.Equal(t, c.stored, strings.ReplaceAll(stored, got.Header().Get(wire.HeaderRequestID), "ID"))
			if c.audit == "" {
				require.Empty(t, w.lines())
				return
			}
			lines := w.lines()
			require.Len(t, lines, 1)
			l := lines[0]
			require.Equal(t, c.audit, fmt.Sprintf("%s %s: %s", l["event"], l["target"], l["outcome"]))
			require.EqualValues(t, c.status, l["status"])
			require.Equal(t, got.Header().Get(wire.HeaderRequestID), l["request_id"])
			require.Equal(t, "audit", l["component"])
		})
	}
}

func over(limit int) string { return `{"a":"` + strings.Repeat("x", limit) + `"}` }

// covers: BRK-08, BRK-12, BRK-14, WRT-11
func TestTopicRoutes(t *testing.T) {
	post := func(user, body string) req { return req{user: user, method: "POST", path: "/v1/topics", body: body} }
	patch := func(user, body string) req {
		return req{user: user, method: "PATCH", path: "/v1/topics/orders", body: body}
	}
	get := func(user, path string) req { return req{user: user, method: "GET", path: path} }
	check(t, []row{
		{post("maker", `{"name":"new1","owner":"someone"}`), 201, `"owner":"maker"`, "create new1", "topic.create new1: ok"},
		{post("", `{"name":"x","partitions":3}`), 201, `"name":"x"`, "create x", "topic.create x: ok"},
		{post("maker", `{"name":"old"}`), 403, "no grant on this topic", "", "topic.create old: denied"},
		{post("maker", `{"name":"new1","parent":"orders"}`), 201, "", "create new1", "topic.create new1: ok"},
		{post("", `{"name":"new1","parent":"missing"}`), 404, "no such topic", "", "topic.create new1: rejected"},
		{post("maker", `{"name":"new1","x":1}`), 400, "invalid json", "", "topic.create : rejected"},
		{post("maker", `{"name":"new1"}{}`), 400, "invalid json", "", "topic.create : rejected"},
		{post("maker", `{"name":1}`), 400, "name has the wrong type", "", "topic.create : rejected"},
		{post("maker", `null`), 400, "invalid json", "", "topic.create : rejected"},
		{post("maker", ``), 400, "invalid json", "", "topic.create : rejected"},
		{post("maker", over(1<<20)), 413, "over", "", "topic.create : rejected"},

		{get("reader", "/v1/topics/orders"), 200, `"partition_stats":[]`, "", ""},
		{get("reader", "/v1/topics/orders?partition=0"), 200, `"schema_version":0`, "", ""},
		{get("reader", "/v1/topics/orders?partition=x"), 400, "bad partition", "", ""},
		{get("writer", "/v1/topics/parent"), 403, "no grant on this topic", "", ""},
		{get("writer", "/v1/topics/missing"), 404, "no such topic", "", ""},
		{get("nobody", "/v1/topics/missing"), 403, "no grant on this topic", "", ""},
		{get("", "/v1/topics?limit=0"), 400, "bad limit", "", ""},
		{get("", "/v1/topics?limit=x"), 400, "bad limit", "", ""},
		{get("", "/v1/topics?limit=99999999999"), 200, `"next_page_token":""`, "", ""},

		{get("reader", "/v1/topics/orders/schema"), 200, `{"topic":"orders","version":0,"versions":[]}`, "", ""},
		{get("writer", "/v1/topics/parent/schema"), 403, "no grant on this topic", "", ""},
		{get("writer", "/v1/topics/missing/schema"), 404, "no such topic", "", ""},
		{post("writer", `{"name":"new1","schema":true}`), 403, "no grant on this topic", "", "topic.create new1: denied"},
		{patch("writer", `{"schema":true,"schema_base_version":0}`), 403, "no grant", "", "topic.alter orders: denied"},
		{patch("maker", `{"schema":true,"schema_base_version":0,"partitions":4}`), 200, "", "alter orders", "topic.alter orders: ok"},
		{patch("maker", `{"schema_base_version":0}`), 400, "nothing to change", "", "topic.alter orders: rejected"},

		{patch("maker", `{"partitions":4}`), 200, "orders", "alter orders", "topic.alter orders: ok"},
		{patch("maker", `{"schema":true,"schema_base_version":0}`), 200, "", "alter orders", "topic.schema orders: ok"},
		{patch("maker", `{}`), 400, "nothing to change", "", "topic.alter orders: rejected"},
		{patch("maker", `{"schema":null}`), 400, "schema cannot be removed", "", "topic.alter orders: rejected"},
		{patch("writer", `{"partitions":4}`), 403, "no grant", "", "topic.alter orders: denied"},

		{req{user: "maker", method: "DELETE", path: "/v1/topics/orders"}, 204, "", "delete orders", "topic.delete orders: ok"},
		{req{user: "maker", method: "DELETE", path: "/v1/topics/orders?force=1"}, 400, "force must be", "", "topic.delete orders: rejected"},
		{req{user: "writer", method: "DELETE", path: "/v1/topics/orders"}, 403, "no grant", "", "topic.delete orders: denied"},
		{req{user: "maker", method: "DELETE", path: "/v1/topics/parent"}, 204, "", "delete linked parent", "topic.delete parent: ok"},
		{req{user: "maker", method: "DELETE", path: "/v1/topics/stub?force=true"}, 204, "", "delete linked stub", "topic.delete stub: ok"},
	})
}

// covers: BRK-08, BRK-12, WRT-07, WRT-11
func TestChildrenRoutes(t *testing.T) {
	attach := func(user, parent, body string) req {
		return req{user: user, method: "POST", path: "/v1/topics/" + parent + "/children", body: body}
	}
	detach := func(user, path string) req { return req{user: user, method: "DELETE", path: "/v1/topics/" + path} }
	list := func(user, path string) req { return req{user: user, method: "GET", path: "/v1/topics/" + path} }
	check(t, []row{
		{attach("maker", "parent", `{"child":"orders"}`), 200, "parent", "attach parent/orders", "topic.attach parent/orders: ok"},
		{attach("writer", "parent", `{"child":"orders"}`), 403, "no grant", "", "topic.attach parent/orders: denied"},
		{attach("", "parent", `{"child":"missing"}`), 404, "no such topic", "", "topic.attach parent/missing: rejected"},
		{attach("maker", "parent", `{}`), 400, "child required", "", "topic.attach parent/: rejected"},
		{attach("maker", "parent", `{"child":"orders","lanes":2}`), 400, "need remote", "", "topic.attach parent/orders: rejected"},
		{attach("maker", "parent", `{"child":"orders","dry_run":true}`), 400, "need remote", "", "topic.attach parent/orders: rejected"},
		{attach("maker", "parent", over(1<<20)), 400, "over", "", "topic.attach parent: rejected"},
		{attach("", "orders", `{"child":"c","remote":"berlin"}`), 201, `"warnings":[]`, "link orders/c admin ID", "remote_child.create orders/c: ok"},
		{attach("", "orders", `{"child":"c","remote":"berlin","dry_run":true}`), 200,
			`{"attach_offsets":[5],"checks":[],"dry_run":true,"warnings":[]}`, "", "remote_child.create orders/c: ok"},
		{attach("maker", "orders", `{"child":"c","remote":"berlin"}`), 403, "admin only", "", "remote_child.create orders/c: admin only"},
		{attach("", "missing", `{"child":"c","remote":"berlin"}`), 404, "no such topic", "", "remote_child.create missing/c: no such topic"},

		{list("reader", "parent/children"), 200, `{"parent":"parent","parent_id":"","children":[]}`, "", ""},
		{list("reader", "parent/children?partitions=2"), 400, "partitions must be", "", ""},
		{list("writer", "parent/children"), 403, "no grant", "", ""},

		{detach("maker", "orders/children/late"), 204, "", "detach orders/late", "topic.detach orders/late: ok"},
		{detach("maker", "orders/children/stub"), 404, "no such child", "", "topic.detach orders/stub: rejected"},
		{detach("writer", "orders/children/late"), 403, "no grant", "", "topic.detach orders/late: denied"},
		{detach("maker", "parent/children/stub"), 204, "", "unlink parent/stub", "remote_child.delete parent/stub: ok"},
		{detach("reader", "parent/children/stub"), 403, "no grant", "", "remote_child.delete parent/stub: no grant on this topic"},
		{detach("maker", "parent/children/stub?force=yes"), 400, "force must be", "",
			"remote_child.delete parent/stub: force must be true or false"},
	})
}

// covers: LST-07, WRT-11
func TestActionRoutes(t *testing.T) {
	r := func(user, action, body string) req {
		return req{user: user, method: "POST", path: "/v1/topics/parent/children/stub/" + action, body: body}
	}
	check(t, []row{
		{r("", "pause", `{"reason":"why not"}`), 200, `"paused_by":"admin"`, "pause parent/stub why not", "remote_child.pause parent/stub: ok"},
		{r("", "pause", `{}`), 200, `"name":"stub"`, "pause parent/stub ", "remote_child.pause parent/stub: ok"},
		{r("", "pause", `{"why":1}`), 400, "invalid json", "", "remote_child.pause parent/stub: invalid json: unknown field"},
		{r("maker", "pause", `{}`), 403, "admin only", "", "remote_child.pause parent/stub: admin only"},
		{r("", "pause", over(1<<20)), 413, "over", "", "remote_child.pause parent/stub: the body is over 1048576 bytes"},
		{r("", "resume", ""), 200, `"name":"stub"`, "resume parent/stub false", "remote_child.resume parent/stub: ok"},
		{r("", "resume", "{}"), 200, `"name":"stub"`, "resume parent/stub false", "remote_child.resume parent/stub: ok"},
		{r("", "resume", `{"accept_target":true}`), 200, `"name":"stub"`, "resume parent/stub true", "remote_child.accept_target parent/stub: ok"},
		{r("", "resume", `{"accept_target":1}`), 400, "wrong type", "", "remote_child.resume parent/stub: invalid json: accept_target has the wrong type"},
		{r("nobody", "resume", ""), 403, "admin only", "", "remote_child.resume parent/stub: admin only"},
		{r("", "skip", `{"partition":0,"offset":7}`), 200, `"name":"stub"`, "skip parent/stub 0 7", "remote_child.skip parent/stub: ok"},
		{r("", "skip", `{"partition":0}`), 400, "partition and offset", "", "remote_child.skip parent/stub: partition and offset are needed"},
		{r("", "skip", `{"offset":0}`), 400, "partition and offset", "", "remote_child.skip parent/stub: partition and offset are needed"},
		{r("", "skip", ""), 400, "invalid json", "", "remote_child.skip parent/stub: invalid json"},
		{r("maker", "skip", `{"partition":0,"offset":7}`), 403, "admin only", "", "remote_child.skip parent/stub: admin only"},
		{req{method: "POST", path: "/v1/topics/missing/children/stub/pause", body: `{}`}, 404, "no such topic", "",
			"remote_child.pause missing/stub: no such topic"},
		{req{method: "POST", path: "/v1/remotes/berlin/test", body: `{"topic":"t","source":"s"}`}, 200, `{"remote":"berlin","result":"pass","class":"","checks":[]}`,
			"test berlin t s", "remote.test berlin: ok"},
		{req{method: "POST", path: "/v1/remotes/berlin/test", body: `{"name":"t"}`}, 400, "invalid json", "", "remote.test berlin: invalid json: unknown field"},
		{req{user: "maker", method: "POST", path: "/v1/remotes/berlin/test", body: `{"topic":"t"}`}, 403, "admin only", "", "remote.test berlin: admin only"},
	})
	w := newWorld(t)
	for _, action := range []string{"pause", "resume", "skip"} {
		got := w.do(r("", action, `{"partition":0,"offset":7}`))
		require.Equal(t, "no-store", got.Header().Get("Cache-Control"), action)
		require.Equal(t, "nosniff", got.Header().Get("X-Content-Type-Options"), action)
	}
	w.fail = wire.Refuse(wire.Conflict, "not stuck").With("blocked_at", &wire.BlockedAt{Partition: 1, Offset: 2, State: wire.RejectedRecord})
	got := w.do(r("", "skip", `{"partition":0,"offset":7}`))
	require.Equal(t, 409, got.Code)
	require.JSONEq(t, `{"error":"not stuck","blocked_at":{"partition":1,"offset":2,"state":"rejected_record"}}`, got.Body.String())
}

// covers: BRK-08, BRK-12, WRT-11
func TestUserAndRemoteRoutes(t *testing.T) {
	r := func(user, method, path, body string) req {
		return req{user: user, method: method, path: "/v1/" + path, body: body}
	}
	good := `{"username":"u","password":"p","grants":[{"action":"produce","patterns":["a*"]}]}`
	const moved = `{"key_version":"aa","reencrypted":["berlin"],"already_current":[],"failed":[{"name":"oslo","reason":"key_unknown"}]}`
	check(t, []row{
		{r("", "POST", "cluster/reencrypt-remotes", ""), 200, moved, "reencrypt", "remote.reencrypt : ok"},
		{r("", "POST", "cluster/reencrypt-remotes", "{}"), 200, moved, "reencrypt", "remote.reencrypt : ok"},
		{r("", "POST", "cluster/reencrypt-remotes", `{"name":"x"}`), 400, "invalid json", "", "remote.reencrypt : invalid json: unknown field"},
		{r("maker", "POST", "cluster/reencrypt-remotes", ""), 403, "admin only", "", "remote.reencrypt : admin only"},
		{r("", "POST", "users", good), 201, `"grants":[{"action":"produce","patterns":["a*"]}]`, "propose", "user.create u: ok"},
		{r("", "POST", "users", `{"username":"writer","password":"p"}`), 409, "exists", "", "user.create writer: rejected"},
		{r("", "POST", "users", `{"username":"..","password":"p"}`), 400, "username", "", "user.create ..: rejected"},
		{r("writer", "POST", "users", good), 403, "admin only", "", "user.create u: denied"},
		{r("", "POST", "users", over(1<<20)), 400, "over", "", "user.create : rejected"},
		{r("", "GET", "users", ""), 200, `[{"username":"admin","root":true`, "", ""},
		{r("", "GET", "users/writer", ""), 200, `"username":"writer"`, "", ""},
		{r("", "GET", "users/x", ""), 404, "no such user", "", ""},
		{r("writer", "GET", "users", ""), 403, "admin only", "", ""},
		{r("", "DELETE", "users/writer", ""), 204, "", "propose", "user.delete writer: ok"},
		{r("", "DELETE", "users/admin", ""), 403, "root", "", "user.delete admin: denied"},
		{r("", "PUT", "users/writer/grants", `{"grants":[]}`), 200, `"username":"writer"`, "propose", "user.grants writer: ok"},
		{r("", "PUT", "users/writer/grants", `{}`), 400, "grants required", "", "user.grants writer: rejected"},
		{r("", "PUT", "users/admin/grants", `{"grants":[]}`), 403, "own grants", "", "user.grants admin: denied"},
		{r("writer", "PUT", "users/writer/password", `{"new_password":"n","current_password":"pw"}`), 204, "", "propose", "user.password writer: ok"},
		{r("writer", "PUT", "users/writer/password", `{"new_password":"n","current_password":"x"}`), 403, "current_password", "", "user.password writer: denied"},
		{r("writer", "PUT", "users/reader/password", `{"new_password":"n"}`), 403, "admin only", "", "user.password reader: denied"},

		{r("", "POST", "remotes", `{"name":"paris"}`), 201, `"name":"paris"`, "remote paris", "remote.create paris: ok"},
		{r("maker", "POST", "remotes", `{"name":"paris"}`), 403, "admin only", "", "remote.create : admin only"},
		{r("", "POST", "remotes", over(128<<10)), 413, "over", "", "remote.create : the body is over 131072 bytes"},
		{r("", "GET", "remotes", ""), 200, `"nodes":[`, "", "remote.list : ok"},
		{r("", "GET", "remotes?nodes=0", ""), 400, "nodes must be", "", "remote.list : nodes must be true or false"},
		{r("", "GET", "remotes/berlin?nodes=true", ""), 200, `"nodes":[`, "", "remote.get berlin: ok"},
		{r("nobody", "GET", "remotes/berlin", ""), 403, "admin only", "", "remote.get berlin: admin only"},
		{r("", "PATCH", "remotes/berlin", `{"limits":{"max_in_flight":4}}`), 200, "berlin", "patch berlin", "remote.update berlin: ok"},
		{r("", "PATCH", "remotes/berlin", `{"ca_pem":""}`), 200, "berlin", "patch berlin", "remote.update berlin: ok"},
		{r("", "PATCH", "remotes/berlin", `{"limits":{}}`), 400, "nothing to change", "", "remote.update berlin: nothing to change"},
		{r("", "DELETE", "remotes/berlin?force=true", ""), 204, "", "delete remote berlin", "remote.delete berlin: ok"},
	})
	w := newWorld(t)
	require.NotContains(t, w.do(r("", "POST", "remotes", `{"name":"paris"}`)).Body.String(), "links")
	bare := w.do(r("", "GET", "remotes?nodes=false", "")).Body.String()
	require.NotContains(t, bare, "nodes")
	require.NotContains(t, bare, "not_answering")
	require.NotContains(t, w.do(r("", "GET", "remotes/berlin?nodes=false", "")).Body.String(), "nodes")
}

// covers: WRT-11
func TestOutcomes(t *testing.T) {
	cases := []struct {
		path, outcome string
		fail          error
		status        float64
	}{
		{"/v1/topics/orders", "unknown", wire.Refuse(wire.Unavailable, "no answer: the change may still be applied"), 503},
		{"/v1/topics/orders", "failed", wire.Refuse(wire.Unavailable, "no leader"), 503},
		{"/v1/topics/orders", "failed", fmt.Errorf("broken"), 500},
		{"/v1/topics/orders", "rejected", wire.Refuse(wire.Conflict, "in use"), 409},
		{"/v1/remotes/berlin", "old_release", wire.Refuse(wire.Precondition, "n2 is old").With("class", "old_release"), 412},
		{"/v1/remotes/berlin", "unknown", wire.Refuse(wire.Unavailable, "the change may still be applied"), 503},
		{"/v1/remotes/berlin", "ok", wire.Refuse(wire.Unavailable, "cannot confirm").With("settled", false), 503},
	}
	for _, c := range cases {
		w := newWorld(t)
		w.fail = c.fail
		w.do(req{method: "DELETE", path: c.path + "?force=true"})
		l := w.lines()[0]
		require.Equal(t, c.outcome, l["outcome"])
		require.InDelta(t, c.status, l["status"], 0)
		require.Equal(t, true, l["force"])
		require.Equal(t, "admin", l["actor"])
		if c.outcome == "ok" {
			require.Equal(t, false, l["settled"])
		}
	}
}

// covers: BRK-07, BRK-14
func TestClusterRoutes(t *testing.T) {
	abort := func(user, partition string) req {
		return req{user: user, method: "POST", path: "/v1/cluster/moves/orders/" + partition + "/abort"}
	}
	check(t, []row{
		{req{method: "GET", path: "/v1/cluster/moves"}, 200,
			`{"moves":[{"topic":"orders","partition":2,"from":"n1","to":"n2","from_status":"alive","to_status":"alive"}]}`, "", ""},
		{req{user: "writer", method: "GET", path: "/v1/cluster/moves?detail=true"}, 403, "admin only", "", ""},
		{abort("", "2"), 202, `{"move":{"topic":"orders","partition":2,`, "abort orders2", "cluster.move.abort orders/2: ok"},
		{abort("", "x"), 400, "partition", "", "cluster.move.abort orders/x: rejected"},
		{abort("", "-1"), 400, "partition", "", "cluster.move.abort orders/-1: rejected"},
		{abort("writer", "2"), 403, "admin only", "", "cluster.move.abort orders/2: denied"},
	})
}
