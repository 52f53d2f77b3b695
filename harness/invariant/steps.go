package invariant

import (
	"fmt"
	"net/http"
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
		case electing(s, o):
			f.lack("%s of %s was answered 503 by %s: nobody led there, and a loaded machine holds elections of its own", o.Action, o.Target, o.Node)
		case o.Status != o.Expect:
			f.breaks(o.RequestID, "%s of %s was answered %d, expected %d", o.Action, o.Target, o.Status, o.Expect)
		case !strings.Contains(o.Text, o.Says):
			f.breaks(o.RequestID, "%s of %s was answered %d with %q, expected the words %q", o.Action, o.Target, o.Status, o.Text, o.Says)
		}
	}
	f.looked = fmt.Sprintf("%d actions", n)
	return f
}

// electing tells whether an action that should have succeeded was answered 503 by a cluster that may have been electing. In real time nodes that get no
// processor miss their leader although no fault took it away; then the answer is right, and proves nothing. A single node leads always, and in virtual
// time every election has a fault behind it.
func electing(s *ledger.Scenario, o *ledger.Operation) bool {
	nodes := s.Facts.Sources
	if strings.HasPrefix(o.Node, "target-") {
		nodes = s.Facts.TargetNodes
	}
	return !s.Facts.Virtual && nodes > 1 && o.Status == http.StatusServiceUnavailable && o.Expect < http.StatusMultipleChoices
}
