package spawn

import "syscall"

// attributes make a child die with the thread that started it, in a process group of its own.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
