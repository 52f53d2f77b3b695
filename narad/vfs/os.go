package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OS is the real file system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) MkdirAll(dir string, perm fs.FileMode) error { return os.MkdirAll(dir, perm) }
func (osFS) Remove(name string) error                    { return os.Remove(name) }
func (osFS) RemoveAll(dir string) error                  { return os.RemoveAll(dir) }
func (osFS) Rename(from, to string) error                { return os.Rename(from, to) }
func (osFS) ReadDir(dir string) ([]fs.DirEntry, error)   { return os.ReadDir(dir) }
func (osFS) Stat(name string) (fs.FileInfo, error)       { return os.Stat(name) }

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (osFS) lockDir(dir string) (io.Closer, error) {
	name := filepath.Join(dir, LockFile)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return f, nil
}

// writeBytes is what is written at once. Linux takes several times as long for the same bytes when a call has more than 2 MiB of new ones
// (ext4 of 6.18; BenchmarkWrite).
const writeBytes = 1 << 20

// osFile is a file on the real disk. Reading is that of package os.
type osFile struct{ *os.File }

// WriteAt writes p in pieces.
func (f osFile) WriteAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var wrote int
		wrote, err = f.File.WriteAt(p[n:min(len(p), n+writeBytes)], off+int64(n))
		n += wrote
	}
	return n, err
}

func (f osFile) Sync() error { return datasync(f.File) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
