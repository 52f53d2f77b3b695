package cluster_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/harness/cluster"
)

// peersOf is what a stand-in hears from its peers, by Raft's port and by the one of node RPC.
func peersOf(t *testing.T, n cluster.Node) string {
	t.Helper()
	res, err := http.Get(baseOf(t, n) + "/peers")
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return string(body)
}

// A node's own dials go through the mesh, which knows them for that node's: what is cut for one is open for another, and for the same one after it
// was started anew. A spare joins the same way.
//
// covers: HAR-02
func TestProcessesMeetThroughTheMesh(t *testing.T) {
	if os.Getenv("NARAD_BIN") != "" {
		t.Skip("only the stand-in tells what it hears")
	}
	binaries := standins(t)
	t.Setenv("TMPDIR", t.TempDir())
	rig, err := cluster.Processes().Start(t.Context(), cluster.Spec{Source: cluster.Side{Nodes: 3, Spares: 1}, Fake: &fakes.Script{}, Binaries: binaries})
	require.NoError(t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer func() { require.NoError(t, rig.Close(context.Background())) }()
	parted := rig.(cluster.Parted)
	node := func(name string) cluster.Node {
		n, nerr := rig.Node(name)
		require.NoError(t, nerr)
		return n
	}
	whole := "source-2: source-2 source-2\nsource-3: source-3 source-3\n"
	require.Equal(t, whole, peersOf(t, node("source-1")))

	cut, err := parted.Part(t.Context(), cluster.Cut{From: []string{"source-1"}, To: []string{"source-2"}, OneWay: true, Carries: cluster.CarriesRaft})
	require.NoError(t, err)
	expectCut := func() {
		t.Helper()
		heard := peersOf(t, node("source-1"))
		require.Contains(t, heard, "source-3: source-3 source-3\n")
		require.Regexp(t, "source-2: .*reset by peer source-2\n", heard)
	}
	expectCut()
	require.Contains(t, peersOf(t, node("source-2")), "source-1: source-1 source-1\n", "the other way is open")
	require.Contains(t, peersOf(t, node("source-3")), "source-2: source-2 source-2\n", "a third node is not meant")
	require.NoError(t, node("source-1").Kill(t.Context()))
	require.NoError(t, node("source-1").Start(t.Context()))
	expectCut()
	require.Equal(t, 1, parted.Partings())
	_, err = parted.Reach(t.Context(), "source-1", "source-2", cluster.CarriesRaft)
	require.Error(t, err)
	require.NoError(t, cut.Mend(t.Context()))
	require.Equal(t, whole, peersOf(t, node("source-1")))
	require.Positive(t, cut.Met().Dials)
	c, err := parted.Reach(t.Context(), "source-1", "source-2", cluster.CarriesRaft)
	require.NoError(t, err)
	require.NoError(t, c.Close())

	spare := node("source-4")
	require.False(t, spare.Running())
	require.NoError(t, spare.(cluster.Joiner).Join(t.Context()))
	require.ErrorIs(t, spare.(cluster.Joiner).Join(t.Context()), cluster.ErrTrouble, "it has joined")
	require.Equal(t, 3, strings.Count(peersOf(t, spare), "\n"), "it knows the first members")
	for _, strange := range []cluster.Cut{{From: []string{"source-9"}, To: []string{"source-1"}}, {From: []string{"source-1"}, To: []string{cluster.Target}}} {
		_, err = parted.Part(t.Context(), strange)
		require.ErrorIs(t, err, cluster.ErrUnsupported)
	}
	_, err = parted.Reach(t.Context(), "source-1", "source-9", cluster.CarriesRaft)
	require.ErrorIs(t, err, cluster.ErrUnsupported)
	require.Empty(t, rig.(cluster.Watched).Trouble())
}

func TestAloneThereIsNobodyToBePartedFrom(t *testing.T) {
	binaries := standins(t)
	t.Setenv("TMPDIR", t.TempDir())
	rig, err := cluster.Processes().Start(t.Context(), cluster.Spec{Fake: &fakes.Script{}, Binaries: binaries})
	require.NoError(t, err)
	defer func() { require.NoError(t, rig.Close(context.Background())) }()
	_, err = rig.(cluster.Parted).Part(t.Context(), cluster.Cut{From: []string{"source-1"}, To: []string{"source-2"}})
	require.ErrorIs(t, err, cluster.ErrUnsupported)
	require.Zero(t, rig.(cluster.Parted).Partings())
}
