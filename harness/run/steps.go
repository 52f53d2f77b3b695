package run

import (
	"context"
	"net/http"
	"slices"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/client"
	"narad.example/narad/wire"
	"narad.example/scenarios"
)

// step does one of the scenario's admin actions.
func (p *play) step(ctx context.Context, st scenarios.Step) {
	if !p.o.Virtual && p.s.Source.Nodes > 1 && st.Expect < http.StatusMultipleChoices {
		_, _ = p.whom(ctx, "source leader") // a loaded machine holds elections of its own, and 503 is a right answer in one
	}
	limit := callLimit
	switch st.Action {
	case "attach", "detach", "resume", "test", "move":
		limit = attachLimit
	case "join", "decommission":
		limit = memberLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	source := p.asked(p.sources())
	i := slices.IndexFunc(p.s.Links, func(l scenarios.Link) bool { return l.Child == st.Link })
	var l scenarios.Link
	if i >= 0 {
		l = p.s.Links[i]
	}
	switch st.Action {
	case "attach":
		p.attach(ctx, source, l, st)
	case "detach":
		p.detach(ctx, source, l, st)
	case "pause", "resume":
		p.pauseOrResume(ctx, source, l, st)
	case "skip":
		p.skip(ctx, source, l, st)
	case "test":
		p.test(ctx, source, l, st)
	case "reencrypt":
		p.reencrypt(ctx, source, st)
	case "set_limits":
		p.setLimits(ctx, source, st)
	case "delete_remote":
		p.deleteRemote(ctx, source, st)
	case "create_remote":
		r := p.remoteRequest(st.Remote, p.account(st.Remote))
		r.expect, r.says = st.Expect, st.Says
		p.admin(ctx, source, r)
	case "target_password":
		p.targetPassword(ctx, st)
	case "rotate_password":
		p.rotatePassword(ctx, source, st)
	case "remote_ca":
		p.remoteCA(ctx, source, st)
	case "look":
		p.look(ctx, l, st)
	case "read_back":
		p.keepParent(ctx, l.Parent)
	case "recreate_parent":
		p.recreateParent(ctx, source, l, st)
	case "target_topic":
		p.targetTopic(ctx, l, st)
	case "target_user":
		p.targetUser(ctx, st)
	case "move":
		p.move(ctx, source, l, st)
	case "join":
		p.join(ctx, source, st)
	case "decommission":
		p.decommission(ctx, st)
	case "target_grant":
		p.targetGrant(ctx, st)
	}
}

func (p *play) attach(ctx context.Context, source cluster.Node, l scenarios.Link, st scenarios.Step) {
	var stub wire.Attached
	r := attachRequest(l, &stub)
	r.expect, r.says = st.Expect, st.Says
	began := p.now()
	if a := p.admin(ctx, source, r); a.Status == r.ok {
		if err := p.attached(ctx, l, stub.Topic, began); err != nil {
			p.trouble("attach of %s: %v", l.Child, err)
		}
	}
}

func (p *play) deleteRemote(ctx context.Context, source cluster.Node, st scenarios.Step) {
	p.admin(ctx, source, request{
		ok: http.StatusNoContent, action: "remote.delete", target: st.Remote, expect: st.Expect,
		do: func(ctx context.Context, c *client.Client) error { return c.Remotes().Delete(ctx, st.Remote, st.Force) },
	})
}

func (p *play) detach(ctx context.Context, source cluster.Node, l scenarios.Link, st scenarios.Step) {
	a := p.admin(ctx, source, request{
		ok: http.StatusNoContent, action: "remote_child.delete", target: l.Child, expect: st.Expect,
		do: func(ctx context.Context, c *client.Client) error { return c.Detach(ctx, l.Parent, l.Child, st.Force) },
	})
	if a.Status != http.StatusNoContent {
		return
	}
	p.change(func(f *ledger.Facts) {
		for i := range f.Links {
			if f.Links[i].Child == l.Child && f.Links[i].DetachedAt == 0 {
				f.Links[i].DetachedAt = p.now()
			}
		}
	})
}

func (p *play) account(remote string) *account {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.users[remote]
}

// setPassword changes the password of a remote's user on the target.
func (p *play) setPassword(ctx context.Context, user, password string, expect int) reply {
	return p.admin(ctx, p.asked(p.rig.Nodes(cluster.Target)), request{
		ok: http.StatusNoContent, action: "user.password", target: user, expect: expect,
		do: func(ctx context.Context, c *client.Client) error {
			return c.Users().ChangePassword(ctx, user, wire.ChangePassword{NewPassword: password})
		},
	})
}

func (p *play) targetPassword(ctx context.Context, st scenarios.Step) {
	user := p.account(st.Remote)
	password := user.password
	if st.To == "other" {
		password = p.newSecret()
	}
	p.setPassword(ctx, user.name, password, st.Expect)
}

// rotatePassword changes the password on the target and then in the remote, as an admin would.
func (p *play) rotatePassword(ctx context.Context, source cluster.Node, st scenarios.Step) {
	user := p.account(st.Remote)
	fresh := p.newSecret()
	if a := p.setPassword(ctx, user.name, fresh, 0); a.Status != http.StatusNoContent {
		p.trouble("rotate_password: the target answered %d", a.Status)
		return
	}
	a := p.admin(ctx, source, request{
		ok: http.StatusOK, action: "remote.update", target: st.Remote, expect: st.Expect,
		do: func(ctx context.Context, c *client.Client) error {
			_, err := c.Remotes().Patch(ctx, st.Remote, wire.PatchRemote{Password: &fresh})
			return err
		},
	})
	if a.Status == http.StatusOK {
		p.mu.Lock()
		user.password = fresh
		p.mu.Unlock()
	}
}

// remoteCA changes which authorities the remote trusts: its own, the rig's other one, or both with the other one second (BR-24).
func (p *play) remoteCA(ctx context.Context, source cluster.Node, st scenarios.Step) {
	far, user := p.rig.Remote(), p.account(st.Remote)
	password := &user.password
	if st.NoPassword {
		password = nil
	}
	bundle := map[string]string{"recorded": far.CAPEM, "other": far.OtherCAPEM, "both": far.CAPEM + far.OtherCAPEM}[st.To]
	p.admin(ctx, source, request{
		ok: http.StatusOK, action: "remote.update", target: st.Remote, expect: st.Expect,
		do: func(ctx context.Context, c *client.Client) error {
			_, err := c.Remotes().Patch(ctx, st.Remote, wire.PatchRemote{CAPEM: &bundle, Password: password})
			return err
		},
	})
}
