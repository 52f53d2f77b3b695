package partition

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/seglog"
	"narad.example/narad/vfs"
)

// text is a payload that compresses well, and noise one that does not.
func text(n int) []byte { return bytes.Repeat([]byte(`{"level":"info"},`), n/17+1)[:n] }

func noise(seed uint64, n int) []byte {
	out := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// Records are read as they were committed whatever storage.codec and the level were then and are now, and a compressed log takes less.
//
// covers: BRK-03, BRK-04
func TestACodecThatChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := Options{FS: vfs.NewMem(), Dir: "t/0", SegmentBytes: int64(rapid.IntRange(200, 20_000).Draw(rt, "segment"))}
		var want []Record
		for range rapid.IntRange(1, 4).Draw(rt, "lives") {
			o.Codec = nil
			if level := rapid.SampledFrom([]int{0, 0, 1, 1, 3}).Draw(rt, "level"); level > 0 {
				o.Codec = NewZstd(level)
			}
			p, err := Open(o)
			require.NoError(rt, err)
			for range rapid.IntRange(0, 5).Draw(rt, "commits") {
				recs := make([]Record, rapid.IntRange(1, 8).Draw(rt, "records"))
				for i := range recs {
					size := rapid.SampledFrom([]int{0, 1, 63, 64, 65, 1000, 5000}).Draw(rt, "size")
					recs[i].Payload = text(size)
					if size > 0 {
						recs[i].Payload[0] = byte(len(want) + i)
					}
					if rapid.Bool().Draw(rt, "noise") {
						recs[i].Payload = noise(uint64(len(want)+i), size)
					}
					if rapid.Bool().Draw(rt, "keyed") {
						recs[i].Key = fmt.Append(nil, "key-", i)
					}
				}
				first, err := p.Commit(context.Background(), recs)
				require.NoError(rt, err)
				require.EqualValues(rt, len(want), first)
				want = append(want, recs...)
			}
			got := all(rt, p, rapid.IntRange(1, 50).Draw(rt, "read"), rapid.IntRange(1, 20_000).Draw(rt, "bytes"))
			require.Len(rt, got, len(want))
			for i := range got {
				require.Equal(rt, string(want[i].Key), string(got[i].Key))
				require.True(rt, bytes.Equal(want[i].Payload, got[i].Payload), i)
			}
			require.NoError(rt, p.Close())
		}
	})
}

// covers: BRK-03
func TestACompressedLogIsSmallerAndReadsAreBound(t *testing.T) {
	mem := vfs.NewMem()
	p := open(t, Options{FS: mem, Dir: "t/0", Codec: NewZstd(3)})
	recs := make([]Record, 100)
	for i := range recs {
		recs[i].Payload = text(10_000)
	}
	_, err := p.Commit(t.Context(), recs)
	require.NoError(t, err)
	require.Less(t, mem.Used(), int64(50_000), "of a million plain bytes")
	var s Slab
	require.NoError(t, p.Read(0, 1000, 35_000, &s))
	require.Len(t, s.Records, 3, "the bound is for what the reader gets")
	require.EqualValues(t, 3, s.Next)
	require.GreaterOrEqual(t, s.Size(), 30_000)
	require.NoError(t, p.Read(3, 1000, 1, &s))
	require.Len(t, s.Records, 1, "one always goes")
	s.Free()
	require.Zero(t, s.Size())

	ms, err := p.CommitTime(50)
	require.NoError(t, err)
	require.Positive(t, ms)
}

// A frame whose checksum is good and whose payload does not uncompress is damage, never a record.
//
// covers: BRK-03
func TestACompressedPayloadThatIsNone(t *testing.T) {
	good := NewZstd(3).pack([]Record{{Payload: text(1000)}}).payload(0)
	for name, c := range map[string]struct {
		plain  int
		packed []byte
	}{
		"no zstd": {1000, []byte("narad")}, "shorter": {1001, good}, "longer": {999, good}, "cut": {1000, good[:len(good)-1]},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			log, err := seglog.Open(seglog.Options{FS: mem, Dir: "t/0"})
			require.NoError(t, err)
			b := seglog.NewBatch()
			b.Add(appendHead(nil, 7, nil, c.plain), c.packed)
			_, err = log.Append(t.Context(), b)
			require.NoError(t, err)
			require.NoError(t, log.Close())
			p := open(t, Options{FS: mem, Dir: "t/0"})
			var s Slab
			require.ErrorIs(t, p.Read(0, 1, 1, &s), ErrDamaged)
			require.Empty(t, s.Records)
		})
	}
}

// One codec serves many partitions at once.
func TestOneCodecForMany(t *testing.T) {
	s := NewStore(StoreOptions{FS: vfs.NewMem(), Dir: "data", Codec: NewZstd(1)})
	defer func() { require.NoError(t, s.Close()) }()
	var wg sync.WaitGroup
	for i := range 8 {
		p, err := s.Open("a", i)
		require.NoError(t, err)
		wg.Go(func() {
			for n := range 20 {
				payload := append(text(500+n), byte(i))
				if _, err := p.Commit(context.Background(), []Record{{Payload: payload}}); err != nil {
					t.Error(err)
				}
				var slab Slab
				if err := p.Read(int64(n), 1, 1, &slab); err != nil || !bytes.Equal(payload, slab.Records[0].Payload) {
					t.Error("another payload", err)
				}
			}
		})
	}
	wg.Wait()
}
