package invariant

import (
	"testing"

	"narad.example/harness/ledger"
)

// covers: NET-03, NET-05
func TestNothingGoesAstray(t *testing.T) {
	s := hand(20)
	s.Wire[3].Status, s.Wire[3].Outcome = 307, ledger.WireRefused
	s.Faults = append(s.Faults, ledger.Fault{Name: "dns", Evidence: map[string]any{evidenceDialled: 0.0}}, ledger.Fault{Name: "cut"})
	expect(t, astray, s, ledger.Pass, "1 redirects, 1 changed names")

	s.Faults[len(s.Faults)-2].Evidence[evidenceDialled] = 2.0
	expect(t, astray, s, ledger.Fail, "dns: 2 connections to the addresses")
	s.Faults = nil
	s.Wire[4].Outcome, s.Wire[4].Step = ledger.WireElsewhere, ledger.ElsewhereCredential
	expect(t, astray, s, ledger.Fail, "request 5 followed a redirect to another host, with a credential")
	s.Wire[4].Outcome = ledger.WireAccepted
	s.Facts.WireRead = false
	expect(t, astray, s, ledger.Inconclusive, "the wire was not read")
}
