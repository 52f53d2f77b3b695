package partition

import (
	"context"
	"errors"
	"fmt"

	"narad.example/narad/seglog"
)

// Stored is a run of records as they lie in a partition: the frames of its log one after the other, with offsets from First on and payloads
// compressed or not, so that a copy of a partition lays out nothing anew. The zero value is ready; use one for many reads. Frames lasts until the
// next read into it.
type Stored struct {
	First   int64
	Records int // how many Frames is
	Frames  []byte

	buf seglog.Buffer
}

// Next is the offset after the run.
func (s *Stored) Next() int64 { return s.First + int64(s.Records) }

// ReadStored is Read without looking into the records; maxBytes counts them as they are stored.
func (p *Partition) ReadStored(from int64, maxRecords, maxBytes int, s *Stored) error {
	s.First, s.Records, s.Frames = from, 0, nil
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
	s.Records, s.Frames = len(frames), s.buf.Run()
	return nil
}

// Import appends records that another copy of this partition has committed, with their offsets and commit times: s.First must be HighWatermark, else
// ErrGap, and s.Frames must be s.Records good frames that hold records, else ErrForeign; nothing is stored then. A move fills the target with it. It
// writes into s.Frames, which hold nothing afterwards. It syncs (a draft does not), reads back and shows them as Commit does, and its other errors
// are Commit's.
func (p *Partition) Import(ctx context.Context, s *Stored) error {
	b, newest := new(seglog.Batch), int64(0)
	err := b.Adopt(s.Frames, s.First, func(body []byte) error {
		r, _, err := decode(0, body)
		newest = max(newest, r.CommitMS)
		return err
	})
	if err != nil {
		return fmt.Errorf("import: %w: %w", ErrForeign, err)
	}
	if b.Len() != s.Records {
		return fmt.Errorf("import: %w: %d records, %d were said to come", ErrForeign, b.Len(), s.Records)
	}
	if b.Len() == 0 {
		return nil
	}
	return p.do(ctx, &commit{stored: b, first: s.First, newest: newest})
}

// Settle syncs what a draft holds and ends it (BRK-03): from then on the partition is one like any other. Errors are those of seglog.Log.Settle.
func (p *Partition) Settle(ctx context.Context) error {
	if err := p.log.Settle(ctx); err != nil {
		return fmt.Errorf("settle the partition: %w", err)
	}
	return nil
}
