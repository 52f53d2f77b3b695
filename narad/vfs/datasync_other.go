//go:build !linux

package vfs

import "os"

// datasync writes a file to the disk.
func datasync(f *os.File) error { return f.Sync() }
