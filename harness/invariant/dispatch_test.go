package invariant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

// covers: BRK-02
func TestDispatchedInOrder(t *testing.T) {
	lies := func(order ...int) *ledger.Scenario {
		s := hand(6)
		s.Facts.Sources, s.Parent = 3, nil
		for at, i := range order {
			s.Parent = append(s.Parent, ledger.Stored{Topic: "orders", Offset: int64(at), ID: id(i), Key: "aw=="})
		}
		return s
	}
	expect(t, dispatched, lies(0, 1, 2, 3, 4, 5), ledger.Pass, "6 records with a key")
	expect(t, dispatched, lies(0, 1, 2, 0, 1, 2, 3, 4, 2, 3, 4, 5), ledger.Pass, "12 records with a key")
	expect(t, dispatched, lies(0, 2, 1, 3, 4, 5), ledger.Fail, id(1)+" (orders/0/2) lies behind "+id(2))
	expect(t, dispatched, lies(0, 1, 2, 3, 0, 1, 4, 5), ledger.Fail, id(0)+" (orders/0/0) lies there again at 4, behind "+id(2)+", which does not")

	s := lies(0, 2, 1, 3, 4, 5)
	s.Operations[1].Node = "source-2"
	expect(t, dispatched, s, ledger.Pass, "6 records")
	s = lies(0, 2, 1, 3, 4, 5)
	s.Operations[1].Done = s.Operations[2].At
	expect(t, dispatched, s, ledger.Pass, "6 records")
	s = lies(0, 2, 1, 3, 4, 5)
	s.Operations[1].Key = ""
	expect(t, dispatched, s, ledger.Pass, "5 records")
	s = lies(0, 2, 1, 3, 4, 5)
	s.Facts.Sources = 1
	expect(t, dispatched, s, ledger.Pass, "one node")
	s = lies(0, 2, 1, 3, 4, 5)
	s.Parent = append(s.Parent, s.Parent[0])
	expect(t, dispatched, s, ledger.Pass, "0 records")
	require.Equal(t, ledger.Inconclusive, dispatched(lacking(hand(2), ledger.ParentName)).verdict("j").Verdict)
}
