package invariant

import (
	"testing"

	"narad.example/harness/ledger"
)

// covers: HAR-06
func TestOrder(t *testing.T) {
	expect(t, order, hand(6), ledger.Pass, "5 pairs")

	s := hand(6)
	s.Wire[1].Records[0], s.Wire[2].Records[0] = s.Wire[2].Records[0], s.Wire[1].Records[0]
	expect(t, order, s, ledger.Fail, id(3)+" (0/3) came in request 2, after "+id(4)+" (0/4)")

	// A repetition is no disorder: first occurrences count.
	s = hand(6)
	s.Wire[2].Records = append(s.Wire[2].Records, s.Wire[0].Records...)
	expect(t, order, s, ledger.Pass, "5 pairs")

	// Two keys have no order between them, nor have two partitions.
	s = hand(6)
	s.Wire[1].Records[0], s.Wire[2].Records[0] = s.Wire[2].Records[0], s.Wire[1].Records[0]
	for i := range s.Parent {
		s.Parent[i].Partition = i % 2
	}
	s.Wire[1].Records[1], s.Wire[2].Records[1] = s.Wire[2].Records[1], s.Wire[1].Records[1]
	s.Parent[4].Key, s.Parent[5].Key = "Yg==", "Yg=="
	expect(t, order, s, ledger.Pass, "2 pairs")

	// A skipped offset may land late; so may a record that stands in two partitions.
	for _, excuse := range []func(*ledger.Scenario){
		func(s *ledger.Scenario) { s.Facts.Links[0].Skip = map[string][]int64{"0": {2}} },
		func(s *ledger.Scenario) {
			s.Parent = append(s.Parent, ledger.Stored{Topic: "orders", Partition: 1, ID: id(2), Key: "aw=="})
		},
	} {
		s = hand(6)
		s.Wire[2].Records = append(s.Wire[2].Records, s.Wire[1].Records[0])
		s.Wire[1].Records = s.Wire[1].Records[1:]
		expect(t, order, s, ledger.Fail, id(2))
		excuse(s)
		expect(t, order, s, ledger.Pass, "pairs")
	}
}

// The order is that of the answers, whatever the order of the lines.
func TestOrderFollowsAnswers(t *testing.T) {
	s := hand(6)
	s.Wire[0], s.Wire[2] = s.Wire[2], s.Wire[0]
	expect(t, order, s, ledger.Pass, "5 pairs")
	s.Wire[0].Seq, s.Wire[2].Seq = s.Wire[2].Seq, s.Wire[0].Seq
	expect(t, order, s, ledger.Fail, "came in request")
}

// covers: HAR-06
func TestOrderInconclusive(t *testing.T) {
	expect(t, order, lacking(hand(6), ledger.ParentName), ledger.Inconclusive, "parent.jsonl: absent")
	s := hand(6)
	for i := range s.Parent {
		s.Parent[i].Key = ""
	}
	expect(t, order, s, ledger.Inconclusive, "no key had two records")
	s = hand(6)
	s.Facts.WireRead = false
	expect(t, order, s, ledger.Inconclusive, "not read to their end")
}

// Each epoch has an order of its own: what a later attach sends again from a lower start is no disorder of an earlier one.
// covers: HAR-06
func TestOrderByEpoch(t *testing.T) {
	s := hand(6)
	s.Wire[1], s.Wire[2] = s.Wire[2], s.Wire[1] // 0 1, then 4 5 after an attach at the end, then 2 3 after one at 2
	for i := range s.Wire {
		s.Wire[i].Seq, s.Wire[i].At, s.Wire[i].Done = int64(i+1), int64(i*100+10), int64(i*100+20)
	}
	expect(t, order, s, ledger.Fail, "")
	for i, start := range []int64{4, 2} {
		e := s.Facts.Links[0]
		e.AttachedAt, e.StartOffsets = int64(i*100+100), []int64{start}
		s.Facts.Links = append(s.Facts.Links, e)
	}
	expect(t, order, s, ledger.Pass, "3 pairs")
}
