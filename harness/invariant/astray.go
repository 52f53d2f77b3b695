package invariant

import (
	"fmt"

	"narad.example/harness/ledger"
)

// evidenceDialled is faults.EvidenceDialled: connections of the source to addresses to which a changed name led.
const evidenceDialled = "connections_to_them"

// astray is NET-03 and NET-05 on the wire: no request comes to the host of a redirect, and no connection of the source to an address that its
// guard refuses.
func astray(s *ledger.Scenario) *finding {
	f := &finding{promise: "nothing goes where it must not"}
	if missing := s.Lacks(ledger.FactsName, ledger.FaultsName); missing != "" {
		return f.lack("%s", missing)
	}
	redirects, answers := 0, 0
	for i := range s.Wire {
		switch r := &s.Wire[i]; {
		case r.Outcome == ledger.WireElsewhere:
			f.breaks(r.RequestID, "request %d followed a redirect to another host, %s, with %d records", r.Seq, r.Step, len(r.Records))
		case r.Status >= 300 && r.Status < 400:
			redirects++
		}
	}
	for i := range s.Faults {
		fault := &s.Faults[i]
		dialled, known := fault.Evidence[evidenceDialled].(float64)
		if !known {
			continue
		}
		answers++
		if dialled > 0 {
			f.breaks(fault.Name, "%s: %v connections to the addresses that it answered", fault.Name, dialled)
		}
	}
	if redirects > 0 && !s.Facts.WireRead {
		f.lack("the wire was not read")
	}
	f.looked = fmt.Sprintf("%d redirects, %d changed names", redirects, answers)
	return f
}
