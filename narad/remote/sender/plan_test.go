package sender

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// covers: SND-01
func TestLanesAreByKeyElseByOffset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lanes := rapid.IntRange(1, 8).Draw(t, "lanes")
		r := Record{Offset: rapid.Int64Range(0, 1<<40).Draw(t, "offset"), Key: rapid.SliceOf(rapid.Byte()).Draw(t, "key")}
		want := int(r.Offset % int64(lanes))
		if len(r.Key) > 0 {
			h := fnv.New32a()
			_, _ = h.Write(r.Key) // never fails
			want = int(h.Sum32() % uint32(lanes))
		}
		require.Equal(t, want, laneOf(&r, lanes))
	})
}

func newQueue(recs []Record) *queue {
	return queuesOf(recs, 1, -1)[0]
}

func queuesOf(recs []Record, lanes int, mark int64) []*queue {
	var out []*queue
	for range lanes {
		q := &queue{}
		q.begin(recs, mark)
		out = append(out, q)
	}
	split(recs, out)
	return out
}

// covers: SND-02, SND-06, ANS-23
func TestChunksAreInOrderWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "records")
		recs := make([]Record, n)
		for i := range recs {
			size := rapid.SampledFrom([]int{1, 10, 100, 900, 3000}).Draw(t, "size")
			recs[i] = Record{Offset: int64(i), Payload: bytes.Repeat([]byte("x"), size)}
		}
		lanes := rapid.IntRange(1, 8).Draw(t, "lanes")
		lane := rapid.IntRange(0, lanes-1).Draw(t, "lane")
		mark := rapid.Int64Range(-1, 10).Draw(t, "mark")
		skip := rapid.SliceOf(rapid.Int64Range(0, int64(n))).Draw(t, "skip")
		skips := func(o int64) bool { return slices.Contains(skip, o) }
		most := rapid.IntRange(1, 40).Draw(t, "most")
		limit := rapid.SampledFrom([]int{500, 2000, 9000}).Draw(t, "limit")
		q := queuesOf(recs, lanes, mark)[lane]
		var sentNow []int64
		for !q.empty() {
			if skips(q.first().Offset) {
				q.pass()
				continue
			}
			body, c := q.cut(nil, most, limit, skips)
			offsets := int64(0)
			require.LessOrEqual(t, c.records, most)
			require.Equal(t, len(body), c.bytes)
			if c.records > 1 {
				require.LessOrEqual(t, len(body), limit)
			}
			require.Positive(t, c.records)
			for _, at := range q.order[q.next : q.next+c.records] {
				offsets = recs[at].Offset
				sentNow = append(sentNow, offsets)
			}
			require.Equal(t, offsets, c.last)
			q.accepted(c)
		}
		var want []int64
		for i := range recs {
			if o := recs[i].Offset; o > mark && !skips(o) && laneOf(&recs[i], lanes) == lane {
				want = append(want, o)
			}
		}
		require.Equal(t, want, sentNow)
	})
}

// covers: SND-05, SND-06
func TestABodyIsCutAtTheCapToTheByte(t *testing.T) {
	payload := []byte(`"` + strings.Repeat("x", 1000) + `"`)
	recs := []Record{{Offset: 0, Payload: payload}, {Offset: 1, Payload: payload}, {Offset: 2, Payload: payload}}
	two, _ := newQueue(recs[:2]).cut(nil, maxMessages, maxBodyBytes, nil)
	for limit, want := range map[int]int{len(two): 2, len(two) - 1: 1, 1: 1, maxBodyBytes: 3} {
		body, c := newQueue(recs).cut(nil, maxMessages, limit, nil)
		require.Equal(t, want, c.records, limit)
		offsets := bytes.Count(body, payload)
		require.Equal(t, want, offsets, limit)
	}
}

// A target that refuses one record, as it would: by its index or without, whatever form the record has.
func TestNarrowingFindsTheOneRecord(t *testing.T) {
	for _, named := range []bool{true, false} {
		for bad := int64(0); bad < 500; bad += 7 {
			q := newQueue(records(0, 500))
			l := &lane{queue: *q}
			requests := 0
			var stored []int64
			for !l.queue.empty() && l.queue.first().Offset != bad+1 {
				if requests++; requests > 30 {
					require.Fail(t, "no end", "bad record %d", bad)
				}
				_, c := l.queue.cut(nil, maxMessages, maxBodyBytes, nil)
				first := l.queue.first().Offset
				if bad < first || bad > c.last {
					for o := first; o <= c.last; o++ {
						stored = append(stored, o)
					}
					l.queue.accepted(c)
					continue
				}
				if c.records == 1 && !c.raw {
					break // blocked on the right record
				}
				switch {
				case named && c.records > 1:
					l.queue.name(int(bad - first))
				case l.queue.halve(c, true):
				default:
					l.queue.sendPlain()
				}
			}
			require.Equal(t, bad, l.queue.first().Offset)
			require.Len(t, stored, int(bad), "what stands before the bad record is stored")
			if named {
				require.LessOrEqual(t, requests, 3)
			} else {
				require.LessOrEqual(t, requests, 20) // BR-13
			}
		}
	}
}

