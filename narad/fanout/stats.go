package fanout

import (
	"time"

	"narad.example/narad/wire"
)

// identity names one cursor.
type identity struct {
	parent, parentID string
	child, epoch     string
	partition        int
	remote           string // name of the remote, empty for a local child
}

// CursorStats is what the owner of a parent partition reports of one cursor (LST-01). It is what package node sends to other
// nodes, so it names no URL and nothing that a target said (LST-05). Times in ms are Unix time, 0 for none.
type CursorStats struct {
	Parent        string           `json:"parent"`
	ParentID      string           `json:"parent_id"`
	Child         string           `json:"child"`
	Epoch         string           `json:"epoch"`
	Partition     int              `json:"partition"`
	Node          string           `json:"node"`
	Next          int64            `json:"next"` // position: everything below is at the child
	HighWatermark int64            `json:"high_watermark"`
	Oldest        int64            `json:"oldest"`            // oldest retained offset of the parent partition
	Frontier      int64            `json:"frontier"`          // the parent's consumers have acked everything below; -1 when it is not known
	OldestUnsent  int64            `json:"oldest_unsent"`     // commit time in ms of the record at Next, 0 when there is none
	DelayMS       int64            `json:"delay_ms"`          // of the child
	Remote        string           `json:"remote"`            // empty for a local child
	State         wire.LinkState   `json:"state"`             // of this cursor (DEC-37)
	Blocked       []wire.BlockedAt `json:"blocked,omitempty"` // every stuck record, the lowest offset first (DEC-37)
	LastSuccess   int64            `json:"last_success"`      // ms
	LastCheck     int64            `json:"last_check"`        // ms
	Unverified    bool             `json:"unverified"`
}

// Lag is the number of records that are not at the child.
func (s *CursorStats) Lag() int64 { return max(0, s.HighWatermark-s.Next) }

// LagSeconds is the age of the oldest unsent record, 0 when there is none; never negative (LST-04, DEC-15).
func (s *CursorStats) LagSeconds(now time.Time) float64 {
	if s.OldestUnsent == 0 {
		return 0
	}
	return max(0, now.Sub(time.UnixMilli(s.OldestUnsent)).Seconds())
}

// DueLagSeconds is how long the oldest unsent record has been due: LagSeconds less the child's delay.
func (s *CursorStats) DueLagSeconds(now time.Time) float64 {
	return max(0, s.LagSeconds(now)-(time.Duration(s.DelayMS)*time.Millisecond).Seconds())
}

// Headroom is the time in seconds until retention reaches the oldest unsent record: the whole retention when there is none, 0
// when retention passed the cursor already (DEC-43).
func (s *CursorStats) Headroom(now time.Time, retentionMS int64) float64 {
	if s.Next < s.Oldest {
		return 0
	}
	return max(0, (time.Duration(retentionMS)*time.Millisecond).Seconds()-s.LagSeconds(now))
}

// stats reports the cursor as it is now.
func (c *cursor) stats(node string, frontier func(string, int) int64) CursorStats {
	status := c.status()
	next := c.next.Load()
	s := CursorStats{
		Parent: c.id.parent, ParentID: c.id.parentID, Child: c.id.child, Epoch: c.id.epoch, Partition: c.id.partition,
		Node: node, Next: next, HighWatermark: c.src.part.HighWatermark(), Oldest: c.src.part.Oldest(),
		DelayMS: c.src.delay.Milliseconds(), Remote: c.id.remote, State: status.State, Blocked: status.Blocked,
		LastSuccess: unixMS(status.LastSuccess), LastCheck: unixMS(status.LastCheck), Unverified: status.Unverified,
	}
	if frontier != nil {
		s.Frontier = frontier(c.id.parentID, c.id.partition)
	}
	if s.HighWatermark > next {
		if ms, ok := c.src.commitTime(next); ok {
			s.OldestUnsent = ms
		} else {
			s.State = wire.UnknownState // the cursor meets the same error at its next read and logs it
		}
	}
	return s
}

func unixMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
