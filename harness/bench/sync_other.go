//go:build !linux

package bench

import "os"

// datasync is what one request of the floor's target costs at least.
func datasync(f *os.File) error { return f.Sync() }
