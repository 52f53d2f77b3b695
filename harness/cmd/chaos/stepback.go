package main

import (
	"os"
	"strconv"
	"syscall"
)

// workerNice is the nice value of a worker: real clusters, whose clocks do not wait, come first on a full machine.
const workerNice = 15

// stepBack lowers the priority of this process. On Linux each thread has its own, which the threads that it starts inherit; one that cannot
// be lowered stays as it is.
func stepBack() {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, workerNice)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return // not Linux: the process has one priority
	}
	for _, t := range threads {
		if id, cerr := strconv.Atoi(t.Name()); cerr == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, workerNice)
		}
	}
}