func TestANamedRecordWithoutAnotherFormGoesAlone(t *testing.T) {
	recs := []Record{{Offset: 0, Payload: []byte(`{}`)}, {Offset: 1, Payload: []byte("raw 1")}, {Offset: 2, Payload: []byte(`{}`)}}
	q := newQueue(recs)
	q.name(1)
	for _, last := range []int64{0, 1, 2} {
		_, c := q.cut(nil, maxMessages, maxBodyBytes, nil)
		require.Equal(t, chunk{records: 1, last: last, bytes: c.bytes, raw: last != 1}, c)
		q.accepted(c)
	}
	require.True(t, q.empty())
}

func TestANamedRecordStaysApartWhenThoseBeforeItAreHalved(t *testing.T) {
	q := newQueue(records(0, 30))
	q.name(10)
	_, c := q.cut(nil, maxMessages, maxBodyBytes, nil)
	require.Equal(t, 10, c.records)
	require.True(t, q.halve(c, true))
	for _, want := range []int{5, 5, 1, 19} {
		_, c = q.cut(nil, maxMessages, maxBodyBytes, nil)
		require.Equal(t, want, c.records)
		q.accepted(c)
		q.few = 0 // as a narrower cut that ended
	}
	require.True(t, q.empty())
}

// covers: SND-08
func TestAChunkNamesNoPartition(t *testing.T) {
	body, _ := newQueue(records(0, 50)).cut(nil, maxMessages, maxBodyBytes, nil)
	require.NotContains(t, string(body), "partition")
}

func BenchmarkCut(b *testing.B) {
	for _, lanes := range []int{1, 8} {
		b.Run(fmt.Sprint(lanes), func(b *testing.B) {
			recs := make([]Record, 500)
			for i := range recs {
				recs[i] = Record{
					Offset: int64(i), Key: fmt.Appendf(nil, "customer-%06d", i),
					Payload: fmt.Appendf(nil, `{"id":%d,"name":"%s"}`, i, strings.Repeat("abcdefgh ", 110)),
				}
			}
			queues := queuesOf(recs, lanes, -1)
			buf := make([]byte, 0, maxBodyBytes)
			b.ReportAllocs()
			for b.Loop() {
				for _, q := range queues {
					q.begin(recs, -1)
				}
				split(recs, queues)
				for _, q := range queues {
					for !q.empty() {
						var c chunk
						buf, c = q.cut(buf[:0], maxMessages, maxBodyBytes, nil)
						q.accepted(c)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
		})
	}
}

// covers: GAT-07
func TestACopiedQueueGoesOnWhereItWas(t *testing.T) {
	recs, q := records(0, 30), &queue{}
	q.begin(recs, -1)
	split(recs, []*queue{q})
	body, c := q.cut(nil, 10, maxBodyBytes, nil)
	q.accepted(c)
	_, c = q.cut(body[:0], 10, maxBodyBytes, nil)
	require.True(t, q.halve(c, false))
	size := int64(0)
	for _, r := range recs[10:] {
		size += int64(len(r.Key)+len(r.Payload)) + recordOverhead
	}
	require.Equal(t, size, q.size())
	q.keep()
	for i := range recs {
		clear(recs[i].Key)
		clear(recs[i].Payload)
		recs[i].Offset = -7
	}
	var got []int64
	var sizes []int
	for !q.empty() {
		body, c = q.cut(body[:0], 10, maxBodyBytes, nil)
		offsets, _ := decodeChunk(body)
		got, sizes = append(got, offsets...), append(sizes, c.records)
		require.Equal(t, c.last, offsets[len(offsets)-1])
		q.accepted(c)
	}
	require.Equal(t, offsetsOf(records(10, 20)), got)
	require.Equal(t, []int{5, 5, 10}, sizes, "the cut holds for the records that it was made for")
}
