package spawn

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("SPAWN_ROLE") == "parent" {
		parent()
		return
	}
	goleak.VerifyTestMain(m)
}

// parent starts a child that would sleep for an hour, says its pid, and waits to be killed.
func parent() {
	s := New()
	cmd := exec.Command("sleep", "3600") // without a context: it must outlive every one of this process
	cmd.Stdout = os.Stdout
	if s.Start(cmd) != nil {
		return
	}
	_, _ = os.Stdout.WriteString("started\n")
	select {}
}

// TestChildrenDieWithTheHarness kills a parent and sees the end of the pipe that only its child still holds.
func TestChildrenDieWithTheHarness(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child to its parent")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "SPAWN_ROLE=parent")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\n", line)
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_, err = lines.ReadString('\n')
	require.Error(t, err, "the child holds the other end of the pipe while it lives")
	require.Error(t, cmd.Wait())
}

func TestStartFailsAsTheCommandDoes(t *testing.T) {
	s := New()
	defer s.Close()
	require.Error(t, s.Start(exec.CommandContext(t.Context(), t.TempDir())))
}
