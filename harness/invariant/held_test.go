package invariant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

// stuck is a link of two lanes: record 0 went in peace at 5 ms, record 1, of the other lane, only after the kill at 60,000 ms, and record 0 came
// again with it.
func stuck(change func(s *ledger.Scenario)) *ledger.Scenario {
	s := hand(2)
	s.Facts.Links[0].Lanes = 2
	first := s.Wire[0]
	late := first
	late.Seq, late.At, late.Done = 2, 61_000, 61_001
	first.Records = first.Records[:1]
	s.Wire = []ledger.WireRequest{first, late}
	s.Operations[1].At = 0
	s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 60_000, Asked: true, Cursors: 1}}
	s.Facts.Phases.Drained, s.Facts.Phases.End = 70_000, 70_001
	if change != nil {
		change(s)
	}
	return s
}

// covers: HAR-09, CUR-08
func TestASlabThatWasHeldGoesAgainAfterAKill(t *testing.T) {
	expect(t, duplicates, stuck(nil), ledger.Pass, "1 copies too many, 2000 explained")

	for name, change := range map[string]func(s *ledger.Scenario){
		"no kill":             func(s *ledger.Scenario) { s.Facts.Deaths = nil },
		"a graceful end":      func(s *ledger.Scenario) { s.Facts.Deaths[0].Graceful = true },
		"a kill after it all": func(s *ledger.Scenario) { s.Facts.Deaths[0].At = 62_000 },
		"nothing was held":    func(s *ledger.Scenario) { hold(s, 1, 100) },
		"held by a later one": func(s *ledger.Scenario) { s.Operations[1].At = 30_000 },
		"held far behind":     func(s *ledger.Scenario) { s.Parent[1].Offset = 1_000 },
		"skipped long before": func(s *ledger.Scenario) {
			s.Wire[1].Records = s.Wire[1].Records[:1]
			s.Facts.Links[0].Skip = map[string][]int64{"0": {1}}
			s.Operations = append(s.Operations, ledger.Operation{Kind: ledger.KindAdmin, Action: "remote_child.skip", Target: "orders-to-b", At: 40_000, Done: 40_001})
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, duplicates, stuck(change), ledger.Fail, "came again in request")
		})
	}
	expect(t, duplicates, stuck(func(s *ledger.Scenario) { hold(s, 1, 58_000) }), ledger.Pass, "") // its position was not synced yet
	expect(t, duplicates, stuck(func(s *ledger.Scenario) { s.Parent[1].Offset = 999 }), ledger.Pass, "")
	expect(t, duplicates, stuck(func(s *ledger.Scenario) { // one before it holds it too, whenever it came
		s.Parent[0].Offset, s.Parent[1].Offset, s.Operations[1].At = 1, 0, 30_000
	}), ledger.Pass, "")
}

// hold gives record i a request of its own that was answered at a time.
func hold(s *ledger.Scenario, i int, done int64) {
	r := s.Wire[0]
	r.Seq, r.At, r.Done, r.Records = 99, done-1, done, s.Wire[1].Records[i:i+1]
	s.Wire = []ledger.WireRequest{s.Wire[0], r, s.Wire[1]}
	s.Wire[2].Seq, s.Wire[2].Records = 100, s.Wire[2].Records[:1]
}

func TestAboutReadsBothFormsOfATarget(t *testing.T) {
	l := &ledger.Link{Parent: "orders", Child: "orders-to-b"}
	require.True(t, about(&ledger.Operation{Target: "orders-to-b"}, l))
	require.True(t, about(&ledger.Operation{Target: "orders/orders-to-b"}, l))
	require.False(t, about(&ledger.Operation{Target: "orders-to-c"}, l))
}
