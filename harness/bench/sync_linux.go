package bench

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync is what one request of the floor's target costs at least.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
