package link

import (
	"context"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// Test runs the checks of an attach against the remote, and stores nothing: on every member, or without an allowlist on this one alone. What
// the checks find is the answer; errors are Denied, NotFound (the remote), Invalid (fields) and Throttled (TGT-13).
func (s *Service) Test(ctx context.Context, c Caller, name string, req wire.TestRemote) (wire.RemoteTest, error) {
	p := plan{req: wire.AttachChild{RemoteTopic: req.Topic}}
	err := firstError(
		func() error {
			if err := s.posture(); wire.KindOf(err) == wire.Denied { // what else the posture lacks is a class of the check
				return err
			}
			return admin(c)
		},
		func() error { return s.tested(&p, name) },
		func() error {
			if !plainName(req.Topic, maxTopicName) {
				return invalid("topic must be 1 to 200 of A-Za-z0-9._- and neither . nor ..")
			}
			return nil
		},
		func() error { return s.source(&p.parent, req.Source) },
	)
	if err != nil {
		return wire.RemoteTest{}, err
	}
	found, err := s.checkEverywhere(ctx, p, s.o.Guard.HasAllowlist())
	if err != nil {
		return wire.RemoteTest{}, err
	}
	out := wire.RemoteTest{Remote: name, Result: wire.CheckPass, Class: found.class, Checks: found.reports}
	if found.class != "" {
		out.Result = wire.CheckFail
	}
	return out, nil
}

func (s *site) tested(p *plan, name string) error {
	r, ok := s.o.State.Remote(name)
	if !ok {
		return noRemote()
	}
	p.remote = r
	return nil
}

// source finds the topic that a link would copy; none is named by "".
func (s *site) source(t *meta.Topic, name string) error {
	if name == "" {
		return nil
	}
	found, ok := s.o.State.Topic(name)
	if !ok {
		return invalid("source: no such topic")
	}
	*t = found
	return nil
}
