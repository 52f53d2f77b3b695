package link

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

const (
	yearMS       = int64(365 * 24 * 60 * 60 * 1000)
	warnBelowMS  = 72 * meta.HourMS // TGT-11
	maxLanes     = 8
	maxTopicName = 200
)

// Attach makes a remote child. The leader has every member check the target with its own credential, asks the parent's owners for the start
// offsets and proposes the stub; with DryRun it writes nothing, and of the answer AttachOffsets, Checks, Capabilities and Warnings count
// (TGT-12). Problems:
// Denied, Invalid (fields, an unknown remote), NotFound (parent), and those of the check classes with `class` and `checks`.
func (s *Service) Attach(ctx context.Context, c Caller, parent string, req wire.AttachChild) (wire.Attached, error) {
	err := firstError(
		s.posture,
		func() error { return admin(c) },
		func() (err error) { req, err = attachDefaults(parent, req); return err },
		func() (err error) { _, err = s.plan(parent, req); return err },
		s.o.Raft.ReleaseGate,
	)
	if err != nil {
		return wire.Attached{}, err
	}
	done, err := s.submit(ctx, c, write{Kind: kindAttach, Parent: parent, Attach: &req})
	if err != nil {
		return wire.Attached{}, err
	}
	out := wire.Attached{Warnings: append([]string{}, done.Warnings...)}
	if req.DryRun {
		out.AttachOffsets, out.Checks, out.Capabilities = done.Offsets, done.Checks, done.Capabilities
		return out, nil
	}
	stub, ok := s.o.State.Topic(req.Child)
	if !ok {
		return wire.Attached{}, wire.Refuse(wire.Conflict, "the child was detached meanwhile")
	}
	out.Topic = s.o.View(stub)
	return out, nil
}

// attachDefaults checks the fields and fills those that have a default.
func attachDefaults(parent string, req wire.AttachChild) (wire.AttachChild, error) {
	if req.RemoteTopic == "" {
		req.RemoteTopic = parent
	}
	if req.From == "" {
		req.From = wire.FromAttach
	}
	if req.Lanes == 0 {
		req.Lanes = 1
	}
	switch {
	case req.Remote == "":
		return req, invalid("remote is missing")
	case !remoteName(req.Remote):
		return req, invalid("remote must match [a-z][a-z0-9-]{0,62}")
	case !plainName(req.Child, maxTopicName):
		return req, invalid("child must be 1 to 200 of A-Za-z0-9._- and neither . nor ..")
	case !plainName(req.RemoteTopic, maxTopicName):
		return req, invalid("remote_topic must be 1 to 200 of A-Za-z0-9._- and neither . nor ..")
	case req.From != wire.FromAttach && req.From != wire.FromUnconsumed && req.From != wire.FromEarliest:
		return req, invalid("from must be attach, unconsumed or earliest")
	case req.Lanes < 1 || req.Lanes > maxLanes:
		return req, invalid("lanes must be 1 to %d", maxLanes)
	case req.DelayMS < 0 || req.DelayMS > yearMS:
		return req, invalid("delay_ms must be 0 to %d, which is one year", yearMS)
	}
	return req, nil
}

// plan is what an attach was checked against.
type plan struct {
	parent   meta.Topic
	remote   meta.Remote
	req      wire.AttachChild
	warnings []string
}

