package seglog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"narad.example/narad/vfs"
)

// Open opens the log in o.Dir, or begins one. A torn tail of the last segment is cut, after what was cut was put beside it;
// damage anywhere else is a *Damage (ErrDamaged), and then nothing was changed. What Open found is on the disk when
// it returns, so that frames which a killed process only wrote are not served and then lost.
func Open(o Options) (*Log, error) {
	o.defaults()
	if err := makeDirs(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("open log %s: %w", o.Dir, err)
	}
	list, err := listSegments(o.FS, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", o.Dir, err)
	}
	for i, s := range list[:max(0, len(list)-1)] {
		s.next = list[i+1].first
		if err = checkSealed(o, s); err != nil {
			return nil, fmt.Errorf("open log %s: %w", o.Dir, err)
		}
	}
	var last *segment
	if len(list) == 0 {
		last, err = createSegment(o, o.Start, !o.Draft)
		list = append(list, last)
	} else {
		last = list[len(list)-1]
		err = recoverLast(o, last)
	}
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", o.Dir, full(err))
	}
	return newLog(o, list), nil
}

// makeDirs makes dir and the directories above it and syncs the entries of the three lowest, whoever made them: an earlier
// process may have been killed between making and syncing.
func makeDirs(fsys vfs.FS, dir string) error {
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for range 3 {
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		if err := fsys.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		dir = parent
	}
	return nil
}

// checkSealed verifies a segment that is not the last: its header always, its frames unless that is left to the first read.
func checkSealed(o Options, s *segment) (err error) {
	f, err := o.FS.OpenFile(s.path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err = s.checkHeader(f); err != nil || o.Lazy {
		return err
	}
	s.index, err = scanSealed(s, f)
	s.loaded = err == nil
	return err
}

// scanSealed verifies the frames of a sealed segment, which must reach exactly to the next one.
func scanSealed(s *segment, f vfs.File) ([]mark, error) {
	r, err := scan(f, s.first, s.size)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	case r.bad != nil:
		return nil, &Damage{File: s.path, Offset: r.valid, Why: r.bad.Error()}
	case r.next != s.next:
		return nil, &Damage{File: s.path, Offset: r.valid, Why: fmt.Sprintf("the segment ends before %d and the next one begins at %d", r.next, s.next)}
	}
	return r.index, nil
}

// recoverLast verifies the last segment, cuts its torn tail and leaves it open for appending.
func recoverLast(o Options, s *segment) error {
	f, err := o.FS.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err = recoverFrames(o, s, f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = errors.Join(f.Sync(), o.FS.SyncDir(o.Dir)); err != nil {
		return errors.Join(err, f.Close())
	}
	s.file, s.loaded = f, true
	return nil
}

func recoverFrames(o Options, s *segment, f vfs.File) error {
	if err := s.checkHeader(f); err != nil {
		return recoverHeader(o, s, f, err)
	}
	r, err := scan(f, s.first, s.size)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	if r.bad != nil {
		if err = judgeTail(s, f, r); err != nil {
			return err
		}
		if err = cut(o, s, f, r.valid); err != nil {
			return err
		}
	}
	s.index, s.next, s.size = r.index, r.next, r.valid
	return nil
}

// recoverHeader deals with a last segment without a good header. The header is synced before the first frame is written, so
// it can be torn only while there are no frames; a longer file had a good one.
func recoverHeader(o Options, s *segment, f vfs.File, damage error) error {
	if s.size > headerBytes || !errors.Is(damage, ErrDamaged) {
		return damage
	}
	if err := cut(o, s, f, 0); err != nil {
		return err
	}
	if err := writeHeader(f, s.first, true); err != nil {
		return err
	}
	s.size = headerBytes
	return nil
}

// judgeTail tells a torn write from damage: nil means that the bytes from r.valid on belong to a write that was never
// acknowledged. Without a good frame behind the bad one that is so. A good frame of a later group proves the opposite. Good
// frames of the same group remain from a write that the disk put down out of order, if the sectors that are missing are
// still zero; if not, the bad frame was overwritten by something else.
func judgeTail(s *segment, f vfs.File, r scanned) error {
	data := make([]byte, s.size-r.valid)
	n, err := f.ReadAt(data, r.valid)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	_, h, proof := later(data[:n], r.next, func(h header) bool { return h.seq-h.back > r.next })
	if !proof {
		at, same, ok := later(data[:n], r.next, func(header) bool { return true })
		if !ok || lost(data[:at], r.valid) {
			return nil
		}
		h = same
	}
	return &Damage{File: s.path, Offset: r.valid, Why: fmt.Sprintf("%v, and frame %d behind it is good", r.bad, h.seq)}
}

// cut removes the bytes of a segment from offset on, after copying them to a file beside it.
func cut(o Options, s *segment, f vfs.File, offset int64) error {
	tail := make([]byte, s.size-offset)
	n, err := f.ReadAt(tail, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	if n > 0 {
		var name string
		if name, err = tornName(o.FS, fmt.Sprintf("%s.torn-%d", s.path, offset)); err != nil {
			return err
		}
		if err = vfs.WriteFile(o.FS, name, tail[:n], 0o600); err != nil {
			return fmt.Errorf("keep the torn tail of %s: %w", s.path, err)
		}
	}
	if err = f.Truncate(offset); err != nil {
		return err
	}
	if o.OnTorn != nil {
		o.OnTorn(s.path, offset, int64(n))
	}
	return nil
}

// tornName finds a name that is free, so that an older tail of the same place is kept too.
func tornName(fsys vfs.FS, base string) (string, error) {
	name := base
	for i := 2; ; i++ {
		_, err := fsys.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s.%d", base, i)
	}
}
