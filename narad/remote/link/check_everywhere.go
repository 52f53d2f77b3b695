package link

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"narad.example/narad/wire"
)

// memberPatience is how long a member that is asked waits for its own spacing to end.
const memberPatience = time.Second

// CheckAsk asks a member for its check of a target, with its own cached credential (TGT-01). Parent and ParentID are the topic that a link
// would copy, empty for none.
type CheckAsk struct {
	Remote            string `json:"remote"`
	RemoteID          string `json:"remote_id"`
	CredentialVersion uint64 `json:"credential_version"`
	Topic             string `json:"topic"`
	Parent            string `json:"parent,omitempty"`
	ParentID          string `json:"parent_id,omitempty"`
}

// CheckReply is a member's answer. TargetID is for the leader's comparison alone; what others may see is in the report.
type CheckReply struct {
	Report       wire.Check `json:"report"` // without a result from a release that makes no check
	TargetID     string     `json:"target_id,omitempty"`
	RetryAfterMS int64      `json:"retry_after_ms,omitempty"`
	Spaced       bool       `json:"spaced,omitempty"` // nothing was checked: this node made one a moment ago (TGT-13)
}

// ServeCheck is what a member answers to another one that checks a remote.
func (s *Service) ServeCheck(ctx context.Context, q CheckAsk) CheckReply {
	p := plan{req: wire.AttachChild{RemoteTopic: q.Topic}}
	r, ok := s.o.State.Remote(q.Remote)
	p.remote = r
	if q.ParentID != "" {
		p.parent, _ = s.o.State.Topic(q.Parent)
	}
	f, entry := s.begin(p)
	switch {
	case f.class != "":
	case !ok || r.ID != q.RemoteID || r.CredentialVersion != q.CredentialVersion || p.parent.ID != q.ParentID:
		f.class = classStale
	default:
		if s.checks.takeSoon(ctx, q.Remote, memberPatience) != nil {
			return CheckReply{Report: s.report(f), Spaced: true}
		}
		f = s.inspect(ctx, p, f, entry)
	}
	return CheckReply{Report: s.report(f), TargetID: f.targetID, RetryAfterMS: f.retryAfter.Milliseconds()}
}

// checked is what the members' checks come to.
type checked struct {
	class        string
	targetID     string
	reports      []wire.Check // of all, by member
	warnings     []string
	capabilities *wire.Capabilities
	retryAfter   time.Duration
}

// checkTarget makes the check of an attach or a resume on every member; a dry run without an allowlist asks this node alone. The target's
// ID is what all have seen (TGT-09). A refusal carries `class` and the failing members' `checks`; nothing of the target's answer is in
// it (LOG-01). One check of a remote begins every 5 s (TGT-13).
func (s *site) checkTarget(ctx context.Context, p plan) (checked, error) {
	c, err := s.checkEverywhere(ctx, p, !p.req.DryRun || s.o.Guard.HasAllowlist())
	switch {
	case err != nil:
		return c, err
	case c.class != "":
		return c, s.failed(c)
	}
	return c, nil
}

// checkEverywhere folds this node's check with the other members'. Its error is TGT-13's alone; with this node wanting, nobody is asked.
func (s *site) checkEverywhere(ctx context.Context, p plan, members bool) (checked, error) {
	own, entry := s.begin(p)
	if own.class != "" {
		return s.alone(own), nil
	}
	if err := s.checks.take(p.remote.Name); err != nil {
		return checked{}, err
	}
	var replies map[string]CheckReply
	var silent []string
	var others sync.WaitGroup
	if members && s.o.Members != nil {
		others.Go(func() {
			replies, silent = s.o.Members.Check(ctx, CheckAsk{
				Remote: p.remote.Name, RemoteID: p.remote.ID, CredentialVersion: p.remote.CredentialVersion,
				Topic: p.req.RemoteTopic, Parent: p.parent.Name, ParentID: p.parent.ID,
			})
		})
	}
	own = s.inspect(ctx, p, own, entry)
	others.Wait()
	c := s.alone(own)
	return c, c.fold(replies, silent, s.checks.every)
}

// alone is the outcome as far as this node goes.
func (s *site) alone(f found) checked {
	r := s.report(f)
	return checked{
		class: f.class, targetID: f.targetID, reports: []wire.Check{r}, warnings: f.warnings, capabilities: f.takes, retryAfter: f.retryAfter,
	}
}

// fold takes the members' answers in (TGT-09). The class is this node's, else the first failing member's. A member whose spacing has not
// ended is an error: after every all can be asked again.
func (c *checked) fold(replies map[string]CheckReply, silent []string, every time.Duration) error {
	for _, member := range silent {
		c.reports = append(c.reports, wire.Check{Node: member, Result: wire.CheckFail, Class: classSilent})
	}
	own := c.reports[0]
	for member, reply := range replies {
		if reply.Spaced {
			return wire.Refuse(wire.Throttled, "a member checked the remote a moment ago; try again").After(every)
		}
		r := reply.Report
		r.Node = member
		if r.Result == "" { // its release answers no check
			r.Result, r.Class = wire.CheckFail, classOldRelease
		}
		if r.Class == "" && own.Class == "" && reply.TargetID != c.targetID {
			r.Result, r.Class = wire.CheckFail, classDisagree
		}
		c.retryAfter = max(c.retryAfter, time.Duration(reply.RetryAfterMS)*time.Millisecond)
		c.reports = append(c.reports, r)
	}
	slices.SortFunc(c.reports, func(a, b wire.Check) int { return strings.Compare(a.Node, b.Node) })
	for _, r := range c.reports {
		if c.class == "" {
			c.class = r.Class
		}
		for _, w := range r.Warnings {
			if !slices.Contains(c.warnings, w) {
				c.warnings = append(c.warnings, w)
			}
		}
	}
	return nil
}

// failed refuses what a check stands against, with the reports of those who failed (TGT-10).
func (s *site) failed(c checked) error {
	failing := slices.DeleteFunc(slices.Clone(c.reports), func(r wire.Check) bool { return r.Result == wire.CheckPass })
	problem := wire.Refuse(classKind(c.class), "the target check failed: %s", c.class).With("class", c.class).With("checks", failing)
	switch problem.Kind {
	case wire.Unavailable, wire.Throttled:
		if c.retryAfter <= 0 {
			c.retryAfter = retrySoon
		}
		return problem.After(c.retryAfter)
	}
	return problem
}
