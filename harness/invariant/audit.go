package invariant

import (
	"fmt"
	"slices"
	"strings"

	"narad.example/harness/ledger"
)

// audit is HAR-08 with DEC-36: each answered admin request has exactly one ingress line; each committed change of the remote plane one leader
// line with the same request ID, which replayed lines may stand in for or repeat; a request without an answer may lack its ingress line; leader
// lines follow the Raft index in one node's log, and what was asked later has the higher index. A change that is known to be committed, because its
// leader was killed right then, has its line although nobody was told (DEC-13).
func audit(s *ledger.Scenario) *finding {
	f := &finding{promise: "every admin request is in the audit trail"}
	if missing := s.Lacks(ledger.FactsName, ledger.OperationsName, ledger.AuditName, ledger.FaultsName); missing != "" {
		return f.lack("%s", missing)
	}
	if !s.Facts.LogsRead {
		f.lack("the log of some node was not read")
	}
	ingress, leader := map[string][]ledger.AuditLine{}, map[string][]ledger.AuditLine{}
	for _, line := range s.Audit {
		if line.Stage == "leader" {
			leader[line.RequestID] = append(leader[line.RequestID], line)
		} else {
			ingress[line.RequestID] = append(ingress[line.RequestID], line)
		}
	}
	judged := 0
	known := map[string]*ledger.Operation{}
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Kind != ledger.KindAdmin || o.Action == "" {
			continue
		}
		known[o.RequestID] = o
		if o.Outcome == ledger.Unknown || o.Status == 401 {
			continue
		}
		judged++
		auditOf(f, o, ingress[o.RequestID], leader[o.RequestID])
	}
	for id, lines := range leader {
		if known[id] == nil && len(ingress[id]) == 0 && !slices.ContainsFunc(lines, func(l ledger.AuditLine) bool { return l.Replayed }) {
			f.breaks(id, "a leader line of %s names request %s, which nobody made", lines[0].Event, id)
		}
	}
	left := auditLeft(s, f, known, leader)
	auditOrder(s, f, leader)
	if judged == 0 {
		f.lack("no admin request was answered")
	}
	f.looked = fmt.Sprintf("%d answered requests, %d lines", judged, len(s.Audit))
	if left > 0 {
		f.looked += fmt.Sprintf(", %d changes whose leader died before the line", left)
	}
	return f
}

// auditLeft asks for the line of each change whose leader was killed between commit and line, and returns how many there were.
func auditLeft(s *ledger.Scenario, f *finding, known map[string]*ledger.Operation, leader map[string][]ledger.AuditLine) (left int) {
	for i := range s.Faults {
		killed := &s.Faults[i]
		id, _ := killed.Evidence[ledger.CommittedRequest].(string)
		index, _ := killed.Evidence[ledger.CommittedIndex].(float64)
		if id == "" {
			continue
		}
		left++
		found := slices.ContainsFunc(leader[id], func(l ledger.AuditLine) bool {
			return l.Outcome == "committed" && l.Index == uint64(index) && (known[id] == nil || l.Event == known[id].Action)
		})
		if !found {
			what := "a change"
			if o := known[id]; o != nil {
				what = o.Action + " of " + o.Target
			}
			f.breaks(id, "%s (request %s) was committed at index %.0f when its leader %s was killed, and no node has its leader line", what, id, index, killed.On)
		}
	}
	return left
}

func auditOf(f *finding, o *ledger.Operation, ingress, leader []ledger.AuditLine) {
	what := fmt.Sprintf("%s of %s (request %s, status %d)", o.Action, o.Target, o.RequestID, o.Status)
	own := 0
	for _, line := range ingress {
		if line.Event == o.Action {
			own++
			if line.Status != o.Status && line.Status != 0 {
				f.breaks(o.RequestID, "%s: the ingress line says status %d", what, line.Status)
			}
		}
	}
	if own != 1 {
		f.breaks(o.RequestID, "%s has %d ingress lines", what, own)
	}
	if o.Status < 200 || o.Status > 299 || !reachesLeader(o.Action) {
		return
	}
	if o.Action == "remote.reencrypt" {
		reencrypted(f, o, what, leader)
		return
	}
	if first, replayed := committed(o, "", leader); first > 1 || first+replayed == 0 {
		f.breaks(o.RequestID, "%s has %d committed leader lines and %d replayed ones", what, first, replayed)
	}
}

// reencrypted wants a leader line for each remote that the answer names, and none for another.
func reencrypted(f *finding, o *ledger.Operation, what string, leader []ledger.AuditLine) {
	for _, name := range o.Changed {
		if first, replayed := committed(o, name, leader); first > 1 || first+replayed == 0 {
			f.breaks(o.RequestID, "%s has %d committed leader lines of %s and %d replayed ones", what, first, name, replayed)
		}
	}
	for _, line := range leader {
		if line.Outcome == "committed" && !slices.Contains(o.Changed, line.Target) {
			f.breaks(o.RequestID, "%s left %s as it was, and has a committed leader line of it", what, line.Target)
		}
	}
}

// committed counts the committed leader lines of a request, about target where one is named.
func committed(o *ledger.Operation, target string, leader []ledger.AuditLine) (first, replayed int) {
	for _, line := range leader {
		switch {
		case line.Event != o.Action || line.Outcome != "committed" || target != "" && line.Target != target:
		case line.Replayed:
			replayed++
		default:
			first++
		}
	}
	return first, replayed
}

// reachesLeader tells whether a committed change of this event has a leader line; a test, list or get has none (DEC-36).
func reachesLeader(event string) bool {
	if event == "remote.test" || event == "remote.list" || event == "remote.get" {
		return false
	}
	return strings.HasPrefix(event, "remote.") || strings.HasPrefix(event, "remote_child.")
}

func auditOrder(s *ledger.Scenario, f *finding, leader map[string][]ledger.AuditLine) {
	last := map[string]ledger.AuditLine{}
	for _, line := range s.Audit {
		if line.Stage != "leader" || line.Replayed || line.Index == 0 {
			continue
		}
		if before, ok := last[line.Node]; ok && line.Index < before.Index {
			f.breaks(line.RequestID, "%s logs index %d after %d", line.Node, line.Index, before.Index)
		}
		last[line.Node] = line
	}
	var doneAt int64
	var index uint64
	for i := range s.Operations { // in the order in which they were answered
		o := &s.Operations[i]
		lines := leader[o.RequestID]
		if o.Kind != ledger.KindAdmin || len(lines) == 0 || lines[0].Index == 0 {
			continue
		}
		if index > 0 && o.At > doneAt && lines[0].Index < index {
			f.breaks(o.RequestID, "%s was asked after the change at index %d was answered and has index %d", o.Action, index, lines[0].Index)
		}
		if lines[0].Index > index {
			index, doneAt = lines[0].Index, o.Done
		}
	}
}
