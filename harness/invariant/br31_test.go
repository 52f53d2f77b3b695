package invariant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

// The plants of BR-31, each in a run with nothing else wrong: six that tested nothing, and three that broke a promise.
//
// covers: HAR-03, HAR-05, HAR-06, HAR-08
func TestBR31(t *testing.T) {
	full := func() *ledger.Scenario {
		s, admin := proved(), audited()
		s.Operations = append(s.Operations, admin.Operations[4:]...)
		s.Audit = admin.Audit
		for i := range s.Operations {
			s.Operations[i].Shape = "json"
		}
		s.Facts.Expect.Shapes = []string{"json"}
		return s
	}
	said := func(s *ledger.Scenario) (verdict string, by map[string]ledger.Verdict) {
		s.Facts.Relax = []ledger.Relax{{Judge: NameSecret, Reason: "no folder"}, {Judge: NamePaused, Reason: "a pause of some ms"}}
		j := Judge(s, nil)
		by = map[string]ledger.Verdict{}
		for _, v := range j.Verdicts {
			by[v.Name] = v
		}
		return j.Verdict(), by
	}
	verdict, all := said(full())
	require.Equal(t, ledger.Pass, verdict, "%+v", all)
	for words, plant := range map[string]func(*ledger.Scenario){
		"only 0 records were acknowledged after": func(s *ledger.Scenario) { // the load dies within the fault; what it made arrived
			s.Operations = append(s.Operations[:60:60], s.Operations[200:]...)
			s.Wire, s.Parent, s.Target = s.Wire[:30], s.Parent[:60], s.Target[:60]
		},
		"nothing proves that reset_peer at 500ms landed": func(s *ledger.Scenario) { s.Faults[0].Landed = false },
		"the harness had trouble: setup":                 func(s *ledger.Scenario) { s.Facts.Trouble = []string{"setup: no target"} },
		"only 0 records were acknowledged during":        func(s *ledger.Scenario) { s.Faults[0].Start, s.Faults[0].End = 502, 508 }, // too short to meet one
		"wire.jsonl: absent":                             func(s *ledger.Scenario) { lacking(s, ledger.WireName) },
		"no text record was acknowledged":                func(s *ledger.Scenario) { s.Facts.Expect.Shapes = []string{"json", "text"} },
	} {
		s := full()
		plant(s)
		verdict, all = said(s)
		require.Equal(t, ledger.Inconclusive, verdict, "%s: %+v", words, all)
		require.Contains(t, all[NameProof].Says, words)
	}
	for judge, c := range map[string]struct {
		words string
		plant func(*ledger.Scenario)
	}{
		NameGap: {id(4) + ", 0/4 of orders", func(s *ledger.Scenario) {
			s.Wire[2].Records, s.Target = s.Wire[2].Records[1:], drop(s.Target, 4)
		}},
		NameOrder: {id(3) + " (0/3)", func(s *ledger.Scenario) {
			s.Wire[1].Records[0], s.Wire[2].Records[0] = s.Wire[2].Records[0], s.Wire[1].Records[0]
		}},
		NameAudit: {"request r1", func(s *ledger.Scenario) { s.Audit = s.Audit[1:] }},
	} {
		s := full()
		c.plant(s)
		verdict, all = said(s)
		require.Equal(t, ledger.Fail, verdict)
		require.Equal(t, ledger.Fail, all[judge].Verdict, "%+v", all)
		require.Contains(t, all[judge].Says, c.words)
	}
	s := full()
	s.Operations[199].Outcome, s.Operations[199].Status = ledger.Unknown, 0 // its produce timed out: it may be there or not
	verdict, all = said(s)
	require.Equal(t, ledger.Pass, verdict, "%+v", all)
}

// A scenario may want its run to prove nothing, for a reason that it names.
//
// covers: HAR-03
func TestARunThatIsMeantToProveNothing(t *testing.T) {
	judged := func(words string, spoil func(*ledger.Scenario)) (string, ledger.Verdict) {
		s := proved()
		s.Facts.Expect.Inconclusive = words
		spoil(s)
		j := Judge(s, nil)
		return j.Verdict(), j.Verdicts[0]
	}
	none := func(s *ledger.Scenario) { s.Faults[0].Landed = false }
	verdict, proof := judged("nothing proves that reset_peer", none)
	require.Equal(t, ledger.Pass, verdict)
	require.Contains(t, proof.Says, "inconclusive, as the scenario expects: ")
	verdict, proof = judged("only 0 records", none)
	require.Equal(t, ledger.Fail, verdict)
	require.Contains(t, proof.Says, `meant to be inconclusive with "only 0 records" and is inconclusive`)
	verdict, _ = judged("nothing proves that reset_peer", func(*ledger.Scenario) {})
	require.Equal(t, ledger.Fail, verdict, "a run that proved something")
	verdict, _ = judged("nothing proves that reset_peer", func(s *ledger.Scenario) { none(s); s.Parent = drop(s.Parent, 3) })
	require.Equal(t, ledger.Fail, verdict, "a broken promise is one all the same")
}