// plan checks an attach against the metadata of this node.
func (s *site) plan(parent string, req wire.AttachChild) (plan, error) {
	p := plan{req: req}
	var ok bool
	if p.parent, ok = s.o.State.Topic(parent); !ok {
		return p, wire.Refuse(wire.NotFound, "no such topic")
	}
	if p.remote, ok = s.o.State.Remote(req.Remote); !ok {
		return p, invalid("no such remote")
	}
	if _, taken := s.o.State.Topic(req.Child); taken {
		return p, wire.Refuse(wire.Conflict, "topic already exists")
	}
	floor := max(meta.RemoteFloorMS, req.DelayMS+meta.HourMS)
	kept := p.parent.RetentionMS
	switch {
	case p.parent.IsStub():
		return p, wire.Refuse(wire.Conflict, "the parent is a remote child and has no records of its own")
	case p.parent.Parent != "":
		return p, wire.Refuse(wire.Conflict, "the parent is itself a child; a child has no children")
	case kept != 0 && kept < floor:
		return p, wire.Refuse(wire.Conflict, "the parent's retention_ms must be at least %d for this remote child", floor)
	case s.remoteChildren(parent) >= meta.MaxRemoteChildren:
		return p, wire.Refuse(wire.Conflict, "a topic has at most %d remote children", meta.MaxRemoteChildren)
	}
	if kept != 0 && kept < warnBelowMS+req.DelayMS {
		p.warnings = append(p.warnings,
			"the parent keeps records for less than 72 hours and the delay: an outage longer than that loses records")
	}
	return p, s.freeTarget(p.remote.URL, req.RemoteTopic)
}

func (s *site) remoteChildren(parent string) int {
	return len(stubs(s.o.State.Children(parent)))
}

func stubs(children []meta.Topic) []meta.Topic {
	var out []meta.Topic
	for _, c := range children {
		if c.IsStub() {
			out = append(out, c)
		}
	}
	return out
}

// leadAttach checks again, asks the target and the owners, and proposes. What takes long is done before the turn; what another
// write may have changed meanwhile is checked once more in it.
func (s *seat) leadAttach(ctx context.Context, w *write) (written, []slog.Attr, error) {
	req, err := attachDefaults(w.Parent, *w.Attach)
	if err != nil {
		return written{}, nil, err
	}
	every := func() error { return s.everyPosture(ctx) }
	if err = firstError(s.posture, func() error { return admin(Caller{Admin: w.Admin}) }, every); err != nil {
		return written{}, nil, err
	}
	p, err := s.plan(w.Parent, req)
	if err != nil {
		return written{}, nil, err
	}
	c, err := s.checkTarget(ctx, p)
	if err != nil {
		return written{}, nil, err
	}
	p.warnings = append(p.warnings, c.warnings...)
	offsets, err := s.o.Fan.StartOffsets(ctx, p.parent, req.From)
	if err != nil {
		return written{}, nil, ownerSilent(err)
	}
	if req.DryRun {
		return written{Offsets: offsets, Warnings: p.warnings, Checks: c.reports, Capabilities: c.capabilities}, nil, nil
	}
	extra := []slog.Attr{slog.Uint64("credential_version", p.remote.CredentialVersion)}
	release, err := s.takeTurn(ctx)
	if err != nil {
		return written{}, extra, err
	}
	defer release()
	again, err := s.plan(w.Parent, req)
	switch {
	case err != nil:
		return written{}, extra, err
	case again.remote.ID != p.remote.ID || again.remote.CredentialVersion != p.remote.CredentialVersion:
		return written{}, extra, wire.Refuse(wire.Conflict, "the remote was changed meanwhile; try again")
	}
	done, err := s.propose(ctx, meta.AttachRemote{
		Topic: stub(w, p, c.targetID, offsets, s.o.Now()), ParentID: p.parent.ID, ParentPartitions: p.parent.Partitions,
		Origin: s.origin(w),
	})
	done.Warnings = p.warnings
	return done, extra, err
}

func stub(w *write, p plan, targetID string, offsets []int64, now time.Time) meta.Topic {
	return meta.Topic{
		Name: p.req.Child, ID: meta.NewID(), CreatedAt: now.Unix(), Parent: p.parent.Name, AttachEpoch: meta.NewID(),
		FanoutDelayMS: p.req.DelayMS, AttachOffsets: offsets,
		Remote: &meta.RemoteLink{
			Remote: p.remote.Name, Topic: p.req.RemoteTopic, TargetID: targetID, From: p.req.From, Lanes: p.req.Lanes, CreatedBy: w.Actor,
		},
	}
}

// ownerSilent turns whatever kept an owner from answering into the 503 of CUR-05.
func ownerSilent(err error) error {
	var p *wire.Problem
	if errors.As(err, &p) {
		return p
	}
	return wire.Refuse(wire.Unavailable, "an owner of the parent's partitions cannot be asked; try again").After(retrySoon)
}
