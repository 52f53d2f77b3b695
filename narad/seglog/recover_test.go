package seglog

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

var rewrite = flag.Bool("rewrite-golden", false, "write the golden file of the present format anew")

// raw opens a file of a test's file system for reading and damaging.
func raw(t testing.TB, fsys vfs.FS, name string) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// tree reads all files of a directory, to see that nothing has changed.
func tree(t testing.TB, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	files := map[string]string{}
	for _, e := range entries {
		data, err := vfs.ReadFile(fsys, filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(data)
	}
	return files
}

// filled is a closed log of groups of frames with 40 bytes each, and its options.
func filled(t testing.TB, groups ...int) (*vfs.Mem, Options) {
	t.Helper()
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "log"}
	l := open(t, o)
	for _, n := range groups {
		put(t, l, n, 40)
	}
	require.NoError(t, l.Close())
	return mem, o
}

// covers: BRK-04
func TestATornTailIsCutAtEveryByte(t *testing.T) {
	const frame = frameBytes + 40
	_, o := filled(t, 3, 3)
	whole, err := vfs.ReadFile(o.FS, "log/"+segmentName(0))
	require.NoError(t, err)
	for at := range whole {
		mem, o := filled(t, 3, 3)
		f := raw(t, mem, "log/"+segmentName(0))
		require.NoError(t, f.Truncate(int64(at)))
		l := open(t, o)
		require.EqualValues(t, max(0, at-headerBytes)/frame, l.Next(), "cut at %d", at)
		check(t, l, 100, 1<<20, size(40))
		files := tree(t, mem, "log")
		kept := ""
		for name, data := range files {
			if strings.Contains(name, ".torn-") {
				kept = data
			}
		}
		wantCut := whole[:at]
		if at >= headerBytes {
			wantCut = whole[headerBytes+(at-headerBytes)/frame*frame : at]
		}
		require.Equal(t, string(wantCut), kept)
		put(t, l, 2, 40)
		require.NoError(t, l.Close())
		check(t, open(t, o), 100, 1<<20, size(40))
	}
}

func TestZerosAndGarbageAtTheEndAreCut(t *testing.T) {
	for name, tail := range map[string][]byte{
		"zeros":                    make([]byte, 5000),
		"garbage":                  []byte(strings.Repeat("garbage", 900)),
		"a length beyond the file": {1, 2, 3, 4, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9},
	} {
		t.Run(name, func(t *testing.T) {
			mem, o := filled(t, 3, 3)
			f := raw(t, mem, "log/"+segmentName(0))
			end, err := f.Size()
			require.NoError(t, err)
			_, err = f.WriteAt(tail, end)
			require.NoError(t, err)
			var told int64
			o.OnTorn = func(path string, offset, bytes int64) {
				require.Equal(t, "log/"+segmentName(0), path)
				require.Equal(t, end, offset)
				told = bytes
			}
			l := open(t, o)
			require.EqualValues(t, 6, l.Next())
			require.EqualValues(t, len(tail), told)
			require.Equal(t, string(tail), tree(t, mem, "log")[segmentName(0)+fmt.Sprintf(".torn-%d", end)])
			check(t, l, 100, 1<<20, size(40))
		})
	}
}

