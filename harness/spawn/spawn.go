// Package spawn starts child processes that die with the harness, whatever ends it.
//
// The kernel ties "die with your parent" to the thread that started the child, and the Go runtime may end any thread; so a
// Spawner starts all its children from one thread, which its one goroutine holds until Close. Only Linux has that tie:
// elsewhere whoever started the children removes what a killed harness left.
package spawn

import (
	"os/exec"
	"runtime"
)

// Spawner starts processes from one thread that lives until Close.
type Spawner struct {
	jobs chan func()
	done chan struct{}
}

// New starts the thread.
func New() *Spawner {
	s := &Spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// Start starts cmd in a process group of its own. A terminal's Ctrl-C does not reach it: the harness ends its children itself, and the end of a
// command's context ends all of the group. Cmd's SysProcAttr and Cancel are set here.
func (s *Spawner) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return KillGroup(cmd.Process.Pid) }
	}
	errs := make(chan error)
	s.jobs <- func() { errs <- cmd.Start() }
	return <-errs
}

// Close ends the thread. Every child must be gone before.
func (s *Spawner) Close() {
	close(s.jobs)
	<-s.done
}
