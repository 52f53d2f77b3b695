package run

import (
	"context"
	"net/http"
	"slices"

	"narad.example/harness/cluster"
	"narad.example/narad/client"
	"narad.example/narad/wire"
	"narad.example/scenarios"
)

func (p *play) pauseOrResume(ctx context.Context, source cluster.Node, l scenarios.Link, st scenarios.Step) {
	r := request{ok: http.StatusOK, target: l.Child, expect: st.Expect, action: "remote_child." + st.Action}
	r.do = func(ctx context.Context, c *client.Client) error {
		_, err := c.Pause(ctx, l.Parent, l.Child, st.Reason)
		return err
	}
	if st.Action == "resume" {
		if st.AcceptTarget {
			r.action = "remote_child.accept_target" // DEC-36
		}
		r.do = func(ctx context.Context, c *client.Client) error {
			_, err := c.Resume(ctx, l.Parent, l.Child, st.AcceptTarget)
			return err
		}
	}
	p.admin(ctx, source, r)
}

// skip skips the record that the step names, or the one that the link is blocked on once it is.
func (p *play) skip(ctx context.Context, source cluster.Node, l scenarios.Link, st scenarios.Step) {
	var at wire.BlockedAt
	if st.Partition != nil && st.Offset != nil {
		at = wire.BlockedAt{Partition: *st.Partition, Offset: int64(*st.Offset)}
	} else {
		blocked := p.blockedAt(ctx, l)
		if blocked == nil {
			p.trouble("skip at %s: %s/%s was not blocked", st.At, l.Parent, l.Child)
			return
		}
		at = *blocked
	}
	p.admin(ctx, source, request{
		ok: http.StatusOK, action: "remote_child.skip", target: l.Child, expect: st.Expect,
		do: func(ctx context.Context, c *client.Client) error {
			_, err := c.Skip(ctx, l.Parent, l.Child, at.Partition, at.Offset)
			return err
		},
	})
}

// blockedAt looks until the link is blocked, nil when it never is.
func (p *play) blockedAt(ctx context.Context, l scenarios.Link) *wire.BlockedAt {
	for {
		_, listing, ok := p.listing(ctx, l.Parent, false)
		i := slices.IndexFunc(listing.Children, func(c wire.ChildEntry) bool { return c.Name == l.Child && c.RemoteEntry != nil })
		if ok && i >= 0 && listing.Children[i].BlockedAt != nil {
			return listing.Children[i].BlockedAt
		}
		if !sleep(ctx, p.o.sampleEvery()) {
			return nil
		}
	}
}

func (p *play) setLimits(ctx context.Context, source cluster.Node, st scenarios.Step) {
	limits := patchLimits(st.Limits)
	p.admin(ctx, source, request{
		ok: http.StatusOK, action: "remote.update", target: st.Remote, expect: st.Expect,
		do: func(ctx context.Context, c *client.Client) error {
			_, err := c.Remotes().Patch(ctx, st.Remote, wire.PatchRemote{Limits: &limits})
			return err
		},
	})
}

// patchLimits names the limits that a step names.
func patchLimits(l *scenarios.Limits) wire.PatchLimits {
	var p wire.PatchLimits
	ms := func(to **int64, v int) {
		if v != 0 {
			n := int64(v)
			*to = &n
		}
	}
	if l.MaxInFlight != 0 {
		p.MaxInFlight = &l.MaxInFlight
	}
	ms(&p.RequestTimeoutMS, l.RequestTimeoutMS)
	ms(&p.IdleConnTimeoutMS, l.IdleConnTimeoutMS)
	ms(&p.ConnMaxAgeMS, l.ConnMaxAgeMS)
	ms(&p.CheckIntervalMS, l.CheckIntervalMS)
	if l.Compression != "" {
		p.Compression = &l.Compression
	}
	return p
}
