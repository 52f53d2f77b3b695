// Package slots keeps one small value in a file of two checksummed slots that are written in turn (broker.md: cursor file).
// The cursor files of package fanout and the checkpoint of package ingress are such files.
//
// It promises that a write that is torn, at whatever byte, leaves the last synced value readable: the slot that holds that
// value is never written to before a newer one is synced. Of two whole slots the newer counts. It decides nothing: what a
// damaged or foreign file means is its reader's business, which Parse tells apart by a Verdict.
//
// It runs no goroutine and takes no lock: a File belongs to one goroutine at a time.
//
// Refused: a temporary file and a rename for each write. It costs two directory syncs a write where this costs one data sync.
package slots

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"narad.example/narad/vfs"
)

// Size is the size of a slot in bytes, one sector; MaxValue is the longest value.
const (
	Size     = 512
	MaxValue = crcAt - headSize

	magic    = 0x4e534c31 // "NSL1"
	headSize = 14         // magic, sequence, length of the value
	crcAt    = Size - 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Verdict says what a file held.
type Verdict uint8

// The verdicts.
const (
	Missing Verdict = iota // there is no file
	Whole                  // both slots are whole: the value is the newer one's
	Older                  // one slot is bad: the value is the other's
	Damaged                // neither slot is whole, an empty file included: there is no value
)

// Slot encodes one slot.
func Slot(seq uint64, value []byte) ([]byte, error) {
	if len(value) > MaxValue {
		return nil, fmt.Errorf("slots: a value of %d bytes does not fit in a slot", len(value))
	}
	b := make([]byte, Size)
	binary.LittleEndian.PutUint32(b, magic)
	binary.LittleEndian.PutUint64(b[4:], seq)
	binary.LittleEndian.PutUint16(b[12:], uint16(len(value)))
	copy(b[headSize:], value)
	binary.LittleEndian.PutUint32(b[crcAt:], crc32.Checksum(b[:crcAt], castagnoli))
	return b, nil
}

// Parse reads a whole file: the newest whole value, a copy, and its sequence number. It never panics, whatever the bytes.
func Parse(file []byte) (value []byte, seq uint64, v Verdict) {
	v = Damaged
	whole := 0
	for i := range 2 {
		if len(file) < (i+1)*Size {
			break
		}
		got, n, ok := parseSlot(file[i*Size : (i+1)*Size])
		if !ok {
			continue
		}
		whole++
		if whole == 1 || n > seq {
			value, seq = got, n
		}
	}
	switch whole {
	case 1:
		v = Older
	case 2:
		v = Whole
	}
	return append([]byte(nil), value...), seq, v
}

func parseSlot(b []byte) (value []byte, seq uint64, ok bool) {
	if binary.LittleEndian.Uint32(b) != magic ||
		binary.LittleEndian.Uint32(b[crcAt:]) != crc32.Checksum(b[:crcAt], castagnoli) {
		return nil, 0, false
	}
	n := int(binary.LittleEndian.Uint16(b[12:]))
	if n > MaxValue {
		return nil, 0, false
	}
	return b[headSize : headSize+n], binary.LittleEndian.Uint64(b[4:]), true
}

// File is one file of two slots, open for writing.
type File struct {
	fs     vfs.FS
	name   string
	file   vfs.File // nil before the first write and after a failed one
	seq    uint64   // of the newest synced slot, in slot seq%2; 0 when there is none
	exists bool     // the directory entry is durable
}

// Open reads the file and returns its value. Nothing is created before the first Write. The error is one of reading; a file
// that is missing or damaged is a verdict.
func Open(files vfs.FS, name string) (f *File, value []byte, v Verdict, err error) {
	f = &File{fs: files, name: name}
	data, err := vfs.ReadFile(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil, Missing, nil
	}
	if err != nil {
		return nil, nil, Damaged, fmt.Errorf("slots: read %s: %w", filepath.Base(name), err)
	}
	value, f.seq, v = Parse(data)
	return f, value, v, nil
}

// Write puts the value into the slot that does not hold the last synced one, into the page cache only. It survives a kill of
// the process, not a power loss. After an error the file is opened anew at the next Write.
func (f *File) Write(value []byte) error {
	slot, err := Slot(f.seq+1, value)
	if err != nil {
		return err
	}
	if f.file == nil {
		if err = f.open(); err != nil {
			return err
		}
	}
	if _, err = f.file.WriteAt(slot, int64((f.seq+1)%2)*Size); err != nil {
		return f.fail("write", err)
	}
	return nil
}

func (f *File) open() error {
	h, err := f.fs.OpenFile(f.name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("slots: open %s: %w", filepath.Base(f.name), err)
	}
	f.file = h
	if f.seq > 0 {
		// What an earlier process left may never have been synced, and the coming write goes into the slot before it.
		if err = h.Sync(); err != nil {
			return f.fail("sync", err)
		}
	}
	return nil
}

// Sync makes the last Write durable; the next one goes into the other slot. After a failed Sync the value must be written
// again: nothing is known of it.
func (f *File) Sync() error {
	if f.file == nil {
		return nil
	}
	if err := f.file.Sync(); err != nil {
		return f.fail("sync", err)
	}
	if !f.exists {
		if err := f.fs.SyncDir(filepath.Dir(f.name)); err != nil {
			return f.fail("sync the directory of", err)
		}
		f.exists = true
	}
	f.seq++
	return nil
}

// Close closes the file; it does not sync.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	h := f.file
	f.file = nil
	if err := h.Close(); err != nil {
		return fmt.Errorf("slots: close %s: %w", filepath.Base(f.name), err)
	}
	return nil
}

func (f *File) fail(what string, err error) error {
	// The handle is given up with the error: whether its close works adds nothing to that.
	_ = f.file.Close()
	f.file = nil
	return fmt.Errorf("slots: %s %s: %w", what, filepath.Base(f.name), err)
}
