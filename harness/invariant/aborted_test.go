package invariant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

// An aborted run lacks records because nobody waited for them: that is no gap. A secret in it is one all the same.
func TestAnAbortedRunIsNeverAViolationButForASecret(t *testing.T) {
	s := hand(6)
	s.Parent = drop(s.Parent, 4)
	require.Equal(t, ledger.Fail, Judge(s, nil).Verdict())
	s.Facts.Aborted = true
	j := Judge(s, nil)
	require.Equal(t, ledger.Inconclusive, j.Verdict())
	require.Zero(t, j.Counts.Missing)
}
