package spawn

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// Members lists the processes of the group that a child of a Spawner began, under the child's number, without those that are dead and not reaped
// yet. Where the kernel does not list processes it is the child's number when any of them is there.
func Members(child int) []int {
	list, err := os.ReadDir("/proc")
	if err != nil || group(os.Getpid()) == 0 {
		if syscall.Kill(-child, 0) == nil {
			return []int{child}
		}
		return nil
	}
	var out []int
	for _, entry := range list {
		if pid, nerr := strconv.Atoi(entry.Name()); nerr == nil && group(pid) == child {
			out = append(out, pid)
		}
	}
	return out
}

// group is the group of a process that lives, 0 when it does not or when the kernel does not tell.
func group(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the command in the second field may hold brackets
	if len(fields) < 3 || string(fields[0]) == "Z" {
		return 0
	}
	n, _ := strconv.Atoi(string(fields[2])) // 0 when it is none
	return n
}

// KillGroup kills a child of a Spawner and all that it started in its turn, or what is left of them.
func KillGroup(child int) error { return syscall.Kill(-child, syscall.SIGKILL) }
