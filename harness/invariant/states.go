package invariant

import (
	"fmt"
	"slices"

	"narad.example/harness/ledger"
)

// running is the one state of a link that is well (LST-03).
const running = "running"

// states is HAR-10: the link states that the scenario expects were shown in their order, those it forbids were not, and at the end every
// link runs with nothing blocked, except those that are meant to wait.
func states(s *ledger.Scenario) *finding {
	f := &finding{promise: "link states are shown as expected and clear by themselves"}
	if missing := s.Lacks(ledger.FactsName, ledger.LinksName); missing != "" {
		return f.lack("%s", missing)
	}
	looked := 0
	for i := range s.Facts.Links {
		l := &s.Facts.Links[i]
		if l.DetachedAt != 0 {
			continue
		}
		looked += statesOf(s, f, l)
	}
	if len(s.Facts.Links) == 0 {
		f.lack("no link is known")
	}
	f.looked = fmt.Sprintf("%d looks at the children listing", looked)
	return f
}

func statesOf(s *ledger.Scenario, f *finding, l *ledger.Link) int {
	var shown []ledger.Sample
	for _, sm := range s.Samples {
		if sm.Child == l.Child && sm.Parent == l.Parent && !sm.Silent {
			shown = append(shown, sm)
		}
	}
	if len(shown) == 0 {
		f.lack("the listing of %s was never read", l.Name())
		return 0
	}
	want := s.Facts.Expect.States[l.Child]
	next := 0
	for _, sm := range shown {
		if next < len(want) && sm.State == want[next] {
			next++
		}
		if slices.Contains(s.Facts.Expect.Never[l.Child], sm.State) {
			f.breaks(l.Name(), "%s showed %s at %d ms, which must never be", l.Name(), sm.State, sm.At)
		}
	}
	if next < len(want) {
		f.breaks(l.Name(), "%s never showed %s after %v", l.Name(), want[next], want[:next])
	}
	end := shown[len(shown)-1]
	switch {
	case waits(s, l):
	case end.State != running:
		f.breaks(l.Name(), "%s ends %s, last looked at %d ms", l.Name(), end.State, end.At)
	case end.Blocked != "":
		f.breaks(l.Name(), "%s ends blocked at %s", l.Name(), end.Blocked)
	}
	return len(shown)
}
