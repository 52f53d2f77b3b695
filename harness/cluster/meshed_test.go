package cluster_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/harness/cluster"
)

// peersOf is what a stand-in hears from its peers, by Raft's port and by the one of node RPC.
func peersOf(t *testing.T, n cluster.Node) string {
	t.Helper()
	page, err := n.Metrics(t.Context())
	require.NoError(t, err)
	_, heard, _ := strings.Cut(page, "\n")
	return strings.ReplaceAll(heard, "# ", "")
}

// A node's own dials go through the mesh, which knows them for that node's: what is cut for one is open for another, and for the same one after it
// was started anew. A spare joins the same way.
//
// covers: HAR-02
func TestProcessesMeetThroughTheMesh(t *testing.T) {
	binaries := standins(t) // built outside the test's own temporary folder
	t.Setenv("TMPDIR", t.TempDir())
	meet(t, cluster.Processes(), binaries)
}

// covers: HAR-02
func TestContainersMeetThroughTheMesh(t *testing.T) { meet(t, containers(t), standins(t)) }

func meet(t *testing.T, b cluster.Backend, binaries cluster.Binaries) {
	t.Helper()
	if os.Getenv("NARAD_BIN") != "" {
		t.Skip("only the stand-in tells what it hears")
	}
	rig, err := b.Start(t.Context(), cluster.Spec{Source: cluster.Side{Nodes: 3, Spares: 1}, Fake: &fakes.Script{}, Binaries: binaries})
	require.NoError(t, err)
	defer func() { require.NoError(t, rig.Close(context.Background())) }()
	parted := rig.(cluster.Parted)
	node := func(name string) cluster.Node {
		n, nerr := rig.Node(name)
		require.NoError(t, nerr)
		return n
	}
	whole := "source-2: raft=source-2 rpc=source-2\nsource-3: raft=source-3 rpc=source-3\n"
	require.Eventually(t, func() bool { return peersOf(t, node("source-1")) == whole }, 30*time.Second, 10*time.Millisecond, "all are there")

	cut, err := parted.Part(t.Context(), cluster.Cut{From: []string{"source-1"}, To: []string{"source-2"}, OneWay: true, Carries: cluster.CarriesRaft})
	require.NoError(t, err)
	expectCut := func() {
		t.Helper()
		heard := peersOf(t, node("source-1"))
		require.Contains(t, heard, "source-3: raft=source-3 rpc=source-3\n")
		require.Regexp(t, "source-2: raft=.*(reset by peer|broken pipe) rpc=source-2\n", heard)
	}
	expectCut()
	require.Contains(t, peersOf(t, node("source-2")), "source-1: raft=source-1 rpc=source-1\n", "the other way is open")
	require.Contains(t, peersOf(t, node("source-3")), "source-2: raft=source-2 rpc=source-2\n", "a third node is not meant")
	require.NoError(t, node("source-1").Kill(t.Context()))
	require.NoError(t, node("source-1").Start(t.Context()))
	expectCut()
	require.Equal(t, 1, parted.Partings())
	_, err = parted.Reach(t.Context(), "source-1", "source-2", cluster.CarriesRaft)
	require.Error(t, err)
	require.Positive(t, cut.Met().Dials)
	require.NoError(t, cut.Mend(t.Context()))
	require.Equal(t, whole, peersOf(t, node("source-1")))
	c, err := parted.Reach(t.Context(), "source-1", "source-2", cluster.CarriesRaft)
	require.NoError(t, err)
	require.NoError(t, c.Close())

	require.Len(t, rig.Nodes(cluster.Source), 3, "a spare is none of the nodes yet")
	spare := node("source-4")
	require.False(t, spare.Running())
	require.NoError(t, spare.(cluster.Joiner).Join(t.Context()))
	require.ErrorIs(t, spare.(cluster.Joiner).Join(t.Context()), cluster.ErrTrouble, "it has joined")
	require.Len(t, rig.Nodes(cluster.Source), 4)
	require.Equal(t, 3, strings.Count(peersOf(t, spare), "\n"), "it knows the first members")
	_, err = parted.Part(t.Context(), cluster.Cut{From: []string{"source-1"}, To: []string{"source-9"}})
	require.ErrorIs(t, err, cluster.ErrUnsupported)
	one, err := parted.Part(t.Context(), cluster.Cut{From: []string{"source-1"}, To: []string{cluster.Target}})
	require.NoError(t, err)
	_, err = parted.Reach(t.Context(), "source-1", cluster.Target, "")
	require.Error(t, err)
	c, err = parted.Reach(t.Context(), "source-2", cluster.Target, "")
	require.NoError(t, err, "the way of another node is open")
	require.NoError(t, c.Close())
	require.NoError(t, one.Mend(t.Context()))
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

// A node of an older release poses until it is upgraded, over new starts; the upgrade is between two runs.
//
// covers: HAR-02
func TestProcessesPoseUntilTheyAreUpgraded(t *testing.T) {
	binaries := standins(t)
	t.Setenv("TMPDIR", t.TempDir())
	pose(t, cluster.Processes(), binaries)
}

// covers: HAR-02
func TestContainersPoseUntilTheyAreUpgraded(t *testing.T) { pose(t, containers(t), standins(t)) }

func pose(t *testing.T, b cluster.Backend, binaries cluster.Binaries) {
	t.Helper()
	spec := cluster.Spec{Source: cluster.Side{Nodes: 3, Older: []int{2}}, Fake: &fakes.Script{}, Binaries: binaries}
	_, err := b.Start(t.Context(), spec)
	require.ErrorIs(t, err, cluster.ErrTrouble)
	require.ErrorContains(t, err, "no build that can pose as an older release")
	spec.Binaries.Older = binaries.Narad // the stand-in can
	rig, err := b.Start(t.Context(), spec)
	require.NoError(t, err)
	defer func() { require.NoError(t, rig.Close(context.Background())) }()
	is := func(name string) bool {
		n, nerr := rig.Node(name)
		require.NoError(t, nerr)
		older, nerr := cluster.IsOlder(t.Context(), n)
		require.NoError(t, nerr)
		require.Equal(t, older, n.(cluster.Upgradable).Older())
		return older
	}
	require.Equal(t, []bool{false, true, false}, []bool{is("source-1"), is("source-2"), is("source-3")})
	n, err := rig.Node("source-2")
	require.NoError(t, err)
	require.ErrorContains(t, n.(cluster.Upgradable).Upgrade(t.Context()), "source-2 runs")
	require.NoError(t, n.Kill(t.Context()))
	require.NoError(t, n.Start(t.Context()))
	require.True(t, is("source-2"))
	require.NoError(t, n.Stop(t.Context()))
	require.NoError(t, n.(cluster.Upgradable).Upgrade(t.Context()))
	require.NoError(t, n.Start(t.Context()))
	if b.Name() == "process" { // in a container the variable stays, and the stand-in is no build that ignores it
		require.False(t, is("source-2"))
	}
	require.False(t, n.(cluster.Upgradable).Older())
	require.Empty(t, rig.(cluster.Watched).Trouble())
}
