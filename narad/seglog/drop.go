package seglog

import (
	"fmt"
	"time"
)

// SegmentInfo describes one segment: its first sequence number, the one after its last, the bytes of its file and when
// it was last appended to.
type SegmentInfo struct {
	First, Next int64
	Bytes       int64
	Newest      time.Time
}

// Segments describes all segments, oldest first. The last is the one that is appended to.
func (l *Log) Segments() []SegmentInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	infos := make([]SegmentInfo, len(l.list))
	for i, s := range l.list {
		infos[i] = SegmentInfo{First: s.first, Next: s.next, Bytes: s.size, Newest: s.newest}
	}
	return infos
}

// DropBefore deletes the segments that lie whole below seq, never the last one. An error leaves them out of the log all
// the same; their files are removed by the next call, or found again by the next Open.
func (l *Log) DropBefore(seq int64) error {
	l.dropping.Lock()
	defer l.dropping.Unlock()
	l.mu.Lock()
	for len(l.list) > 1 && l.list[0].next <= seq {
		s := l.list[0]
		l.list = l.list[1:]
		l.doomed = append(l.doomed, s.path)
		s.gone = true
		_ = s.closeFile() // it is about to be deleted
	}
	doomed := l.doomed
	l.mu.Unlock()
	// One at a time and oldest first, so that a crash in between leaves no hole.
	for i, path := range doomed {
		err := l.o.FS.Remove(path)
		if err == nil {
			err = l.o.FS.SyncDir(l.o.Dir)
		}
		if err != nil {
			l.mu.Lock()
			l.doomed = doomed[i:]
			l.mu.Unlock()
			return fmt.Errorf("drop segment: %w", err)
		}
	}
	l.mu.Lock()
	l.doomed = nil
	l.mu.Unlock()
	return nil
}
