//go:build !linux

package spawn

import "syscall"

// attributes put a child into a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
