package sender

import (
	"net/http"
	"strings"
	"time"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// This file is what an answer to a chunk means. What every request can be answered is read by package target; here it becomes
// one row, and the row says what the lane does, what state the cursor shows and what the gate learns.

// effect is what an answer tells the gate of the remote (GAT-01 to GAT-03, DEC-26).
type effect uint8

const (
	aboutAccepted  effect = iota // a 202: the remote takes records
	aboutRecord                  // an answer about the topic or the record: the remote is there
	aboutTransient               // one transient failure
	aboutRemote                  // the remote as a whole refused: 401, 429, TLS
	aboutNothing                 // no answer and no failure of the remote: a refused dial, a request that we cut
)

// rule is one row: what to do, what to show, what the gate learns. resent tells that the records may have landed although
// the chunk failed.
type rule struct {
	action wire.Action
	state  wire.LinkState
	effect effect
	resent bool
}

// rules has each row of wire.Answers that an answer to a chunk can be, under its ID, and the few rows beside the table. The
// action and the state of a row of the table are the table's own.
var rules = func() map[string]rule {
	m := map[string]rule{
		"ANS-01": {effect: aboutAccepted},
		"ANS-02": {effect: aboutRecord}, "ANS-03": {effect: aboutRecord}, "ANS-04": {effect: aboutRecord},
		"ANS-05": {effect: aboutRecord}, "ANS-06": {effect: aboutRecord}, "ANS-07": {effect: aboutRecord},
		"ANS-08": {effect: aboutRemote},
		"ANS-09": {effect: aboutRecord}, "ANS-10": {effect: aboutRecord}, "ANS-11": {effect: aboutRecord},
		"ANS-12": {effect: aboutTransient, resent: true},
		"ANS-13": {effect: aboutRecord},
		"ANS-14": {effect: aboutRemote},
		"ANS-15": {effect: aboutTransient, resent: true}, "ANS-16": {effect: aboutTransient, resent: true},
		"ANS-17": {effect: aboutTransient, resent: true}, "ANS-18": {effect: aboutTransient, resent: true},
		"ANS-19": {effect: aboutTransient, resent: true},
		"ANS-20": {effect: aboutNothing},
		"ANS-21": {effect: aboutRemote, resent: true},
		"ANS-22": {effect: aboutRecord},
	}
	for _, row := range wire.Answers {
		if r, ok := m[row.ID]; ok {
			r.action, r.state = row.Action, row.State
			m[row.ID] = r
		}
	}
	m[target.RowReplaced] = rule{wire.Stall, wire.TargetReplaced, aboutRecord, false}
	m[target.RowLoop] = rule{wire.Stall, wire.TargetHasRemoteChildren, aboutRecord, false}
	m[rowGood] = rule{"", wire.Running, aboutRecord, false}
	m[target.RowTooMany] = rule{wire.Halve, wire.Running, aboutRecord, false}
	m[target.RowBare404] = rule{wire.LookUp, wire.TargetUnavailable, aboutTransient, false}
	m[target.RowCut] = rule{wire.Retry, wire.Running, aboutNothing, true}
	return m
}()

// sent is what classify must know of the request.
type sent struct {
	records    int
	compressed bool
	targetID   string // as sent in X-Narad-If-Topic-Id; empty when none was
	requestID  string
}

// verdict is an answer to a chunk, read.
type verdict struct {
	rule
	row        string
	status     int           // 0 without an answer
	index      int           // of the record that the target named (ANS-02)
	retryAfter time.Duration // ANS-14; 0 is the gate's own backoff
	edge       bool
	landed     bool // the records may be on the target, and go again: they count as resent
	shrink     bool // the upload took too long or was cut short, so the cap halves (SND-05)
}

// class is the label of narad_remote_errors_total.
func (v *verdict) class() string {
	if v.edge {
		return target.EdgeClass
	}
	return string(v.state)
}

// classify reads the answer to a chunk. Every answer and every failure has exactly one row.
func classify(q sent, a *outbound.Answer, err error) verdict {
	r := target.Read(a, err)
	v := verdict{row: r.Row, status: r.Status, edge: r.Edge}
	switch {
	case err == nil && a != nil && foreign(q, a): // SND-14
		v.row, v.edge = "ANS-19", true
	case q.compressed && r.Status == http.StatusUnsupportedMediaType: // whoever it was in front that does not take it
		v.row, v.edge = "ANS-22", false
	case r.Row == target.RowNone:
		v.row, v.index = chunkRow(q, r, a)
		v.edge = v.row == "ANS-19"
	}
	v.rule = rules[v.row]
	if v.row == "ANS-14" {
		v.retryAfter = target.RetryAfter(a.Header, a.At)
	}
	v.landed = v.resent && r.UploadBegan
	v.shrink = v.effect == aboutTransient && r.UploadCut
	return v
}

// foreign tells whether the answer carries another request's ID. One without an ID is a target's of an older release.
func foreign(q sent, a *outbound.Answer) bool {
	id := a.Header.Get(wire.HeaderRequestID)
	return id != "" && id != q.requestID
}

// chunkRow reads what only a chunk can be answered.
func chunkRow(q sent, r target.Reading, a *outbound.Answer) (row string, index int) {
	switch r.Status {
	case 202:
		var body struct {
			Accepted *int `json:"accepted"`
		}
		if target.DecodeJSON(a, &body) && body.Accepted != nil && *body.Accepted == q.records {
			return "ANS-01", 0 // DEC-01
		}
		return "ANS-19", 0
	case 400:
		return row400(q, r.Text)
	case 409:
		return "ANS-05", 0
	case 412:
		if q.targetID != "" && (strings.Contains(r.Text, q.targetID) || strings.Contains(r.Text, wire.HeaderIfTopicID)) {
			return target.RowReplaced, 0 // it names the ID, or the header that carried it (DEC-46)
		}
		return "ANS-04", 0
	case 413:
		if q.records > 1 {
			return "ANS-06", 0
		}
		return "ANS-07", 0
	}
	if r.Status >= 400 && r.Status < 500 {
		return "ANS-04", 0
	}
	return "ANS-19", 0 // another 2xx
}

// row400 reads a Narad-shaped 400 in the order of DEC-41.
func row400(q sent, text string) (row string, index int) {
	if n, ok := messageIndex(text); ok && n < q.records {
		return "ANS-02", n
	}
	if q.compressed && strings.Contains(text, "invalid json") {
		return "ANS-22", 0
	}
	if strings.Contains(text, "too many messages") && q.records > 1 {
		return target.RowTooMany, 0
	}
	return "ANS-03", 0
}

// messageIndex reads `message N: `, N from 0 (DEC-04). Only digits are a number.
func messageIndex(text string) (int, bool) {
	rest, ok := strings.CutPrefix(text, "message ")
	if !ok {
		return 0, false
	}
	number, _, ok := strings.Cut(rest, ":")
	if !ok || number == "" || len(number) > 9 {
		return 0, false
	}
	n := 0
	for i := range len(number) {
		if number[i] < '0' || number[i] > '9' {
			return 0, false
		}
		n = n*10 + int(number[i]-'0')
	}
	return n, true
}
