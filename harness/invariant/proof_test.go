package invariant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

func proved() *ledger.Scenario {
	s := hand(200)
	s.Faults = []ledger.Fault{{Name: "reset_peer at 500ms", Kind: "reset_peer", Start: 500, End: 900, Landed: true}}
	s.Facts.Steps = []ledger.Step{{Name: "1 503", Want: 2, Used: 2}}
	return s
}

// covers: HAR-03
func TestProof(t *testing.T) {
	expect(t, proof, proved(), ledger.Pass, "200 records acknowledged, 1 faults landed, 1 script steps used")
	for words, spoil := range map[string]func(*ledger.Scenario){
		"nothing proves that reset_peer at 500ms landed": func(s *ledger.Scenario) { s.Faults[0].Landed = false },
		"records were acknowledged during":               func(s *ledger.Scenario) { s.Operations = append(s.Operations[:50:50], s.Operations[91:]...) },
		"records were acknowledged before":               func(s *ledger.Scenario) { s.Operations = s.Operations[60:] },
		"records were acknowledged after":                func(s *ledger.Scenario) { s.Operations = s.Operations[:91] },
		"the target accepted nothing after":              func(s *ledger.Scenario) { s.Wire = s.Wire[:30] },
		"the target accepted nothing before":             func(s *ledger.Scenario) { s.Wire = s.Wire[40:] },
		"never ended":                                    func(s *ledger.Scenario) { s.Faults[0].End = 0 },
		"only 91 records were acknowledged":              func(s *ledger.Scenario) { s.Operations = s.Operations[:91] },
		`step "1 503" of the fake answered 1 times`:      func(s *ledger.Scenario) { s.Facts.Steps[0].Used = 1 },
		"source-1 died at 70 ms":                         func(s *ledger.Scenario) { s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 70}} },
		"not every fault was healed":                     func(s *ledger.Scenario) { s.Facts.Healed = false },
		"the harness had trouble: disk full":             func(s *ledger.Scenario) { s.Facts.Trouble = []string{"disk full"} },
		"was never seen on the wire":                     func(s *ledger.Scenario) { s.Wire = s.Wire[:99] },
		"nothing was produced into orders":               func(s *ledger.Scenario) { s.Operations = nil },
		"faults.jsonl: absent":                           func(s *ledger.Scenario) { lacking(s, ledger.FaultsName) },
	} {
		t.Run(words, func(t *testing.T) {
			s := proved()
			spoil(s)
			expect(t, proof, s, ledger.Inconclusive, words)
		})
	}
}

// While the one node of the source is away nothing can be acknowledged: what was tried counts.
func TestProofOfAKilledSource(t *testing.T) {
	s := proved()
	s.Faults[0].Kind, s.Faults[0].On = "kill", "source-1"
	for i := 45; i < 95; i++ {
		s.Operations[i].Outcome = ledger.Unknown
	}
	expect(t, proof, s, ledger.Pass, "")
	s.Operations = append(s.Operations[:45], s.Operations[95:]...)
	expect(t, proof, s, ledger.Inconclusive, "only 0 records were tried during")
}

func TestJudge(t *testing.T) {
	s := proved()
	s.Dir = t.TempDir()
	j := Judge(s, []string{password})
	require.Len(t, j.Verdicts, 22)
	require.Equal(t, NameProof, j.Verdicts[0].Name)
	require.Equal(t, ledger.Inconclusive, j.Verdict(), "no admin request, an empty folder")
	require.Equal(t, int64(200), j.Counts.Acknowledged)

	s.Facts.Relax = []ledger.Relax{{Judge: NameAudit, Reason: "none asked"}, {Judge: NameSecret, Reason: "no folder"}, {Judge: NameProof, Reason: "no"}}
	j = Judge(s, nil)
	require.Equal(t, ledger.Pass, j.Verdict())
	require.Equal(t, "relaxed: none asked", j.Verdicts[14].Says)
	require.Equal(t, ledger.Pass, j.Verdicts[0].Verdict, "the judge of the run itself cannot be relaxed")

	s.Parent = drop(s.Parent, 3)
	j = Judge(s, nil)
	require.Equal(t, ledger.Fail, j.Verdict())
	require.Equal(t, int64(1), j.Counts.Missing)
}

func TestAJudgeThatPanicsIsInconclusive(t *testing.T) {
	v, broken := safely(hand(1), judge{"broken", func(*ledger.Scenario) *finding { panic("out of range") }})
	require.Equal(t, ledger.Verdict{Name: "broken", Verdict: ledger.Inconclusive, Says: "the judge itself broke: out of range"}, v)
	require.Zero(t, broken)
}
