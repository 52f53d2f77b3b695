package node_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

// pair is a source with a link to a target over TLS.
type pair struct {
	*bubble
	source, target *machine
}

const linkUser = "linker"

// link builds both nodes, the remote "dr" and the remote child "orders-dr", whose first requests come the moment both answer.
func link(t *testing.T, b *bubble) *pair { return linkFrom(t, b, b.machine("source")) }

// linkFrom is link with a source that is made already.
func linkFrom(t *testing.T, b *bubble, source *machine) *pair {
	p := &pair{bubble: b, source: source, target: b.machine("target")}
	ca := p.target.serveTLS()
	p.target.start()
	p.source.start()
	p.target.create("orders")
	_, err := p.target.client().Users().Create(t.Context(), wire.CreateUser{Username: linkUser, Password: remotePassword, Grants: []wire.Grant{
		{Action: wire.ActionProduce, Patterns: []string{"orders"}}, {Action: wire.ActionConsume, Patterns: []string{"orders"}},
	}})
	require.NoError(t, err)
	_, err = p.source.client().Remotes().Create(client.WithRequestID(t.Context(), "00000000000000a1"), wire.CreateRemote{
		Name: "dr", URL: "https://target:" + apiPort, Username: linkUser, Password: remotePassword, CAPEM: ca,
	})
	require.NoError(t, err, "the release gate is open once a single node answers")
	p.source.create("orders")
	_, err = p.source.client().AttachRemote(client.WithRequestID(t.Context(), "00000000000000a2"), "orders", wire.AttachChild{
		Child: "orders-dr", Remote: "dr", Lanes: 4,
	})
	require.NoError(t, err)
	return p
}

// lag is what the listing says of the link.
func (p *pair) lag() (int64, wire.ChildEntry) {
	l, err := p.source.client().Children(p.t.Context(), "orders", true)
	require.NoError(p.t, err)
	require.Len(p.t, l.Children, 1)
	return l.Children[0].LagMessages, l.Children[0]
}

func (p *pair) produce(from, to int) {
	p.t.Helper()
	for i := from; i < to; i++ {
		k := fmt.Sprint("k", i%6)
		p.source.produce("orders", k, id(k, i))
	}
}

// shipped checks that the target has the records 0 to n-1, each key in order, and returns how many it has with repeats.
func (p *pair) shipped(n int) int {
	p.t.Helper()
	p.eventually("everything is shipped", func() bool {
		lag, e := p.lag()
		return e.LagComplete && lag == 0 && p.source.count("orders") >= n && p.target.count("orders") >= n
	})
	var producers []*producer
	for k := range 6 {
		pr := &producer{key: fmt.Sprint("k", k), acked: map[int]bool{}}
		for i := k; i < n; i += 6 {
			pr.acked[i] = true
		}
		producers = append(producers, pr)
	}
	require.NoError(p.t, checkStored(p.target.stored("orders"), producers))
	return p.target.count("orders")
}

// Records go over TLS to another node; a stop repeats nothing and a crash repeats at most two slabs.
//
// covers: CUR-03, CUR-07, CUR-08, CUR-17
func TestALinkGoesOnAfterARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.produce(0, 60)
		require.Equal(t, 60, p.shipped(60))
		p.source.stop()
		p.source.start()
		p.produce(60, 90)
		require.Equal(t, 90, p.shipped(90), "a graceful stop repeats nothing")
		_, e := p.lag()
		require.EqualValues(t, "running", e.State)

		p.target.stop()
		p.produce(90, 120)
		p.eventually("the link notices", func() bool { _, e := p.lag(); return e.State == wire.LinkState("unavailable") })
		p.source.kill(true)
		p.source.start()
		p.target.start()
		require.GreaterOrEqual(t, p.shipped(120), 120)
		require.LessOrEqual(t, p.target.count("orders"), 120+90, "at most the last slabs come again")
		p.source.stop()
		p.target.stop()
	})
}

