package link

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"narad.example/narad/audit"
	"narad.example/narad/meta"
)

// replayAgain is the pause before a leader that could not pass a barrier tries to replay once more.
const replayAgain = 100 * time.Millisecond

// trail is what this process knows of the lines that leaders owe for remote entries (DEC-13).
type trail struct {
	mu    sync.Mutex // guards wrote
	wrote map[uint64]bool
}

// note remembers that the lines of the entry at an index stand in this node's log.
func (t *trail) note(index uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrote[index] = true
}

func (t *trail) has(index uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrote[index]
}

// written lists the entries that nobody has confirmed and whose lines stand here. What the state has seen confirmed, or has let go, is
// forgotten.
func (t *trail) written(traces []meta.Trace) (indexes []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range traces {
		switch {
		case w.Written:
			delete(t.wrote, w.Index)
		case t.wrote[w.Index]:
			indexes = append(indexes, w.Index)
		}
	}
	for index := range t.wrote {
		if len(traces) > 0 && index < traces[0].Index {
			delete(t.wrote, index)
		}
	}
	return indexes
}

// origin is what the entry of a write carries: the lines that its leader owes, and the ones that this process has written.
func (s *seat) origin(w *write) meta.Origin {
	o := meta.Origin{
		RequestID: w.RequestID, Actor: w.Actor, Ended: w.links, Force: w.Force, Abandoned: w.abandoned, Written: s.trail.written(s.o.State.Trail()),
	}
	o.Event, o.Target = w.event()
	return o
}

// FollowTrail writes the lines that leaders of earlier terms owe, each time this node comes to lead (DEC-13). It returns when ctx ends.
func (s *Service) FollowTrail(ctx context.Context) error {
	for ctx.Err() == nil {
		moved := s.o.Raft.LeaderMoved()
		var again <-chan time.Time
		if s.o.Raft.IsLeader() && !s.seat.replay(ctx) {
			again = time.After(replayAgain)
		}
		select {
		case <-moved:
		case <-again:
		case <-ctx.Done():
		}
	}
	return nil
}

// replay writes what earlier terms than the present one owe, once everything of theirs is applied here. It is false, and nothing is written,
// when this node's lead of one term could not be confirmed.
func (s *seat) replay(ctx context.Context) bool {
	term := s.o.Raft.Term()
	if err := s.o.Raft.Barrier(ctx); err != nil || s.o.Raft.Term() != term {
		return false
	}
	for _, w := range s.o.State.Trail() {
		if w.Term >= term || w.Written || s.trail.has(w.Index) {
			continue
		}
		if s.writeTrace(ctx, &w) {
			s.trail.note(w.Index)
		}
	}
	return true
}

// writeTrace writes the lines of an entry as they stand in the trail, and tells whether all of them are in the log.
func (s *seat) writeTrace(ctx context.Context, w *meta.Trace) bool {
	line := audit.Line{
		Event: w.Event, Actor: w.Actor, Target: w.Target, Outcome: audit.Committed, RequestID: w.RequestID,
		Extra: append(told(w.Abandoned), slog.Uint64("index", w.Index), slog.Bool("replayed", true)),
	}
	if w.Force {
		line.Extra = append(line.Extra, slog.Bool("force", true))
	}
	return s.writeLines(ctx, line, w.Ended)
}

// told is what a line says of records that were abandoned.
func told(a *meta.Abandoned) []slog.Attr {
	if a == nil {
		return nil
	}
	return []slog.Attr{slog.Int64("abandoned_lag_messages", a.LagMessages), slog.Int64("abandoned_dispatch_backlog", a.DispatchBacklog)}
}

// writeLines writes the leader's line, and one for each link that a parent's delete ended (DEC-36).
func (s *seat) writeLines(ctx context.Context, line audit.Line, ended []string) bool {
	ctx = context.WithoutCancel(ctx)
	whole := s.o.Audit.Write(ctx, line)
	line.Event = "remote_child.delete"
	for _, line.Target = range ended {
		whole = s.o.Audit.Write(ctx, line) && whole
	}
	return whole
}
