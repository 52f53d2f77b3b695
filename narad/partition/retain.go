package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"narad.example/narad/seglog"
)

// Retain deletes the segments whose newest record was committed longer ago than retention, and returns how many
// records went. 0 keeps all. The segment that is appended to is sealed first when it is due.
func (p *Partition) Retain(retention time.Duration) (dropped int64, err error) {
	if retention <= 0 {
		return 0, nil
	}
	p.retain.Lock()
	defer p.retain.Unlock()
	limit := p.now().Add(-retention).UnixMilli()
	infos := p.log.Segments()
	keep := infos[0].First
	var full error // of a disk without room for the next segment, which the older ones make
	for i, info := range infos {
		if info.Next == info.First {
			break
		}
		var newest int64
		if newest, err = p.newest(info, i == len(infos)-1); err != nil {
			return 0, fmt.Errorf("retain: %w", err)
		}
		if newest >= limit {
			break
		}
		if i == len(infos)-1 {
			if full = p.log.Seal(context.Background()); full != nil && !errors.Is(full, seglog.ErrFull) {
				return 0, fmt.Errorf("retain: %w", full)
			}
		}
		if full == nil {
			keep = info.Next
		}
	}
	// A commit that came between reading the times and sealing is in the last segment too: look again before it goes.
	if last := infos[len(infos)-1]; keep == last.Next && keep > last.First {
		if keep, err = p.settled(last, limit); err != nil {
			return 0, fmt.Errorf("retain: %w", err)
		}
	}
	before := p.Oldest()
	err = errors.Join(full, p.log.DropBefore(keep))
	dropped = p.Oldest() - before
	p.forget()
	if err != nil {
		err = fmt.Errorf("retain: %w", err)
	}
	return dropped, err
}

// settled returns what to keep once the segment that began at last.First is sealed.
func (p *Partition) settled(last seglog.SegmentInfo, limit int64) (keep int64, err error) {
	for _, info := range p.log.Segments() {
		if info.First != last.First {
			continue
		}
		newest, err := p.newest(info, false)
		if err != nil {
			return 0, err
		}
		if newest >= limit {
			return info.First, nil
		}
		return info.Next, nil
	}
	return last.First, nil
}

// newest is the commit time of a segment's last record; that of a sealed segment is kept. Of the one that is appended to it may be a later
// time. No file is read for it again and again, so that a partition at rest stays so.
func (p *Partition) newest(info seglog.SegmentInfo, active bool) (int64, error) {
	if active {
		return p.lastMS.Load(), nil
	}
	p.mu.Lock()
	ms, ok := p.newestMS[info.First]
	p.mu.Unlock()
	if ok {
		return ms, nil
	}
	ms, err := p.commitTime(info.Next - 1)
	if err == nil {
		p.mu.Lock()
		p.newestMS[info.First] = ms
		p.mu.Unlock()
	}
	return ms, err
}

// forget drops the times of segments that are gone.
func (p *Partition) forget() {
	oldest := p.Oldest()
	p.mu.Lock()
	defer p.mu.Unlock()
	for first := range p.newestMS {
		if first < oldest {
			delete(p.newestMS, first)
		}
	}
}

// Stats describes a partition.
type Stats struct {
	Segments        int
	Oldest          int64
	Next            int64 // the offset after the last durable record
	HighWatermark   int64
	Bytes           int64 // of the segment files
	OldestSegmentAt int64 // when the oldest record was committed, in Unix seconds; 0 when there is none
}

// Stats describes the partition. It reads the commit time of the oldest record from the file; one that does not read
// leaves OldestSegmentAt at 0.
func (p *Partition) Stats() Stats {
	infos := p.log.Segments()
	s := Stats{Segments: len(infos), Oldest: infos[0].First, Next: p.log.Next(), HighWatermark: p.HighWatermark()}
	for _, info := range infos {
		s.Bytes += info.Bytes
	}
	if s.HighWatermark > s.Oldest {
		ms, err := p.CommitTime(s.Oldest)
		if err == nil {
			s.OldestSegmentAt = ms / 1000
		}
	}
	return s
}

// CommitTime is when the visible record at offset was committed, in Unix milliseconds. Errors are those of Read; an offset at
// the high watermark or above is an error too.
func (p *Partition) CommitTime(offset int64) (int64, error) {
	if offset >= p.HighWatermark() {
		return 0, fmt.Errorf("offset %d lies above the high watermark", offset)
	}
	ms, err := p.commitTime(offset)
	if errors.Is(err, seglog.ErrTrimmed) {
		return 0, &Trimmed{Oldest: p.Oldest()}
	}
	return ms, err
}
