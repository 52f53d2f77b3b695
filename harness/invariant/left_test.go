package invariant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

func TestLeft(t *testing.T) {
	s := hand(2)
	s.Facts.LeftRead = false
	expect(t, left, s, ledger.Inconclusive, "nobody looked")
	s.Facts.LeftRead = true
	expect(t, left, s, ledger.Pass, "nothing was found")
	s.Facts.Left = []string{"process 7 of source-1"}
	expect(t, left, s, ledger.Fail, "process 7 of source-1")
	s.Facts.LeftRead = false
	expect(t, left, s, ledger.Fail, "broken 1 times")
	expect(t, left, lacking(s, ledger.FactsName), ledger.Inconclusive, "absent")
}

// A run that was ended early cleans up as well.
func TestWhatAnEndedRunLeftIsAViolation(t *testing.T) {
	s := proved()
	s.Facts.Aborted, s.Facts.Left = true, []string{"network x"}
	for _, v := range Judge(s, nil).Verdicts {
		if v.Name == NameLeft {
			require.Equal(t, ledger.Fail, v.Verdict)
		}
	}
}
