package invariant

import (
	"testing"

	"narad.example/harness/ledger"
)

// failing is a ledger in which request 2, with two records, got an answer without a commit and went again; counted is what the source says.
func failing(counted float64, change func(first *ledger.WireRequest)) *ledger.Scenario {
	s := twice(6)
	r := &s.Wire[1]
	r.Outcome, r.Status = ledger.WireRefused, 503
	if change != nil {
		change(r)
	}
	last := len(s.Samples) - 1
	s.Samples[last].At += 10_000
	s.Samples[last].Metrics = map[string]float64{resentSeries: counted}
	return s
}

// covers: HAR-09, ANS-15, ANS-16, ANS-19
func TestResendsAreCounted(t *testing.T) {
	expect(t, resent, hand(6), ledger.Pass, "b: 0 counted, 0 to 0 on the wire")
	expect(t, resent, failing(2, nil), ledger.Pass, "b: 2 counted, 2 to 2 on the wire")
	expect(t, resent, failing(0, nil), ledger.Fail, "counted 0 records as resent, requests with 2 failed")
	expect(t, resent, failing(3, nil), ledger.Fail, "counted 3 records as resent, requests with 2 at most")

	for name, change := range map[string]func(*ledger.WireRequest){
		"408":            func(r *ledger.WireRequest) { r.Status = 408 },
		"no answer":      func(r *ledger.WireRequest) { r.Status, r.Outcome = 0, ledger.WireHung },
		"cut":            func(r *ledger.WireRequest) { r.Status, r.Outcome = 0, ledger.WireCut },
		"commits not":    func(r *ledger.WireRequest) { r.Status, r.Outcome = 200, ledger.WireAnswered },
		"stored in vain": func(r *ledger.WireRequest) { r.Outcome, r.Doubt = ledger.WireAccepted, true },
		"torn":           func(r *ledger.WireRequest) { r.Sent = false },
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, resent, failing(2, change), ledger.Pass, "2 to 2 on the wire")
			expect(t, resent, failing(1, change), ledger.Fail, "counted 1")
		})
	}

	// A refusal in Narad's shape left nothing open; of a script's nobody can tell.
	forbidden := func(r *ledger.WireRequest) { r.Status = 403 }
	expect(t, resent, failing(0, forbidden), ledger.Pass, "0 to 0")
	expect(t, resent, failing(2, forbidden), ledger.Fail, "with 0 at most")
	s := failing(2, forbidden)
	s.Facts.Fake = true
	expect(t, resent, s, ledger.Pass, "2 counted, 0 to 2")

	// A 202 may have been lost, or have come too late.
	expect(t, resent, failing(2, func(r *ledger.WireRequest) { r.Status, r.Outcome, r.Sent = 202, ledger.WireAccepted, false }), ledger.Pass, "0 to 2")
	expect(t, resent, failing(2, func(r *ledger.WireRequest) { r.Status, r.Outcome, r.Done = 202, ledger.WireAccepted, r.At+1000 }), ledger.Pass, "0 to 2")
	expect(t, resent, failing(2, func(r *ledger.WireRequest) { r.Status, r.Outcome = 202, ledger.WireAccepted }), ledger.Fail, "with 0 at most")

	// One that was cut in its upload had anything in it; the probe for the target's size has nothing that counts.
	half := func(r *ledger.WireRequest) {
		r.Status, r.Outcome, r.Path, r.Records = 0, ledger.WireCut, "/v1/topics/orders/produce/batch", nil
	}
	expect(t, resent, failing(900, half), ledger.Pass, "0 to 1000")
	expect(t, resent, failing(1001, half), ledger.Fail, "with 1000 at most")
	expect(t, resent, failing(0, func(r *ledger.WireRequest) { r.Records = []ledger.WireRecord{{}, {}} }), ledger.Pass, "0 to 2")
}

