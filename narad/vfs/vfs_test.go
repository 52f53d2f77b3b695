package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Both file systems must pass this, so that what is proved in memory holds on a disk.
func TestConformance(t *testing.T) {
	for name, fresh := range map[string]func(t *testing.T) (FS, string){
		"disk":   func(t *testing.T) (FS, string) { return OS(), t.TempDir() },
		"memory": func(*testing.T) (FS, string) { return NewMem(), "/" },
	} {
		t.Run(name+" files", func(t *testing.T) {
			fsys, dir := fresh(t)
			conformFiles(t, fsys, dir)
		})
		t.Run(name+" large writes", func(t *testing.T) {
			fsys, dir := fresh(t)
			conformLarge(t, fsys, dir)
		})
		t.Run(name+" names", func(t *testing.T) {
			fsys, dir := fresh(t)
			conformNames(t, fsys, dir)
		})
		t.Run(name+" locks", func(t *testing.T) {
			fsys, dir := fresh(t)
			conformLocks(t, fsys, dir)
		})
	}
}

// conformLarge writes more than goes to a disk at once.
func conformLarge(t *testing.T, fsys FS, dir string) {
	f, err := fsys.OpenFile(filepath.Join(dir, "large"), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	for _, size := range []int{1, writeBytes, writeBytes + 1, 3*writeBytes - 1} {
		want, got := make([]byte, size), make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(want) // it never fails
		n, err := f.WriteAt(want, 7)
		require.NoError(t, err)
		require.Equal(t, size, n)
		_, err = f.ReadAt(got, 7)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), size)
	}
}

func conformFiles(t *testing.T, fsys FS, dir string) {
	name := filepath.Join(dir, "file")
	_, err := fsys.OpenFile(name, os.O_RDWR, 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	require.NoError(t, err)
	_, err = fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	require.ErrorIs(t, err, fs.ErrExist)

	n, err := f.WriteAt([]byte("hello"), 3)
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.NoError(t, f.Sync())
	p := make([]byte, 10)
	n, err = f.ReadAt(p, 0)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "\x00\x00\x00hello", string(p[:n]))
	n, err = f.ReadAt(p[:4], 2)
	require.NoError(t, err)
	require.Equal(t, "\x00hel", string(p[:n]))
	n, err = f.ReadAt(p, 8)
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, n)

	require.NoError(t, f.Truncate(5))
	require.NoError(t, f.Truncate(7))
	size, err := f.Size()
	require.NoError(t, err)
	require.EqualValues(t, 7, size)
	data, err := ReadFile(fsys, name)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00\x00he\x00\x00", string(data), "what a truncation cut does not come back")

	require.NoError(t, fsys.Remove(name))
	_, err = f.WriteAt([]byte("x"), 0)
	require.NoError(t, err, "an open file outlives its name")
	require.NoError(t, f.Close())
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, f.Close(), fs.ErrClosed)

	require.NoError(t, WriteFile(fsys, name, []byte("one"), 0o600))
	require.NoError(t, WriteFile(fsys, name, []byte("two more"), 0o600))
	data, err = ReadFile(fsys, name)
	require.NoError(t, err)
	require.Equal(t, "two more", string(data))
	f, err = fsys.OpenFile(name, os.O_RDONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 0)
	require.Error(t, err, "opened for reading")
	require.NoError(t, f.Close())
	f, err = fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	require.NoError(t, err)
	size, err = f.Size()
	require.NoError(t, err)
	require.Zero(t, size)
	require.NoError(t, f.Close())
}

