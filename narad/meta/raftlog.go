package meta

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLog carries what Raft logs at warning and above into slog; the rest goes to the logger that it embeds, which drops it. Raft
// never logs the data of an entry.
type raftLog struct {
	hclog.Logger
	log *slog.Logger
}

func newRaftLog(l *slog.Logger) hclog.Logger {
	return &raftLog{Logger: hclog.NewNullLogger(), log: l.With("component", "raft")}
}

func (r *raftLog) emit(level slog.Level, msg string, args []any) {
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = f[0]
		}
	}
	r.log.Log(context.Background(), level, msg, args...)
}

// Log passes warnings and errors on.
func (r *raftLog) Log(level hclog.Level, msg string, args ...any) {
	switch level {
	case hclog.Warn:
		r.Warn(msg, args...)
	case hclog.Error:
		r.Error(msg, args...)
	}
}

// Warn logs a warning.
func (r *raftLog) Warn(msg string, args ...any) { r.emit(slog.LevelWarn, msg, args) }

// Error logs an error.
func (r *raftLog) Error(msg string, args ...any) { r.emit(slog.LevelError, msg, args) }

// IsWarn is always true.
func (r *raftLog) IsWarn() bool { return true }

// IsError is always true.
func (r *raftLog) IsError() bool { return true }

// GetLevel is the level of a warning.
func (r *raftLog) GetLevel() hclog.Level { return hclog.Warn }

// With adds attributes.
func (r *raftLog) With(args ...any) hclog.Logger {
	return &raftLog{Logger: r.Logger, log: r.log.With(args...)}
}

// Named returns the same logger: the message tells enough.
func (r *raftLog) Named(string) hclog.Logger { return r }

// ResetNamed returns the same logger.
func (r *raftLog) ResetNamed(string) hclog.Logger { return r }