// A flipped bit anywhere but in the last frame is damage: Open refuses, names the place and changes nothing.
func TestAFlippedBitInTheMiddleIsRefused(t *testing.T) {
	const frame = frameBytes + 40
	for _, sealed := range []bool{false, true} {
		mem, o := filled(t, 2, 3)
		if sealed {
			l := open(t, o)
			require.NoError(t, l.Seal(t.Context()))
			put(t, l, 1, 40)
			require.NoError(t, l.Close())
		}
		f := raw(t, mem, "log/"+segmentName(0))
		end := int64(headerBytes + 4*frame)
		if sealed {
			end += frame
		}
		for at := range end {
			var b [1]byte
			_, err := f.ReadAt(b[:], at)
			require.NoError(t, err)
			b[0] ^= 1 << (at % 8)
			_, err = f.WriteAt(b[:], at)
			require.NoError(t, err)
			before := tree(t, mem, "log")

			_, err = Open(o)
			require.ErrorIs(t, err, ErrDamaged, "bit flipped at %d", at)
			var damage *Damage
			require.ErrorAs(t, err, &damage)
			require.Equal(t, "log/"+segmentName(0), damage.File)
			want := int64(0)
			if at >= headerBytes {
				want = headerBytes + (at-headerBytes)/frame*frame
			}
			require.Equal(t, want, damage.Offset)
			require.Equal(t, before, tree(t, mem, "log"))

			b[0] ^= 1 << (at % 8)
			_, err = f.WriteAt(b[:], at)
			require.NoError(t, err)
		}
		check(t, open(t, o), 100, 1<<20, size(40))
	}
}

func TestDamageFoundByAReadIsRefused(t *testing.T) {
	mem, o := filled(t, 10)
	l := open(t, o)
	require.NoError(t, l.Seal(t.Context()))
	put(t, l, 1, 40)
	f := raw(t, mem, "log/"+segmentName(0))
	at := int64(headerBytes + 4*(frameBytes+40) + 30)
	_, err := f.WriteAt([]byte{0xff}, at)
	require.NoError(t, err)
	var buf Buffer
	frames, err := l.Read(0, 100, 1<<20, &buf)
	require.NoError(t, err)
	require.Len(t, frames, 4, "what is good before the damage is read")
	_, err = l.Read(4, 100, 1<<20, &buf)
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, f.Truncate(at))
	_, err = l.Read(4, 100, 1<<20, &buf)
	require.ErrorIs(t, err, ErrDamaged, "a file that became shorter")
	require.NoError(t, l.Close())

	o.Lazy = true
	l = open(t, o)
	_, err = l.Read(4, 100, 1<<20, &buf)
	require.ErrorIs(t, err, ErrDamaged)
	_, err = l.Read(10, 100, 1<<20, &buf)
	require.NoError(t, err)
}

func TestAMissingSegmentIsDamage(t *testing.T) {
	mem, o := filled(t, 2)
	l := open(t, o)
	for range 2 {
		require.NoError(t, l.Seal(t.Context()))
		put(t, l, 2, 40)
	}
	require.NoError(t, l.Close())
	require.NoError(t, mem.Remove("log/"+segmentName(2)))
	_, err := Open(o)
	require.ErrorIs(t, err, ErrDamaged)
}

// A power loss may put down the sectors of the last group in any order: what is missing is zero, and what follows is whole.
func TestALostSectorOfTheLastGroupIsTorn(t *testing.T) {
	for before := range 60 {
		mem := vfs.NewMem()
		o := Options{FS: mem, Dir: "log"}
		l := open(t, o)
		put(t, l, 1, 300+before*10)
		end := l.Segments()[0].Bytes
		put(t, l, 30, 100)
		require.NoError(t, l.Close())
		f := raw(t, mem, "log/"+segmentName(0))
		// The sector of the group's beginning holds the older group's end too.
		sector := end / sectorBytes * sectorBytes
		_, err := f.WriteAt(make([]byte, sector+sectorBytes-end), end)
		require.NoError(t, err)
		l = open(t, o)
		require.EqualValues(t, 1, l.Next())
		put(t, l, 1, 300)
	}
}

// Zeros in an older group are no torn write: the group behind it proves that it was synced.
func TestALostSectorOfAnOlderGroupIsDamage(t *testing.T) {
	mem, o := filled(t, 40, 1)
	_, err := raw(t, mem, "log/"+segmentName(0)).WriteAt(make([]byte, sectorBytes), sectorBytes)
	require.NoError(t, err)
	before := tree(t, mem, "log")
	_, err = Open(o)
	require.ErrorIs(t, err, ErrDamaged)
	require.Equal(t, before, tree(t, mem, "log"))
}

