package cluster_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/cluster"
)

// killedHarness starts a harness with a rig, kills it, and returns the filter of what it owned in an engine.
func killedHarness(t *testing.T, backend string, b cluster.Binaries) string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, b.Narad, b.Chaos)
	cmd.Env = append(os.Environ(), helperEnv+"="+backend)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	owned := cluster.OwnedBy(cmd.Process.Pid)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	return owned
}

func TestSweepAfterAKilledHarnessOfProcesses(t *testing.T) {
	b := standins(t)
	t.Setenv("TMPDIR", t.TempDir())
	killedHarness(t, "process", b)
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "narad-chaos-data-*", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, left, "a killed harness leaves its data")
	require.NoError(t, cluster.Processes().Sweep(t.Context()))
	nothingLeft(t)
	out, err := exec.Command("ps", "-eo", "args").Output()
	require.NoError(t, err)
	require.NotContains(t, string(out), left[0], "its nodes died with it, or by the sweep")
}

func TestSweepAfterAKilledHarnessOfContainers(t *testing.T) {
	b := containers(t)
	owned := killedHarness(t, "container", standins(t))
	list := func(what ...string) string {
		out, err := exec.Command("docker", append(what, "-q", "--filter", "label="+owned)...).Output()
		if err != nil {
			t.Skip("no docker command to look for what is left")
		}
		return strings.TrimSpace(string(out))
	}
	require.NotEmpty(t, list("ps", "-a"), "a killed harness leaves its containers")
	require.NoError(t, b.Sweep(t.Context()))
	require.Empty(t, list("ps", "-a"))
	require.Empty(t, list("network", "ls"))
}
