package cli

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// node answers each request with the next of its answers.
type node struct {
	answers []string // "status body"
	seen    []string // "METHOD uri body"
	auth    string
}

func (n *node) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	n.seen = append(n.seen, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(b)))
	user, password, _ := r.BasicAuth()
	n.auth = user + ":" + password
	rec := httptest.NewRecorder()
	status, body, _ := strings.Cut(n.answers[0], " ")
	n.answers = n.answers[1:]
	rec.WriteHeader(map[string]int{"200": 200, "201": 201, "202": 202, "204": 204, "409": 409, "503": 503}[status])
	if body != "" {
		_, err = rec.WriteString(body)
	}
	return rec.Result(), err
}

func run(n *node, env map[string]string, stdin string, args ...string) (string, error) {
	g := &Global{HTTP: &http.Client{Transport: n}}
	root := &cobra.Command{Use: "narad", SilenceUsage: true, SilenceErrors: true}
	g.Flags(root.PersistentFlags(), func(k string) string { return env[k] })
	root.AddCommand(Commands(g)...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetIn(strings.NewReader(stdin))
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

// A schema that cannot be read is said before anything is sent.
//
// covers: BRK-11
func TestASchemaThatCannotBeRead(t *testing.T) {
	n := &node{}
	file := filepath.Join(t.TempDir(), "s.json")
	_, err := run(n, nil, "", "topic", "add", "a", "--schema", file)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte(`{"a"`), 0o600))
	_, err = run(n, nil, "", "topic", "edit", "a", "--schema", file)
	require.ErrorIs(t, err, errNotJSON)
	_, err = run(n, nil, "", "topic", "add", "a", "--schema", "-")
	require.ErrorIs(t, err, errNotJSON)
	require.NoError(t, os.WriteFile(file, []byte(`{"a":1}`), 0o600))
	n.answers = []string{`201 {"name":"a"}`}
	_, err = run(n, nil, "", "topic", "add", "a", "--schema", file)
	require.NoError(t, err)
	require.Equal(t, []string{`POST http://127.0.0.1:7942/v1/topics {"name":"a","schema":{"a":1}}`}, n.seen)
}

