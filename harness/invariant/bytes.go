package invariant

import (
	"cmp"
	"fmt"

	"narad.example/harness/ledger"
)

// bytesEqual is HAR-07: key and payload are what was produced, byte for byte at the tap, and in both logs as far as an answer can
// tell (ledger.Visible).
func bytesEqual(s *ledger.Scenario) *finding {
	f := &finding{promise: "key and payload arrive byte for byte"}
	if missing := s.Lacks(ledger.FactsName, ledger.OperationsName, ledger.ParentName, ledger.WireName); missing != "" {
		return f.lack("%s", missing)
	}
	ops := produced(s)
	wire, logs := 0, 0
	for _, r := range accepted(s) {
		for i, rec := range r.Records {
			wire++
			o := ops[rec.ID]
			where := fmt.Sprintf("record %d of request %d", i, r.Seq)
			switch {
			case o == nil:
				f.breaks(cmp.Or(rec.ID, where), "%s is none that was produced", where)
			case rec.Key != o.Key:
				f.breaks(rec.ID, "%s has another key on the wire, %s", rec.ID, where)
			case rec.Payload != o.Payload:
				f.breaks(rec.ID, "%s has another payload on the wire, %s", rec.ID, where)
			}
		}
	}
	for name, log := range map[string][]ledger.Stored{"parent": s.Parent, "target": s.Target} {
		for _, r := range log {
			logs++
			o := ops[r.ID]
			where := fmt.Sprintf("%s of the %s %s", place{r.Partition, r.Offset}, name, r.Topic)
			switch {
			case o == nil:
				f.breaks(cmp.Or(r.ID, where), "%s is none that was produced", where)
			case r.Key != o.Key:
				f.breaks(r.ID, "%s has another key in %s", r.ID, where)
			case r.Payload != cmp.Or(o.Seen, o.Payload):
				f.breaks(r.ID, "%s has another payload in %s", r.ID, where)
			}
		}
	}
	if wire == 0 {
		f.lack("no record was accepted on the wire")
	}
	if !s.Facts.Fake && len(s.Target) == 0 {
		f.lack("nothing was read back from the target")
	}
	f.looked = fmt.Sprintf("%d copies on the wire, %d records in the logs", wire, logs)
	return f
}
