package sender

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// covers: SND-10, NET-08
func TestAChunkThatShrinksGoesCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{}
		n := newNode(t, f)
		c := n.open(newLink(), 0, 2)
		send := func(recs []Record) (compressed []bool) {
			before := len(f.requests())
			require.Equal(t, Committed, c.Ship(t.Context(), recs, nil))
			for _, g := range f.requests()[before:] {
				compressed = append(compressed, g.compressed)
				if g.compressed {
					require.LessOrEqual(t, g.bytes*10, g.plain*9)
				}
			}
			return compressed
		}
		require.NotContains(t, send(records(0, 500)), true, "not without being asked to")
		require.Equal(t, n.seen.body, n.seen.wire)
		n.change(func(r *Remote) { r.Limits.Compression = "zstd" })
		n.seen.wire, n.seen.body = 0, 0
		require.NotContains(t, send(records(500, 500)), false)
		require.Less(t, n.seen.wire*2, n.seen.body)
		noise := records(1000, 20)
		r := rand.NewChaCha8([32]byte{1})
		for i := range noise {
			noise[i].Payload = make([]byte, 20000)
			_, _ = r.Read(noise[i].Payload) // never fails
		}
		require.NotContains(t, send(noise[:1]), true, "a body that does not shrink enough")
		require.NotContains(t, send(records(1020, 1)), true)
	})
}

// covers: SND-11, ANS-22
func TestATargetWithoutZstdGetsTheChunkPlainAtOnce(t *testing.T) {
	for name, refusal := range map[string]*outbound.Answer{
		"415": shaped(415, "unsupported"), "415 of something in front": page(415), "invalid json": shaped(400, "invalid json: x"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeTarget{script: func(g *got) (*outbound.Answer, error) {
					if g.compressed {
						return refusal, nil
					}
					return accepted(len(g.offsets)), nil
				}}
				n := newNode(t, f)
				n.change(func(r *Remote) { r.Limits.Compression = "zstd" })
				c := n.open(newLink(), 0, 1)
				begun := time.Now()
				require.Equal(t, Committed, c.Ship(t.Context(), records(0, 500), nil))
				require.Equal(t, begun, time.Now())
				require.Equal(t, []bool{true, false}, forms(f.requests()))
				require.Equal(t, f.requests()[0].offsets, f.requests()[1].offsets)
				time.Sleep(40 * time.Second)
				require.Equal(t, Committed, c.Ship(t.Context(), records(500, 500), nil))
				require.Equal(t, []bool{true, false, false}, forms(f.requests()), "off until the next check")
				time.Sleep(35 * time.Second)
				require.Equal(t, Committed, c.Ship(t.Context(), records(1000, 500), nil))
				require.Equal(t, []bool{true, false, false, true, false}, forms(f.requests()))
				require.Equal(t, offsetsOf(records(0, 1500)), f.stored())
				resent, _, _ := n.seen.get()
				require.Zero(t, resent)
				require.Empty(t, n.logs.take(t))
				require.Equal(t, wire.Running, c.Status().State)
			})
		})
	}
}

func forms(all []got) (compressed []bool) {
	for _, g := range all {
		compressed = append(compressed, g.compressed)
	}
	return compressed
}

// A target that reads zstd and refuses a record of the chunk names it, and nothing else changes (DEC-41).
//
// covers: ANS-02, SND-11
func TestARefusedRecordOfACompressedChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{script: refuses(77, 400, true, never)}
		n := newNode(t, f)
		n.change(func(r *Remote) { r.Limits.Compression = "zstd" })
		c := n.open(newLink(), 0, 1)
		out := ship(t.Context(), c, records(0, 200))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, int64(77), blockedAt(c.Status()))
		require.True(t, f.requests()[1].compressed)
		require.False(t, slices.Contains(f.stored(), int64(77)))
		f.set(takesAll)
		require.Equal(t, Committed, <-out)
	})
}
