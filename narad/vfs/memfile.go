package vfs

import (
	"io"
	"io/fs"
	"maps"
	"syscall"
	"time"
)

// sector is the unit in which a power loss keeps or forgets bytes.
const sector = 512

// node is a file or a directory of a Mem; the Mem's mutex guards it.
type node struct {
	data     []byte
	undo     []change // how to get back to what was last synced, oldest first
	kept     int      // how many changes were synced and left undo
	fence    int      // the mark of the newest sync that began: no later append joins a change below it
	modified time.Time
	handles  int   // files that are open
	reserved int64 // room that Preallocate keeps; it holds nothing and counts nowhere

	entries map[string]*node // nil for a file
	durable map[string]*node // the entries as last synced
}

// change is what a write or a truncation overwrote: the size before it, and the bytes that stood at off.
type change struct {
	size int
	off  int
	old  []byte
}

func newDir() *node { return &node{entries: map[string]*node{}, modified: time.Now()} }

// write puts p at off and remembers what it replaced.
func (n *node) write(p []byte, off int) {
	size := len(n.data)
	c := change{size: size, off: off}
	if off < size {
		c.old = append(c.old, n.data[off:min(size, off+len(p))]...)
	}
	// Appends of one sync interval are one change: going back means cutting at the first one's size.
	if last := len(n.undo) - 1; last < 0 || c.old != nil || n.undo[last].old != nil || n.undo[last].size > size || n.mark() <= n.fence {
		n.undo = append(n.undo, c)
	}
	if end := off + len(p); end > size {
		if end > cap(n.data) {
			grown := make([]byte, size, max(end, 2*cap(n.data)))
			copy(grown, n.data)
			n.data = grown
		}
		n.data = n.data[:end]
		clear(n.data[size:end]) // a truncation may have left bytes in the spare room
	}
	copy(n.data[off:], p)
	n.modified = time.Now()
}

// truncate sets the size and remembers what was cut.
func (n *node) truncate(size int) {
	if size > len(n.data) {
		n.write(make([]byte, size-len(n.data)), len(n.data))
		return
	}
	if size == len(n.data) {
		return
	}
	n.undo = append(n.undo, change{size: len(n.data), off: size, old: append([]byte(nil), n.data[size:]...)})
	n.data = n.data[:size]
	n.modified = time.Now()
}

// mark counts the changes so far. A sync that begins now makes them durable, and none that comes later.
func (n *node) mark() int { return n.kept + len(n.undo) }

// keep makes the changes below a mark durable.
func (n *node) keep(upTo int) {
	if done := upTo - n.kept; done > 0 {
		n.undo = n.undo[done:]
		n.kept = upTo
	}
}

// synced returns the bytes as they were last synced.
func (n *node) synced() []byte {
	was := append([]byte(nil), n.data...)
	for i := len(n.undo) - 1; i >= 0; i-- {
		c := n.undo[i]
		for len(was) < c.size {
			was = append(was, make([]byte, c.size-len(was))...)
		}
		was = was[:c.size]
		if len(c.old) > 0 {
			copy(was[c.off:], c.old)
		}
	}
	return was
}

// lose forgets what was not synced, in this node and below it; pick keeps some sectors of it. It counts the files and directories
// that were not synced, as far as they are still there.
func (n *node) lose(pick func(int) int) (lost int) {
	if n.entries != nil {
		if !maps.Equal(n.entries, n.durable) {
			lost++
		}
		n.entries = maps.Clone(n.durable)
		if n.entries == nil {
			n.entries = map[string]*node{}
		}
		for _, child := range n.entries {
			lost += child.lose(pick)
		}
		return lost
	}
	if len(n.undo) == 0 {
		return 0
	}
	was, now := n.synced(), n.data
	if len(now) > len(was) && pick(2) > 0 {
		was = append(was, make([]byte, pick(len(now)-len(was)+1))...)
	}
	for at := 0; at < min(len(was), len(now)); at += sector {
		if pick(2) > 0 {
			piece := was[at:min(at+sector, len(was))]
			clear(piece[copy(piece, now[at:]):])
		}
	}
	n.data, n.kept, n.undo = was, n.mark(), nil
	return 1
}