func TestALaterFormatIsRefused(t *testing.T) {
	head := segmentHeader(0)
	head[8] = version + 1
	binary.LittleEndian.PutUint32(head[20:], crc32.Checksum(head[:20], castagnoli))
	for _, frames := range []int{0, 1} {
		mem, o := filled(t, frames)
		_, err := raw(t, mem, "log/"+segmentName(0)).WriteAt(head, 0)
		require.NoError(t, err)
		before := tree(t, mem, "log")
		_, err = Open(o)
		require.ErrorIs(t, err, ErrVersion)
		require.Equal(t, before, tree(t, mem, "log"))
	}
}

// The golden file holds a segment of version 1: it must be read by every later release and written byte for byte by this one.
func TestGoldenVersion1(t *testing.T) {
	const name = "testdata/v1.log"
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "log", Start: 41}
	l := open(t, o)
	for _, group := range [][]string{{"one"}, {"two", "", "three"}, {strings.Repeat("four ", 50)}} {
		b := NewBatch()
		for _, s := range group {
			b.Add([]byte(s))
		}
		_, err := l.Append(t.Context(), b)
		require.NoError(t, err)
		b.Free()
	}
	require.NoError(t, l.Close())
	written, err := vfs.ReadFile(mem, "log/"+segmentName(41))
	require.NoError(t, err)
	if *rewrite {
		require.NoError(t, os.WriteFile(name, written, 0o644))
	}
	golden, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, golden, written)

	first, err := parseHeader(golden)
	require.NoError(t, err)
	require.EqualValues(t, 41, first)
	frames, valid := Frames(golden[headerBytes:], 41)
	require.Len(t, frames, 5)
	require.Equal(t, len(golden)-headerBytes, valid)
	require.Equal(t, "three", string(frames[3].Body))
	require.EqualValues(t, 44, frames[3].Seq)
}

func FuzzFrames(f *testing.F) {
	golden, err := os.ReadFile("testdata/v1.log")
	require.NoError(f, err)
	f.Add(golden[headerBytes:], int64(41))
	f.Add(golden[headerBytes:len(golden)-3], int64(41))
	f.Add(make([]byte, 64), int64(0))
	f.Add([]byte{}, int64(0))
	f.Fuzz(func(t *testing.T, data []byte, first int64) {
		if first < 0 {
			return
		}
		frames, valid := Frames(data, first)
		if valid < 0 || valid > len(data) {
			t.Fatalf("valid is %d of %d", valid, len(data))
		}
		at := 0
		for i, fr := range frames {
			if fr.Seq != first+int64(i) {
				t.Fatalf("frame %d has sequence number %d", i, fr.Seq)
			}
			at += frameBytes + len(fr.Body)
		}
		if at != valid {
			t.Fatalf("frames take %d, valid is %d", at, valid)
		}
		if again, n := Frames(data[:valid], first); len(again) != len(frames) || n != valid {
			t.Fatal("the valid part alone reads differently")
		}
		// A whole segment made of these bytes is opened, cut or refused, never misread, and what is opened stays.
		mem := vfs.NewMem()
		require.NoError(t, mem.MkdirAll("log", 0o700))
		file, err := mem.OpenFile("log/"+segmentName(first), os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = file.WriteAt(append(segmentHeader(first), data...), 0)
		require.NoError(t, err)
		l, err := Open(Options{FS: mem, Dir: "log"})
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		require.Equal(t, first+int64(len(frames)), l.Next())
		require.NoError(t, l.Close())
	})
}

func TestHeaderThatIsNoHeader(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		data := make([]byte, r.IntN(40))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		_, err := parseHeader(data)
		require.Error(t, err)
	}
	_, err := parseHeader(segmentHeader(5))
	require.NoError(t, err)
}
