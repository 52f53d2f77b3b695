package link

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"narad.example/narad/audit"
	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// The kinds of a RemoteWrite. The words travel between releases and are permanent.
const (
	kindPutRemote    = "put_remote"
	kindDeleteRemote = "delete_remote"
	kindAttach       = "attach"
	kindDetach       = "detach"
	kindDeleteTopic  = "delete_topic"
	kindPause        = "pause"
	kindResume       = "resume"
	kindSkip         = "skip"
	kindReencrypt    = "reencrypt"
)

// write is the body of a RemoteWrite. It carries a password only sealed, inside Put.
type write struct {
	Kind      string            `json:"kind"`
	Actor     string            `json:"actor"`
	Admin     bool              `json:"admin"`
	RequestID string            `json:"request_id"`
	Force     bool              `json:"force,omitempty"`
	Put       *meta.PutRemote   `json:"put,omitempty"`
	Name      string            `json:"name,omitempty"` // the remote or the topic to delete
	ID        string            `json:"id,omitempty"`   // its ID as the sender saw it
	Parent    string            `json:"parent,omitempty"`
	Child     string            `json:"child,omitempty"`
	Attach    *wire.AttachChild `json:"attach,omitempty"`
	Epoch     string            `json:"epoch,omitempty"` // of the child's attach, as the sender saw it (WRT-14)
	Reason    string            `json:"reason,omitempty"`
	Accept    bool              `json:"accept_target,omitempty"`
	Skip      *meta.SkipOne     `json:"skip,omitempty"`

	links []string // the leader's: what a parent's delete ends, as "parent/child"
	lined bool     // the leader's: each remote of a re-encrypt has its own audit line already

	abandoned *meta.Abandoned // the leader's: by a forced delete
}