// bytes is what the files at and below a node hold.
func (n *node) bytes() int64 {
	sum := int64(len(n.data))
	for _, child := range n.entries {
		sum += child.bytes()
	}
	return sum
}

func (n *node) info(name string) fs.FileInfo {
	return memInfo{name: name, size: int64(len(n.data)), dir: n.entries != nil, modified: n.modified}
}

type memInfo struct {
	name     string
	size     int64
	dir      bool
	modified time.Time
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return i.modified }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }

func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// memFile is an open file of a Mem.
type memFile struct {
	mem      *Mem
	node     *node
	name     string
	life     int
	writable bool
	closed   bool // the Mem's mutex guards it
}

// usable is the check before an operation on the handle. The Mem's mutex is held.
func (f *memFile) usable(op Op) error {
	switch {
	case f.closed:
		return pathError(op, f.name, fs.ErrClosed)
	case f.life != f.mem.life, f.mem.frozen && op != OpRead:
		return pathError(op, f.name, ErrFrozen)
	case !f.writable && op != OpRead:
		return pathError(op, f.name, syscall.EBADF)
	}
	return nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if err := f.usable(OpRead); err != nil {
		return 0, err
	}
	if err := f.mem.broken(OpRead, f.name); err != nil {
		return 0, pathError(OpRead, f.name, err)
	}
	if off < 0 {
		return 0, pathError(OpRead, f.name, fs.ErrInvalid)
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	m := f.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f.usable(OpWrite); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError(OpWrite, f.name, fs.ErrInvalid)
	}
	keep := len(p)
	var err error
	if s := m.fail(OpWrite, f.name); s != nil {
		keep, err = min(s.keep, keep), s.err
	} else if err = m.broke(OpWrite, f.name); err != nil {
		keep = 0
	}
	if grow := off + int64(keep) - int64(len(f.node.data)); m.capacity > 0 && grow > 0 && m.used+grow > m.capacity {
		keep = max(0, keep-int(m.used+grow-m.capacity))
		err = syscall.ENOSPC
		m.refused++
	}
	if keep > 0 {
		before := len(f.node.data)
		f.node.write(p[:keep], int(off))
		m.used += int64(len(f.node.data) - before)
	}
	if err != nil {
		return keep, pathError(OpWrite, f.name, err)
	}
	return keep, nil
}

func (f *memFile) Sync() error {
	m := f.mem
	m.mu.Lock()
	if err := f.usable(OpSync); err != nil {
		m.mu.Unlock()
		return err
	}
	if err := m.broken(OpSync, f.name); err != nil {
		m.mu.Unlock()
		return pathError(OpSync, f.name, err)
	}
	delay := m.delay + m.slow(f.name)
	if delay == 0 {
		f.synced(f.node.mark())
		m.mu.Unlock()
		return nil
	}
	upTo := f.node.mark() // what is written while the disk is at work is not synced by it
	f.node.fence = upTo
	m.mu.Unlock()
	time.Sleep(delay)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f.usable(OpSync); err != nil {
		return err
	}
	f.synced(upTo)
	return nil
}

// synced makes what was written up to a mark durable. The Mem's mutex is held.
func (f *memFile) synced(upTo int) {
	f.node.keep(upTo)
	f.mem.syncs++
}

func (f *memFile) Truncate(size int64) error {
	m := f.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f.usable(OpTruncate); err != nil {
		return err
	}
	if err := m.broken(OpTruncate, f.name); err != nil {
		return pathError(OpTruncate, f.name, err)
	}
	f.node.reserved = 0
	before := len(f.node.data)
	f.node.truncate(int(size))
	m.used += int64(len(f.node.data) - before)
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if f.closed {
		return 0, pathError("stat", f.name, fs.ErrClosed)
	}
	return int64(len(f.node.data)), nil
}

func (f *memFile) Close() error {
	f.mem.mu.Lock()
	defer f.mem.mu.Unlock()
	if f.closed {
		return pathError("close", f.name, fs.ErrClosed)
	}
	f.closed = true
	f.node.handles--
	return nil
}

// Handles is how often a file is open now.
func (m *Mem) Handles(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.find(name); n != nil {
		return n.handles
	}
	return 0
}
