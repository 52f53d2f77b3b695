package invariant

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

// hand writes a ledger of a few lines by hand: records 1 to n of key k, produced 10 ms apart, in partition 0 of orders, sent in requests of
// two records, all of them in the target's log. Nothing is wrong with it.
func hand(n int) *ledger.Scenario {
	s := &ledger.Scenario{Problems: map[string]string{}}
	s.Facts = ledger.Facts{
		Scenario: "by hand", Parents: []string{"orders"}, Targets: []string{"orders"}, WireRead: true, LogsRead: true, LeftRead: true, Healed: true,
		Links: []ledger.Link{{
			Parent: "orders", Child: "orders-to-b", Remote: "b", TargetTopic: "orders", TargetID: "aa", Epoch: "e1", Lanes: 1,
			StartOffsets: []int64{0},
		}},
		Phases: ledger.Phases{LoadEnd: int64(n * 10), Healed: int64(n * 10), Drained: int64(n*10 + 500), Deadline: int64(n*10 + 5000), End: int64(n*10 + 600)},
	}
	for i := range n {
		at, hash := int64(i*10), ledger.Hash(fmt.Appendf(nil, "payload %d", i))
		s.Operations = append(s.Operations, ledger.Operation{
			At: at, Done: at + 1, Kind: ledger.KindProduce, Node: "source-1", Topic: "orders", ID: id(i), Key: "aw==", Payload: hash,
			Outcome: ledger.Acknowledged, Status: 202,
		})
		s.Parent = append(s.Parent, ledger.Stored{Topic: "orders", Offset: int64(i), ID: id(i), Key: "aw==", Payload: hash})
		s.Target = append(s.Target, ledger.Stored{Topic: "orders", Partition: 2, Offset: int64(i), ID: id(i), Key: "aw==", Payload: hash})
		rec := ledger.WireRecord{ID: id(i), Key: "aw==", Payload: hash}
		if i%2 == 0 {
			s.Wire = append(s.Wire, ledger.WireRequest{
				Seq: int64(len(s.Wire) + 1), At: at + 2, Done: at + 5, Tap: "tap", Topic: "orders", TopicID: "aa", Status: 202,
				Outcome: ledger.WireAccepted, Sent: true,
			})
		}
		last := &s.Wire[len(s.Wire)-1]
		last.Records = append(last.Records, rec)
	}
	for _, at := range []int64{0, int64(n*10 + 600)} {
		s.Samples = append(s.Samples,
			ledger.Sample{At: at, Node: "source-1", Parent: "orders", Child: "orders-to-b", State: "running", LagComplete: true},
			ledger.Sample{At: at, Node: "source-1", Metrics: map[string]float64{`narad_remote_resent_records_total{remote="b"}`: 0}},
		)
	}
	return s
}

func id(i int) string { return ledger.NewID(uint64(i)) }

// expect asks one judge and compares its verdict; words must stand in what it says.
func expect(t *testing.T, j func(*ledger.Scenario) *finding, s *ledger.Scenario, verdict, words string) {
	t.Helper()
	v := j(s).verdict("judge")
	require.Equal(t, verdict, v.Verdict, v.Says)
	require.Contains(t, v.Says, words)
}

func lacking(s *ledger.Scenario, file string) *ledger.Scenario {
	s.Problems[file] = "absent"
	return s
}
