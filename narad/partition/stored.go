package partition

import (
	"context"
	"errors"
	"fmt"

	"narad.example/narad/seglog"
)

// Stored is a run of records as they lie in a partition: offsets follow on First, and each body is a frame's (record.go), with its payload compressed or
// not, so that a copy of a partition neither uncompresses nor compresses. The zero value is ready; use one for many reads. What Bodies hold
// lasts until the next read into it.
type Stored struct {
	First  int64
	Bodies [][]byte

	buf seglog.Buffer
}

// Next is the offset after the run.
func (s *Stored) Next() int64 { return s.First + int64(len(s.Bodies)) }

// bytes is what the bodies hold.
func (s *Stored) bytes() (sum int) {
	for _, body := range s.Bodies {
		sum += len(body)
	}
	return sum
}

// ReadStored is Read without looking into the records; maxBytes counts them as they are stored.
func (p *Partition) ReadStored(from int64, maxRecords, maxBytes int, s *Stored) error {
	s.First, s.Bodies = from, s.Bodies[:0]
	visible := min(int64(maxRecords), p.HighWatermark()-from)
	if visible <= 0 {
		return nil
	}
	frames, err := p.log.Read(from, int(visible), maxBytes, &s.buf)
	if errors.Is(err, seglog.ErrTrimmed) {
		return &Trimmed{Oldest: p.Oldest()}
	}
	if err != nil {
		return fmt.Errorf("read partition: %w", err)
	}
	for _, f := range frames {
		s.Bodies = append(s.Bodies, f.Body)
	}
	return nil
}

// Import appends records that another copy of this partition has committed, with their offsets and commit times: s.First must be HighWatermark, else
// ErrGap, and each body must be a record's, else ErrForeign; nothing is stored then. A move fills the target with it. It syncs (a draft does
// not), reads back and shows them as Commit does, and its other errors are Commit's.
func (p *Partition) Import(ctx context.Context, s *Stored) error {
	if len(s.Bodies) == 0 {
		return nil
	}
	newest := int64(0)
	for i, body := range s.Bodies {
		r, _, err := decode(s.First+int64(i), body)
		if err != nil {
			return fmt.Errorf("import offset %d: %w", s.First+int64(i), ErrForeign)
		}
		newest = max(newest, r.CommitMS)
	}
	return p.do(ctx, &commit{stored: s, newest: newest})
}

// Settle syncs what a draft holds and ends it (BRK-03): from then on the partition is one like any other. Errors are those of seglog.Log.Settle.
func (p *Partition) Settle(ctx context.Context) error {
	if err := p.log.Settle(ctx); err != nil {
		return fmt.Errorf("settle the partition: %w", err)
	}
	return nil
}
