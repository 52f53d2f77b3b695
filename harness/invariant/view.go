package invariant

import (
	"cmp"
	"fmt"
	"slices"

	"narad.example/harness/ledger"
)

// place is where a record stands in a log.
type place struct {
	partition int
	offset    int64
}

func (p place) String() string { return fmt.Sprintf("%d/%d", p.partition, p.offset) }

// accepted are the requests that a target took, in the order of their answers.
func accepted(s *ledger.Scenario) []ledger.WireRequest {
	var out []ledger.WireRequest
	for _, r := range s.Wire {
		if r.Outcome == ledger.WireAccepted && r.Produces() {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b ledger.WireRequest) int {
		return cmp.Or(cmp.Compare(a.Tap, b.Tap), cmp.Compare(a.Seq, b.Seq))
	})
	return out
}

// ofEpoch tells whether a request belongs to an epoch of a link: it was for its topic, and it began before the next epoch of the same
// aim did.
func ofEpoch(s *ledger.Scenario, l *ledger.Link, r *ledger.WireRequest) bool {
	if r.Topic != l.TargetTopic || r.Done < l.AttachedAt {
		return false
	}
	for i := range s.Facts.Links {
		next := &s.Facts.Links[i]
		if next.TargetTopic == l.TargetTopic && next.Remote == l.Remote && next.AttachedAt > l.AttachedAt && r.At >= next.AttachedAt {
			return false
		}
	}
	return true
}

// excused tells whether a parent record needs no accepted request: it is below the start, skipped, or in a logged drop.
func excused(s *ledger.Scenario, l *ledger.Link, p place) bool {
	if p.offset < l.Start(p.partition) || slices.Contains(l.Skip[fmt.Sprint(p.partition)], p.offset) {
		return true
	}
	for _, d := range s.Facts.Drops {
		if d.Parent == l.Parent && d.Child == l.Child && d.Partition == p.partition && p.offset >= d.From && p.offset <= d.To {
			return true
		}
	}
	return false
}

// produced are the produce operations by the ID of their record.
func produced(s *ledger.Scenario) map[string]*ledger.Operation {
	out := map[string]*ledger.Operation{}
	for i := range s.Operations {
		if o := &s.Operations[i]; o.Kind == ledger.KindProduce && o.ID != "" {
			out[o.ID] = o
		}
	}
	return out
}

func waits(s *ledger.Scenario, l *ledger.Link) bool {
	return slices.Contains(s.Facts.Expect.Waits, l.Child)
}
