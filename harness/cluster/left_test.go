package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/harness/cluster"
)

// A child of a node that outlives it, and a folder that is there again after the clean-up, are found.
func TestWhatARigOfProcessesLeavesIsFound(t *testing.T) {
	binaries := standins(t)
	t.Setenv("TMPDIR", t.TempDir())
	start := func() cluster.Rig {
		rig, err := cluster.Processes().Start(t.Context(), cluster.Spec{Fake: &fakes.Script{Topics: []fakes.ScriptTopic{{Name: "t"}}}, Binaries: binaries})
		require.NoError(t, err)
		return rig
	}
	rig := start()
	require.NoError(t, rig.Close(t.Context()))
	left, err := rig.(cluster.Leftovers).Left(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)

	rig = start()
	orphan := exec.Command("sleep", "3600") // without a context: it must outlive its node
	orphan.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: cluster.FirstOf(rig, "source-1")}
	require.NoError(t, orphan.Start())
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), "narad-chaos-data-*"))
	require.NoError(t, err)
	require.Len(t, folders, 1)
	require.NoError(t, rig.Close(t.Context()))
	require.NoError(t, os.Mkdir(folders[0], 0o755))
	left, err = rig.(cluster.Leftovers).Left(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{fmt.Sprintf("process %d of source-1", orphan.Process.Pid), folders[0]}, left)
	require.ErrorContains(t, orphan.Wait(), "killed", "it does not stay")
}

func TestWhatARigOfContainersLeavesIsFound(t *testing.T) {
	b := containers(t)
	rig, err := b.Start(t.Context(), cluster.Spec{Fake: &fakes.Script{Topics: []fakes.ScriptTopic{{Name: "t"}}}, Binaries: standins(t)})
	require.NoError(t, err)
	left, err := rig.(cluster.Leftovers).Left(t.Context())
	require.NoError(t, err)
	require.Contains(t, left, "container of source-1", "before Close everything is there")
	require.NoError(t, rig.Close(t.Context()))
	left, err = rig.(cluster.Leftovers).Left(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)
}