// covers: BRK-14, BRK-11
func TestCommands(t *testing.T) {
	const base = "http://127.0.0.1:7942"
	cases := []struct {
		args    string
		stdin   string
		answers []string
		seen    []string
		out     string
	}{
		{"topic add a --partitions 4 --retention 0s", "", []string{`201 {"name":"a"}`}, []string{`POST ` + base + `/v1/topics {"name":"a","partitions":4,"retention_ms":0}`}, `"name": "a"`},
		{"topics ls", "", []string{`200 {"topics":[{"name":"a"}],"next_page_token":"a"}`, `200 {"topics":[{"name":"b"}],"next_page_token":""}`}, []string{"GET " + base + "/v1/topics", "GET " + base + "/v1/topics?page_token=a"}, "b "},
		{"topic info a", "", []string{`200 {"name":"a"}`}, []string{"GET " + base + "/v1/topics/a"}, `"name": "a"`},
		{"topic edit a --partitions 9", "", []string{`200 {"name":"a"}`}, []string{"PATCH " + base + `/v1/topics/a {"partitions":9}`}, ""},
		{"topic add a --schema -", `{"type": "object"}`, []string{`201 {"name":"a"}`}, []string{`POST ` + base + `/v1/topics {"name":"a","schema":{"type":"object"}}`}, ""},
		{"topic edit a --schema - --schema-base-version 0 --partitions 9", "true", []string{`200 {"name":"a"}`}, []string{"PATCH " + base + `/v1/topics/a {"partitions":9,"schema":true,"schema_base_version":0}`}, ""},
		{"topic edit a --schema -", "true", []string{`200 {"topic":"a","version":3}`, `200 {"schema_version":4}`}, []string{"GET " + base + "/v1/topics/a/schema", "PATCH " + base + `/v1/topics/a {"schema":true,"schema_base_version":3}`}, `"schema_version": 4`},
		{"topic schema a", "", []string{`200 {"topic":"a","version":1,"versions":[{"version":1,"schema":{"type":"object"}}]}`}, []string{"GET " + base + "/v1/topics/a/schema"}, `"version": 1`},
		{"topic rm a --force", "", []string{"204"}, []string{"DELETE " + base + "/v1/topics/a?force=true"}, ""},
		{"topic attach a b --delay 2s", "", []string{`200 {}`}, []string{"POST " + base + `/v1/topics/a/children {"child":"b","delay_ms":2000}`}, ""},
		{"topic attach a b --remote r --lanes 4", "", []string{`201 {"warnings":["w"]}`}, []string{"POST " + base + `/v1/topics/a/children {"child":"b","remote":"r","lanes":4}`}, `"w"`},
		{"topic attach a b --remote r --dry-run", "", []string{`200 {"dry_run":true}`}, []string{"POST " + base + `/v1/topics/a/children {"child":"b","remote":"r","dry_run":true}`}, `"dry_run": true`},
		{"topic detach a b", "", []string{"204"}, []string{"DELETE " + base + "/v1/topics/a/children/b"}, ""},
		{"topic children a --partitions", "", []string{`200 {"parent":"a"}`}, []string{"GET " + base + "/v1/topics/a/children?partitions=true"}, `"parent": "a"`},
		{"topic pause a b --reason why", "", []string{`200 {"name":"b"}`}, []string{"POST " + base + `/v1/topics/a/children/b/pause {"reason":"why"}`}, `"name": "b"`},
		{"topic resume a b --accept-target", "", []string{`200 {"name":"b"}`}, []string{"POST " + base + `/v1/topics/a/children/b/resume {"accept_target":true}`}, `"name": "b"`},
		{"topic skip a b 0 7", "", []string{`200 {"name":"b"}`}, []string{"POST " + base + `/v1/topics/a/children/b/skip {"partition":0,"offset":7}`}, `"name": "b"`},
		{"pub a hello -k k", "", []string{"202"}, []string{"POST " + base + "/v1/topics/a/produce?key=k hello"}, ""},
		{"pub a", "from stdin", []string{"202"}, []string{"POST " + base + "/v1/topics/a/produce from stdin"}, ""},
		{"pub a --lines", "x\n\ny", []string{"202"}, []string{"POST " + base + `/v1/topics/a/produce/batch {"messages":[{"payload":"eA==","payload_encoding":"base64"},{"payload":"eQ==","payload_encoding":"base64"}]}`}, ""},
		{"sub a -n 1", "", []string{`200 {"payload":"text","receipt_handle":"0:1:n"}`, "204"}, []string{"GET " + base + "/v1/topics/a/consume?wait=5s", "POST " + base + "/v1/topics/a/ack?receipt_handle=0%3A1%3An"}, "text\n"},
		{"sub a -n 1 --no-ack --quoted", "", []string{`200 {"payload":"text"}`}, []string{"GET " + base + "/v1/topics/a/consume?wait=5s"}, "\"text\"\n"},
		{"replay a 1 7 -n 0", "", []string{`200 {"offset":9,"payload":{"a": 1}}`, "204"}, []string{"GET " + base + "/v1/topics/a/consume?offset=7&partition=1", "GET " + base + "/v1/topics/a/consume?offset=10&partition=1"}, "{\"a\": 1}\n"},
		{"user add u --grant produce:a,b* --grant admin", "secret\n", []string{`201 {"username":"u"}`}, []string{"POST " + base + `/v1/users {"username":"u","password":"secret","grants":[{"action":"produce","patterns":["a","b*"]},{"action":"admin"}]}`}, `"username": "u"`},
		{"user grant u", "", []string{`200 {"username":"u"}`}, []string{"PUT " + base + `/v1/users/u/grants {"grants":[]}`}, ""},
		{"user ls", "", []string{`200 [{"username":"u","grants":[{"action":"consume","patterns":["a"]}]}]`}, []string{"GET " + base + "/v1/users"}, "consume:a"},
		{"user rm u", "", []string{"204"}, []string{"DELETE " + base + "/v1/users/u"}, ""},
		{"remote add r --url https://x --username s --max-in-flight 4", "remote-password\n", []string{`201 {"name":"r"}`}, []string{"POST " + base + `/v1/remotes {"name":"r","url":"https://x","username":"s","password":"remote-password","limits":{"max_in_flight":4}}`}, `"name": "r"`},
		{"remote set r --max-in-flight 4 --check-interval 10s --compression zstd", "", []string{`200 {"name":"r"}`}, []string{"PATCH " + base + `/v1/remotes/r {"limits":{"max_in_flight":4,"check_interval_ms":10000,"compression":"zstd"}}`}, `"name": "r"`},
		{"remote set r --no-ca --username s", "remote-password\n", []string{`200 {"name":"r"}`}, []string{"PATCH " + base + `/v1/remotes/r {"username":"s","password":"remote-password","ca_pem":""}`}, `"name": "r"`},
		{"remote set r --new-password", "remote-password\n", []string{`200 {"name":"r"}`}, []string{"PATCH " + base + `/v1/remotes/r {"password":"remote-password"}`}, `"name": "r"`},
		{"remote reencrypt", "", []string{`200 {"key_version":"aa","reencrypted":["r"],"already_current":[],"failed":[]}`}, []string{"POST " + base + "/v1/cluster/reencrypt-remotes"}, `"reencrypted": [`},
		{"remote test r --topic t --source s", "", []string{`200 {"remote":"r","result":"pass"}`}, []string{"POST " + base + `/v1/remotes/r/test {"topic":"t","source":"s"}`}, `"result": "pass"`},
		{"remote ls --no-nodes", "", []string{`200 {"allowlist":"none"}`}, []string{"GET " + base + "/v1/remotes?nodes=false"}, `"allowlist": "none"`},
		{"cluster members", "", []string{`200 {"members":[{"id":"n1","addr":"n1:7944","status":"alive","leader":true,"voter":true,"owned_partitions":3,"heartbeat_age_seconds":0},{"id":"n2","status":"dead","draining":true,"decommission_blocked":[{"code":"owner_dead"}]}]}`}, []string{"GET " + base + "/v1/cluster/members"}, "n2  dead, draining  follower  0           0      -"},
		{"cluster members --detail", "", []string{`200 {"members":[{"id":"n1","partitions":[{"topic":"a","partitions":[0]}]}]}`}, []string{"GET " + base + "/v1/cluster/members?detail=true"}, `"topic": "a"`},
		{"cluster members forget n9", "", []string{`200 {"id":"n9","voter":true}`}, []string{"POST " + base + "/v1/cluster/members/n9/forget"}, `"voter": true`},
		{"cluster decommission n2", "", []string{"204"}, []string{"POST " + base + "/v1/cluster/members/n2/decommission"}, ""},
		{"cluster decommission n2 --dry-run", "", []string{`200 {"member":"n2","reasons":["owner_dead"]}`}, []string{"POST " + base + "/v1/cluster/members/n2/decommission?dry_run=true"}, "owner_dead"},
		{"cluster decommission n2 --cancel", "", []string{"204"}, []string{"DELETE " + base + "/v1/cluster/members/n2/decommission"}, ""},
		{"cluster moves", "", []string{`200 {"moves":[{"topic":"a","partition":1,"from":"n1","to":"n2"}]}`}, []string{"GET " + base + "/v1/cluster/moves"}, "a      1          n1    n2  -"},
		{"cluster moves abort a 1 --target n2", "", []string{`200 {"moves":[{"topic":"a","partition":1,"to":"n2"}]}`, `202 {"note":"stays"}`}, []string{"GET " + base + "/v1/cluster/moves", "POST " + base + "/v1/cluster/moves/a/1/abort"}, "stays"},
		{"remote rm r --force", "", []string{"204"}, []string{"DELETE " + base + "/v1/remotes/r?force=true"}, ""},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			n := &node{answers: c.answers}
			out, err := run(n, nil, c.stdin, strings.Fields(c.args)...)
			require.NoError(t, err)
			require.Equal(t, c.seen, n.seen)
			require.Contains(t, out, c.out)
			require.NotContains(t, out, "secret")
			require.NotContains(t, out, "remote-password")
		})
	}
}

