package invariant

import (
	"fmt"
	"strings"

	"narad.example/harness/ledger"
)

// steps compares the answers to the scenario's admin actions with the statuses it expects. One that got no answer accuses nobody.
func steps(s *ledger.Scenario) *finding {
	f := &finding{promise: "admin actions on the way are answered as expected"}
	if missing := s.Lacks(ledger.OperationsName); missing != "" {
		return f.lack("%s", missing)
	}
	n := 0
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Kind != ledger.KindAdmin || o.Expect == 0 {
			continue
		}
		n++
		switch {
		case o.Status == 0:
			f.lack("%s of %s got no answer", o.Action, o.Target)
		case o.Status != o.Expect:
			f.breaks(o.RequestID, "%s of %s was answered %d, expected %d", o.Action, o.Target, o.Status, o.Expect)
		case !strings.Contains(o.Text, o.Says):
			f.breaks(o.RequestID, "%s of %s was answered %d with %q, expected the words %q", o.Action, o.Target, o.Status, o.Text, o.Says)
		}
	}
	f.looked = fmt.Sprintf("%d actions", n)
	return f
}
