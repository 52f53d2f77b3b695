package invariant

import (
	"fmt"
	"testing"

	"narad.example/harness/ledger"
)

// wired is a source of one node in virtual time whose requests are the given ones; a request without records is a check.
func wired(all ...ledger.WireRequest) *ledger.Scenario {
	s := hand(2)
	s.Facts.Sources, s.Facts.Virtual, s.Wire = 1, true, nil
	for i, r := range all {
		r.Seq, r.Topic, r.Sent, r.RequestID = int64(i+1), "orders", true, fmt.Sprintf("%016x", i)
		s.Wire = append(s.Wire, r)
	}
	return s
}

func chunk(at int64, status, record int) ledger.WireRequest {
	return ledger.WireRequest{At: at, Done: at + 1, Status: status, Records: []ledger.WireRecord{{ID: id(record)}}}
}

func check(at int64, status int) ledger.WireRequest {
	return ledger.WireRequest{At: at, Done: at + 1, Status: status}
}

func throttled(at int64, wait string, record int) ledger.WireRequest {
	r := chunk(at, 429, record)
	r.RetryAfter = wait
	return r
}

// covers: GAT-01, GAT-02, GAT-05, ANS-08, ANS-14
func TestGateWaits(t *testing.T) {
	for _, c := range []struct {
		says, words string
		s           *ledger.Scenario
	}{
		{ledger.Pass, "1 closings", wired(throttled(100, "20", 1), check(20_101, 200), chunk(20_102, 202, 1))},
		{ledger.Fail, "for 20000 ms at least", wired(throttled(100, "20", 1), check(19_000, 200))},
		{ledger.Fail, "for 60000 ms at least", wired(throttled(100, "999999", 1), check(50_000, 200))},
		{ledger.Fail, "for 250 ms at least", wired(throttled(100, "-1", 1), check(200, 200))},
		{ledger.Pass, "", wired(throttled(100, "soon", 1), check(352, 200))},
		{ledger.Pass, "", wired(throttled(100, "20", 1), chunk(120, 202, 2), check(20_101, 200))}, // was on the way
		{ledger.Fail, "for 30000 ms", wired(chunk(100, 401, 1), check(10_000, 401))},
		{ledger.Fail, "for 30000 ms", wired(chunk(100, 401, 1), check(31_000, 401), chunk(31_002, 202, 1))}, // RUN-06
		// Three in a row close it; then one check and one chunk in 250 ms.
		{ledger.Pass, "", wired(chunk(1000, 503, 1), chunk(1300, 503, 1), chunk(1900, 503, 1), check(2200, 503), chunk(2202, 503, 1), check(3000, 503))},
		{ledger.Fail, "request 5", wired(chunk(1000, 503, 1), chunk(1300, 503, 1), chunk(1900, 503, 1), check(2200, 503), check(2210, 503))},
		{ledger.Fail, "request 6", wired(chunk(1000, 503, 1), chunk(1300, 503, 1), chunk(1900, 503, 1), check(2200, 503), chunk(2202, 503, 1), chunk(2210, 503, 2))},
		{ledger.Fail, "request 4", wired(chunk(1000, 503, 1), chunk(1300, 503, 1), chunk(1900, 503, 1), chunk(2000, 503, 4))},
		// Two do not, and nor do three with another answer between that the sender may have read first.
		{ledger.Pass, "0 closings", wired(chunk(1000, 503, 1), chunk(1300, 503, 2), chunk(1310, 202, 3), chunk(1320, 503, 4), chunk(1330, 202, 5))},
		{ledger.Pass, "0 closings", wired(chunk(1000, 503, 1), chunk(1300, 503, 2), chunk(1310, 503, 3), chunk(1312, 202, 4))},
	} {
		expect(t, gates, c.s, c.says, c.words)
	}
	s := wired(throttled(100, "20", 1), check(19_000, 200))
	s.Facts.Sources = 3
	expect(t, gates, s, ledger.Pass, "not judged")
	s.Facts.Sources = 1
	s.Faults = []ledger.Fault{{On: "source>target", Start: 50, End: 90}} // nobody knows what the sender got
	expect(t, gates, s, ledger.Pass, "0 closings")
	s.Faults = nil
	s.Operations = append(s.Operations, ledger.Operation{Kind: ledger.KindAdmin, Action: "remote_child.resume", At: 18_990, Done: 19_100})
	expect(t, gates, s, ledger.Pass, "") // an admin's check waits for no gate
	s.Wire[1].Records = s.Wire[0].Records
	expect(t, gates, s, ledger.Fail, "for 20000 ms") // but a chunk does
}

// covers: GAT-06
func TestAChunkWaitsForItsBackoff(t *testing.T) {
	expect(t, gates, wired(chunk(100, 503, 1), chunk(351, 202, 1)), ledger.Pass, "1 chunks that went again")
	expect(t, gates, wired(chunk(100, 503, 1), chunk(110, 202, 1)), ledger.Fail, "came 9 ms after request 1")
	expect(t, gates, wired(chunk(100, 503, 1), chunk(110, 202, 2)), ledger.Pass, "0 chunks")
	expect(t, gates, wired(chunk(100, 400, 1), chunk(110, 202, 1)), ledger.Pass, "0 chunks")
	s := wired(chunk(100, 503, 1), chunk(110, 202, 1))
	other := s.Facts.Links[0]
	other.TargetTopic = "orders-too"
	s.Facts.Links, s.Wire[1].Topic = append(s.Facts.Links, other), "orders-too"
	expect(t, gates, s, ledger.Pass, "0 chunks") // another link's
}

// covers: SND-04, SND-05, SND-06, SND-08, SND-14
func TestRequestsHaveTheirForm(t *testing.T) {
	expect(t, requests, hand(6), ledger.Pass, "3 requests")
	for words, change := range map[string]func(r *ledger.WireRequest){
		"request 2 to orders names a partition": func(r *ledger.WireRequest) { r.Pinned = true },
		"request 2 has 1001 records":            func(r *ledger.WireRequest) { r.Records = make([]ledger.WireRecord, 1001) },
		"2 records in 983041 bytes":             func(r *ledger.WireRequest) { r.Bytes = 960<<10 + 1 },
		"has the ID of request 1":               func(r *ledger.WireRequest) { r.RequestID = "a" },
	} {
		s := hand(6)
		s.Wire[0].RequestID = "a"
		change(&s.Wire[1])
		expect(t, requests, s, ledger.Fail, words)
	}
	s := hand(6)
	s.Wire[1].Bytes, s.Wire[1].Records = 2<<20, s.Wire[1].Records[:1]
	expect(t, requests, s, ledger.Pass, "")
	expect(t, requests, lacking(hand(6), ledger.WireName), ledger.Inconclusive, "absent")
}
