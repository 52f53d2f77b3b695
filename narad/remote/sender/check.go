package sender

import (
	"context"
	"errors"

	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// rowGood is a check that found nothing wrong.
const rowGood = "RUN-01"

// check sends one check of the target and acts on what it says of the cursor: a stall, the end of one, the listing's times. What it
// says of the remote is in the verdict, for the gate. The caller has a pass and a slot. onwards tells that a chunk may follow
// (RUN-06, RUN-07): the check was good, or it errored and no check's stall stands. done, when not nil, is told the verdict of a check
// that nothing follows: before the cursor goes on, so that lanes which it lets go on find the gate open, and after it stalls, so that
// nobody reads behind the stall.
func (c *Cursor) check(ctx context.Context, m moment, p pass, done func(v *verdict)) (v verdict, onwards bool) {
	wanted := c.checks.begin()
	number := c.sent.Add(1)
	row, err := target.Check(ctx, counted{c: c, client: m.view.Client}, c.cfg.TargetTopic, m.live.TargetID)
	v = readCheck(row, err)
	now := seen{m.view.Remote, m.live.TargetID}
	stalls := v.state != wire.Running && v.action == wire.Stall
	if stalls {
		c.stall.enter(now, true)
		c.board.distrust(trouble{v.state, v.status})
	}
	if done != nil {
		done(&v)
	}
	if v.state != wire.Running {
		c.senders.observer.Error(c.cfg.Remote, v.class())
	}
	switch {
	case v.row == target.RowCut: // by us, or the remote changed
	case v.row == rowGood:
		onwards = true
		c.plain.Store(false)
		c.stall.verified()
		c.board.verify(number, !c.hungry.Load())
		c.checks.answered(p, wanted, true)
	case stalls:
		c.checks.answered(p, wanted, false)
	case v.action == wire.CloseGate:
		c.checks.errored(p, wanted)
	default:
		c.senders.observer.CheckFailed(c.cfg.Parent, c.cfg.Child)
		onwards = c.stall.unverified(now, interval(m.view.Limits))
		c.checks.errored(p, wanted)
	}
	return v, onwards
}

// readCheck gives the outcome of a check its row, as an answer to a chunk would have it (RUN-10).
func readCheck(row string, err error) verdict {
	var e *target.Error
	switch {
	case err == nil && row == target.RowNone:
		return verdict{row: rowGood, rule: rules[rowGood]}
	case err == nil:
		return verdict{row: row, rule: rules[row], status: 200}
	case !errors.As(err, &e):
		return verdict{row: "ANS-18", rule: rules["ANS-18"]}
	}
	v := verdict{row: e.Row, rule: rules[e.Row], status: e.Status, retryAfter: e.RetryAfter, edge: e.Edge}
	v.landed = e.Row == target.RowCut && e.UploadBegan // a probe that was sent counts (DEC-25)
	return v
}

// Refused tells the gate that a check which an admin asked for got a 401 or a 429 under a credential version; nothing else of such
// checks touches the gate (DEC-48). err is what package target returned.
func (s *Senders) Refused(remote string, credentialVersion uint64, err error) {
	var e *target.Error
	if !errors.As(err, &e) || e.Row != "ANS-08" && e.Row != "ANS-14" {
		return
	}
	r := s.remote(remote)
	view := r.look()
	if view.gate != nil && view.CredentialVersion == credentialVersion {
		v := readCheck("", e)
		view.gate.refused(&v)
	}
}
