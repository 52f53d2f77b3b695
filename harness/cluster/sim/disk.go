package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"

	"narad.example/harness/cluster"
	"narad.example/narad/vfs"
)

// names tells which names each choice of files stands for: a part that they contain.
var names = map[string]string{
	cluster.FilesAll: "", cluster.FilesCursors: "/fanout-", cluster.FilesWAL: "/ingress/", cluster.FilesParts: "/topics/",
}

// Damage breaks the node's disk in memory (cluster.Disk).
func (n *simNode) Damage(_ context.Context, d cluster.DiskFault) (cluster.Broken, error) {
	match, known := names[d.Files]
	if !known && d.Files != cluster.FilesSegments {
		return nil, fmt.Errorf("%w: there are no files %q", cluster.ErrTrouble, d.Files)
	}
	switch d.Kind {
	case cluster.DiskFull:
		if d.Files == cluster.FilesAll {
			return &fullDisk{fs: n.fs, dir: "/" + n.name, before: n.fs.Fill()}, nil
		}
		return n.standing(&vfs.Break{Op: vfs.OpWrite, Err: syscall.ENOSPC, Match: match}), nil
	case cluster.FsyncError:
		return n.standing(&vfs.Break{Op: vfs.OpSync, Err: syscall.EIO, Match: match}, &vfs.Break{Op: vfs.OpSyncDir, Err: syscall.EIO, Match: match}), nil
	case cluster.SlowFsync:
		return n.standing(&vfs.Break{Delay: d.Delay, Match: match}), nil
	case cluster.BitFlip:
		return n.flip(d.Files)
	}
	return nil, fmt.Errorf("%w: %s on a disk", cluster.ErrUnsupported, d.Kind)
}

func (n *simNode) standing(all ...*vfs.Break) cluster.Broken {
	for _, b := range all {
		n.fs.Break(b)
	}
	return &standing{fs: n.fs, all: all}
}

// CutPower kills the node and forgets what its disk had not synced (cluster.Disk). Its Raft log lies on a real disk and stays.
func (n *simNode) CutPower(ctx context.Context, pick func(int) int) (int, error) {
	if err := n.Kill(ctx); err != nil {
		return 0, err
	}
	if pick == nil {
		return n.fs.DropUnsynced(), nil
	}
	return n.fs.DropUnsyncedPartly(pick), nil
}

// standing is something that every operation of some kinds meets.
type standing struct {
	fs   *vfs.Mem
	all  []*vfs.Break
	mend sync.Once
}

func (s *standing) Hits() (sum int64) {
	for _, b := range s.all {
		sum += s.fs.Hits(b)
	}
	return sum
}

func (s *standing) Mend(context.Context) error {
	s.mend.Do(func() {
		for _, b := range s.all {
			s.fs.Mend(b)
		}
	})
	return nil
}

// fullDisk is a disk without room.
type fullDisk struct {
	fs     *vfs.Mem
	dir    string
	before int64 // writes that were refused earlier
}

func (f *fullDisk) Hits() int64 { return f.fs.Refused() - f.before }

// Mend makes room, and writes a file to see that there is some.
func (f *fullDisk) Mend(context.Context) error {
	f.fs.SetCapacity(0)
	probe := path.Join(f.dir, "probe")
	if err := vfs.WriteFile(f.fs, probe, make([]byte, 4096), 0o600); err != nil {
		if errors.Is(err, vfs.ErrFrozen) {
			return nil // the node was killed meanwhile; nothing of its own may write either
		}
		return fmt.Errorf("%w: the disk takes no file: %w", cluster.ErrTrouble, err)
	}
	return f.fs.Remove(probe)
}

// rot is bits that were changed. Those of sealed segments are changed back; a cursor file is the node's to write anew.
type rot struct {
	fs    *vfs.Mem
	files map[string]bool
	back  bool
	mend  sync.Once
}

func (n *simNode) flip(files string) (cluster.Broken, error) {
	r := &rot{fs: n.fs, files: map[string]bool{}}
	switch files {
	case cluster.FilesCursors:
		if n.Running() {
			return nil, n.errState("runs, and reads its cursor files at a start only")
		}
	case cluster.FilesSegments:
		r.back = true
	default:
		return nil, fmt.Errorf("%w: bits of %s", cluster.ErrUnsupported, files)
	}
	if err := r.find("/"+n.name+"/topics", files); err != nil {
		return nil, fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	n.fs.Flip(func(name string) bool { return r.files[name] })
	return r, nil
}

// find notes the files of that kind below a folder: of segments all but the last one of each folder.
func (r *rot) find(dir, kind string) error {
	entries, err := r.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	last := ""
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if err = r.find(name, kind); err != nil {
				return err
			}
		case kind == cluster.FilesCursors && strings.HasPrefix(e.Name(), "fanout-"):
			r.files[name] = true
		case kind == cluster.FilesSegments && strings.HasSuffix(e.Name(), ".log"):
			if last != "" {
				r.files[last] = true
			}
			last = name
		}
	}
	return nil
}

func (r *rot) Hits() int64 { return int64(len(r.files)) }

func (r *rot) Mend(context.Context) error {
	var err error
	r.mend.Do(func() {
		if !r.back {
			return
		}
		if n := r.fs.Flip(func(name string) bool { return r.files[name] }); n != len(r.files) {
			err = fmt.Errorf("%w: %d of %d files were there to be mended", cluster.ErrTrouble, n, len(r.files))
		}
	})
	return err
}
