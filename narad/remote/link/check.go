package link

import (
	"context"
	"errors"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/target"
	"narad.example/narad/remote/vault"
	"narad.example/narad/schema"
	"narad.example/narad/wire"
)

// Check classes that are no link state (api.md: Check classes and their status).
const (
	classStale      = "stale"
	classIsSource   = "target_is_source"
	classDelayChild = "target_is_delay_child"
	classIsStub     = "target_is_stub"
	classSchema     = "schema_mismatch"
	classOpen       = "target_security_off"
	classAdmin      = "admin_credential"
	classDisagree   = "target_disagreement"
	classSilent     = "unreachable"
	classOldRelease = "old_release"
)

// soonExpires is how long before its end a target's certificate is warned of (TGT-05).
const soonExpires = 14 * 24 * time.Hour

// classKind gives the kind of refusal of a class; every class that is not named is a Conflict.
func classKind(class string) wire.Kind {
	switch class {
	case classOldRelease, classSilent, classStale, classDisagree, string(wire.RemoteMissing), string(wire.CredentialUnreadable), string(wire.NodeInsecure):
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
	version    uint64 // of the credential that this node holds
	targetID   string
	peer       outbound.Peer // zero when the check failed or nobody may know
	warnings   []string
	takes      *wire.Capabilities // asked for a dry run
	retryAfter time.Duration
}

// begin finds the credential of a check: this node's posture allows remotes and it holds the remote's current credential (TGT-02). One
// that is found wanting has a class, and nothing is asked of the target.
func (s *site) begin(p plan) (found, vault.Entry) {
	entry := s.o.Vault.Entry(p.remote.Name)
	f := found{version: entry.CredentialVersion}
	switch {
	case !s.OwnPosture().Allows():
		f.class = string(wire.NodeInsecure)
	case entry.State != "":
		f.class = string(entry.State)
	case entry.ID != p.remote.ID || entry.CredentialVersion != p.remote.CredentialVersion:
		f.class = classStale
	}
	return f, entry
}

// inspect is this node's check, within 15 s (TGT-01). A dry run with an allowlist asks what the target takes as well (TGT-12). The gate hears
// of a check that failed (DEC-48).
func (s *site) inspect(ctx context.Context, p plan, f found, entry vault.Entry) found {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	got, err := ask(ctx, entry.Client, p)
	if err == nil && got.class == "" && p.req.DryRun && s.o.Guard.HasAllowlist() {
		var c wire.Capabilities
		c, err = target.Takes(ctx, entry.Client, p.req.RemoteTopic)
		got.takes = &c
	}
	if err == nil {
		got.version = f.version
		s.addPeer(&got, entry.Client.Peer())
		return got
	}
	if s.o.Refused != nil {
		s.o.Refused(p.remote.Name, entry.CredentialVersion, err)
	}
	f.class = string(wire.TargetUnavailable)
	var e *target.Error
	if errors.As(err, &e) {
		f.class, f.retryAfter = e.Class, e.RetryAfter
	}
	return f
}

// addPeer adds what the connection told of the target to a check that passed. Without an allowlist a check must not tell what it found
// at an address (api.md), so there is nothing to warn of either.
func (s *site) addPeer(f *found, peer outbound.Peer) {
	if f.class != "" || !s.o.Guard.HasAllowlist() {
		f.warnings = nil
		return
	}
	f.peer = peer
	if at := peer.CertNotAfter; !at.IsZero() && at.Sub(s.o.Now()) < soonExpires {
		f.warnings = append(f.warnings, "the target's certificate expires within 14 days: at "+at.UTC().Format(time.RFC3339))
	}
}

// olderRelease warns of a target whose listing knows no remote children (RUN-09).
const olderRelease = "the target is on a release before remote children: loops are detected once it is upgraded"

// ask makes the requests of a check in their order: whether the target asks who one is, its topic, the topic's children, whether the
// credential may produce, and that it is no admin's (TGT-04 to TGT-08). Its error is a *target.Error.
func ask(ctx context.Context, c target.Doer, p plan) (found, error) {
	topic := p.req.RemoteTopic
	closed, err := target.AsksWho(ctx, c, topic)
	switch {
	case err != nil:
		return found{}, err
	case !closed:
		return found{class: classOpen}, nil
	}
	info, err := target.Topic(ctx, c, topic)
	if err != nil {
		return found{}, err
	}
	f := found{class: unfit(info, p), targetID: info.ID}
	if f.class != "" {
		return f, nil
	}
	l, err := target.Listing(ctx, c, topic)
	switch {
	case err != nil:
		return found{}, err
	case target.Loops(l):
		return found{class: string(wire.TargetHasRemoteChildren)}, nil
	case l.ParentID == "":
		f.warnings = []string{olderRelease}
	case l.ParentID != info.ID: // made anew between the two requests
		return found{class: string(wire.TargetReplaced)}, nil
	}
	if err = target.MayProduce(ctx, c, topic); err != nil {
		return found{}, err
	}
	all, err := target.ListsUsers(ctx, c)
	if all {
		f.class = classAdmin
	}
	return f, err
}

// unfit is the class of a topic that no link may send to (TGT-05).
func unfit(info target.Info, p plan) string {
	switch {
	case !info.Exists:
		return string(wire.TargetMissing)
	case info.Stub:
		return classIsStub
	case info.DelayChild:
		return classDelayChild
	case info.ID != "" && info.ID == p.parent.ID:
		return classIsSource
	case p.parent.ID != "" && !sameSchema(&p.parent, info):
		return classSchema
	}
	return ""
}

// sameSchema tells whether the target has the parent's current schema, or neither has one (TGT-05).
func sameSchema(parent *meta.Topic, info target.Info) bool {
	own, version := parent.Schema()
	if version == 0 || info.SchemaVersion == 0 {
		return version == info.SchemaVersion
	}
	sum, ok := schema.Sum(info.Schema)
	return ok && sum == own.Sum
}

// report is this member's line of a check.
func (s *site) report(f found) wire.Check {
	own := s.OwnPosture()
	r := wire.Check{Node: s.o.NodeID, Result: wire.CheckPass, Class: f.class, CredentialVersion: f.version, Posture: &own}
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
