package cluster_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/harness/cluster"
	"narad.example/harness/cluster/rigtest"
)

// TestProcessConforms runs with a stand-in unless NARAD_BIN names a real broker.
//
// covers: HAR-01, HAR-02
func TestProcessConforms(t *testing.T) {
	spec := cluster.Spec{Scenario: "conform", Source: cluster.Side{Nodes: 1}, Target: cluster.Side{Nodes: 1}, Dir: t.TempDir(), Binaries: standins(t)}
	t.Setenv("TMPDIR", t.TempDir())
	rigtest.Run(t, cluster.Processes(), spec)
	logs, err := filepath.Glob(filepath.Join(spec.Dir, "nodes", "*.log"))
	require.NoError(t, err)
	require.Len(t, logs, 2, "logs stay")
	nothingLeft(t)
}

// nothingLeft looks for data folders and journals in the temporary folder, which a test has to itself.
func nothingLeft(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"narad-chaos-data-*", filepath.Join("narad-chaos-journal", "*")} {
		left, err := filepath.Glob(filepath.Join(os.TempDir(), pattern))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

func TestProcessReportsAnEndThatNobodyAskedFor(t *testing.T) {
	if os.Getenv("NARAD_BIN") != "" {
		t.Skip("only the stand-in can be told to die")
	}
	binaries := standins(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	rig, err := cluster.Processes().Start(ctx, cluster.Spec{
		Source: cluster.Side{Config: map[string]any{"http": map[string]any{"addr": "127.0.0.1:20999"}}}, Fake: &fakes.Script{}, Binaries: binaries,
	})
	// The overridden address is not the one that is asked for readiness, so the start cannot succeed.
	require.Error(t, err)
	require.Nil(t, rig)
	nothingLeft(t)

	rig, err = cluster.Processes().Start(t.Context(), cluster.Spec{Fake: &fakes.Script{Topics: []fakes.ScriptTopic{{Name: "t"}}}, Binaries: binaries})
	require.NoError(t, err)
	require.Equal(t, "link", rig.Remote().User)
	require.Contains(t, rig.Secrets(), rig.Remote().Password)
	fake, err := rig.Node("target-1")
	require.NoError(t, err)
	require.ErrorIs(t, fake.Kill(t.Context()), cluster.ErrUnsupported)
	_, err = rig.Link().Probe(t.Context(), 10)
	require.NoError(t, err)
	n, err := rig.Node("source-1")
	require.NoError(t, err)
	log, err := n.Log()
	require.NoError(t, err)
	require.Contains(t, string(log), `"starts":1`)
	_, _ = http.Get(baseOf(t, n) + "/die") //nolint:bodyclose // there is no answer
	require.Eventually(t, func() bool { return !n.Running() }, 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return len(rig.(cluster.Watched).Trouble()) == 1 }, 10*time.Second, 10*time.Millisecond)
	require.Contains(t, rig.(cluster.Watched).Trouble()[0], "source-1 ended by itself")
	require.NoError(t, rig.Close(t.Context()))
	nothingLeft(t)
	http.DefaultClient.CloseIdleConnections()
}

// baseOf finds a node's address in the config that its process was started with.
func baseOf(t *testing.T, n cluster.Node) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(os.TempDir(), "narad-chaos-data-*", n.Name()+".json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	body, err := os.ReadFile(files[0])
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(body), `"addr": "127.0.0.1:`)
	_, rest, _ = strings.Cut(rest, `"addr": "127.0.0.1:`) // the second is http's
	port, _, _ := strings.Cut(rest, `"`)
	return "http://127.0.0.1:" + port
}
