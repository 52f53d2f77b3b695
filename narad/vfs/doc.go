// Package vfs holds the few file operations that the broker's storage needs, once on the real disk (OS) and once in memory
// (Mem), so that storage can be attacked: killed in the middle of a write, robbed of everything that was never synced, given
// a full disk or a failing fsync, all in a test and in virtual time.
//
// It promises that both kinds behave alike as far as the storage code can tell, and that Mem is never kinder than a disk: a file
// survives a power loss only when its bytes were synced and the directory entry of its name was synced too.
//
// It runs no goroutine. It refuses what storage does not need: appending handles, links, permissions beyond creation,
// memory maps.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FS is a file system. Names are paths as package path/filepath has them. Errors are those of package os: a missing file
// answers errors.Is(err, fs.ErrNotExist), a full disk IsFull(err).
type FS interface {
	// OpenFile opens name with the flags of package os: O_RDONLY, O_RDWR, O_CREATE, O_EXCL, O_TRUNC.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	MkdirAll(dir string, perm fs.FileMode) error
	Remove(name string) error
	RemoveAll(dir string) error
	Rename(from, to string) error
	// ReadDir lists dir in name order.
	ReadDir(dir string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the creations, removals and renames in dir survive a power loss.
	SyncDir(dir string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the file's bytes and its size survive a power loss (fdatasync).
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
}

// ErrLocked is returned by LockDir when another process, or another part of this one, holds the folder.
var ErrLocked = errors.New("the folder is held by another process")

// locker is what a file system offers when folders in it can be locked.
type locker interface {
	lockDir(dir string) (io.Closer, error)
}

// LockFile is the name of the file in a folder that LockDir locks.
const LockFile = "LOCK"

// LockDir takes the one lock of a folder, which must exist, until the closer is closed or the process ends. A folder that is
// held answers ErrLocked.
func LockDir(fsys FS, dir string) (io.Closer, error) {
	l, ok := fsys.(locker)
	if !ok {
		return nil, fmt.Errorf("lock %s: this file system has no locks", dir)
	}
	return l.lockDir(dir)
}

// IsFull tells whether err says that the disk, or the quota on it, is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// ReadFile returns the whole of a file.
func ReadFile(fsys FS, name string) (data []byte, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data = make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// WriteFile puts data in place of the file name, durably and whole or not at all: it writes a neighbour, syncs it, renames
// it and syncs the directory.
func WriteFile(fsys FS, name string, data []byte, perm fs.FileMode) error {
	neighbour := name + ".new"
	f, err := fsys.OpenFile(neighbour, os.O_RDWR|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = fsys.Rename(neighbour, name); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}
