package fakes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"narad.example/harness/ledger"
)

// recorder keeps every request in the order of the answers. A place is taken when the answer is known (take) and filled in
// when its records are decoded (fill); whether the answer was sent is added later (sent), since a caller may be slow to
// take it.
type recorder struct {
	name  string
	epoch time.Time

	mu   sync.Mutex // guards all below; held for the moment of a change only
	list []entry
	grew chan struct{} // closed at the next fill
}

type entry struct {
	req    ledger.WireRequest
	filled bool
	final  bool // Sent will not change any more
}

func newRecorder(name string, epoch time.Time) *recorder {
	return &recorder{name: name, epoch: epoch, grew: make(chan struct{})}
}

// now is the time in milliseconds since the run's start.
func (rec *recorder) now() int64 { return time.Since(rec.epoch).Milliseconds() }

// take reserves the next place and returns its sequence number, from 1.
func (rec *recorder) take() int64 {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.list = append(rec.list, entry{})
	return int64(len(rec.list))
}

// fill stores the request at its place.
func (rec *recorder) fill(seq int64, r ledger.WireRequest) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	r.Seq, r.Tap = seq, rec.name
	rec.list[seq-1].req, rec.list[seq-1].filled = r, true
	close(rec.grew)
	rec.grew = make(chan struct{})
}

// sent says whether the answer at seq reached the caller. It ends the entry.
func (rec *recorder) sent(seq int64, sent bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.list[seq-1].req.Sent, rec.list[seq-1].final = sent, true
}

// from returns copies of the requests from sequence seq on up to the first that is not filled yet, the number of the first
// whose Sent may still change (one past the end when none), and a channel that closes when more is there.
func (rec *recorder) from(seq int64) (list []ledger.WireRequest, settled int64, grew <-chan struct{}) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	seq = max(seq, 1)
	settled = -1
	at := seq
	for ; at <= int64(len(rec.list)) && rec.list[at-1].filled; at++ {
		if settled < 0 && !rec.list[at-1].final {
			settled = at
		}
		list = append(list, rec.list[at-1].req)
	}
	if settled < 0 {
		settled = at
	}
	return list, settled, rec.grew
}

// length is the number of places taken.
func (rec *recorder) length() int64 {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return int64(len(rec.list))
}

// requests returns all requests from seq on whose answers were known when it was called, and the number of the first whose
// Sent may still change. It waits for records that are being decoded, never for a caller or a target.
func (rec *recorder) requests(ctx context.Context, seq int64) ([]ledger.WireRequest, int64, error) {
	want := rec.length()
	for {
		list, settled, grew := rec.from(seq)
		if max(seq, 1)+int64(len(list)) > want {
			return list, settled, nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return nil, 0, fmt.Errorf("requests of %s: %w", rec.name, ctx.Err())
		}
	}
}
