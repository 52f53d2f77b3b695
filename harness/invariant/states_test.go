package invariant

import (
	"testing"

	"narad.example/harness/ledger"
)

func showing(states ...string) *ledger.Scenario {
	s := hand(4)
	s.Samples = nil
	for i, st := range states {
		s.Samples = append(s.Samples, ledger.Sample{At: int64(i * 500), Node: "source-1", Parent: "orders", Child: "orders-to-b", State: st})
	}
	return s
}

// covers: HAR-10
func TestStates(t *testing.T) {
	s := showing("running", "unavailable", "throttled", "unavailable", "running")
	s.Facts.Expect.States = map[string][]string{"orders-to-b": {"running", "unavailable", "running"}}
	expect(t, states, s, ledger.Pass, "5 looks")

	s.Facts.Expect.Never = map[string][]string{"orders-to-b": {"throttled"}}
	expect(t, states, s, ledger.Fail, "orders/orders-to-b showed throttled at 1000 ms, which must never be")

	s = showing("running", "running")
	s.Facts.Expect.States = map[string][]string{"orders-to-b": {"running", "unavailable", "running"}}
	expect(t, states, s, ledger.Fail, "never showed unavailable after [running]")

	expect(t, states, showing("running", "unavailable"), ledger.Fail, "ends unavailable")

	s = showing("running", "paused")
	s.Facts.Expect.Waits = []string{"orders-to-b"}
	expect(t, states, s, ledger.Pass, "")

	s = showing("running")
	s.Samples[0].Blocked = "0:7 rejected_record"
	expect(t, states, s, ledger.Fail, "ends blocked at 0:7 rejected_record")
}

// covers: HAR-10
func TestStatesInconclusive(t *testing.T) {
	expect(t, states, showing(), ledger.Inconclusive, "the listing of orders/orders-to-b was never read")
	expect(t, states, lacking(showing("running"), ledger.LinksName), ledger.Inconclusive, "absent")
	s := showing("running")
	s.Samples[0].Silent = true
	expect(t, states, s, ledger.Inconclusive, "never read")
}

func TestDrained(t *testing.T) {
	expect(t, drained, hand(4), ledger.Pass, "drained 500 ms after")

	s := hand(4)
	s.Facts.Phases.Drained, s.Facts.Phases.End = 0, s.Facts.Phases.Deadline
	s.Facts.Waiting = []string{"orders/orders-to-b has lag 3"}
	expect(t, drained, s, ledger.Fail, "orders/orders-to-b has lag 3")

	s.Facts.Healed = false
	expect(t, drained, s, ledger.Inconclusive, "not all healed")
	s = hand(4)
	s.Facts.Phases.Drained = 0
	expect(t, drained, s, ledger.Inconclusive, "ended before the deadline")
	expect(t, drained, lacking(hand(4), ledger.FactsName), ledger.Inconclusive, "facts.json")
}

func TestMetrics(t *testing.T) {
	s := hand(4)
	s.Facts.Expect.Metrics = map[string]string{"narad_remote_resent_records_total": "> 0"}
	expect(t, metrics, s, ledger.Fail, "narad_remote_resent_records_total is 0, expected > 0")
	s.Samples[3].Metrics[resentSeries] = 7
	expect(t, metrics, s, ledger.Pass, "> 0 (7)")

	s.Facts.Expect.Metrics = map[string]string{"narad_remote_held_bytes": "<= 12"}
	s.Samples[1].Metrics["narad_remote_held_bytes"] = 50
	s.Samples[3].Metrics["narad_remote_held_bytes"] = 12
	expect(t, metrics, s, ledger.Pass, "(12)")

	s.Samples = nil
	expect(t, metrics, s, ledger.Inconclusive, "no node's metrics were read")
	s = hand(4)
	s.Facts.Expect.Metrics = map[string]string{"narad_remote_held_bytes": "few"}
	expect(t, metrics, s, ledger.Inconclusive, "is no comparison")
}

func TestSteps(t *testing.T) {
	s := hand(4)
	expect(t, steps, s, ledger.Pass, "0 actions")
	s.Operations = append(s.Operations, ledger.Operation{Kind: ledger.KindAdmin, Action: "remote_child.pause", Target: "c", Status: 200, Expect: 200})
	expect(t, steps, s, ledger.Pass, "1 actions")
	s.Operations[4].Status = 503
	expect(t, steps, s, ledger.Fail, "remote_child.pause of c was answered 503, expected 200")
	s.Operations[4].Expect, s.Operations[4].Text, s.Operations[4].Says = 503, "no leader; try again", "no leader"
	expect(t, steps, s, ledger.Pass, "1 actions")
	s.Operations[4].Says = "no quorum"
	expect(t, steps, s, ledger.Fail, `was answered 503 with "no leader; try again", expected the words "no quorum"`)
	s.Operations[4].Status = 0
	expect(t, steps, s, ledger.Inconclusive, "got no answer")
	expect(t, steps, lacking(hand(4), ledger.OperationsName), ledger.Inconclusive, "absent")
}