// covers: HAR-09
func TestResendsThatNoCounterKept(t *testing.T) {
	swallowing := func(counted float64) *ledger.Scenario {
		s := failing(counted, nil)
		s.Faults = []ledger.Fault{{Name: "cut", Kind: "cut", On: "source>target", Start: 1, End: 2}}
		return s
	}
	expect(t, resent, swallowing(70), ledger.Pass, "2 at least (cut may have swallowed requests)")
	expect(t, resent, swallowing(1), ledger.Fail, "counted 1")
	parted := swallowing(70)
	parted.Faults[0].On = "source-2<>target"
	expect(t, resent, parted, ledger.Pass, "2 at least (cut may have swallowed requests)")

	// What was counted right before a death is lost; what was counted long before is not.
	s := failing(0, nil)
	s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 100}}
	expect(t, resent, s, ledger.Pass, "0 counted, 0 to 2")
	s.Samples = append(s.Samples, ledger.Sample{At: 20_000, Node: "source-1", Metrics: map[string]float64{resentSeries: 0}})
	s.Facts.Deaths[0].At = 21_000
	expect(t, resent, s, ledger.Fail, "counted 0")

	// A request that hangs is counted once its time is over, which a node that dies before does not see.
	s.Wire[1].Status, s.Wire[1].Outcome, s.Wire[1].Sent = 0, ledger.WireHung, false
	expect(t, resent, s, ledger.Pass, "0 counted, 0 to 2")
	s.Facts.Deaths[0].At += countTimeout
	s.Samples = append(s.Samples, ledger.Sample{At: 20_000 + countTimeout, Node: "source-1", Metrics: map[string]float64{resentSeries: 0}})
	expect(t, resent, s, ledger.Fail, "counted 0")

	// One that hangs when a run that never drained ends is not counted yet.
	s = failing(0, func(r *ledger.WireRequest) { r.Status, r.Outcome, r.Sent = 0, ledger.WireHung, false })
	expect(t, resent, s, ledger.Fail, "counted 0")
	s.Facts.Phases.Drained = 0
	expect(t, resent, s, ledger.Pass, "0 to 2")

	// The counter starts again with the process and goes on from what it was.
	s = failing(1, nil)
	s.Samples = append(s.Samples,
		ledger.Sample{At: 21_000, Node: "source-1", Silent: true},
		ledger.Sample{At: 22_000, Node: "source-1", Metrics: map[string]float64{resentSeries: 0}},
		ledger.Sample{At: 23_000, Node: "source-1", Metrics: map[string]float64{resentSeries: 1}})
	expect(t, resent, s, ledger.Pass, "2 counted")

	// After its last sample nobody knows.
	s = failing(0, nil)
	s.Samples[len(s.Samples)-1].At = 700
	expect(t, resent, s, ledger.Pass, "0 to 2")

	// Which of two remotes sent it is not on the wire.
	s = failing(0, nil)
	other := s.Facts.Links[0]
	other.Remote = "c"
	s.Facts.Links = append(s.Facts.Links, other)
	expect(t, resent, s, ledger.Pass, "b: 0 counted, 0 to 2 on the wire; c: 0 counted, 0 to 2")
}

// A loaded engine takes seconds to kill; what a node counts in them nobody reads.
// covers: HAR-09
func TestResendsWhileANodeIsBeingKilled(t *testing.T) {
	s := failing(0, func(r *ledger.WireRequest) { r.At, r.Done = 50_000, 50_001 })
	for _, at := range []int64{45_000, 90_000} {
		s.Samples = append(s.Samples, ledger.Sample{At: at, Node: "source-1", Metrics: map[string]float64{resentSeries: 0}})
	}
	s.Facts.Deaths = []ledger.Death{{Node: "source-1", At: 46_000}}
	expect(t, resent, s, ledger.Fail, "counted 0")
	s.Facts.Deaths[0].Ended = 50_500
	expect(t, resent, s, ledger.Pass, "0 counted, 0 to 2")
}

// covers: HAR-09
func TestResendsInconclusive(t *testing.T) {
	expect(t, resent, lacking(hand(6), ledger.LinksName), ledger.Inconclusive, "links.jsonl: absent")
	s := hand(6)
	s.Samples = nil
	expect(t, resent, s, ledger.Inconclusive, "no node's metrics were read")
	s = hand(6)
	s.Facts.WireRead = false
	expect(t, resent, s, ledger.Inconclusive, "not read whole")
	s = hand(6)
	s.Facts.Links = nil
	expect(t, resent, s, ledger.Inconclusive, "no link is known")
}

// covers: HAR-09
func TestAPausedSourceHearsTooLate(t *testing.T) {
	paused := func(counted float64, from, to int64) *ledger.Scenario {
		s := failing(counted, func(r *ledger.WireRequest) { r.Status, r.Outcome = 202, ledger.WireAccepted })
		s.Faults = []ledger.Fault{{Name: "pause", Kind: "pause", On: "source-1", Start: from, End: to}}
		return s
	}
	answered := failing(0, nil).Wire[1].Done
	expect(t, resent, paused(2, answered+500, answered+9_000), ledger.Pass, "2 counted") // the answer was on its way
	expect(t, resent, paused(2, answered-1, 0), ledger.Pass, "2 counted")
	expect(t, resent, paused(9, answered+500, answered+9_000), ledger.Fail, "went wrong on the wire")
	expect(t, resent, paused(2, answered+countSettle+100, answered+9_000), ledger.Fail, "with 0 at most")
	other := paused(2, answered+500, answered+9_000)
	other.Faults[0].On = "target-1"
	expect(t, resent, other, ledger.Fail, "with 0 at most")
	other.Faults[0].On, other.Faults[0].Kind = "source-1", "clock"
	expect(t, resent, other, ledger.Fail, "with 0 at most")
}
