package vfs

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABreakStaysUntilItIsMended(t *testing.T) {
	m := NewMem()
	a, err := m.OpenFile("a", os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	writes, syncs := &Break{Op: OpWrite, Err: syscall.ENOSPC, Match: "a"}, &Break{Op: OpSync, Err: syscall.EIO}
	m.Break(writes)
	m.Break(syncs)
	for range 3 {
		n, werr := a.WriteAt([]byte("x"), 0)
		require.Zero(t, n)
		require.ErrorIs(t, werr, syscall.ENOSPC)
	}
	require.ErrorIs(t, a.Sync(), syscall.EIO)
	b, err := m.OpenFile("b", os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = b.WriteAt([]byte("x"), 0)
	require.NoError(t, err, "another file")
	require.EqualValues(t, 3, m.Mend(writes))
	_, err = a.WriteAt([]byte("x"), 0)
	require.NoError(t, err)
	require.ErrorIs(t, a.Sync(), syscall.EIO, "the other one stays")
	require.EqualValues(t, 2, m.Mend(syncs))
	require.NoError(t, a.Sync())
	require.Equal(t, 1, m.DropUnsynced(), "the directory, and both files with it")
}

func TestAFullDisk(t *testing.T) {
	m := NewMem()
	f, err := m.OpenFile("a", os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("abcd"), 0)
	require.NoError(t, err)
	before := m.Fill()
	_, err = f.WriteAt([]byte("ABCD"), 0)
	require.NoError(t, err, "it does not grow")
	_, err = f.WriteAt([]byte("e"), 4)
	require.True(t, IsFull(err))
	require.EqualValues(t, 1, m.Refused()-before)
	m.SetCapacity(0)
	_, err = f.WriteAt([]byte("e"), 4)
	require.NoError(t, err)
}

// What is written while a slow sync is at work may be lost, what was written before it may not.
func TestAPowerLossAfterASlowSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMem()
		f, err := m.OpenFile("a", os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		require.NoError(t, m.SyncDir("/"))
		slow := &Break{Delay: time.Second, Match: "a"}
		m.Break(slow)
		_, err = f.WriteAt([]byte("before"), 0)
		require.NoError(t, err)
		time.AfterFunc(500*time.Millisecond, func() {
			_, werr := f.WriteAt([]byte(" during"), 6)
			require.NoError(t, werr)
		})
		began := time.Now()
		require.NoError(t, f.Sync())
		require.Equal(t, time.Second, time.Since(began))
		require.EqualValues(t, 1, m.Mend(slow))
		require.Equal(t, 1, m.DropUnsynced())
		data, err := ReadFile(m, "a")
		require.NoError(t, err)
		require.Equal(t, "before", string(data))
		require.Zero(t, m.DropUnsynced())
	})
}

func TestRottenBits(t *testing.T) {
	m := NewMem()
	whole := bytes.Repeat([]byte("narad"), 300)
	require.NoError(t, m.MkdirAll("d", 0o700))
	require.NoError(t, WriteFile(m, "d/a.log", whole, 0o600))
	require.NoError(t, WriteFile(m, "d/b", whole, 0o600))
	logs := func(name string) bool { return strings.HasSuffix(name, ".log") }
	require.Equal(t, 1, m.Flip(logs))
	data, err := ReadFile(m, "d/a.log")
	require.NoError(t, err)
	differ := 0
	for i := range whole {
		if data[i] != whole[i] {
			differ++
		}
	}
	require.Equal(t, 3, differ, "one in each sector")
	data, err = ReadFile(m, "d/b")
	require.NoError(t, err)
	require.Equal(t, whole, data)
	require.Equal(t, 1, m.Flip(logs))
	data, err = ReadFile(m, "d/a.log")
	require.NoError(t, err)
	require.Equal(t, whole, data)
}
