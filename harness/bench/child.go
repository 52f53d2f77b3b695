package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"narad.example/harness/spawn"
)

// spawner starts the benchmark's processes.
type spawner struct{ *spawn.Spawner }

// process is one child. Its goroutine reaps it and ends with it.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
	err   error // of Wait; read after ended is closed
}

// launch starts argv with env alone as its environment; both its outputs go to the file log, or stdout to out when it is not nil.
func (s spawner) launch(name, log string, env, argv []string, out *os.File) (*process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer func() { _ = file.Close() }() // the process has its own handle
	if out == nil {
		out = file
	}
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...) // the stand ends its children itself, and waits for them
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, file
	if err := s.Start(cmd); err != nil {
		return nil, fmt.Errorf("start of %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// output runs argv to its end and returns what it printed and the CPU time that it took.
func (s spawner) output(ctx context.Context, name, log string, argv []string) ([]byte, time.Duration, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = r.Close() }()
	p, err := s.launch(name, log, childEnv(), argv, w)
	_ = w.Close()
	if err != nil {
		return nil, 0, err
	}
	defer p.kill()
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	text, err := io.ReadAll(r)
	<-p.ended
	switch {
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	case p.err != nil:
		return nil, 0, fmt.Errorf("%s: %w: %s", name, p.err, p.tail())
	}
	state := p.cmd.ProcessState
	return text, state.UserTime() + state.SystemTime(), err
}

// childEnv is the environment of every child, without the caller's settings of a broker.
func childEnv() []string { return []string{"TMPDIR=" + os.TempDir(), "HOME=" + os.TempDir()} }

// kill ends the process whatever it does, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // fails when it is gone already
	<-p.ended
}

// tail is the end of the log, for an error.
func (p *process) tail() string {
	body, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(body), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-3):], []byte(" | ")))
}

// check is the error of a process that is gone though nobody asked for it.
func (p *process) check() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended by itself: %w: %s", p.name, errors.Join(p.err), p.tail())
	default:
		return nil
	}
}

// tick is the unit of the times in /proc, which Linux fixes for programs at a hundredth of a second.
const tick = 10 * time.Millisecond

// cpu is the user and system time of the process until now.
func (p *process) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return 0, fmt.Errorf("CPU time of %s: %w", p.name, err)
	}
	return parseStat(string(stat))
}

func (p *process) proc(file string) string {
	return "/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/" + file
}

// parseStat adds utime and stime, the fields 14 and 15; the second field is in brackets and may hold anything.
func parseStat(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("%d fields in a stat file of /proc", len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, errSystem := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err, errSystem)
}

// rss is the resident memory of the process in MiB.
func (p *process) rss() (float64, error) {
	status, err := os.ReadFile(p.proc("status"))
	if err != nil {
		return 0, fmt.Errorf("memory of %s: %w", p.name, err)
	}
	return parseRSS(string(status))
}

func parseRSS(status string) (float64, error) {
	for line := range strings.Lines(status) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "VmRSS:" && f[2] == "kB" {
			kib, err := strconv.ParseFloat(f[1], 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("no VmRSS in a status file of /proc")
}
