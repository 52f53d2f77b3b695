package invariant

import (
	"testing"

	"narad.example/harness/ledger"
)

func audited() *ledger.Scenario {
	s := hand(4)
	s.Operations = append(s.Operations,
		ledger.Operation{At: 10, Done: 12, Kind: ledger.KindAdmin, Action: "remote_child.pause", Target: "orders-to-b", RequestID: "r1", Outcome: ledger.Acknowledged, Status: 200},
		ledger.Operation{At: 20, Done: 22, Kind: ledger.KindAdmin, Action: "remote_child.resume", Target: "orders-to-b", RequestID: "r2", Outcome: ledger.Acknowledged, Status: 200},
		ledger.Operation{At: 30, Done: 32, Kind: ledger.KindAdmin, Action: "topic.create", Target: "other", RequestID: "r3", Outcome: ledger.Refused, Status: 409},
	)
	s.Audit = []ledger.AuditLine{
		{Node: "source-1", Event: "remote_child.pause", Outcome: "ok", Status: 200, RequestID: "r1", Stage: "ingress"},
		{Node: "source-2", Event: "remote_child.pause", Outcome: "committed", RequestID: "r1", Stage: "leader", Index: 7},
		{Node: "source-1", Event: "remote_child.resume", Outcome: "ok", Status: 200, RequestID: "r2", Stage: "ingress"},
		{Node: "source-2", Event: "remote_child.resume", Outcome: "committed", RequestID: "r2", Stage: "leader", Index: 9},
		{Node: "source-1", Event: "topic.create", Outcome: "rejected", Status: 409, RequestID: "r3", Stage: "ingress"},
	}
	return s
}

// covers: HAR-08
func TestAudit(t *testing.T) {
	expect(t, audit, audited(), ledger.Pass, "3 answered requests, 5 lines")

	s := audited()
	s.Audit = append(s.Audit[:0], s.Audit[1:]...)
	expect(t, audit, s, ledger.Fail, "remote_child.pause of orders-to-b (request r1, status 200) has 0 ingress lines")

	s = audited()
	s.Audit = append(s.Audit, s.Audit[0])
	expect(t, audit, s, ledger.Fail, "has 2 ingress lines")

	s = audited()
	s.Audit = append(s.Audit[:1], s.Audit[2:]...)
	expect(t, audit, s, ledger.Fail, "has 0 committed leader lines and 0 replayed ones")

	s = audited()
	s.Audit[1].Replayed = true // a new leader wrote it
	expect(t, audit, s, ledger.Pass, "")

	s = audited()
	s.Audit = append(s.Audit, s.Audit[1])
	s.Audit[5].Replayed = true // and once more
	expect(t, audit, s, ledger.Pass, "")

	s = audited()
	s.Audit[1].Index, s.Audit[3].Index = 9, 7
	expect(t, audit, s, ledger.Fail, "source-2 logs index 7 after 9")

	s = audited()
	s.Audit[3].Node, s.Audit[3].Index = "source-3", 5
	expect(t, audit, s, ledger.Fail, "was asked after the change at index 7 was answered and has index 5")

	s = audited()
	s.Audit = append(s.Audit, ledger.AuditLine{Node: "source-2", Event: "remote.delete", Outcome: "committed", RequestID: "r9", Stage: "leader", Index: 12})
	expect(t, audit, s, ledger.Fail, "names request r9, which nobody made")

	s = audited()
	s.Operations[4].Outcome, s.Operations[4].Status = ledger.Unknown, 0
	s.Audit = s.Audit[1:]
	expect(t, audit, s, ledger.Pass, "2 answered requests")
}

