package partition

import (
	"errors"
	"fmt"

	"narad.example/narad/seglog"
)

// Slab is a run of records with the memory that they lie in. The zero value is ready; use one for many reads. Records and
// what they point to last until the next Read into the slab, or Free. It is not for several goroutines at once.
type Slab struct {
	Records []Record
	Next    int64 // the offset to read from next

	buf   seglog.Buffer
	plain []byte // what was uncompressed
}

// Bytes is what the slab's records hold in keys and payloads.
func (s *Slab) Bytes() int {
	sum := 0
	for i := range s.Records {
		sum += len(s.Records[i].Key) + len(s.Records[i].Payload)
	}
	return sum
}

// Size is how many bytes of memory the slab holds on to.
func (s *Slab) Size() int { return s.buf.Size() + cap(s.plain) }

// Free lets go of the slab's memory. The slab may be used again.
func (s *Slab) Free() {
	clear(s.Records)
	s.Records, s.buf, s.plain = s.Records[:0], seglog.Buffer{}, nil
}

// Read fills s with visible records from the offset from on: at most maxRecords of at most maxBytes together, uncompressed, but one record
// always goes. Fewer may come although more are there; none, with s.Next = from, at the high watermark or above. Errors are *Trimmed
// (ErrTrimmed), ErrDamaged, ErrClosed, or of the file; s is empty then.
func (p *Partition) Read(from int64, maxRecords, maxBytes int, s *Slab) error {
	s.Records, s.Next = s.Records[:0], from
	visible := min(int64(maxRecords), p.HighWatermark()-from)
	if visible <= 0 {
		return nil
	}
	s.buf.Weigh = weigh
	frames, err := p.log.Read(from, int(visible), maxBytes, &s.buf)
	if errors.Is(err, seglog.ErrTrimmed) {
		return &Trimmed{Oldest: p.Oldest()}
	}
	if err != nil {
		return fmt.Errorf("read partition: %w", err)
	}
	if at, err := p.decode(frames, s); err != nil {
		s.Records = s.Records[:0]
		return fmt.Errorf("read partition: %w", &seglog.Damage{File: p.dir, Offset: at, Why: err.Error()})
	}
	s.Next = from + int64(len(frames))
	return nil
}

// decode turns frames into the slab's records. at is the offset of the one that err is about.
func (p *Partition) decode(frames []seglog.Frame, s *Slab) (at int64, err error) {
	sum := 0
	for _, f := range frames {
		r, plain, err := decode(f.Seq, f.Body)
		if err != nil {
			return f.Seq, err
		}
		sum += plain
		s.Records = append(s.Records, r)
	}
	if sum == 0 {
		return 0, nil
	}
	if cap(s.plain) < sum {
		s.plain = make([]byte, 0, sum)
	}
	s.plain = s.plain[:0]
	for i, f := range frames {
		_, plain, _ := decode(f.Seq, f.Body) // it was read above
		if plain == 0 {
			continue
		}
		used := len(s.plain)
		out, err := p.codec.unpack(s.plain[used:used], s.Records[i].Payload, plain)
		if err != nil {
			return f.Seq, err
		}
		s.plain = s.plain[:used+plain]
		s.Records[i].Payload = out[:plain:plain]
	}
	return 0, nil
}
