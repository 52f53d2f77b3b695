package seglog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"narad.example/narad/vfs"
)

const (
	suffix    = ".log"
	indexStep = 64 << 10 // bytes of a segment between two marks of its index
	scanBytes = 1 << 20  // read at once when a segment is scanned
)

// mark says where in a segment a frame begins.
type mark struct{ seq, pos int64 }

// segment is one file of the log. The log's mutex guards all fields but path and first, which never change.
type segment struct {
	path   string
	first  int64
	next   int64 // above its last frame
	size   int64 // where its last good frame ends
	index  []mark
	loaded bool      // index is whole
	newest time.Time // of the last append
	file   vfs.File  // nil while closed
	refs   int       // reads, and the sync behind, under way
	used   int64     // tick of the last use
	gone   bool      // dropped or the log closed: the last of those closes the file

	// loading is held while the index of a sealed segment is read; it guards nothing.
	loading sync.Mutex
}

// segmentName is the file name of the segment that begins at first.
func segmentName(first int64) string { return fmt.Sprintf("%020d%s", first, suffix) }

// segmentFirst reads a segment's file name.
func segmentFirst(name string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	first, err := strconv.ParseInt(digits, 10, 64)
	return first, err == nil && first >= 0
}

// listSegments finds the segments of a directory, in order.
func listSegments(fsys vfs.FS, dir string) ([]*segment, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []*segment
	for _, e := range entries {
		first, ok := segmentFirst(e.Name())
		if !ok || e.IsDir() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		list = append(list, &segment{path: filepath.Join(dir, e.Name()), first: first, next: first, size: info.Size(), newest: info.ModTime()})
	}
	slices.SortFunc(list, func(a, b *segment) int { return int(min(1, max(-1, a.first-b.first))) })
	return list, nil
}

// createSegment makes an empty segment. Synced, it survives a power loss.
func createSegment(o Options, first int64, synced bool) (*segment, error) {
	s := &segment{path: filepath.Join(o.Dir, segmentName(first)), first: first, next: first, size: headerBytes, loaded: true, newest: time.Now()}
	f, err := o.FS.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if o.Preallocate {
		_ = vfs.Preallocate(f, o.SegmentBytes) // a disk that has not so much room, or cannot, does without
	}
	if err = writeHeader(f, first, synced); err == nil && synced {
		err = o.FS.SyncDir(o.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.file = f
	return s, nil
}

func writeHeader(f vfs.File, first int64, synced bool) error {
	if _, err := f.WriteAt(segmentHeader(first), 0); err != nil || !synced {
		return err
	}
	return f.Sync()
}

// checkHeader verifies the header of the segment in f.
func (s *segment) checkHeader(f vfs.File) error {
	var head [headerBytes]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	first, err := parseHeader(head[:n])
	if errors.Is(err, ErrVersion) {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	if err != nil {
		return &Damage{File: s.path, Offset: 0, Why: err.Error()}
	}
	if first != s.first {
		return &Damage{File: s.path, Offset: 0, Why: fmt.Sprintf("the file holds the segment that begins at %d", first)}
	}
	return nil
}

// scanned is what the frames of a segment turned out to be.
type scanned struct {
	index []mark
	next  int64
	valid int64 // where the last good frame ends
	bad   error // why the frame at valid is none; nil when the file ends there
}

// scan verifies all frames of a segment of size bytes. Its error is one of reading, never of what was read.
func scan(f vfs.File, first, size int64) (scanned, error) {
	r := scanned{next: first, valid: headerBytes}
	buf := make([]byte, min(size, scanBytes))
	have := 0 // bytes of buf that are read, beginning at r.valid
	for r.valid < size {
		n, err := f.ReadAt(buf[have:min(int64(len(buf)), size-r.valid)], r.valid+int64(have))
		if err != nil && !errors.Is(err, io.EOF) {
			return r, err
		}
		have += n
		done, short := r.take(buf[:have])
		if r.bad != nil {
			return r, nil //nolint:nilerr // what was read is bad, reading it did not fail: the caller judges r.bad
		}
		have = copy(buf, buf[done:have])
		left := size - r.valid
		if left > 0 && (int64(have) >= left || int64(short) > left || n == 0) {
			r.bad = errShort
			return r, nil
		}
		if short > len(buf) {
			grown := make([]byte, short)
			copy(grown, buf[:have])
			buf = grown
		}
	}
	return r, nil
}

// take reads the whole frames at the start of data. short is the length of the frame that is not whole, if known.
func (r *scanned) take(data []byte) (done, short int) {
	for {
		_, size, err := parseFrame(data[done:], r.next)
		if errors.Is(err, errShort) {
			return done, size
		}
		if err != nil {
			r.bad = err
			return done, 0
		}
		r.index = addMark(r.index, r.next, r.valid)
		done += size
		r.valid += int64(size)
		r.next++
	}
}

// addMark extends an index by the frame seq at pos when the last mark is far enough behind.
func addMark(index []mark, seq, pos int64) []mark {
	if n := len(index); n > 0 && pos-index[n-1].pos < indexStep {
		return index
	}
	return append(index, mark{seq, pos})
}

// before finds the last mark at or below seq.
func (s *segment) before(seq int64) mark {
	i, found := slices.BinarySearchFunc(s.index, seq, func(m mark, seq int64) int { return int(min(1, max(-1, m.seq-seq))) })
	if found {
		return s.index[i]
	}
	if i == 0 {
		return mark{s.first, headerBytes}
	}
	return s.index[i-1]
}
