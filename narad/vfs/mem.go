package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrFrozen is what a write, sync or rename on a frozen Mem returns, and for ever after whatever uses a handle or a lock
// that was taken before the freeze: its process is dead.
var ErrFrozen = errors.New("the process was killed")

// Op names a file operation in FailNext.
type Op string

// The operations that FailNext can script.
const (
	OpOpen     Op = "open"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpSync     Op = "sync"
	OpTruncate Op = "truncate"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpMkdir    Op = "mkdir"
	OpSyncDir  Op = "syncdir"
)

// Mem is a file system in memory, for tests and for clusters in one process. It keeps apart what was written and what would
// survive a power loss. All its methods may be called at any time from any goroutine.
type Mem struct {
	// mu guards everything below and all nodes; it is never held while something waits.
	mu       sync.Mutex
	root     *node
	frozen   bool
	life     int // counts freezes; handles of an earlier life are dead
	failures []failure
	breaks   []*Break
	capacity int64 // bytes of all files, 0 is no limit
	refused  int64 // writes beyond the capacity
	used     int64
	delay    time.Duration
	locks    map[string]*memLock
	syncs    int64
}

type failure struct {
	op    Op
	err   error
	match string
	keep  int // bytes of a write that still reach the file
}

// NewMem returns an empty file system with a root directory.
func NewMem() *Mem {
	return &Mem{root: newDir(), locks: map[string]*memLock{}}
}

// Freeze is a SIGKILL: from now on every operation that changes something fails with ErrFrozen. What was written
// stays; locks are given back.
func (m *Mem) Freeze() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frozen = true
	m.life++
	clear(m.locks)
}

// Thaw ends a freeze: the next process may start. Handles from before the freeze stay dead.
func (m *Mem) Thaw() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frozen = false
}

// DropUnsynced is a power loss: every byte that was never synced and every directory entry that was never synced is
// forgotten. Handles and locks of before are dead.
// It returns how many files and directories lost something.
func (m *Mem) DropUnsynced() (lost int) { return m.DropUnsyncedPartly(func(int) int { return 0 }) }

// DropUnsyncedPartly is a power loss in the middle of writing back: of the unsynced bytes some sectors reached the
// disk and some did not. pick(n) chooses from 0 to n-1; 0 forgets. It returns how many files and directories were not synced.
func (m *Mem) DropUnsyncedPartly(pick func(n int) int) (lost int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life++
	clear(m.locks)
	lost = m.root.lose(pick)
	m.used = m.root.bytes()
	return lost
}

// FailNext makes the next operation op on a name that contains match ("" is any) fail with err. Failures of the same kind
// wait in the order they were scripted.
func (m *Mem) FailNext(op Op, err error, match string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures = append(m.failures, failure{op: op, err: err, match: match})
}

// CutNextWrite makes the next write to a name that contains match fail with err after its first keep bytes were written.
func (m *Mem) CutNextWrite(keep int, err error, match string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures = append(m.failures, failure{op: OpWrite, err: err, match: match, keep: keep})
}

// Unused is how many scripted failures have not happened yet; a test that ends with some has not tested them.
func (m *Mem) Unused() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.failures)
}

// SetCapacity limits the bytes of all files together; a write beyond it is cut and fails with ENOSPC. 0 is no limit.
func (m *Mem) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytes
}

// SetSyncDelay makes every later Sync of a file last d.
func (m *Mem) SetSyncDelay(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = d
}

// Syncs is how many times a file was synced.
func (m *Mem) Syncs() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.syncs
}

// Used is how many bytes all files hold together.
func (m *Mem) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// fail returns the scripted failure for op on name, if there is one. mu is held.
func (m *Mem) fail(op Op, name string) *failure {
	for i, f := range m.failures {
		if f.op == op && strings.Contains(name, f.match) {
			m.failures = slices.Delete(m.failures, i, i+1)
			return &f
		}
	}
	return nil
}

// refuse is the check before an operation that changes something. mu is held.
func (m *Mem) refuse(op Op, name string) error {
	if m.frozen {
		return pathError(op, name, ErrFrozen)
	}
	if err := m.broken(op, name); err != nil {
		return pathError(op, name, err)
	}
	return nil
}

// broken is why op on name fails, by a script or by what is broken now; nil when it does not. mu is held.
func (m *Mem) broken(op Op, name string) error {
	if f := m.fail(op, name); f != nil {
		return f.err
	}
	return m.broke(op, name)
}

func pathError(op Op, name string, err error) error {
	return &fs.PathError{Op: string(op), Path: name, Err: err}
}

// split gives the elements of a name below the root.
func split(name string) []string {
	clean := path.Clean("/" + filepath.ToSlash(name))
	if clean == "/" {
		return nil
	}
	return strings.Split(clean[1:], "/")
}

// find walks to a name; nil when it is not there. mu is held.
func (m *Mem) find(name string) *node {
	n := m.root
	for _, e := range split(name) {
		if n == nil || n.entries == nil {
			return nil
		}
		n = n.entries[e]
	}
	return n
}

