package link

import (
	"context"
	"log/slog"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// Pause stops a link: no request starts once its owners have applied it, and what is on the wire ends by itself (DEC-38). It keeps the
// reason, the actor and the time (WRT-12), and runs the release gate alone, so that it works with a member down (WRT-04). The answer is
// the stub as this node has it after the change. Problems: Denied, NotFound, Invalid (reason), Conflict (not a link, or attached
// again since), Throttled, Precondition, Unavailable.
func (s *Service) Pause(ctx context.Context, c Caller, parent, child, reason string) (wire.Topic, error) {
	return s.act(ctx, c, write{Kind: kindPause, Parent: parent, Child: child, Reason: reason}, func() error {
		return checkReason(reason)
	})
}

// Resume lets a link go on, after the checks of an attach (WRT-12). With acceptTarget it records the ID that the target topic has now;
// without it another ID than the recorded one is a refusal of class target_replaced. Problems as Pause, and those of the check
// classes with `class` and `checks`: a link whose remote was deleted is remote_missing (DEC-21).
func (s *Service) Resume(ctx context.Context, c Caller, parent, child string, acceptTarget bool) (wire.Topic, error) {
	return s.act(ctx, c, write{Kind: kindResume, Parent: parent, Child: child, Accept: acceptTarget}, s.posture)
}

// Skip lets a link pass one record unsent, which it is stuck on because the target refuses it (WRT-10, DEC-19, DEC-35). Problems as
// Pause; Conflict with `blocked_at` when the cursor is not stuck exactly there or the record is skipped already, and Unavailable when
// the partition's owner cannot be asked. None of them stores anything.
func (s *Service) Skip(ctx context.Context, c Caller, parent, child string, partition int, offset int64) (wire.Topic, error) {
	one := meta.SkipOne{Partition: partition, Offset: offset}
	return s.act(ctx, c, write{Kind: kindSkip, Parent: parent, Child: child, Skip: &one}, func() error {
		return s.checkSkip(parent, one)
	})
}

// act is the ingress side of the three: the checks on this node, the write, and the stub once it is applied here.
func (s *Service) act(ctx context.Context, c Caller, w write, check func() error) (wire.Topic, error) {
	link, err := s.linkFor(c, &w)
	if err != nil {
		return wire.Topic{}, err
	}
	if err = firstError(check, s.o.Raft.ReleaseGate); err != nil {
		return wire.Topic{}, err
	}
	w.Epoch = link.AttachEpoch
	if _, err = s.submit(ctx, c, w); err != nil {
		return wire.Topic{}, err
	}
	stub, ok := s.o.State.Topic(w.Child)
	if !ok || stub.AttachEpoch != w.Epoch {
		return wire.Topic{}, wire.Refuse(wire.Conflict, "the child was detached meanwhile")
	}
	return s.o.View(stub), nil
}

// linkFor finds the link of an action, for an admin.
func (s *site) linkFor(c Caller, w *write) (meta.Topic, error) {
	if err := admin(c); err != nil {
		return meta.Topic{}, err
	}
	if _, ok := s.o.State.Topic(w.Parent); !ok {
		return meta.Topic{}, wire.Refuse(wire.NotFound, "no such topic")
	}
	t, ok := s.o.State.Topic(w.Child)
	switch {
	case !ok || t.Parent != w.Parent:
		return meta.Topic{}, wire.Refuse(wire.NotFound, "no such child")
	case !t.IsStub():
		return meta.Topic{}, wire.Refuse(wire.Conflict, "the child is a topic of this cluster, not a remote child")
	}
	return t, nil
}

// checkedLink is linkFor on the leader: the attach epoch must still be the one that the sender checked (WRT-14).
func (s *seat) checkedLink(w *write) (meta.Topic, error) {
	link, err := s.linkFor(Caller{Admin: w.Admin}, w)
	if err != nil {
		return link, err
	}
	if link.AttachEpoch != w.Epoch {
		return link, wire.Refuse(wire.Conflict, meta.Retry)
	}
	return link, nil
}

func checkReason(reason string) error {
	if len(reason) > wire.MaxPauseReason {
		return invalid("reason must have at most %d bytes", wire.MaxPauseReason)
	}
	for i := range len(reason) {
		if reason[i] < ' ' || reason[i] > '~' {
			return invalid("reason must have printable ASCII characters only")
		}
	}
	return nil
}

func (s *site) checkSkip(parent string, one meta.SkipOne) error {
	up, _ := s.o.State.Topic(parent)
	if one.Partition < 0 || one.Partition >= up.Partitions || one.Offset < 0 {
		return invalid("the parent has no such partition or offset")
	}
	return nil
}

func (s *seat) leadPause(ctx context.Context, w *write) (written, []slog.Attr, error) {
	link, err := s.checkedLink(w)
	if err != nil {
		return written{}, nil, err
	}
	if err = checkReason(w.Reason); err != nil {
		return written{}, nil, err
	}
	return s.update(ctx, w, link, meta.UpdateRemote{Pause: &meta.PauseSet{Reason: w.Reason, AtMS: s.o.Now().UnixMilli()}})
}

// update proposes a change of the attach that was checked.
func (s *seat) update(ctx context.Context, w *write, link meta.Topic, e meta.UpdateRemote) (written, []slog.Attr, error) {
	e.Parent, e.Child, e.Epoch, e.Origin = w.Parent, w.Child, link.AttachEpoch, s.origin(w)
	done, err := s.propose(ctx, e)
	return done, nil, err
}

// leadResume checks the target before its turn, and in it once more what another write may have changed meanwhile.
func (s *seat) leadResume(ctx context.Context, w *write) (written, []slog.Attr, error) {
	if err := firstError(s.posture, func() error { return s.everyPosture(ctx) }); err != nil {
		return written{}, nil, err
	}
	link, err := s.checkedLink(w)
	if err != nil {
		return written{}, nil, err
	}
	p := plan{req: wire.AttachChild{RemoteTopic: link.Remote.Topic}}
	p.parent, _ = s.o.State.Topic(w.Parent)
	var ok bool
	if p.remote, ok = s.o.State.Remote(link.Remote.Remote); !ok {
		return written{}, nil, s.failed(s.alone(found{class: string(wire.RemoteMissing)}))
	}
	c, err := s.checkTarget(ctx, p)
	if err != nil {
		return written{}, nil, err
	}
	e := meta.UpdateRemote{Resume: true}
	switch {
	case c.targetID == link.Remote.TargetID:
	case w.Accept && c.targetID != "":
		e = meta.UpdateRemote{AcceptTarget: c.targetID}
	default: // a target that serves no ID any more gives none to accept
		return written{}, nil, s.failed(s.alone(found{class: string(wire.TargetReplaced), version: p.remote.CredentialVersion}))
	}
	release, err := s.takeTurn(ctx)
	if err != nil {
		return written{}, nil, err
	}
	defer release()
	again, ok := s.o.State.Remote(p.remote.Name)
	if !ok || again.ID != p.remote.ID || again.CredentialVersion != p.remote.CredentialVersion {
		return written{}, nil, wire.Refuse(wire.Conflict, "the remote was changed meanwhile; try again")
	}
	return s.update(ctx, w, link, e)
}

// leadSkip asks the partition's owner before its turn. In the turn, which every skip takes, it looks for the record in the skip list
// once more, so that none is stored twice.
func (s *seat) leadSkip(ctx context.Context, w *write) (written, []slog.Attr, error) {
	link, err := s.checkedLink(w)
	if err != nil {
		return written{}, nil, err
	}
	if err = s.checkSkip(w.Parent, *w.Skip); err != nil {
		return written{}, nil, err
	}
	parent, _ := s.o.State.Topic(w.Parent)
	asking, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	blocked, err := s.o.Cursors.Blocked(asking, parent, link, w.Skip.Partition)
	if err != nil {
		return written{}, nil, wire.Refuse(wire.Unavailable, "the partition's owner cannot be asked, or runs no cursor of the link; try again").
			After(retrySoon)
	}
	if err = stuckThere(blocked, *w.Skip); err != nil {
		return written{}, nil, err
	}
	release, err := s.takeTurn(ctx)
	if err != nil {
		return written{}, nil, err
	}
	defer release()
	if link, err = s.checkedLink(w); err != nil {
		return written{}, nil, err
	}
	if link.Remote.Skips(w.Skip.Partition, w.Skip.Offset) {
		return written{}, nil, notStuck(blocked, w.Skip)
	}
	return s.update(ctx, w, link, meta.UpdateRemote{Skip: w.Skip})
}

// stuckThere refuses unless a lane is stuck on exactly that record because the target refuses it.
func stuckThere(blocked []wire.BlockedAt, one meta.SkipOne) error {
	for _, b := range blocked {
		if b.Partition == one.Partition && b.Offset == one.Offset && (b.State == wire.RejectedRecord || b.State == wire.RecordTooLarge) {
			return nil
		}
	}
	return notStuck(blocked, nil)
}

// notStuck names the record that the cursor is stuck on, null when it is on none. One that was skipped meanwhile is left out (LST-06).
func notStuck(blocked []wire.BlockedAt, skipped *meta.SkipOne) error {
	var at *wire.BlockedAt
	for _, b := range blocked {
		if skipped == nil || b.Offset != skipped.Offset {
			at = &b
			break
		}
	}
	return wire.Refuse(wire.Conflict, "the link is not stuck on this record").With("blocked_at", at)
}
