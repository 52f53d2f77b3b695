package seglog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"

	"narad.example/narad/vfs"
)

// Buffer is the memory that one reader lends to its reads, and a note of where the last one ended, so that a reader who
// goes forward finds its place at once. The zero value is ready. It is not for several goroutines at once.
type Buffer struct {
	// Weigh tells what a frame of that body counts in maxBytes; nil counts its bytes in the log.
	Weigh func(body []byte) int

	data   []byte
	frames []Frame
	run    []byte // what the frames are, one after the other

	from *segment // where the last read ended
	seq  int64
	pos  int64
}

// Size is how many bytes the buffer holds on to.
func (b *Buffer) Size() int { return cap(b.data) }

// Run is the frames of the last Read in one piece, as they lie in the log, until the next one. Batch.Adopt takes it.
func (b *Buffer) Run() []byte { return b.run }

// view is what a read knows about a segment while it holds it.
type view struct {
	seg  *segment
	file vfs.File
	at   mark  // a frame at or below the one asked for
	end  int64 // where the good frames end
	mean int64 // bytes of a frame
	slow bool  // at lies before the frame asked for
}

// Read returns frames from the sequence number from on: at most maxFrames, of at most maxBytes together, heads counted (see Buffer.Weigh), but one
// frame always goes. It may return fewer although more are there, never beyond Next; none, without an error, when from is Next or above. Each
// frame's checksum is verified. Bodies lie in buf until its next use. Errors are ErrTrimmed, *Damage (when frames before
// the damage were asked for they come first, without it), ErrClosed, or of the file.
func (l *Log) Read(from int64, maxFrames, maxBytes int, buf *Buffer) ([]Frame, error) {
	buf.frames, buf.run = buf.frames[:0], nil
	if maxFrames <= 0 {
		return nil, nil
	}
	v, err := l.acquire(from, buf)
	if err != nil || v.seg == nil {
		return nil, err
	}
	err = readSegment(v, from, maxFrames, maxBytes, buf)
	if err = errors.Join(err, l.release(v.seg)); err != nil {
		return nil, err
	}
	return buf.frames, nil
}

// acquire finds the segment with the frame from and keeps its file open; v.seg is nil when there is no such frame yet.
func (l *Log) acquire(from int64, buf *Buffer) (v view, err error) {
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return view{}, ErrClosed
		}
		if from < l.list[0].first {
			l.mu.Unlock()
			return view{}, ErrTrimmed
		}
		if from >= l.next.Load() {
			l.mu.Unlock()
			return view{}, nil
		}
		s := l.list[sort.Search(len(l.list), func(i int) bool { return l.list[i].next > from })]
		if s.loaded {
			v, err = l.hold(s, from, buf)
			l.mu.Unlock()
			return v, err
		}
		l.mu.Unlock()
		if err = l.load(s); err != nil {
			return view{}, err
		}
	}
}

// hold opens the file of a segment and counts a read on it. mu is held.
func (l *Log) hold(s *segment, from int64, buf *Buffer) (view, error) {
	l.touch()
	if s.file == nil {
		flag := os.O_RDONLY
		if s == l.list[len(l.list)-1] {
			flag = os.O_RDWR // it is appended to through the same file
		}
		f, err := l.o.FS.OpenFile(s.path, flag, 0)
		if err != nil {
			return view{}, err
		}
		s.file = f
	}
	s.refs++
	l.tick++
	s.used = l.tick
	l.evict()
	v := view{seg: s, file: s.file, end: s.size, mean: (s.size-headerBytes)/(s.next-s.first) + 1}
	if buf.from == s && buf.seq == from {
		v.at = mark{from, buf.pos}
		return v, nil
	}
	v.at = s.before(from)
	v.slow = v.at.seq < from
	return v, nil
}

