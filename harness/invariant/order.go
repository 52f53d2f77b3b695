package invariant

import (
	"fmt"

	"narad.example/harness/ledger"
)

// order is HAR-06: for each attach epoch, parent partition and key, the first occurrences in accepted requests follow the parent's
// offsets. Skipped and dropped offsets are left out, since a cut request may land late; so is a record that the parent holds in two
// partitions, of which nobody can tell which copy was seen.
func order(s *ledger.Scenario) *finding {
	f := &finding{promise: "the records of a key reach the target in the parent's order"}
	if missing := s.Lacks(ledger.FactsName, ledger.ParentName, ledger.WireName); missing != "" {
		return f.lack("%s", missing)
	}
	if !s.Facts.WireRead {
		f.lack("the tap's requests were not read to their end")
	}
	pairs := 0
	for i := range s.Facts.Links {
		pairs += orderOf(s, f, &s.Facts.Links[i])
	}
	if pairs == 0 {
		f.lack("no key had two records on the wire")
	}
	f.looked = fmt.Sprintf("%d pairs of records of one key", pairs)
	return f
}

type stream struct {
	partition int
	key       string
}

type seenAt struct {
	offset  int64
	id      string
	request int64
}

func orderOf(s *ledger.Scenario, f *finding, l *ledger.Link) int {
	at := map[string]ledger.Stored{}
	twice := map[string]bool{}
	for _, r := range s.Parent {
		if r.Topic != l.Parent || r.ID == "" {
			continue
		}
		first, again := at[r.ID]
		switch {
		case !again || (first.Partition == r.Partition && r.Offset < first.Offset):
			at[r.ID] = r
		case first.Partition != r.Partition:
			twice[r.ID] = true
		}
	}
	last := map[stream]seenAt{}
	seen := map[string]bool{}
	pairs := 0
	for _, req := range accepted(s) {
		if !ofEpoch(s, l, &req) {
			continue
		}
		for _, rec := range req.Records {
			stored, known := at[rec.ID]
			if !known || seen[rec.ID] || twice[rec.ID] || stored.Key == "" || excused(s, l, place{stored.Partition, stored.Offset}) {
				continue
			}
			seen[rec.ID] = true
			lane := stream{stored.Partition, stored.Key}
			if before, ok := last[lane]; ok {
				pairs++
				if before.offset > stored.Offset {
					f.breaks(rec.ID, "%s (%d/%d) came in request %d, after %s (%d/%d) of the same key in request %d",
						rec.ID, stored.Partition, stored.Offset, req.Seq, before.id, stored.Partition, before.offset, before.request)
					continue // one late record must not blame all that follow it
				}
			}
			last[lane] = seenAt{stored.Offset, rec.ID, req.Seq}
		}
	}
	return pairs
}
