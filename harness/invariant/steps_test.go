package invariant

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

// A loaded machine holds elections of its own: a 503 in one is right, and the step has proved nothing. Neither a single node nor virtual time has such.
func TestA503OfARealClusterThatElectsProvesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		node    string
		status  int
		expect  int
		nodes   int
		virtual bool
		want    string
	}{
		"electing":          {"source-1", 503, 200, 3, false, ledger.Inconclusive},
		"target":            {"target-1", 503, 204, 3, false, ledger.Inconclusive},
		"a single target":   {"target-1", 503, 204, 1, false, ledger.Fail},
		"a single node":     {"source-1", 503, 200, 1, false, ledger.Fail},
		"virtual":           {"source-1", 503, 200, 3, true, ledger.Fail},
		"another status":    {"source-1", 500, 200, 3, false, ledger.Fail},
		"refusal asked for": {"source-1", 503, 409, 3, false, ledger.Fail},
		"503 asked for":     {"source-1", 503, 503, 3, false, ledger.Pass},
	} {
		s := &ledger.Scenario{
			Facts:      ledger.Facts{Virtual: c.virtual},
			Operations: []ledger.Operation{{Kind: ledger.KindAdmin, Node: c.node, Action: "remote.update", Target: "b", Status: c.status, Expect: c.expect}},
		}
		if s.Facts.Sources, s.Facts.TargetNodes = c.nodes, 5-c.nodes; strings.HasPrefix(c.node, "target-") {
			s.Facts.Sources, s.Facts.TargetNodes = 5-c.nodes, c.nodes
		}
		require.Equal(t, c.want, steps(s).verdict("steps").Verdict, name)
	}
}
