package soak

import (
	"fmt"
	"syscall"
)

// Room is the disk that a soak leaves to others.
type Room struct {
	Keep  uint64                            // bytes that must be free before a round
	Paths []string                          // where rounds write: the soak's folder and the nodes' data
	Free  func(path string) (uint64, error) // of the disk under a path; nil is Free
}

// KeepFree is far above what a round writes: its records some dozen times over, in logs, ledgers and both clusters' replicas.
const KeepFree = 2 << 30

// lacks says which disk has too little room, "" when there is enough.
func (r *Room) lacks() (string, error) {
	free := r.Free
	if free == nil {
		free = Free
	}
	for _, path := range r.Paths {
		has, err := free(path)
		if err != nil {
			return "", err
		}
		if has < r.Keep {
			return fmt.Sprintf("the disk under %s has %d MiB free and a soak leaves %d MiB: make room and begin again with --first", path, has>>20, r.Keep>>20), nil
		}
	}
	return "", nil
}

// Free is how many bytes of the disk under a path this user may still take.
func Free(path string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("soak: the room on the disk under %s: %w", path, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}