func conformNames(t *testing.T, fsys FS, dir string) {
	sub := filepath.Join(dir, "a", "b")
	_, err := fsys.ReadDir(sub)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, fsys.SyncDir(sub), fs.ErrNotExist)
	_, err = fsys.OpenFile(filepath.Join(sub, "f"), os.O_RDWR|os.O_CREATE, 0o600)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, fsys.MkdirAll(sub, 0o700))
	require.NoError(t, fsys.MkdirAll(sub, 0o700))
	for _, name := range []string{"z", "m", "c"} {
		require.NoError(t, WriteFile(fsys, filepath.Join(sub, name), []byte(name), 0o600))
	}
	require.Error(t, fsys.MkdirAll(filepath.Join(sub, "z", "x"), 0o700), "a file is in the way")
	require.NoError(t, fsys.Rename(filepath.Join(sub, "z"), filepath.Join(sub, "c")))
	require.ErrorIs(t, fsys.Rename(filepath.Join(sub, "z"), filepath.Join(sub, "c")), fs.ErrNotExist)
	entries, err := fsys.ReadDir(sub)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, "c", entries[0].Name())
	require.Equal(t, "m", entries[1].Name())
	require.False(t, entries[0].IsDir())
	data, err := ReadFile(fsys, filepath.Join(sub, "c"))
	require.NoError(t, err)
	require.Equal(t, "z", string(data))
	info, err := fsys.Stat(sub)
	require.NoError(t, err)
	require.True(t, info.IsDir())
	info, err = fsys.Stat(filepath.Join(sub, "c"))
	require.NoError(t, err)
	require.EqualValues(t, 1, info.Size())
	require.WithinDuration(t, time.Now(), info.ModTime(), time.Minute)
	require.Error(t, fsys.Remove(sub), "it is not empty")
	require.NoError(t, fsys.SyncDir(sub))
	require.NoError(t, fsys.RemoveAll(filepath.Join(dir, "a")))
	require.NoError(t, fsys.RemoveAll(filepath.Join(dir, "a")))
	_, err = fsys.Stat(sub)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, fsys.Remove(filepath.Join(dir, "none")), fs.ErrNotExist)
}

func conformLocks(t *testing.T, fsys FS, dir string) {
	sub := filepath.Join(dir, "data")
	_, err := LockDir(fsys, sub)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, fsys.MkdirAll(sub, 0o700))
	held, err := LockDir(fsys, sub)
	require.NoError(t, err)
	_, err = LockDir(fsys, sub)
	require.ErrorIs(t, err, ErrLocked)
	require.Contains(t, err.Error(), "data")
	require.NoError(t, held.Close())
	held, err = LockDir(fsys, sub)
	require.NoError(t, err)
	require.NoError(t, held.Close())
}

func TestAKillAndAPowerLoss(t *testing.T) {
	m := NewMem()
	require.NoError(t, m.MkdirAll("d/sub", 0o700))
	require.NoError(t, m.SyncDir("/"))
	f, err := m.OpenFile("d/kept", os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("synced"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, m.SyncDir("d"))
	_, err = f.WriteAt([]byte("OVER and more"), 2)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(4))
	require.NoError(t, WriteFile(m, "d/new", []byte("x"), 0o600))
	require.NoError(t, m.Remove("d/new"))
	lock, err := LockDir(m, "d")
	require.NoError(t, err)

	m.Freeze()
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, ErrFrozen)
	require.ErrorIs(t, f.Sync(), ErrFrozen)
	require.ErrorIs(t, f.Truncate(0), ErrFrozen)
	require.ErrorIs(t, m.Rename("d/kept", "d/x"), ErrFrozen)
	require.ErrorIs(t, m.Remove("d/kept"), ErrFrozen)
	require.ErrorIs(t, m.SyncDir("d"), ErrFrozen)
	_, err = m.OpenFile("d/other", os.O_RDWR|os.O_CREATE, 0o600)
	require.ErrorIs(t, err, ErrFrozen)
	data, err := ReadFile(m, "d/kept")
	require.NoError(t, err)
	require.Equal(t, "syOV", string(data), "a kill leaves what was written")
	m.Thaw()
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, ErrFrozen, "the handle's process is dead")
	next, err := LockDir(m, "d")
	require.NoError(t, err, "the dead hold no lock")
	require.NoError(t, lock.Close())
	_, err = LockDir(m, "d")
	require.ErrorIs(t, err, ErrLocked, "a dead one gives no lock back that another holds")
	require.NoError(t, next.Close())

	m.DropUnsynced()
	data, err = ReadFile(m, "d/kept")
	require.NoError(t, err)
	require.Equal(t, "synced", string(data))
	data, err = ReadFile(m, "d/new")
	require.NoError(t, err, "its removal was not synced")
	require.Equal(t, "x", string(data))
	require.EqualValues(t, 7, m.Used())
}