// A stop in the middle of a slab lets the requests on the wire end and keeps what each lane has done beside the position, so that
// the next start repeats nothing, wherever the stop fell (DEC-09).
//
// covers: CUR-07, CUR-08
func TestAStopInTheMiddleOfASlabRepeatsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		total := 0
		p.target.disk.SetSyncDelay(200 * time.Millisecond)
		for _, after := range []int{1, 40, 90, 150, 210, 330, 480, 650} {
			for range 3 {
				p.produce(total, total+24)
				total += 24
			}
			time.Sleep(time.Duration(after) * time.Millisecond)
			p.source.stop()
			p.source.start()
		}
		p.produce(total, total+6)
		total += 6
		require.Equal(t, total, p.shipped(total))
		p.source.stop()
		p.target.stop()
	})
}

// A stop while the target does not answer waits up to 5 s for the requests on the wire, cuts them and leaves the rest to the
// next start (DEC-09).
//
// covers: CUR-09
func TestAStopWithAHangingTarget(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.produce(0, 12)
		p.shipped(12)
		p.target.host.Freeze(true)
		p.produce(12, 40)
		time.Sleep(time.Second)
		began := time.Now()
		p.source.stop()
		require.Less(t, time.Since(began), 7*time.Second)
		p.target.host.Freeze(false)
		p.source.start()
		p.shipped(40)
		p.source.stop()
		p.target.stop()
	})
}

// A detach with unshipped records is refused with the counts, force abandons them, and the stub is gone at once.
//
// covers: UNS-02, WRT-11
func TestDetachCountsWhatIsNotShipped(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.target.stop()
		p.produce(0, 10)
		b.eventually("committed", func() bool { return p.source.count("orders") == 10 })
		c := p.source.client()
		err := c.Detach(client.WithRequestID(t.Context(), "00000000000000a3"), "orders", "orders-dr", false)
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 409, refused.Status)
		var counts wire.Unshipped
		require.NoError(t, json.Unmarshal(refused.Body, &counts))
		require.EqualValues(t, 10, counts.LagMessages)
		require.True(t, counts.LagComplete)
		require.Empty(t, counts.DispatchBacklog)
		require.Empty(t, counts.NotAnswering)
		require.Error(t, c.DeleteTopic(t.Context(), "orders", false), "a parent with a link")
		require.NoError(t, c.Detach(client.WithRequestID(t.Context(), "00000000000000a4"), "orders", "orders-dr", true))
		l, err := c.Children(t.Context(), "orders", false)
		require.NoError(t, err)
		require.Empty(t, l.Children)
		b.eventually("the cursor files go", func() bool { return !slices.ContainsFunc(p.cursorFiles(), isCursor) })
		require.NoError(t, c.DeleteTopic(t.Context(), "orders", false))
		p.source.stop()

		audit := p.source.log.with("audit")
		for _, want := range []struct {
			id, event, ingress string
			status             int
			leader             string
		}{
			{"00000000000000a1", "remote.create", "ok", 201, "committed"},
			{"00000000000000a2", "remote_child.create", "ok", 201, "committed"},
			{"00000000000000a3", "remote_child.delete", "", 409, "refused"},
			{"00000000000000a4", "remote_child.delete", "ok", 204, "committed"},
		} {
			var leader, ingress []map[string]any
			for _, line := range audit {
				if line["request_id"] == want.id {
					require.Equal(t, want.event, line["event"])
					require.Equal(t, "admin", line["actor"])
					if _, ok := line["status"]; ok {
						ingress = append(ingress, line)
					} else {
						leader = append(leader, line)
					}
				}
			}
			require.Len(t, ingress, 1, want.id)
			require.Len(t, leader, 1, want.id)
			require.EqualValues(t, want.status, ingress[0]["status"])
			require.Equal(t, want.leader, leader[0]["outcome"])
			if want.ingress != "" {
				require.Equal(t, want.ingress, ingress[0]["outcome"])
			}
			if want.id == "00000000000000a4" {
				require.EqualValues(t, 10, leader[0]["abandoned_lag_messages"])
				require.Equal(t, true, leader[0]["force"])
			}
		}
	})
}

