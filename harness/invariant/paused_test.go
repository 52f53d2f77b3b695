package invariant

import (
	"testing"

	"narad.example/harness/ledger"
)

func TestPausedLinksAreQuiet(t *testing.T) {
	withPause := func() *ledger.Scenario {
		s := hand(1000) // requests begin from 2 to 9982 ms
		s.Wire = append(s.Wire[:250:250], s.Wire[450:]...)
		s.Operations = append(s.Operations,
			ledger.Operation{At: 2900, Done: 3000, Kind: ledger.KindAdmin, Action: "remote_child.pause", Target: "orders-to-b", Outcome: ledger.Acknowledged, Status: 200},
			ledger.Operation{At: 7000, Done: 7001, Kind: ledger.KindAdmin, Action: "remote_child.resume", Target: "orders-to-b", Outcome: ledger.Refused, Status: 412},
			ledger.Operation{At: 9000, Done: 9001, Kind: ledger.KindAdmin, Action: "remote_child.resume", Target: "orders-to-b", Outcome: ledger.Acknowledged, Status: 200},
		)
		return s
	}
	expect(t, paused, withPause(), ledger.Pass, "1 pauses, 4000 ms of silence")

	s := withPause()
	s.Wire[100].At = 5001
	expect(t, paused, s, ledger.Fail, "is paused, but request 101 with 2 records began at 5001 ms")
	s.Wire[100].Records = nil
	expect(t, paused, s, ledger.Pass, "")
	s.Wire[100].At = 7500 // a resume that was refused ends nothing
	s.Wire[100].Records = s.Wire[0].Records
	expect(t, paused, s, ledger.Fail, "7500 ms")

	s = withPause()
	s.Operations = s.Operations[:len(s.Operations)-2]
	expect(t, paused, s, ledger.Fail, "9002 ms") // it was never resumed

	s = withPause()
	s.Facts.WireRead = false
	expect(t, paused, s, ledger.Inconclusive, "the wire was not read")
	s = withPause()
	s.Operations[len(s.Operations)-1].At = 4000
	expect(t, paused, s, ledger.Inconclusive, "no longer than its grace")
	expect(t, paused, hand(4), ledger.Pass, "0 pauses")
}
