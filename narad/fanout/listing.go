package fanout

import (
	"slices"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// List is the answer to GET /v1/topics/{p}/children (LST-01 to LST-04) from the reports that a function gathers for each child. A
// partition without a report is unknown. Ages are measured against now, the wall clock's time. A missing parent is a *wire.Problem,
// NotFound.
func List(m Meta, parent string, partitions bool, reports func(child string) []CursorStats, now time.Time) (wire.Children, error) {
	p, ok := m.Topic(parent)
	if !ok {
		return wire.Children{}, wire.Refuse(wire.NotFound, "topic not found")
	}
	out := wire.Children{Parent: p.Name, ParentID: p.ID, Children: []wire.ChildEntry{}}
	for _, child := range m.Children(parent) {
		out.Children = append(out.Children, Entry(p, child, reports(child.Name), now, partitions))
	}
	return out, nil
}

// fold is the cursors of one child, by parent partition.
type fold struct {
	parent, child meta.Topic
	rows          []*CursorStats // nil where the owner did not report
	lag           int64
	complete      bool
}

// newFold takes only reports of this incarnation and this attach epoch (LST-06).
func newFold(parent, child meta.Topic, reports []CursorStats) fold {
	f := fold{parent: parent, child: child, rows: make([]*CursorStats, parent.Partitions), complete: true}
	for i := range reports {
		s := &reports[i]
		if s.ParentID == parent.ID && s.Epoch == child.AttachEpoch && s.Partition >= 0 && s.Partition < len(f.rows) {
			f.rows[s.Partition] = s
		}
	}
	for _, s := range f.rows {
		if s == nil {
			f.complete = false
			continue
		}
		f.lag += s.Lag()
	}
	return f
}

// Entry folds the reports of one child into its entry of the listing.
func Entry(parent, child meta.Topic, reports []CursorStats, now time.Time, partitions bool) wire.ChildEntry {
	f := newFold(parent, child, reports)
	e := wire.ChildEntry{Name: child.Name, DelayMS: child.FanoutDelayMS, LagMessages: f.lag, LagComplete: f.complete}
	if child.Remote == nil {
		return e
	}
	e.RemoteEntry = f.remote(now)
	if partitions {
		for p := range f.rows {
			e.Partitions = append(e.Partitions, f.partition(p))
		}
	}
	return e
}

func (f *fold) remote(now time.Time) *wire.RemoteEntry {
	e := &wire.RemoteEntry{
		Remote: f.child.Remote.Remote, Paused: f.child.Remote.Paused, State: wire.Running,
		SourceDrained: f.complete && f.lag == 0,
	}
	headroom := (time.Duration(f.parent.RetentionMS) * time.Millisecond).Seconds()
	var success int64
	var checks []int64
	for p, s := range f.rows {
		state := f.state(p)
		e.State = wire.Worse(e.State, state)
		if s == nil {
			continue
		}
		e.LagSeconds = max(e.LagSeconds, s.LagSeconds(now))
		headroom = min(headroom, s.Headroom(now, f.parent.RetentionMS))
		e.SourceDrained = e.SourceDrained && s.Frontier >= s.HighWatermark
		e.Unverified = e.Unverified || s.Unverified && state == wire.Running // LST-08
		if e.BlockedAt == nil {
			e.BlockedAt = f.blocked(p)
		}
		success = max(success, s.LastSuccess)
		checks = append(checks, s.LastCheck)
	}
	if f.parent.RetentionMS > 0 {
		e.RetentionHeadroomSeconds = &headroom
	}
	e.LastSuccessAt = timeText(success)
	if len(checks) > 0 {
		e.TargetVerifiedAt = timeText(slices.Min(checks)) // 0 is never: what the entry says holds for every cursor that reported
	}
	return e
}

// state of one partition as the answering node knows it: its own replica decides whether the link is paused (LST-06).
func (f *fold) state(p int) wire.LinkState {
	s := f.rows[p]
	switch {
	case s == nil:
		return wire.UnknownState
	case s.State == wire.UnknownState:
		return s.State
	case f.child.Remote.Paused:
		return wire.Paused
	case s.State == wire.Paused:
		return wire.Running // resumed here, and the cursor has not noticed yet: it runs before its first answer (DEC-37)
	case len(s.Blocked) > 0 && (s.State == wire.RejectedRecord || s.State == wire.RecordTooLarge):
		return f.stuckState(s)
	}
	return s.State
}

// stuckState is the worst state of the stuck records that are not skipped, running when every one is.
func (f *fold) stuckState(s *CursorStats) wire.LinkState {
	worst := wire.Running
	for i := range s.Blocked {
		if b := &s.Blocked[i]; !f.child.Remote.Skips(s.Partition, b.Offset) && b.State.Rank() < worst.Rank() {
			worst = b.State
		}
	}
	return worst
}

// blocked is the lowest stuck record of a partition; one that the replica has in its skip list is not shown (LST-06).
func (f *fold) blocked(p int) *wire.BlockedAt {
	s := f.rows[p]
	if s == nil {
		return nil
	}
	for i := range s.Blocked {
		if b := s.Blocked[i]; !f.child.Remote.Skips(p, b.Offset) {
			return &b
		}
	}
	return nil
}

func (f *fold) partition(p int) wire.ChildPartition {
	row := wire.ChildPartition{Partition: p, StartOffset: f.child.StartOffset(p), State: f.state(p), BlockedAt: f.blocked(p)}
	if p < len(f.parent.Nodes) {
		row.Node = f.parent.Nodes[p]
	}
	if s := f.rows[p]; s != nil {
		row.NextOffset, row.HighWatermark = &s.Next, &s.HighWatermark
		if s.Frontier >= 0 {
			row.AckFrontier = &s.Frontier
		}
		row.LastSuccessAt = timeText(s.LastSuccess)
	}
	return row
}

func timeText(ms int64) *string {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
	return &t
}
