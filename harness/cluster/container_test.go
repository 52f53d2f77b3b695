package cluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/harness/cluster"
	"narad.example/harness/cluster/rigtest"
)

// containers skips where no engine answers.
func containers(t *testing.T) cluster.Backend {
	t.Helper()
	if testing.Short() {
		t.Skip("containers are not part of the short tests")
	}
	b := cluster.Containers()
	if err := b.Available(t.Context()); err != nil {
		t.Skipf("no container engine: %v", err)
	}
	return b
}

// TestContainerConforms runs with stand-ins unless NARAD_BIN and CHAOS_BIN name real binaries.
//
// covers: HAR-01, HAR-02
func TestContainerConforms(t *testing.T) {
	b := containers(t)
	spec := cluster.Spec{Scenario: "conform", Source: cluster.Side{Nodes: 1}, Target: cluster.Side{Nodes: 1}, Dir: t.TempDir(), Binaries: standins(t)}
	rigtest.Run(t, b, spec)
	for _, name := range []string{"source-1", "target-1", "link", "edge"} {
		require.FileExists(t, filepath.Join(spec.Dir, "nodes", name+".log"))
	}
}

func TestContainerFake(t *testing.T) {
	b := containers(t)
	rig, err := b.Start(t.Context(), cluster.Spec{
		Fake: &fakes.Script{Topics: []fakes.ScriptTopic{{Name: "t"}}, Steps: []fakes.Step{{Name: "one", Answer: fakes.Reply{Name: "503"}}}}, Binaries: standins(t),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	defer func() { require.NoError(t, rig.Close(ctx)) }()
	_, err = rig.Link().Probe(ctx, 100)
	require.NoError(t, err)
	steps, err := rig.(cluster.Scripted).Steps(ctx)
	require.NoError(t, err)
	require.Len(t, steps, 1)
	require.Zero(t, steps[0].Used)
	list, err := rig.Wire(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
	require.Empty(t, rig.(cluster.Watched).Trouble())
	require.NoError(t, b.Sweep(ctx), "a sweep leaves what a living harness runs")
	_, err = rig.Link().Probe(ctx, 100)
	require.NoError(t, err)
}

func TestContainerStartLeavesNothingWhenItFails(t *testing.T) {
	b := containers(t)
	broken := standins(t)
	script := filepath.Join(t.TempDir(), "narad")
	require.NoError(t, os.WriteFile(script, []byte("#!no program\n"), 0o755))
	rig, err := b.Start(t.Context(), cluster.Spec{Binaries: cluster.Binaries{Narad: script, Chaos: broken.Chaos}})
	require.ErrorContains(t, err, "image")
	require.Nil(t, rig)

	broken.Narad = broken.Chaos // a program, and no node: it ends at once
	rig, err = b.Start(t.Context(), cluster.Spec{Binaries: broken})
	require.ErrorContains(t, err, "ended while it started")
	require.Nil(t, rig)
	out, err := exec.Command("docker", "ps", "-aq", "--filter", "label="+cluster.Owned()).Output()
	if err != nil {
		t.Skip("no docker command to look for what is left")
	}
	require.Empty(t, string(out))
}
