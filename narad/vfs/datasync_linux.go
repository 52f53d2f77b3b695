package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync writes a file's bytes and size to the disk, leaving out times. A signal may interrupt it, which says nothing
// about the bytes, so it is called again.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
		return nil
	}
}