// A re-encrypt that could not open a remote shows the answer and exits non-zero.
//
// covers: CRD-11
func TestAReencryptThatFailed(t *testing.T) {
	n := &node{answers: []string{`200 {"key_version":"aa","reencrypted":[],"already_current":[],"failed":[{"name":"r","reason":"key_unknown"}]}`}}
	out, err := run(n, nil, "", "remote", "reencrypt")
	require.ErrorContains(t, err, "1 remotes could not be opened")
	require.Contains(t, out, `"reason": "key_unknown"`)
}

// covers: CRD-16
func TestRemotePasswordStaysHome(t *testing.T) {
	add := []string{"remote", "add", "r", "--url", "https://x", "--username", "s"}
	for server, sent := range map[string]bool{
		"http://10.0.0.1:7942": false, "node.example:7942": false, "http://127.0.0.1.example": false,
		"https://node.example": true, "http://localhost:7942": true, "http://[::1]:7942": true, "127.0.0.1:7942": true,
	} {
		n := &node{answers: []string{`201 {"name":"r"}`}}
		_, err := run(n, map[string]string{"NARAD_ADDR": server}, "remote-password\n", add...)
		require.Equal(t, sent, err == nil, server)
		require.Equal(t, sent, len(n.seen) == 1, server)
	}
	n := &node{}
	_, err := run(n, map[string]string{"NARAD_ADDR": "http://10.0.0.1:7942"}, "remote-password\n", "remote", "set", "r", "--new-password")
	require.ErrorContains(t, err, "plain http")
	require.Empty(t, n.seen)
	// There is no other way to give it.
	_, err = run(&node{}, map[string]string{"NARAD_REMOTE_PASSWORD": "x"}, "", add...)
	require.ErrorContains(t, err, "standard input")
	for _, flag := range []string{"--remote-password", "--secret"} {
		_, err = run(&node{}, nil, "x\n", append(add, flag, "x")...)
		require.ErrorContains(t, err, "unknown flag")
	}
}