// written is the leader's answer.
type written struct {
	Index    uint64   `json:"index,omitempty"` // 0 for a dry run
	Offsets  []int64  `json:"offsets,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	Checks       []wire.Check       `json:"checks,omitempty"`
	Capabilities *wire.Capabilities `json:"capabilities,omitempty"`
	Reencrypted  *wire.Reencrypted  `json:"reencrypted,omitempty"`
}

// submit sends the write to the leader and waits until this node has applied it.
func (s *Service) submit(ctx context.Context, c Caller, w write) (written, error) {
	if err := s.mayWrite(&w); err != nil {
		return written{}, err
	}
	w.Actor, w.Admin, w.RequestID = c.Name, c.Admin, c.RequestID
	body, err := json.Marshal(w)
	if err != nil {
		return written{}, wire.Refuse(wire.Internal, "the write does not encode")
	}
	answer, err := s.o.Leader.RemoteWrite(ctx, body)
	if err != nil {
		var p *wire.Problem
		if errors.As(err, &p) {
			return written{}, p
		}
		return written{}, unknownOutcome()
	}
	var done written
	if err := json.Unmarshal(answer, &done); err != nil {
		return written{}, unknownOutcome()
	}
	if done.Index == 0 {
		return done, nil
	}
	wait, cancel := context.WithTimeout(ctx, applyTime)
	defer cancel()
	if err := s.o.Raft.WaitApplied(wait, done.Index); err != nil {
		return written{}, wire.Refuse(wire.Unavailable, "the change is committed, but this node has not applied it yet").
			After(retrySoon).With("settled", false)
	}
	return done, nil
}

// mayWrite holds the writes of this node to their rates (WRT-09). A dry run writes nothing, and a topic that has no links is none of
// the remote plane's.
func (s *Service) mayWrite(w *write) error {
	switch w.Kind {
	case kindPutRemote, kindDeleteRemote, kindReencrypt:
		return s.remoteWrites.take()
	case kindAttach:
		if w.Attach.DryRun {
			return nil
		}
	case kindDeleteTopic:
		if s.remoteChildren(w.Name) == 0 {
			return nil
		}
	}
	return s.childWrites.take()
}

// ServeRemoteWrite is the leader's side of every remote write: it checks again, proposes one entry and writes the audit line,
// committed with the Raft index or refused, under the request ID of the node that took the request (WRT-01, WRT-11). The error
// is a *wire.Problem.
func (s *Service) ServeRemoteWrite(ctx context.Context, body []byte) ([]byte, error) {
	var w write
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, wire.Refuse(wire.Precondition, "the leader cannot read this write; bring all members to one release")
	}
	if w.Admin && s.o.Admin != nil {
		w.Admin = s.o.Admin(w.Actor)
	}
	done, extra, err := s.seat.lead(ctx, &w)
	if done.Index != 0 && !w.lined && s.o.Unaudited != nil {
		s.o.Unaudited(w.RequestID, done.Index)
	}
	s.seat.auditLeader(ctx, &w, done.Index, extra, err)
	switch {
	case errors.Is(err, errOpen):
		return nil, unknownOutcome()
	case errors.Is(err, meta.ErrNotLeader):
		return nil, wire.Refuse(wire.Unavailable, "the leader has changed; try again").After(retrySoon)
	case err != nil:
		return nil, err
	}
	return json.Marshal(done)
}

// lead runs one write after everything committed before it is applied here, so that it is checked against the newest state.
func (s *seat) lead(ctx context.Context, w *write) (written, []slog.Attr, error) {
	if err := s.o.Raft.Barrier(ctx); err != nil {
		return written{}, nil, err
	}
	if err := s.o.Raft.ReleaseGate(); err != nil {
		return written{}, nil, err
	}
	switch {
	case w.Kind == kindPutRemote && w.Put != nil:
		return s.leadPut(ctx, w)
	case w.Kind == kindDeleteRemote:
		return s.leadDelete(ctx, w)
	case w.Kind == kindAttach && w.Attach != nil:
		return s.leadAttach(ctx, w)
	case w.Kind == kindDetach:
		return s.leadDetach(ctx, w)
	case w.Kind == kindDeleteTopic:
		return s.leadDeleteTopic(ctx, w)
	case w.Kind == kindPause:
		return s.leadPause(ctx, w)
	case w.Kind == kindResume:
		return s.leadResume(ctx, w)
	case w.Kind == kindSkip && w.Skip != nil:
		return s.leadSkip(ctx, w)
	case w.Kind == kindReencrypt:
		return s.leadReencrypt(ctx, w)
	}
	return written{}, nil, wire.Refuse(wire.Precondition, "the leader does not know this write; bring all members to one release")
}

// propose puts one entry into Raft. It waits for Raft's word, which comes within a lease also when the leader is cut off, and not only for
// as long as the caller does: a line with an open outcome is for a lost lead alone, after which the next leader knows better.
func (s *seat) propose(ctx context.Context, e meta.Entry) (written, error) {
	data, err := meta.Encode(e)
	if err != nil {
		return written{}, wire.Refuse(wire.Internal, "the change does not encode")
	}
	index, err := s.o.Raft.ProposeLocal(context.WithoutCancel(ctx), data)
	if err != nil && open(err) {
		return written{}, errOpen
	}
	return written{Index: index}, err
}

// auditLeader writes the leader's lines, none for a dry run (DEC-36), and remembers those of a committed entry (DEC-13).
func (s *seat) auditLeader(ctx context.Context, w *write, index uint64, extra []slog.Attr, err error) {
	if w.Attach != nil && w.Attach.DryRun || w.lined {
		return
	}
	outcome := audit.Committed
	switch {
	case errors.Is(err, errOpen):
		outcome = audit.Unknown
	case err != nil:
		outcome = audit.Refused
	}
	if index != 0 {
		extra = append(extra, slog.Uint64("index", index))
	}
	if w.Force {
		extra = append(extra, slog.Bool("force", true))
	}
	line := audit.Line{Actor: w.Actor, Outcome: outcome, RequestID: w.RequestID, Extra: extra}
	line.Event, line.Target = w.event()
	if s.writeLines(ctx, line, w.links) && index != 0 {
		s.trail.note(index)
	}
}

func (w *write) event() (event, about string) {
	switch w.Kind {
	case kindPutRemote:
		if w.Put == nil {
			return "remote.update", ""
		}
		if w.Put.FromRevision == 0 {
			return "remote.create", w.Put.Remote.Name
		}
		return "remote.update", w.Put.Remote.Name
	case kindDeleteRemote:
		return "remote.delete", w.Name
	case kindReencrypt:
		return "remote.reencrypt", w.Name
	case kindAttach:
		if w.Attach == nil {
			return "remote_child.create", w.Parent
		}
		return "remote_child.create", w.Parent + "/" + w.Attach.Child
	case kindDetach:
		return "remote_child.delete", w.Parent + "/" + w.Child
	case kindPause, kindSkip:
		return "remote_child." + w.Kind, w.Parent + "/" + w.Child
	case kindResume:
		if w.Accept {
			return "remote_child.accept_target", w.Parent + "/" + w.Child
		}
		return "remote_child.resume", w.Parent + "/" + w.Child
	}
	return "topic.delete", w.Name
}
