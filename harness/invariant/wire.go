package invariant

import (
	"fmt"

	"narad.example/harness/ledger"
)

// Bounds of a request (SND-04, SND-05).
const (
	mostRecords = 1000
	mostBytes   = 960 << 10
)

// requests judges the form of every request with records: it names no partition (SND-08), holds at most 1,000 records (SND-04) and 960 KiB
// unless it is one record alone (SND-05, SND-06), and its ID was never used before (SND-14).
func requests(s *ledger.Scenario) *finding {
	f := &finding{promise: "every request with records has the form that was promised"}
	if missing := s.Lacks(ledger.WireName); missing != "" {
		return f.lack("%s", missing)
	}
	used := map[string]int64{}
	looked := 0
	for i := range s.Wire {
		r := &s.Wire[i]
		if !r.Produces() {
			continue
		}
		looked++
		where := fmt.Sprintf("request %d", r.Seq)
		if r.Pinned {
			f.breaks(where, "%s to %s names a partition", where, r.Topic)
		}
		if len(r.Records) > mostRecords {
			f.breaks(where, "%s has %d records", where, len(r.Records))
		}
		if r.Bytes > mostBytes && len(r.Records) > 1 {
			f.breaks(where, "%s has %d records in %d bytes", where, len(r.Records), r.Bytes)
		}
		if r.RequestID == "" {
			continue // a folder from before they were written down; the form of an ID is the target's to refuse
		}
		if before, again := used[r.RequestID]; again {
			f.breaks(where, "%s has the ID of request %d", where, before)
		}
		used[r.RequestID] = r.Seq
	}
	f.looked = fmt.Sprintf("%d requests", looked)
	return f
}
