package sender

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// taker accepts every chunk. It counts the records, since the first chunks have 100 until the batch size is heard.
type taker struct{ accepted []*outbound.Answer }

func (k taker) Do(_ context.Context, r *outbound.Request) (*outbound.Answer, error) {
	switch {
	case r.Method == http.MethodGet:
		return &outbound.Answer{Status: 200, Header: http.Header{}, Body: []byte(`{"parent":"t","parent_id":"00000000000000aa","children":[]}`)}, nil
	case len(r.Body) == len(target.SizeBody):
		return shaped(400, "message 0: payload required"), nil
	}
	return k.accepted[bytes.Count(r.Body, []byte(`"payload":`))], nil
}

func drainNode(lanes, perLane int) (*Cursor, []Record) {
	var k taker
	for n := range perLane + 1 {
		header := http.Header{"Content-Type": {"application/json"}}
		k.accepted = append(k.accepted, &outbound.Answer{Status: 202, Header: header, Body: fmt.Appendf(nil, `{"accepted":%d}`, n)})
	}
	s := New(Options{Remotes: &still{remote: Remote{Client: k.pointer(), ID: "r", Limits: wire.DefaultLimits()}}})
	c := s.Open(LinkConfig{Parent: "p", Child: "c", Remote: "eu", TargetTopic: "t", TargetID: "00000000000000aa", Lanes: lanes})
	recs := make([]Record, lanes*perLane)
	for i := range recs {
		recs[i] = Record{Offset: int64(i), Payload: fmt.Appendf(nil, `{"id":%d,"name":"%s"}`, i, strings.Repeat("abcdefgh ", 110))}
	}
	return c, recs
}

func (k taker) pointer() *taker { return &k }

// still is a remote that never changes.
type still struct{ remote Remote }

func (s *still) Remote(string) Remote     { return s.remote }
func (s *still) Changed() <-chan struct{} { return nil }

// PRF-15: under 0.1 allocations per record on the drain path, the whole of Ship counted.
func TestTheDrainPathHardlyAllocates(t *testing.T) {
	for _, lanes := range []int{1, 8} {
		c, recs := drainNode(lanes, 500)
		at := int64(0)
		perSlab := testing.AllocsPerRun(50, func() {
			for i := range recs {
				recs[i].Offset = at + int64(i)
			}
			at += int64(len(recs))
			if c.Ship(t.Context(), recs, nil) != Committed {
				panic("not committed")
			}
		})
		require.Less(t, perSlab/float64(len(recs)), 0.1)
		c.Close(t.Context())
	}
}

func BenchmarkShip(b *testing.B) {
	for _, lanes := range []int{1, 4} {
		b.Run(fmt.Sprint(lanes), func(b *testing.B) {
			c, recs := drainNode(lanes, 500)
			defer c.Close(b.Context())
			b.ReportAllocs()
			at := int64(0)
			for b.Loop() {
				for i := range recs {
					recs[i].Offset = at + int64(i)
				}
				at += int64(len(recs))
				if c.Ship(b.Context(), recs, nil) != Committed {
					b.Fatal("not committed")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
		})
	}
}
