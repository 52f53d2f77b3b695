package invariant

import "narad.example/harness/ledger"

// left wants everything gone that the run started: processes, containers, networks, folders. What is there without the run having looked for more
// breaks the promise all the same.
func left(s *ledger.Scenario) *finding {
	f := &finding{promise: "nothing that the run started is left", looked: "nothing was found"}
	if missing := s.Lacks(ledger.FactsName); missing != "" {
		return f.lack("%s", missing)
	}
	for _, what := range s.Facts.Left {
		f.breaks(what, "%s", what)
	}
	if !s.Facts.LeftRead {
		f.lack("nobody looked")
	}
	return f
}
