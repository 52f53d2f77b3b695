package spawn

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALeashAsksForStacksAndThenKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, killed time.Duration
		began := time.Now()
		l := hold(Patience, func() { asked = time.Since(began) }, func() { killed = time.Since(began) })
		time.Sleep(Patience + time.Minute)
		require.True(t, l.Release())
		require.Equal(t, Patience, asked)
		require.Equal(t, Patience+grace, killed)
	})
}

func TestALeashLetsGoInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := func() { t.Error("it was in time") }
		l := hold(Patience, never, never)
		time.Sleep(Patience - time.Second)
		require.False(t, l.Release())
		time.Sleep(time.Hour)
	})
}

func TestALeashIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked time.Duration
		began := time.Now()
		l := hold(Patience, func() { asked = time.Since(began) }, func() {})
		for range 3 {
			time.Sleep(Patience - time.Second)
			l.Renew()
		}
		time.Sleep(Patience + time.Minute)
		l.Renew()
		require.True(t, l.Release())
		require.Equal(t, 4*Patience-3*time.Second, asked)
	})
}

func TestALeashWaitsForNoGraceOnceReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		asked, killed := make(chan bool), time.Duration(0)
		l := hold(time.Second, func() { close(asked) }, func() { killed = time.Since(began) })
		<-asked
		time.Sleep(time.Second)
		require.True(t, l.Release())
		require.Equal(t, 2*time.Second, killed)
	})
}

// hungFamily starts a shell that waits for a child which ignores SIGQUIT; both hold the pipe that is returned.
func hungFamily(ctx context.Context, t *testing.T) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	s := New()
	t.Cleanup(s.Close)
	cmd := exec.CommandContext(ctx, "sh", "-c", "trap '' QUIT; sleep 3600 & trap - QUIT; echo up; wait")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start(cmd))
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "up\n", line)
	return cmd, lines
}

func TestALeashEndsTheWholeFamily(t *testing.T) {
	cmd, lines := hungFamily(t.Context(), t)
	require.Len(t, Members(cmd.Process.Pid), 2)
	l := Hold(cmd.Process, time.Millisecond)
	_, err := io.ReadAll(lines)
	require.NoError(t, err, "the pipe ends once the last of the family is gone")
	require.Error(t, cmd.Wait())
	require.True(t, l.Release())
	require.Empty(t, Members(cmd.Process.Pid))
}

func TestAnEndedContextEndsTheWholeFamily(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd, lines := hungFamily(ctx, t)
	cancel()
	_, err := io.ReadAll(lines)
	require.NoError(t, err, "the pipe ends once the last of the family is gone")
	require.Error(t, cmd.Wait())
}
