package invariant

import (
	"slices"
	"testing"

	"narad.example/harness/ledger"
)

func drop(rs []ledger.Stored, i int) []ledger.Stored { return slices.Delete(slices.Clone(rs), i, i+1) }

// covers: HAR-05
func TestNoGap(t *testing.T) {
	expect(t, noGap, hand(6), ledger.Pass, "6 acknowledged, 6 owed on the wire, 6 in the target's log")

	s := hand(6)
	s.Parent = drop(s.Parent, 4)
	expect(t, noGap, s, ledger.Fail, id(4)+" was acknowledged by source-1")

	s = hand(6)
	s.Operations[3].Outcome = ledger.Unknown
	s.Parent = drop(s.Parent, 3)
	expect(t, noGap, s, ledger.Pass, "5 acknowledged")

	s = hand(6)
	s.Wire[1].Outcome, s.Wire[1].Status = ledger.WireRefused, 400
	expect(t, noGap, s, ledger.Fail, id(2)+", 0/2 of orders, is in no accepted request of orders-to-b")

	s = hand(6)
	s.Target = drop(s.Target, 5)
	expect(t, noGap, s, ledger.Fail, id(5)+" was accepted in request 3 and is not in the log of orders")

	// A record whose produce nobody answered is owed as soon as it stands in the parent.
	s = hand(6)
	s.Operations[2].Outcome = ledger.Unknown
	s.Wire[1].Records = s.Wire[1].Records[1:]
	expect(t, noGap, s, ledger.Fail, id(2))
}

// covers: HAR-05
func TestNoGapExcuses(t *testing.T) {
	without := func() *ledger.Scenario {
		s := hand(6)
		s.Wire[1].Records = s.Wire[1].Records[:1] // record 3 never went out
		s.Target = drop(s.Target, 3)
		return s
	}
	s := without()
	s.Facts.Links[0].Skip = map[string][]int64{"0": {3}}
	expect(t, noGap, s, ledger.Pass, "5 owed on the wire")

	s = without()
	s.Facts.Drops = []ledger.Drop{{Parent: "orders", Child: "orders-to-b", Partition: 0, From: 2, To: 3}}
	expect(t, noGap, s, ledger.Pass, "4 owed")

	s = without()
	s.Facts.Links[0].StartOffsets = []int64{4}
	expect(t, noGap, s, ledger.Pass, "2 owed")

	s = without()
	s.Facts.Expect.Waits = []string{"orders-to-b"}
	s.Facts.Links[0].NextOffsets = map[int]int64{0: 3}
	expect(t, noGap, s, ledger.Pass, "3 owed")

	s = without()
	s.Facts.Links[0].DetachedAt = 40
	expect(t, noGap, s, ledger.Pass, "0 owed")

	// What an earlier incarnation of the target took need not be in the present one's log; it is owed on the wire all the same.
	s = hand(6)
	s.Wire[0].TopicID = "bb"
	s.Target = s.Target[2:]
	expect(t, noGap, s, ledger.Pass, "4 in the target's log")

	// A later epoch owes its range again.
	s = hand(6)
	again := s.Facts.Links[0]
	s.Facts.Links[0].DetachedAt = 100
	again.Epoch, again.AttachedAt, again.StartOffsets = "e2", 200, []int64{4}
	s.Facts.Links = append(s.Facts.Links, again)
	expect(t, noGap, s, ledger.Fail, id(4))
}

// covers: HAR-05
func TestNoGapInconclusive(t *testing.T) {
	expect(t, noGap, lacking(hand(6), ledger.WireName), ledger.Inconclusive, "wire.jsonl: absent")

	s := hand(6)
	s.Facts.Parents = nil
	s.Parent = nil
	expect(t, noGap, s, ledger.Inconclusive, "parent orders was not read to its end")

	s = hand(6)
	s.Facts.Phases.Drained = 0
	s.Wire = s.Wire[:1]
	expect(t, noGap, s, ledger.Inconclusive, "never drained")

	s = hand(6)
	s.Operations, s.Parent, s.Wire, s.Target = nil, nil, nil, nil
	expect(t, noGap, s, ledger.Inconclusive, "nothing was acknowledged")

	s = hand(6)
	s.Facts.Fake, s.Target = true, nil
	expect(t, noGap, lacking(s, ledger.TargetName), ledger.Pass, "0 in the target's log")
}
