package node_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// build makes the real binary, once for all cases.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the binary")
	}
	bin := filepath.Join(t.TempDir(), "narad")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "narad.example/narad/cmd/narad").CombinedOutput()
	require.NoError(t, err, string(out))
	return bin
}

// process is one run of `narad serve`.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	api    string
	log    bytes.Buffer // what was read of stdout so far
	out    *bufio.Reader
	stderr lines
}

// serve starts the binary on a folder; more is environment over the usual.
func serve(t *testing.T, bin, dir string, more ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	t.Cleanup(cancel)
	p := &process{t: t, cmd: exec.CommandContext(ctx, bin, "serve", "--addr", "127.0.0.1:0", "--data-dir", dir, "--log-level", "debug")}
	p.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NARAD_CLUSTER_ADDR=127.0.0.1:7943",
		"NARAD_ADMIN_PASSWORD=" + adminPassword, "NARAD_CLUSTER_SECRET=" + clusterSecret,
	}, more...)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewReader(io.TeeReader(stdout, &p.log))
	require.NoError(t, p.cmd.Start())
	return p
}

// ready waits for the line that says where the API is.
func (p *process) ready() *process {
	p.t.Helper()
	for {
		line, err := p.out.ReadBytes('\n')
		require.NoError(p.t, err, "it ended before it was ready: %s", p.stderr.String())
		var rec struct{ Msg, API string }
		require.NoError(p.t, json.Unmarshal(line, &rec), "every line is JSON: %s", line)
		if rec.Msg == "node started" {
			p.api = rec.API
			return p
		}
	}
}

// ended waits for the end and returns the exit code and everything on stderr.
func (p *process) ended() (code int, stderr string) {
	p.t.Helper()
	_, err := io.Copy(io.Discard, p.out)
	require.NoError(p.t, err)
	err = p.cmd.Wait()
	if err != nil {
		var exit *exec.ExitError
		require.ErrorAs(p.t, err, &exit)
	}
	return p.cmd.ProcessState.ExitCode(), p.stderr.String()
}

func (p *process) signal(s os.Signal) *process {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
	return p
}

func (p *process) client() *client.Client {
	transport := &http.Transport{}
	p.t.Cleanup(transport.CloseIdleConnections)
	return client.New(client.Options{
		BaseURL: "http://" + p.api, User: "admin", Password: adminPassword, HTTP: &http.Client{Transport: transport},
	})
}

// refused runs the binary where it must not start: exit code 1 and one line that names the cause.
func refused(t *testing.T, p *process, says ...string) {
	t.Helper()
	code, stderr := p.ended()
	require.Equal(t, 1, code)
	require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %q", stderr)
	for _, want := range append(says, "narad: ") {
		require.Contains(t, stderr, want)
	}
	for _, text := range []string{stderr, p.log.String()} {
		require.NotContains(t, text, adminPassword)
		require.NotContains(t, text, clusterSecret)
		require.NotContains(t, text, "hunter2")
	}
}

// The real process: what was acknowledged outlives SIGTERM and SIGKILL, a SIGTERM drains and ends with 0, and a start that cannot
// be says why in one line and touches nothing.
//
// covers: BRK-04, CRD-13
func TestTheProcess(t *testing.T) {
	bin := build(t)
	dir := filepath.Join(t.TempDir(), "data")

	t.Run("a bad setting", func(t *testing.T) {
		refused(t, serve(t, bin, dir, "NARAD_HTTP_READ_TIMEOUT=soon"), "http.read_timeout", "NARAD_HTTP_READ_TIMEOUT")
		require.NoDirExists(t, dir)
	})
	t.Run("a bad previous secret", func(t *testing.T) {
		refused(t, serve(t, bin, dir, "NARAD_CLUSTER_SECRET_PREVIOUS=hunter2-hunter2"), "NARAD_CLUSTER_SECRET_PREVIOUS")
		require.NoDirExists(t, dir)
	})
	t.Run("a data folder that cannot be made", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		refused(t, serve(t, bin, filepath.Join(file, "data")), "storage.data_dir", "not a directory")
	})
	t.Run("a data folder without rights", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("root may write anywhere")
		}
		locked := t.TempDir()
		require.NoError(t, os.Chmod(locked, 0o500))
		refused(t, serve(t, bin, filepath.Join(locked, "data")), "storage.data_dir", "permission denied")
	})
	t.Run("life", func(t *testing.T) { processLife(t, bin, dir) })
}

func processLife(t *testing.T, bin, dir string) {
	first := serve(t, bin, dir).ready()
	_, err := first.client().CreateTopic(t.Context(), wire.CreateTopic{Name: "orders"})
	require.NoError(t, err)
	produce := func(p *process, from, to int) {
		c := p.client()
		for i := from; i < to; i++ {
			require.NoError(t, c.Produce(t.Context(), "orders", []byte(id("r", i)), client.ProduceOptions{Key: "k"}))
		}
	}
	produce(first, 0, 20)

	refused(t, serve(t, bin, dir), "storage.data_dir", "held by another process")
	produce(first, 20, 25) // it went on

	_, port, err := net.SplitHostPort(first.api)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other")
	busy := serve(t, bin, other, "NARAD_HTTP_METRICS_ADDR=127.0.0.1:"+port)
	refused(t, busy, "http.metrics_addr", port, "in use")

	first.signal(syscall.SIGTERM)
	code, stderr := first.ended()
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	require.Contains(t, first.log.String(), "node stopped")
	require.NotContains(t, first.log.String(), adminPassword)

	second := serve(t, bin, dir).ready()
	require.Equal(t, 25, stored(t, second))
	produce(second, 25, 45)
	second.signal(syscall.SIGKILL)
	_, _ = second.ended()

	third := serve(t, bin, dir).ready()
	require.Eventually(t, func() bool { return stored(t, third) >= 45 }, 20*time.Second, 20*time.Millisecond)
	third.signal(os.Interrupt)
	code, stderr = third.ended()
	require.Zero(t, code, stderr)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "nobody else reads the data folder")
}

// stored counts the records of orders and checks the order in which they came first: what a kill cut off may come once more.
func stored(t *testing.T, p *process) (n int) {
	c := p.client()
	for part := range 3 {
		last, seen := "", map[string]bool{}
		for at := int64(0); ; at++ {
			msg, err := c.Replay(t.Context(), "orders", part, at)
			require.NoError(t, err)
			if msg == nil {
				break
			}
			body, err := client.Payload(msg, false)
			require.NoError(t, err)
			if seen[string(body)] {
				continue
			}
			seen[string(body)] = true
			require.Less(t, last, string(body))
			last = string(body)
			n++
		}
	}
	return n
}
