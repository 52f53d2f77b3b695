package invariant

import (
	"fmt"
	"strings"

	"narad.example/harness/ledger"
)

// drained is the liveness that is owed once everything has healed (harness.md, Truth): by the deadline every backlog is 0 and every link has
// lag 0.
func drained(s *ledger.Scenario) *finding {
	f := &finding{promise: "after the healing everything arrives by the deadline"}
	if missing := s.Lacks(ledger.FactsName); missing != "" {
		return f.lack("%s", missing)
	}
	p := s.Facts.Phases
	switch {
	case p.Drained > 0 && p.Drained <= p.Deadline:
		f.looked = fmt.Sprintf("drained %d ms after the load and the healing", p.Drained-max(p.Healed, p.LoadEnd))
	case !s.Facts.Healed:
		f.lack("the faults were not all healed")
	case p.Deadline == 0 || p.End < p.Deadline:
		f.lack("the run ended before the deadline")
	default:
		waiting := s.Facts.Waiting
		if len(waiting) == 0 {
			waiting = []string{"nobody knows what"}
		}
		for _, w := range waiting {
			f.breaks(w, "still waiting at the deadline: %s", w)
		}
	}
	if len(s.Facts.Waiting) > 0 && f.broken == 0 && len(f.lacks) > 0 {
		f.lack("waiting: %s", strings.Join(s.Facts.Waiting, ", "))
	}
	return f
}