// load builds the index of a sealed segment, which verifies all of it.
func (l *Log) load(s *segment) (err error) {
	s.loading.Lock()
	defer s.loading.Unlock()
	l.mu.Lock()
	done := s.loaded
	l.mu.Unlock()
	if done {
		return nil
	}
	f, err := l.o.FS.OpenFile(s.path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrTrimmed // dropped since
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	index, err := scanSealed(s, f)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.index, s.loaded = index, true
	return nil
}

// release ends a read on a segment.
func (l *Log) release(s *segment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.refs--
	if s.gone {
		return s.closeFile()
	}
	return nil
}

// closeFile closes the file of a segment that nobody reads. The log's mutex is held.
func (s *segment) closeFile() error {
	if s.file == nil || s.refs > 0 {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}

// evict closes the files that were not used for longest while too many sealed segments are open. mu is held.
func (l *Log) evict() {
	open := 0
	var idle []*segment
	for _, s := range l.list[:len(l.list)-1] {
		if s.file == nil {
			continue
		}
		open++
		if s.refs == 0 {
			idle = append(idle, s)
		}
	}
	if open <= openFiles {
		return
	}
	slices.SortFunc(idle, func(a, b *segment) int { return cmp.Compare(a.used, b.used) })
	for _, s := range idle[:min(open-openFiles, len(idle))] {
		_ = s.closeFile() // its bytes are synced, and a file that is only read has nothing to lose
	}
}

// readSegment reads with one pread, or more when the first frame is larger than thought or lies further on.
func readSegment(v view, from int64, maxFrames, maxBytes int, buf *Buffer) error {
	want := v.ahead(maxFrames, maxBytes)
	for seq, pos := v.at.seq, v.at.pos; ; {
		want = min(want, v.end-pos)
		data, err := buf.fill(v.file, pos, want)
		if err != nil {
			return fmt.Errorf("read %s: %w", v.seg.path, err)
		}
		at, need, err := buf.collect(data, &seq, from, maxFrames, maxBytes)
		pos += int64(at)
		if len(buf.frames) > 0 {
			buf.from, buf.seq, buf.pos = v.seg, seq, pos
			return nil
		}
		if err == nil && (int64(len(data)) < want || need == 0 || pos+int64(need) > v.end) {
			err = errShort
		}
		if err != nil {
			return &Damage{File: v.seg.path, Offset: pos, Why: err.Error()}
		}
		want = max(int64(need), v.ahead(maxFrames, maxBytes))
	}
}

// ahead guesses how many bytes to read for so many frames, from what frames of the segment take in the mean.
func (v *view) ahead(maxFrames, maxBytes int) int64 {
	want := min(int64(maxBytes), 4096+2*v.mean*int64(maxFrames))
	if v.slow {
		want += indexStep
	}
	return max(want, frameBytes)
}

// fill reads size bytes at pos into the buffer's memory.
func (b *Buffer) fill(f vfs.File, pos, size int64) ([]byte, error) {
	if int64(cap(b.data)) < size {
		b.data = make([]byte, size)
	}
	data := b.data[:size]
	n, err := f.ReadAt(data, pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// collect walks over the frames in data: those below from are passed, the others are verified and kept while they fit. It
// returns how far it came, and how long the frame is that data does not hold whole.
func (b *Buffer) collect(data []byte, seq *int64, from int64, maxFrames, maxBytes int) (at, need int, err error) {
	for sum, begin := 0, 0; len(b.frames) < maxFrames; {
		rest := data[at:]
		if len(rest) < frameBytes {
			return at, frameBytes, nil
		}
		if *seq < from {
			h := peek(rest)
			if h.seq != *seq || h.length > MaxBody {
				return at, 0, errBad
			}
			if len(rest) < frameBytes+h.length {
				return at, frameBytes + h.length, nil
			}
			at += frameBytes + h.length
			*seq++
			continue
		}
		body, size, err := parseFrame(rest, *seq)
		if errors.Is(err, errShort) {
			return at, size, nil
		}
		if err != nil {
			return at, 0, err
		}
		weight := size
		if b.Weigh != nil {
			weight = frameBytes + b.Weigh(body)
		}
		if sum += weight; sum > maxBytes && len(b.frames) > 0 {
			return at, 0, nil
		}
		if len(b.frames) == 0 {
			begin = at
		}
		b.frames = append(b.frames, Frame{Seq: *seq, Body: body})
		at += size
		b.run = data[begin:at:at]
		*seq++
	}
	return at, 0, nil
}
