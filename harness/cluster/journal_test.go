package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A harness that was killed leaves a journal; the next one ends what it names and touches nothing of a harness that lives.
func TestSweepUndoesWhatAKilledHarnessLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	mine, err := newJournal()
	require.NoError(t, err)
	kept, err := mine.folder()
	require.NoError(t, err)

	orphaned := exec.Command("sleep", "100")
	require.NoError(t, orphaned.Start())
	bystander := exec.Command("sleep", "100")
	require.NoError(t, bystander.Start())
	defer func() {
		require.NoError(t, bystander.Process.Kill())
		require.Error(t, bystander.Wait())
	}()
	data, err := os.MkdirTemp("", folderPrefix)
	require.NoError(t, err)
	foreign := t.TempDir()
	recycled := identify(bystander.Process.Pid)
	recycled.Started = "1" // the number once was another process's
	if startTime(os.Getpid()) == "" {
		t.Skip("this system does not tell when a process started, so a sweep ends none")
	}
	body, err := json.Marshal(page{
		Owner: identity{PID: os.Getpid(), Started: "1"}, Children: []identity{identify(orphaned.Process.Pid), recycled},
		Folders: []string{data, foreign},
	})
	require.NoError(t, err)
	left := filepath.Join(journalDir(), "left.json")
	require.NoError(t, os.WriteFile(left, body, 0o600))

	require.NoError(t, Processes().Sweep(t.Context()))
	done := make(chan error, 1)
	go func() { done <- orphaned.Wait() }()
	select {
	case err = <-done:
		require.ErrorContains(t, err, "killed")
	case <-time.After(10 * time.Second):
		t.Fatal("the orphan lives")
	}
	require.NoDirExists(t, data)
	require.DirExists(t, foreign, "only folders of a rig go")
	require.NoFileExists(t, left)
	require.DirExists(t, kept)
	require.True(t, identify(bystander.Process.Pid).alive())
	require.NoError(t, mine.close())
	require.NoDirExists(t, kept)
}

func TestIdentity(t *testing.T) {
	me := self()
	require.True(t, me.alive())
	require.Equal(t, me, parseIdentity(me.String()))
	require.False(t, identity{PID: me.PID, Started: "1"}.alive())
	require.False(t, parseIdentity("rubbish").alive())
}

func TestNodeConfigMerges(t *testing.T) {
	places := []place{{name: "source-1", api: "a:1", raft: "r:1", raftSeen: "s:1", data: "d"}, {name: "source-2", raftSeen: "s:2"}, {name: "source-3", raftSeen: "s:3"}}
	body, err := nodeConfig(layout{places, len(places), 0, "/f"}, remotesConfig(8443, true), map[string]any{"http": map[string]any{"max_connections": 5}, "remotes": map[string]any{"api_hop_encrypted": false}})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"http":{"addr":"a:1","max_connections":5},
		"cluster":{"node_id":"source-1","addr":"r:1","advertise_addr":"s:1","peers":["source-1@s:1","source-2@s:2","source-3@s:3"],
			"tls_ca_file":"/f/raft-ca.pem","tls_cert_file":"/f/raft-cert.pem","tls_key_file":"/f/raft-key.pem"},
		"storage":{"data_dir":"d"},
		"remotes":{"allowed_ports":[8443],"allow_addresses":["127.0.0.1"],"api_hop_encrypted":false}}`, string(body))
	body, err = nodeConfig(layout{places, 1, 0, "/f"}, nil, nil)
	require.NoError(t, err)
	require.NotContains(t, string(body), "peers")
	require.NotContains(t, string(body), "raft-ca.pem", "one node on loopback needs nothing")
}

func TestToxicCheck(t *testing.T) {
	for _, ok := range []Toxic{
		Latency("a", Upstream, time.Second), Bandwidth("a", Downstream, 1024), SlowClose("a", Upstream, time.Second), Stall("a", Upstream, 0),
		ResetPeer("a", Upstream, 0), Slicer("a", Upstream, 10, time.Microsecond), LimitData("a", Downstream, 5), {Name: "a", Type: "reset_peer", Stream: Upstream},
	} {
		require.NoError(t, ok.Check(), ok.Type)
	}
	for name, bad := range map[string]Toxic{
		"no name":   Latency("", Upstream, time.Second),
		"slash":     Latency("a/b", Upstream, time.Second),
		"stream":    Latency("a", "", time.Second),
		"type":      {Name: "a", Type: "lag", Stream: Upstream},
		"toxicity":  {Name: "a", Type: "reset_peer", Stream: Upstream, Toxicity: 0.5},
		"missing":   {Name: "a", Type: "latency", Stream: Upstream},
		"jitter":    {Name: "a", Type: "latency", Stream: Upstream, Attributes: map[string]int64{"latency": 1, "jitter": 1}},
		"too small": Bandwidth("a", Upstream, 1023),
		"limit":     LimitData("a", Upstream, 0),
	} {
		require.Error(t, bad.Check(), name)
	}
}
