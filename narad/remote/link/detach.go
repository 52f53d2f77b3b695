package link

import (
	"context"
	"log/slog"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// Detach ends a remote child: by an admin or the parent's owner, and without force only when nothing is unshipped (UNS-01). Problems:
// Denied, NotFound, Conflict with the fields of wire.Unshipped, Throttled (UNS-04), Unavailable.
func (s *Service) Detach(ctx context.Context, c Caller, parent, child string, force bool) error {
	up, ok := s.o.State.Topic(parent)
	if !ok {
		return wire.Refuse(wire.NotFound, "no such topic")
	}
	if err := mayEnd(c, up); err != nil {
		return err
	}
	if _, err := s.linkOf(parent, child); err != nil {
		return err
	}
	_, err := s.submit(ctx, c, write{Kind: kindDetach, Parent: parent, Child: child, Force: force})
	return err
}

// DeleteTopic deletes a stub, which is a detach, or a parent with all its links. Problems as Detach.
func (s *Service) DeleteTopic(ctx context.Context, c Caller, name string, force bool) error {
	t, ok := s.o.State.Topic(name)
	if !ok {
		return wire.Refuse(wire.NotFound, "no such topic")
	}
	if t.IsStub() {
		return s.Detach(ctx, c, t.Parent, t.Name, force)
	}
	if err := mayEnd(c, t); err != nil {
		return err
	}
	_, err := s.submit(ctx, c, write{Kind: kindDeleteTopic, Name: name, ID: t.ID, Force: force})
	return err
}

// mayEnd lets an admin and the topic's owner through: a stub has no owner of its own (api.md).
func mayEnd(c Caller, t meta.Topic) error {
	if !c.Admin && (t.Owner == "" || t.Owner != c.Name) {
		return wire.Refuse(wire.Denied, "only the owner of the parent or an admin may do this")
	}
	return nil
}

func (s *site) linkOf(parent, child string) (meta.Topic, error) {
	t, ok := s.o.State.Topic(child)
	if !ok || t.Parent != parent {
		return meta.Topic{}, wire.Refuse(wire.NotFound, "no such child")
	}
	if !t.IsStub() {
		return meta.Topic{}, wire.Refuse(wire.Conflict, meta.Retry)
	}
	return t, nil
}

func (s *seat) leadDetach(ctx context.Context, w *write) (written, []slog.Attr, error) {
	up, ok := s.o.State.Topic(w.Parent)
	if !ok {
		return written{}, nil, wire.Refuse(wire.NotFound, "no such topic")
	}
	if err := mayEnd(Caller{Name: w.Actor, Admin: w.Admin}, up); err != nil {
		return written{}, nil, err
	}
	link, err := s.linkOf(w.Parent, w.Child)
	if err != nil {
		return written{}, nil, err
	}
	extra, err := s.mayAbandon(ctx, w, up, []meta.Topic{link})
	if err != nil {
		return written{}, extra, err
	}
	done, err := s.propose(ctx, meta.UpdateRemote{
		Parent: w.Parent, Child: w.Child, Epoch: link.AttachEpoch, Detach: true, Origin: s.origin(w),
	})
	return done, extra, err
}

func (s *seat) leadDeleteTopic(ctx context.Context, w *write) (written, []slog.Attr, error) {
	t, ok := s.o.State.Topic(w.Name)
	switch {
	case !ok:
		return written{}, nil, wire.Refuse(wire.NotFound, "no such topic")
	case t.ID != w.ID || t.IsStub():
		return written{}, nil, wire.Refuse(wire.Conflict, meta.Retry)
	}
	if err := mayEnd(Caller{Name: w.Actor, Admin: w.Admin}, t); err != nil {
		return written{}, nil, err
	}
	links := stubs(s.o.State.Children(t.Name))
	w.links = linkNames(links)
	e := meta.DeleteTopic{Name: t.Name, ID: t.ID}
	for _, l := range links {
		e.Links = append(e.Links, l.Name)
	}
	var extra []slog.Attr
	if len(links) > 0 {
		var err error
		if extra, err = s.mayAbandon(ctx, w, t, links); err != nil {
			return written{}, extra, err
		}
	}
	e.Origin = s.origin(w)
	done, err := s.propose(ctx, e)
	return done, extra, err
}
