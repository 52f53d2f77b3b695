package fanout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"narad.example/narad/slots"
	"narad.example/narad/vfs"
)

// MaxLanes is the most lanes that a link has (SND-01), and the most marks that a cursor file holds.
const MaxLanes = 8

const maxEpoch = 64

var errPosition = errors.New("fanout: a whole slot of the cursor file holds no position")

// position is what a cursor file holds (CUR-03): the attach epoch, the next offset to ship, and after a graceful stop inside a
// slab the lane marks of that slab (DEC-09).
type position struct {
	epoch string
	next  int64
	marks []int64 // by lane, -1 for none; nil when nothing of the slab at next was accepted
}

// fileName is the cursor file of a child, beside the log of the parent partition.
func fileName(dir, child string) string { return filepath.Join(dir, "fanout-"+child+".offset") }

// encode lays a position out: length and bytes of the epoch, next, number of marks, marks. The checksum is the slot's.
func (p position) encode() ([]byte, error) {
	if len(p.epoch) > maxEpoch || len(p.marks) > MaxLanes {
		return nil, errPosition
	}
	b := make([]byte, 0, 2+len(p.epoch)+8+8*len(p.marks))
	b = append(b, byte(len(p.epoch)))
	b = append(b, p.epoch...)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.next))
	b = append(b, byte(len(p.marks)))
	for _, m := range p.marks {
		b = binary.LittleEndian.AppendUint64(b, uint64(m))
	}
	return b, nil
}

func decodePosition(b []byte) (position, error) {
	if len(b) < 1 || b[0] > maxEpoch || len(b) < 1+int(b[0])+9 {
		return position{}, errPosition
	}
	p := position{epoch: string(b[1 : 1+b[0]])}
	b = b[1+int(b[0]):]
	p.next = int64(binary.LittleEndian.Uint64(b))
	n := int(b[8])
	b = b[9:]
	if p.next < 0 || n > MaxLanes || len(b) != 8*n {
		return position{}, errPosition
	}
	for i := range n {
		m := int64(binary.LittleEndian.Uint64(b[8*i:]))
		if m < -1 {
			return position{}, errPosition
		}
		p.marks = append(p.marks, m)
	}
	return p, nil
}

// openPosition reads a cursor file. ok tells whether p is a position; an error in the value of a whole slot counts as damage.
func openPosition(files vfs.FS, name string) (f *slots.File, p position, v slots.Verdict, err error) {
	f, value, v, err := slots.Open(files, name)
	if err != nil || v == slots.Missing || v == slots.Damaged {
		return f, position{}, v, err
	}
	if p, err = decodePosition(value); err != nil {
		return f, position{}, slots.Damaged, nil //nolint:nilerr // the verdict says it: a bad value is damage, not a failed read
	}
	return f, p, v, nil
}

// storePosition writes and syncs.
func storePosition(f *slots.File, p position) error {
	value, err := p.encode()
	if err != nil {
		return err
	}
	if err = f.Write(value); err != nil {
		return err
	}
	return f.Sync()
}

// removePosition removes the cursor file of a detached child if it is of that epoch, or of none that can be read (DEC-18).
func removePosition(files vfs.FS, name, epoch string) error {
	f, p, v, err := openPosition(files, name)
	if err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if v == slots.Missing || v != slots.Damaged && p.epoch != epoch {
		return nil
	}
	if err = files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("fanout: %w", err)
	}
	if err = files.SyncDir(filepath.Dir(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("fanout: %w", err)
	}
	return nil
}
