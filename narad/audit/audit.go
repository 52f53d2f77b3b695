// Package audit writes the audit line: one log record per audited request or change (api.md, Audit events; WRT-11).
//
// It promises that a line has always the same members under the same names, that the log level never holds one back, and that
// nothing is written beyond what stands in the Line: passwords, URLs and remote usernames never enter one, which is the
// caller's part (CRD-13). It runs no loop.
//
// Refused: a file of its own. The line goes where the log goes, so that one collector keeps both in order.
package audit

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Outcomes of the lines. Topic and user events have Denied (403), Rejected (another 4xx) and Failed (5xx); the ingress line of a
// remote event has OK or the refusal, its leader line Committed or Refused. Unknown is everybody's.
const (
	OK        = "ok"
	Denied    = "denied"
	Rejected  = "rejected"
	Failed    = "failed"
	Unknown   = "unknown"
	Committed = "committed"
	Refused   = "refused"
)

// Line is one audit line. Status 0 is left out: a leader line has none. Extra may carry host, fingerprint,
// credential_version, force, abandoned_lag_messages, abandoned_dispatch_backlog, index, replayed, dry_run, settled.
type Line struct {
	Event     string
	Actor     string
	Target    string
	Outcome   string
	Status    int
	RequestID string // 16 hex
	Extra     []slog.Attr
}

// Log writes lines.
type Log struct {
	handler slog.Handler
	lost    atomic.Int64
}

// New makes a Log that writes through the handler of l.
func New(l *slog.Logger) *Log {
	return &Log{handler: l.With("component", "audit").Handler()}
}

// Write writes one line, whatever level the log has: it hands the record to the handler without asking whether the level is on. It is
// false when the log's writer refused the line.
func (l *Log) Write(ctx context.Context, line Line) bool {
	rec := slog.NewRecord(time.Now(), slog.LevelInfo, "audit", 0)
	rec.AddAttrs(slog.String("event", line.Event), slog.String("actor", line.Actor), slog.String("target", line.Target),
		slog.String("outcome", line.Outcome))
	if line.Status != 0 {
		rec.AddAttrs(slog.Int("status", line.Status))
	}
	rec.AddAttrs(slog.String("request_id", line.RequestID))
	rec.AddAttrs(line.Extra...)
	if err := l.handler.Handle(ctx, rec); err != nil {
		l.lost.Add(1)
		return false
	}
	return true
}

// Lost counts the lines that the log's writer refused; there is nowhere else to say so.
func (l *Log) Lost() int64 { return l.lost.Load() }