// parent finds the directory of a name and its last element. mu is held.
func (m *Mem) parent(op Op, name string) (dir *node, last string, err error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", pathError(op, name, fs.ErrInvalid)
	}
	dir = m.find(path.Join(parts[:len(parts)-1]...))
	if dir == nil || dir.entries == nil {
		return nil, "", pathError(op, name, fs.ErrNotExist)
	}
	return dir, parts[len(parts)-1], nil
}

// OpenFile implements FS.
func (m *Mem) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.broken(OpOpen, name); err != nil {
		return nil, pathError(OpOpen, name, err)
	}
	dir, last, err := m.parent(OpOpen, name)
	if err != nil {
		return nil, err
	}
	n := dir.entries[last]
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, pathError(OpOpen, name, fs.ErrNotExist)
	case n != nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, pathError(OpOpen, name, fs.ErrExist)
	case n != nil && n.entries != nil:
		return nil, pathError(OpOpen, name, syscall.EISDIR)
	case m.frozen && (n == nil || flag&(os.O_TRUNC|os.O_RDWR|os.O_WRONLY) != 0):
		return nil, pathError(OpOpen, name, ErrFrozen)
	}
	if n == nil {
		n = &node{modified: time.Now()}
		dir.entries[last] = n
	}
	if flag&os.O_TRUNC != 0 {
		m.used -= int64(len(n.data))
		n.truncate(0)
	}
	n.handles++
	return &memFile{mem: m, node: n, name: name, life: m.life, writable: flag&(os.O_RDWR|os.O_WRONLY) != 0}, nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.find(dir); n != nil && n.entries != nil {
		return nil
	}
	if err := m.refuse(OpMkdir, dir); err != nil {
		return err
	}
	n := m.root
	for _, e := range split(dir) {
		next := n.entries[e]
		if next == nil {
			next = newDir()
			n.entries[e] = next
		}
		if next.entries == nil {
			return pathError(OpMkdir, dir, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refuse(OpRemove, name); err != nil {
		return err
	}
	dir, last, err := m.parent(OpRemove, name)
	if err != nil {
		return err
	}
	n := dir.entries[last]
	if n == nil {
		return pathError(OpRemove, name, fs.ErrNotExist)
	}
	if len(n.entries) > 0 {
		return pathError(OpRemove, name, syscall.ENOTEMPTY)
	}
	delete(dir.entries, last)
	m.used -= n.bytes()
	return nil
}

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refuse(OpRemove, name); err != nil {
		return err
	}
	dir, last, err := m.parent(OpRemove, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if n := dir.entries[last]; n != nil {
		delete(dir.entries, last)
		m.used -= n.bytes()
	}
	return nil
}

// Rename implements FS. A file in place of to is replaced.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refuse(OpRename, from); err != nil {
		return err
	}
	src, old, err := m.parent(OpRename, from)
	if err != nil {
		return err
	}
	dst, last, err := m.parent(OpRename, to)
	if err != nil {
		return err
	}
	n := src.entries[old]
	if n == nil {
		return pathError(OpRename, from, fs.ErrNotExist)
	}
	if there := dst.entries[last]; there != nil && there != n {
		if len(there.entries) > 0 {
			return pathError(OpRename, to, syscall.ENOTEMPTY)
		}
		m.used -= there.bytes()
	}
	delete(src.entries, old)
	dst.entries[last] = n
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(dir string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(dir)
	if n == nil {
		return nil, pathError(OpOpen, dir, fs.ErrNotExist)
	}
	if n.entries == nil {
		return nil, pathError(OpOpen, dir, syscall.ENOTDIR)
	}
	list := make([]fs.DirEntry, 0, len(n.entries))
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		list = append(list, fs.FileInfoToDirEntry(n.entries[name].info(name)))
	}
	return list, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return nil, pathError("stat", name, fs.ErrNotExist)
	}
	return n.info(path.Base(filepath.ToSlash(name))), nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refuse(OpSyncDir, dir); err != nil {
		return err
	}
	n := m.find(dir)
	if n == nil || n.entries == nil {
		return pathError(OpSyncDir, dir, fs.ErrNotExist)
	}
	n.durable = maps.Clone(n.entries)
	return nil
}

type memLock struct {
	mem *Mem
	dir string
}

func (m *Mem) lockDir(dir string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.frozen {
		return nil, pathError("lock", dir, ErrFrozen)
	}
	if n := m.find(dir); n == nil || n.entries == nil {
		return nil, pathError("lock", dir, fs.ErrNotExist)
	}
	key := strings.Join(split(dir), "/")
	if m.locks[key] != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, ErrLocked)
	}
	l := &memLock{mem: m, dir: key}
	m.locks[key] = l
	return l, nil
}

// Close gives the lock back, unless a freeze has done so already and somebody else holds it now.
func (l *memLock) Close() error {
	l.mem.mu.Lock()
	defer l.mem.mu.Unlock()
	if l.mem.locks[l.dir] == l {
		delete(l.mem.locks, l.dir)
	}
	return nil
}
