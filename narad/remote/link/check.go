package link

import (
	"context"
	"errors"
	"time"

	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// Check classes that are no link state (api.md: Check classes and their status).
const (
	classStale      = "stale"
	classIsSource   = "target_is_source"
	classDelayChild = "target_is_delay_child"
	classIsStub     = "target_is_stub"
)

// classKind gives the kind of refusal of a class; every class that is not named is a Conflict.
func classKind(class string) wire.Kind {
	switch class {
	case "old_release", "unreachable", classStale, "target_disagreement", string(wire.RemoteMissing), string(wire.CredentialUnreadable), string(wire.NodeInsecure):
		return wire.Precondition
	case target.EdgeClass, string(wire.RedirectRefused):
		return wire.BadGateway
	case string(wire.TargetUnavailable):
		return wire.Unavailable
	case string(wire.TargetThrottled):
		return wire.Throttled
	}
	return wire.Conflict
}

// found is what one member's check of a target ended with. Class is empty on a pass.
type found struct {
	class      string
	targetID   string
	retryAfter time.Duration
}

// checkTarget asks the target for its topic and the topic's children with this node's cached credential and returns the topic's ID (TGT-05). A refusal
// carries `class` and `checks`; nothing of the target's answer is in it (LOG-01). One check of a remote begins every 5 s (TGT-13).
func (s *site) checkTarget(ctx context.Context, p plan) (targetID string, err error) {
	f, err := s.inspect(ctx, p)
	switch {
	case err != nil:
		return "", err
	case f.class != "":
		return "", s.failed(p, f.class, f.retryAfter)
	}
	return f.targetID, nil
}

// inspect is the check itself. Its error is TGT-13's alone; without a remote or a credential nothing is asked, and nothing counted.
func (s *site) inspect(ctx context.Context, p plan) (found, error) {
	entry := s.o.Vault.Entry(p.remote.Name)
	switch {
	case entry.State != "":
		return found{class: string(entry.State)}, nil
	case entry.ID != p.remote.ID || entry.CredentialVersion != p.remote.CredentialVersion:
		return found{class: classStale}, nil
	}
	if err := s.checks.take(p.remote.Name); err != nil {
		return found{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	f, err := ask(ctx, entry.Client, p)
	if err == nil {
		return f, nil
	}
	if s.o.Refused != nil {
		s.o.Refused(p.remote.Name, entry.CredentialVersion, err)
	}
	var e *target.Error
	if !errors.As(err, &e) {
		return found{class: string(wire.TargetUnavailable)}, nil
	}
	return found{class: e.Class, retryAfter: e.RetryAfter}, nil
}

// ask reads the topic and its children listing (TGT-05, TGT-06). Its error is a *target.Error.
func ask(ctx context.Context, c target.Doer, p plan) (found, error) {
	info, err := target.Topic(ctx, c, p.req.RemoteTopic)
	switch {
	case err != nil:
		return found{}, err
	case !info.Exists:
		return found{class: string(wire.TargetMissing)}, nil
	case info.Stub:
		return found{class: classIsStub}, nil
	case info.DelayChild:
		return found{class: classDelayChild}, nil
	case info.ID != "" && info.ID == p.parent.ID:
		return found{class: classIsSource}, nil
	}
	row, err := target.Check(ctx, c, p.req.RemoteTopic, info.ID)
	switch {
	case err != nil:
		return found{}, err
	case row != target.RowNone: // a loop, or a topic that was made anew between the two requests
		return found{class: string(target.StateOf(row))}, nil
	}
	return found{targetID: info.ID}, nil
}

// report is this member's line of a check.
func (s *site) report(p plan, f found) wire.Check {
	r := wire.Check{Node: s.o.NodeID, Result: wire.CheckPass, Class: f.class, CredentialVersion: p.remote.CredentialVersion}
	if f.class != "" {
		r.Result = wire.CheckFail
		return r
	}
	if s.o.Guard.HasAllowlist() { // api.md: else no report carries what the target said of itself
		r.TargetID, r.TargetServesIDs = f.targetID, f.targetID != ""
	}
	return r
}

func (s *site) failed(p plan, class string, retryAfter time.Duration) error {
	report := s.report(p, found{class: class})
	problem := wire.Refuse(classKind(class), "the target check failed: %s", class).With("class", class).With("checks", []wire.Check{report})
	switch problem.Kind {
	case wire.Unavailable, wire.Throttled:
		if retryAfter <= 0 {
			retryAfter = retrySoon
		}
		return problem.After(retryAfter)
	}
	return problem
}