func TestScriptedFailures(t *testing.T) {
	m := NewMem()
	boom := errors.New("boom")
	f, err := m.OpenFile("a.log", os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	m.FailNext(OpWrite, boom, ".log")
	m.FailNext(OpSync, boom, "other")
	_, err = f.WriteAt([]byte("xx"), 0)
	require.ErrorIs(t, err, boom)
	require.NoError(t, f.Sync(), "another file's failure")
	m.CutNextWrite(2, boom, "")
	n, err := f.WriteAt([]byte("abcd"), 0)
	require.ErrorIs(t, err, boom)
	require.Equal(t, 2, n)
	require.Equal(t, 1, m.Unused())
	m.SetCapacity(3)
	n, err = f.WriteAt([]byte("efgh"), 2)
	require.Equal(t, 1, n)
	require.True(t, IsFull(err))
	require.ErrorIs(t, err, syscall.ENOSPC)
	data, err := ReadFile(m, "a.log")
	require.NoError(t, err)
	require.Equal(t, "abe", string(data))
}

func TestSyncTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMem()
		m.SetSyncDelay(time.Second)
		f, err := m.OpenFile("a", os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, f.Sync())
		require.Equal(t, time.Second, time.Since(began))
		require.EqualValues(t, 1, m.Syncs())
		time.AfterFunc(500*time.Millisecond, m.Freeze)
		require.ErrorIs(t, f.Sync(), ErrFrozen, "killed while it synced")
	})
}

// Whatever was done to a file since it was synced, a power loss brings that state back, or a mix of sectors of both.
func TestAPowerLossRestoresWhatWasSynced(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := NewMem()
		f, err := m.OpenFile("f", os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(rt, err)
		require.NoError(rt, m.SyncDir("/"))
		var synced []byte
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"write", "append", "truncate", "sync"}).Draw(rt, "step") {
			case "write":
				_, err = f.WriteAt(rapid.SliceOfN(rapid.Byte(), 0, 1500).Draw(rt, "data"), int64(rapid.IntRange(0, 3000).Draw(rt, "offset")))
			case "append":
				size, sizeErr := f.Size()
				require.NoError(rt, sizeErr)
				_, err = f.WriteAt(rapid.SliceOfN(rapid.Byte(), 1, 1500).Draw(rt, "data"), size)
			case "truncate":
				err = f.Truncate(int64(rapid.IntRange(0, 4000).Draw(rt, "size")))
			case "sync":
				err = f.Sync()
				synced, _ = ReadFile(m, "f")
			}
			require.NoError(rt, err)
		}
		written, err := ReadFile(m, "f")
		require.NoError(rt, err)
		require.EqualValues(rt, len(written), m.Used())
		partly := rapid.Bool().Draw(rt, "partly")
		if partly {
			m.DropUnsyncedPartly(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "kept") })
		} else {
			m.DropUnsynced()
		}
		got, err := ReadFile(m, "f")
		require.NoError(rt, err)
		if !partly {
			require.Equal(rt, string(synced), string(got))
			return
		}
		require.LessOrEqual(rt, len(got), max(len(synced), len(written)))
		for at := 0; at < len(got); at += sector {
			piece := func(p []byte) string {
				p = append(p[:len(p):len(p)], make([]byte, max(0, len(got)-len(p)))...)
				return string(p[at:min(at+sector, len(got))])
			}
			require.Contains(rt, []string{piece(synced), piece(written)}, piece(got))
		}
	})
}
