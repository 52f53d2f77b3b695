package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"narad.example/harness/spawn"
)

// child is one process: a program with its log, which may end and start again.
type child struct {
	name    string
	spawn   *spawn.Spawner
	journal *journal
	trouble *troubles
	argv    []string
	env     []string
	log     string // file, appended to

	mu    sync.Mutex // guards the present run; never held while waiting
	run   *run
	asked bool  // its end was asked for
	first []int // the processes that it has been so far
}

// started are the processes that it has been so far.
func (c *child) started() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.first)
}

// become has later starts be of another program, without a variable of the environment.
func (c *child) become(program, without string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.argv = append([]string{program}, c.argv[1:]...)
	c.env = slices.DeleteFunc(slices.Clone(c.env), func(v string) bool { return strings.HasPrefix(v, without+"=") })
}

// run is one life of a child.
type run struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// launch starts the process. It is an error when it runs already.
func (c *child) launch() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != nil && !c.run.over() {
		return fmt.Errorf("%s runs already", c.name)
	}
	if err := os.MkdirAll(filepath.Dir(c.log), 0o755); err != nil {
		return fmt.Errorf("log of %s: %w", c.name, err)
	}
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("log of %s: %w", c.name, err)
	}
	defer func() { _ = out.Close() }() // the process has its own handle
	cmd := exec.CommandContext(context.Background(), c.argv[0], c.argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, out, out
	if err = c.spawn.Start(cmd); err != nil {
		return fmt.Errorf("%w: start of %s: %w", ErrTrouble, c.name, err)
	}
	r := &run{cmd: cmd, ended: make(chan struct{})}
	c.run, c.asked = r, false
	c.first = append(c.first, cmd.Process.Pid)
	go c.await(r)
	return c.journal.child(cmd.Process.Pid)
}

// await is the loop that reaps one run and reports an end that nobody asked for.
func (c *child) await(r *run) {
	err := r.cmd.Wait()
	c.mu.Lock()
	asked := c.asked
	c.mu.Unlock()
	if !asked {
		how := "status 0"
		if err != nil {
			how = err.Error()
		}
		c.trouble.add("%s ended by itself: %s", c.name, how)
	}
	close(r.ended)
}

func (r *run) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func (c *child) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.run != nil && !c.run.over()
}

// ended is closed when the present run is over, nil before the first.
func (c *child) ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil {
		return nil
	}
	return c.run.ended
}

// signal sends s to the process.
func (c *child) signal(s os.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil || c.run.over() {
		return fmt.Errorf("%s does not run", c.name)
	}
	if err := c.run.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal to %s: %w", c.name, err)
	}
	return nil
}

// settle waits until the kernel shows the process stopped, or no longer. Where the kernel does not tell it returns at once.
func (c *child) settle(ctx context.Context, stopped bool) error {
	c.mu.Lock()
	pid := c.run.cmd.Process.Pid
	c.mu.Unlock()
	for {
		fields := statFields(pid)
		if len(fields) == 0 || (fields[0] == "T") == stopped {
			return nil
		}
		t := time.NewTimer(time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%s does not obey: %w", c.name, ctx.Err())
		}
	}
}

// end sends s and waits until the process is gone.
func (c *child) end(ctx context.Context, s os.Signal) error {
	c.mu.Lock()
	c.asked = true
	c.mu.Unlock()
	if err := c.signal(s); err != nil {
		return err
	}
	select {
	case <-c.ended():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s does not end: %w", c.name, ctx.Err())
	}
}

// kill ends the process whatever it does, and is no error when it is gone already.
func (c *child) kill() {
	c.mu.Lock()
	c.asked = true
	r := c.run
	c.mu.Unlock()
	if r == nil {
		return
	}
	if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.trouble.add("%s cannot be killed: %v", c.name, err)
		return
	}
	<-r.ended
}