// cursorFiles lists the files beside the partitions of the source.
func (p *pair) cursorFiles() (out []string) {
	topics, err := p.source.disk.ReadDir("/source/topics")
	require.NoError(p.t, err)
	for _, topic := range topics {
		parts, err := p.source.disk.ReadDir("/source/topics/" + topic.Name())
		require.NoError(p.t, err)
		for _, part := range parts {
			files, err := p.source.disk.ReadDir("/source/topics/" + topic.Name() + "/" + part.Name())
			require.NoError(p.t, err)
			for _, f := range files {
				out = append(out, f.Name())
			}
		}
	}
	return out
}

func isCursor(name string) bool { return strings.HasPrefix(name, "fanout-") }

// No secret reaches log, metrics, an answer or a file, Raft's log and snapshots and the cursor files among them, whatever the log level, over the
// whole life of a link and a wrong login (BR-27).
//
// covers: CRD-13
func TestNoSecretLeavesTheNode(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.produce(0, 12)
		p.shipped(12)
		c := p.source.client()
		changed := remotePassword + "-second"
		_, err := c.Remotes().Patch(t.Context(), "dr", wire.PatchRemote{Password: &changed})
		require.NoError(t, err)
		p.produce(12, 13)
		b.eventually("the refused credential", func() bool { _, e := p.lag(); return e.State == wire.LinkState("auth_failed") })
		wrong := client.New(client.Options{BaseURL: "http://source:" + apiPort, User: "admin", Password: adminPassword + "x", HTTP: b.http})
		_, err = wrong.Topics(t.Context(), 10, "")
		require.ErrorContains(t, err, "401")
		listing, err := c.Remotes().List(t.Context(), true)
		require.NoError(t, err)
		shown, err := json.Marshal(listing)
		require.NoError(t, err)
		_, metrics := p.source.get("/metrics", true)
		_, ready := p.source.get("/readyz", false)
		p.source.kill(false)
		p.source.start()
		p.source.stop()
		p.target.stop()
		for where, text := range map[string]string{
			"source log": p.source.log.String(), "target log": p.target.log.String(), "metrics": metrics, "remotes": string(shown), "ready": ready,
		} {
			require.NotEmpty(t, text)
			for _, secret := range []string{adminPassword, clusterSecret, remotePassword, "Basic ", "$2a$"} {
				require.NotContains(t, text, secret, where)
			}
		}
		kept := filesOf(t, p.source)
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(kept)), func(name string) bool { return strings.Contains(name, "fanout-") }))
		require.True(t, slices.ContainsFunc(slices.Collect(maps.Values(kept)), func(body string) bool { return strings.Contains(body, linkUser) }), "what Raft keeps is read")
		for name, body := range kept {
			for _, secret := range []string{adminPassword, clusterSecret, remotePassword, base64.StdEncoding.EncodeToString([]byte(linkUser + ":" + remotePassword))} {
				require.NotContains(t, body, secret, name)
			}
		}
		for _, text := range []string{p.source.log.String(), metrics} {
			require.NotContains(t, text, "https://target", "the URL")
			require.NotContains(t, text, linkUser, "the remote's user")
		}
	})
}

// filesOf reads every file of a machine that is down, those of Raft included.
func filesOf(t *testing.T, m *machine) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(m.raft, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		body, err := os.ReadFile(name)
		out[name] = string(body)
		return err
	}))
	require.NotEmpty(t, out, "Raft keeps something")
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := m.disk.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				walk(name)
				continue
			}
			body, err := vfs.ReadFile(m.disk, name)
			require.NoError(t, err)
			out[name] = string(body)
		}
	}
	walk(m.config.Storage.DataDir)
	return out
}