// A re-encrypt has a leader line for each remote that its answer names, and for no other.
//
// covers: HAR-08
func TestAuditOfAReencrypt(t *testing.T) {
	reencrypted := func(changed []string, lines ...ledger.AuditLine) *ledger.Scenario {
		s := audited()
		s.Operations = append(s.Operations, ledger.Operation{
			At: 40, Done: 42, Kind: ledger.KindAdmin, Action: "remote.reencrypt", RequestID: "r4", Outcome: ledger.Acknowledged, Status: 200, Changed: changed,
		})
		s.Audit = append(s.Audit, ledger.AuditLine{Node: "source-1", Event: "remote.reencrypt", Outcome: "ok", Status: 200, RequestID: "r4", Stage: "ingress"})
		s.Audit = append(s.Audit, lines...)
		return s
	}
	line := func(remote string, index uint64) ledger.AuditLine {
		return ledger.AuditLine{Node: "source-2", Event: "remote.reencrypt", Target: remote, Outcome: "committed", RequestID: "r4", Stage: "leader", Index: index}
	}
	two := []string{"berlin", "oslo"}
	expect(t, audit, reencrypted(two, line("berlin", 11), line("oslo", 12)), ledger.Pass, "4 answered requests, 8 lines")
	expect(t, audit, reencrypted(nil), ledger.Pass, "4 answered requests")
	expect(t, audit, reencrypted(two, line("berlin", 11)), ledger.Fail, "has 0 committed leader lines of oslo")
	expect(t, audit, reencrypted(two, line("berlin", 11), line("oslo", 12), line("oslo", 13)), ledger.Fail, "has 2 committed leader lines of oslo")
	expect(t, audit, reencrypted(two, line("berlin", 11), line("oslo", 12), line("rome", 13)), ledger.Fail, "left rome as it was")
}

// A change that was committed when its leader was killed has its line, whoever writes it, although the admin was told that it is unknown.
//
// covers: HAR-08
func TestAuditAsksForTheLineOfADeadLeader(t *testing.T) {
	left := func() *ledger.Scenario {
		s := audited()
		s.Operations = append(s.Operations, ledger.Operation{
			At: 40, Done: 42, Kind: ledger.KindAdmin, Action: "remote_child.pause", Target: "orders-to-b", RequestID: "r4", Outcome: ledger.Refused, Status: 503,
		})
		s.Faults = append(s.Faults, ledger.Fault{Name: "kill", Kind: "kill", On: "source-2", Landed: true, Evidence: map[string]any{
			ledger.CommittedRequest: "r4", ledger.CommittedIndex: float64(12), // as JSON gives it back
		}})
		s.Audit = append(s.Audit,
			ledger.AuditLine{Node: "source-1", Event: "remote_child.pause", Outcome: "unknown", Status: 503, RequestID: "r4", Stage: "ingress"},
			ledger.AuditLine{Node: "source-3", Event: "remote_child.pause", Outcome: "committed", RequestID: "r4", Stage: "leader", Index: 12, Replayed: true})
		return s
	}
	expect(t, audit, left(), ledger.Pass, "4 answered requests, 7 lines, 1 changes whose leader died before the line")

	const lost = "remote_child.pause of orders-to-b (request r4) was committed at index 12 when its leader source-2 was killed, and no node has its leader line"
	s := left()
	s.Audit = s.Audit[:6]
	expect(t, audit, s, ledger.Fail, lost)
	for _, other := range []func(l *ledger.AuditLine){
		func(l *ledger.AuditLine) { l.Index = 11 },
		func(l *ledger.AuditLine) { l.Event = "remote_child.resume" },
		func(l *ledger.AuditLine) { l.Outcome = "unknown" },
	} {
		s = left()
		other(&s.Audit[6])
		expect(t, audit, s, ledger.Fail, lost)
	}

	s = left() // nobody was answered, since the node that was asked is the one that died
	s.Operations[7].Outcome, s.Operations[7].Status = ledger.Unknown, 0
	s.Audit = append(s.Audit[:5], s.Audit[6])
	expect(t, audit, s, ledger.Pass, "")
	s.Audit = s.Audit[:5]
	expect(t, audit, s, ledger.Fail, lost)
	expect(t, audit, lacking(left(), ledger.FaultsName), ledger.Inconclusive, "faults.jsonl: absent")
}

// covers: HAR-08
func TestAuditInconclusive(t *testing.T) {
	expect(t, audit, lacking(audited(), ledger.AuditName), ledger.Inconclusive, "absent")
	expect(t, audit, hand(4), ledger.Inconclusive, "no admin request was answered")
	s := audited()
	s.Facts.LogsRead = false
	expect(t, audit, s, ledger.Inconclusive, "the log of some node was not read")
}
