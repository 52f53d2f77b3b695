package vfs

import "errors"

// Preallocate reserves room on the disk for the first bytes of a file without changing its size or what it holds, so that writes up to
// there need no new blocks. errors.ErrUnsupported says that this file system cannot. Truncate gives back what lies above the size.
func Preallocate(f File, bytes int64) error {
	p, ok := f.(interface{ preallocate(bytes int64) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return p.preallocate(bytes)
}

func (f *memFile) preallocate(bytes int64) error {
	m := f.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f.usable(OpWrite); err != nil {
		return err
	}
	f.node.reserved = bytes
	return nil
}

// Reserved is how many bytes Preallocate has reserved for a file and no Truncate has given back.
func (m *Mem) Reserved(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.find(name); n != nil {
		return n.reserved
	}
	return 0
}