func TestCredentialsAndErrors(t *testing.T) {
	env := map[string]string{"NARAD_USER": "u", "NARAD_PASS": "env-pass"}
	n := &node{answers: []string{"204"}}
	_, err := run(n, env, "", "user", "rm", "x")
	require.NoError(t, err)
	require.Equal(t, "u:env-pass", n.auth)
	n = &node{answers: []string{"204"}}
	_, err = run(n, env, "", "user", "rm", "x", "-u", "v", "-p", "flag")
	require.NoError(t, err)
	require.Equal(t, "v:flag", n.auth)
	// The login's line comes first, then the one that the command reads.
	n = &node{answers: []string{`201 {"name":"r"}`}}
	_, err = run(n, env, "login\nremote-password\n", "remote", "add", "r", "--password-stdin")
	require.NoError(t, err)
	require.Equal(t, "u:login", n.auth)
	require.Contains(t, n.seen[0], `"password":"remote-password"`)
	help, err := run(&node{}, env, "", "user", "rm", "--help")
	require.NoError(t, err)
	require.NotContains(t, help, "env-pass")

	n = &node{answers: []string{`409 {"error":"records are unshipped"}`}}
	_, err = run(n, nil, "", "topic", "rm", "a")
	require.ErrorContains(t, err, "records are unshipped")
	_, err = run(&node{answers: []string{"204"}}, nil, "", "sub", "a", "-n", "1")
	require.ErrorContains(t, err, "no record came in time")
	_, err = run(&node{}, nil, "", "user", "grant", "u", "produce")
	require.ErrorContains(t, err, "a grant is")
}
