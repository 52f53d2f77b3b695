package link

import (
	"context"
	"errors"
	"time"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// Check classes that are no link state (api.md: Check classes and their status).
const (
	classStale      = "stale"
	classIsSource   = "target_is_source"
	classDelayChild = "target_is_delay_child"
	classIsStub     = "target_is_stub"
	classSchema     = "schema_mismatch"
)

// soonExpires is how long before its end a target's certificate is warned of (TGT-05).
const soonExpires = 14 * 24 * time.Hour

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
	peer       outbound.Peer // zero when the check failed or nobody may know
	warnings   []string
	retryAfter time.Duration
}

// checkTarget asks the target for its topic and the topic's children with this node's cached credential and returns the topic's ID and what is to
// be warned of (TGT-05). A refusal carries `class` and `checks`; nothing of the target's answer is in it (LOG-01). One check of a remote begins
// every 5 s (TGT-13).
func (s *site) checkTarget(ctx context.Context, p plan) (targetID string, warnings []string, err error) {
	f, err := s.inspect(ctx, p)
	switch {
	case err != nil:
		return "", nil, err
	case f.class != "":
		return "", nil, s.failed(p, f.class, f.retryAfter)
	}
	return f.targetID, f.warnings, nil
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
		s.addPeer(&f, entry.Client.Peer())
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

// addPeer adds what the connection told of the target to a check that passed. Without an allowlist a check must not tell what it found
// at an address (api.md), so there is nothing to warn of either.
func (s *site) addPeer(f *found, peer outbound.Peer) {
	if f.class != "" || !s.o.Guard.HasAllowlist() {
		return
	}
	f.peer = peer
	if at := peer.CertNotAfter; !at.IsZero() && at.Sub(s.o.Now()) < soonExpires {
		f.warnings = append(f.warnings, "the target's certificate expires within 14 days: at "+at.UTC().Format(time.RFC3339))
	}
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
	case p.parent.ID != "" && info.SchemaVersion > 0: // no topic of this release has a schema, so none can match
		return found{class: classSchema}, nil
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
		r.TargetID, r.TargetServesIDs, r.Warnings = f.targetID, f.targetID != "", f.warnings
		if !f.peer.CertNotAfter.IsZero() {
			r.ServerCertNotAfter = f.peer.CertNotAfter.UTC().Format(time.RFC3339)
			rtt := milliseconds(f.peer.Connect)
			lane := laneCapacity / (rtt + laneCost)
			r.RTTMS, r.LaneCapacityPerS = &rtt, &lane
		}
	}
	return r
}

// A lane sends one request at a time: so many records a second, for a round trip in ms (TGT-03).
const (
	laneCapacity = 100_000
	laneCost     = 5
)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

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
