package run

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"narad.example/harness/ledger"
)

// logLine are the members of a node's log line that the harness reads.
type logLine struct {
	Time      time.Time `json:"time"`
	Msg       string    `json:"msg"`
	Component string    `json:"component"`
	Event     string    `json:"event"`
	Actor     string    `json:"actor"`
	Target    string    `json:"target"`
	Outcome   string    `json:"outcome"`
	Status    int       `json:"status"`
	RequestID string    `json:"request_id"`
	Index     uint64    `json:"index"`
	Replayed  bool      `json:"replayed"`
	Parent    string    `json:"parent"`
	Child     string    `json:"child"`
	Partition int       `json:"partition"`
	From      *int64    `json:"from"`
	To        *int64    `json:"to"`
	Records   int64     `json:"records"`
}

// readLog takes audit lines and drop ranges out of a node's log. Lines that are no JSON, such as a panic, are left to the reader of the log.
func readLog(node string, epoch time.Time, log []byte) (audit []ledger.AuditLine, drops []ledger.Drop) {
	for line := range bytes.SplitSeq(log, []byte{'\n'}) {
		if len(line) == 0 || line[0] != '{' {
			continue
		}
		isAudit := bytes.Contains(line, []byte(`"audit"`))
		if !isAudit && !bytes.Contains(line, []byte("dropped")) {
			continue
		}
		var l logLine
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		switch {
		case l.Component == "audit" && l.Msg == "audit":
			a := ledger.AuditLine{
				Node: node, At: l.Time.Sub(epoch).Milliseconds(), Event: l.Event, Actor: l.Actor, Target: l.Target, Outcome: l.Outcome,
				Status: l.Status, RequestID: l.RequestID, Stage: "ingress", Index: l.Index, Replayed: l.Replayed,
			}
			if l.Status == 0 { // an ingress line names the status that was answered
				a.Stage = "leader"
			}
			audit = append(audit, a)
		case strings.Contains(l.Msg, "dropped") && l.Child != "" && l.From != nil && l.To != nil:
			drops = append(drops, ledger.Drop{Parent: l.Parent, Child: l.Child, Partition: l.Partition, From: *l.From, To: *l.To, Records: l.Records})
		}
	}
	return audit, drops
}

// gatherLogs reads every node's log into audit.jsonl, and writes it to nodes/ where the backend has not.
func (p *play) gatherLogs() {
	var audit []ledger.AuditLine
	var drops []ledger.Drop
	whole := true
	for _, n := range append(p.nodes(), p.gone()...) {
		log, err := n.Log()
		if err != nil {
			whole = false
			p.trouble("log of %s: %v", n.Name(), err)
			continue
		}
		a, d := readLog(n.Name(), p.epoch, log)
		audit, drops = append(audit, a...), append(drops, d...)
		file := filepath.Join(p.o.Dir, ledger.NodesName, n.Name()+".log")
		if _, err = os.Stat(file); err == nil {
			continue
		}
		if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
			err = os.WriteFile(file, log, 0o644)
		}
		if err != nil {
			whole = false
			p.trouble("log of %s: %v", n.Name(), err)
		}
	}
	if err := ledger.Write(p.path(ledger.AuditName), audit); err != nil {
		whole = false
		p.trouble("%v", err)
	}
	p.change(func(f *ledger.Facts) { f.LogsRead, f.Drops = whole, drops })
}
