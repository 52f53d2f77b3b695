package queue

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

// FileName is the name of the frontier file in a partition's directory.
//
// It holds two slots of equal size, half the file each. A slot, with numbers in little endian:
//
//	 0  8  magic "NARADACK"
//	 8  4  version, 1
//	12  8  sequence of the write
//	20  8  frontier
//	28  4  length of what follows, without the checksum
//	32  .  acks ahead: pairs of unsigned varints, how many offsets to pass from the frontier or the last pair on, how many
//	       are acked from there on
//	 .  4  CRC-32C of all before
//
// The whole slot of the higher sequence counts. Writes go to one slot until it is synced and then to the other, so a power
// loss always leaves one.
const FileName = "consumer.frontier"

const (
	slotMagic   = "NARADACK"
	slotVersion = 1
	slotHead    = 32
	slotBytes   = 4096 // at first; doubled when acks ahead need more
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// saved is what a slot holds.
type saved struct {
	seq      uint64
	frontier int64
	acked    []int64 // in order, above the frontier
}

// appendSlot encodes s, without filling the slot up.
func appendSlot(dst []byte, s saved) []byte {
	at := len(dst)
	dst = append(dst, slotMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, slotVersion)
	dst = binary.LittleEndian.AppendUint64(dst, s.seq)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.frontier))
	dst = append(dst, 0, 0, 0, 0)
	from := s.frontier
	for i := 0; i < len(s.acked); {
		run := 1
		for i+run < len(s.acked) && s.acked[i+run] == s.acked[i]+int64(run) {
			run++
		}
		dst = binary.AppendUvarint(dst, uint64(s.acked[i]-from))
		dst = binary.AppendUvarint(dst, uint64(run))
		from = s.acked[i] + int64(run)
		i += run
	}
	binary.LittleEndian.PutUint32(dst[at+slotHead-4:], uint32(len(dst)-at-slotHead))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

// parseSlot decodes a slot; ok is false for one that was never written, is torn or not ours.
func parseSlot(data []byte) (s saved, ok bool) {
	if len(data) < slotHead+4 || string(data[:8]) != slotMagic || binary.LittleEndian.Uint32(data[8:]) != slotVersion {
		return saved{}, false
	}
	n := int64(binary.LittleEndian.Uint32(data[slotHead-4:]))
	if n > int64(len(data)-slotHead-4) {
		return saved{}, false
	}
	end := slotHead + int(n)
	if binary.LittleEndian.Uint32(data[end:]) != crc32.Checksum(data[:end], castagnoli) {
		return saved{}, false
	}
	s.seq = binary.LittleEndian.Uint64(data[12:])
	s.frontier = int64(binary.LittleEndian.Uint64(data[20:]))
	from := s.frontier
	for rest := data[slotHead:end]; len(rest) > 0; {
		pass, a := binary.Uvarint(rest)
		if a <= 0 {
			return saved{}, false
		}
		run, b := binary.Uvarint(rest[a:])
		if b <= 0 || run > 1<<24 {
			return saved{}, false
		}
		rest = rest[a+b:]
		from += int64(pass)
		for range run {
			s.acked = append(s.acked, from)
			from++
		}
	}
	return s, s.frontier >= 0
}

// frontierFile is the open frontier file of a partition. The caller serializes.
type frontierFile struct {
	fs   vfs.FS
	path string
	file vfs.File // nil until there is one
	slot int64    // size of a slot
	turn int64    // the slot, 0 or 1, that is written until it is synced
	wet  bool     // that slot was written since the last sync
	seq  uint64   // of the last write
	buf  []byte
}

// openFrontier reads the frontier file in dir. found is false when there is none, torn when there is one without a whole slot.
func openFrontier(fsys vfs.FS, dir string) (f *frontierFile, s saved, found, torn bool, err error) {
	f = &frontierFile{fs: fsys, path: filepath.Join(dir, FileName)}
	data, err := vfs.ReadFile(fsys, f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, saved{}, false, false, nil
	}
	if err != nil {
		return nil, saved{}, false, false, fmt.Errorf("read the frontier: %w", err)
	}
	f.slot = int64(len(data) / 2)
	for i := range int64(2) {
		t, ok := parseSlot(data[i*f.slot : (i+1)*f.slot])
		if ok && (!found || t.seq > s.seq) {
			s, found, f.turn = t, true, 1-i
		}
	}
	if !found {
		return f, saved{}, false, true, nil
	}
	f.seq = s.seq
	file, err := fsys.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return nil, saved{}, false, false, fmt.Errorf("open the frontier: %w", err)
	}
	// The newest slot may be in the page cache only, since a killed process wrote it; the other one may go only after.
	if err = file.Sync(); err != nil {
		return nil, saved{}, false, false, fmt.Errorf("open the frontier: %w", errors.Join(err, file.Close()))
	}
	f.file = file
	return f, s, true, false, nil
}

// write puts a frontier into the page cache; the file is made, or made larger, durably when need be.
func (f *frontierFile) write(frontier int64, acked []int64) error {
	f.buf = appendSlot(f.buf[:0], saved{seq: f.seq + 1, frontier: frontier, acked: acked})
	if f.file == nil || int64(len(f.buf)) > f.slot {
		if err := f.create(); err != nil {
			return fmt.Errorf("write the frontier: %w", err)
		}
	} else {
		f.wet = true
		if _, err := f.file.WriteAt(f.buf, f.turn*f.slot); err != nil {
			return fmt.Errorf("write the frontier: %w", err)
		}
	}
	f.seq++
	return nil
}

// create makes a file with slots that f.buf fits in, and f.buf in the first.
func (f *frontierFile) create() error {
	slot := int64(slotBytes)
	for slot < int64(len(f.buf)) {
		slot *= 2
	}
	if err := f.close(); err != nil {
		return err
	}
	data := make([]byte, 2*slot)
	copy(data, f.buf)
	if err := vfs.WriteFile(f.fs, f.path, data, 0o600); err != nil {
		return err
	}
	file, err := f.fs.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	f.file, f.slot, f.turn, f.wet = file, slot, 1, false
	return nil
}

// sync puts what was written on the disk, and turns to the other slot.
func (f *frontierFile) sync() error {
	if f.file == nil || !f.wet {
		return nil
	}
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("sync the frontier: %w", err)
	}
	f.turn, f.wet = 1-f.turn, false
	return nil
}

func (f *frontierFile) close() error {
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}
