package run

import (
	"context"
	"net/http"
	"time"

	"narad.example/harness/cluster"
	"narad.example/narad/client"
	"narad.example/narad/wire"
	"narad.example/scenarios"
)

// behindDelay is the delay of a target topic that was made a delay child: nothing of it is due during a run.
const behindDelay = 24 * time.Hour

// onTarget asks the first running node of the target.
func (p *play) onTarget(ctx context.Context, ok int, action, target string, do func(context.Context, *client.Client) error) bool {
	a := p.admin(ctx, p.asked(p.rig.Nodes(cluster.Target)), request{ok: ok, action: action, target: target, expect: ok, do: do})
	return a.Status == ok
}

// targetTopic does to a link's target topic what others could do there.
func (p *play) targetTopic(ctx context.Context, l scenarios.Link, st scenarios.Step) {
	switch st.To {
	case "deleted":
		p.deleteTarget(ctx, l)
	case "created":
		p.createTarget(ctx, l.Topic, p.s.Topics[l.Parent].Partitions)
	case "recreated":
		if p.deleteTarget(ctx, l) {
			p.createTarget(ctx, l.Topic, p.s.Topics[l.Parent].Partitions)
		}
	case "delay_child":
		behind := l.Topic + "-before"
		if p.createTarget(ctx, behind, p.s.Topics[l.Parent].Partitions) {
			p.onTarget(ctx, http.StatusOK, "topic.attach", behind, func(ctx context.Context, c *client.Client) error {
				_, err := c.AttachChild(ctx, behind, wire.AttachChild{Child: l.Topic, DelayMS: behindDelay.Milliseconds()})
				return err
			})
			p.attachedTo(l.Topic, behind, l.Topic)
		}
	case "remote_child":
		p.chain(ctx, l)
	case "alone":
		p.mu.Lock()
		was, tied := p.ties[l.Topic]
		delete(p.ties, l.Topic)
		p.mu.Unlock()
		if !tied {
			p.trouble("target_topic at %s: %s is alone already", st.At, l.Topic)
			return
		}
		action := "topic.detach"
		if was.remote {
			action = "remote_child.delete"
		}
		p.onTarget(ctx, http.StatusNoContent, action, was.child, func(ctx context.Context, c *client.Client) error {
			return c.Detach(ctx, was.parent, was.child, was.remote)
		})
	}
}

// tie is a child relation that a step made on the target.
type tie struct {
	parent, child string
	remote        bool
}

func (p *play) attachedTo(topic, parent, child string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ties[topic] = tie{parent: parent, child: child, remote: parent == topic}
}

func (p *play) deleteTarget(ctx context.Context, l scenarios.Link) bool {
	return p.onTarget(ctx, http.StatusNoContent, "topic.delete", l.Topic, func(ctx context.Context, c *client.Client) error {
		return c.DeleteTopic(ctx, l.Topic, true)
	})
}

func (p *play) createTarget(ctx context.Context, topic string, partitions int) bool {
	create := func(ctx context.Context, c *client.Client) error {
		_, err := c.CreateTopic(ctx, wire.CreateTopic{Name: topic, Partitions: partitions})
		return err
	}
	if p.o.Virtual {
		return p.onTarget(ctx, http.StatusCreated, "topic.create", topic, create)
	}
	// A loaded machine holds elections of its own, and 503 is a right answer in one.
	err := p.insist(ctx, p.asked(p.rig.Nodes(cluster.Target)), request{ok: http.StatusCreated, action: "topic.create", target: topic, do: create})
	if err != nil {
		p.trouble("target_topic: %v", err)
	}
	return err == nil
}

// chain gives the target topic a remote child of its own, whose remote is the target itself behind its edge.
func (p *play) chain(ctx context.Context, l scenarios.Link) {
	onward, child := l.Topic+"-onward", l.Topic+"-link"
	far := p.rig.Remote()
	user := &account{name: "onward", password: p.newSecret()}
	if !p.createTarget(ctx, onward, p.s.Topics[l.Parent].Partitions) {
		return
	}
	if err := p.linkUser(ctx, user, []string{onward}); err != nil {
		p.trouble("target_topic: %v", err)
		return
	}
	made := p.onTarget(ctx, http.StatusCreated, "remote.create", "onward", func(ctx context.Context, c *client.Client) error {
		_, err := c.Remotes().Create(ctx, wire.CreateRemote{Name: "onward", URL: far.URL, Username: user.name, Password: user.password, CAPEM: far.CAPEM})
		return err
	})
	if !made {
		return
	}
	attached := p.onTarget(ctx, http.StatusCreated, "remote_child.create", child, func(ctx context.Context, c *client.Client) error {
		_, err := c.AttachRemote(ctx, l.Topic, wire.AttachChild{Child: child, Remote: "onward", RemoteTopic: onward, From: "attach", Lanes: 1})
		return err
	})
	if attached {
		p.attachedTo(l.Topic, l.Topic, child)
	}
}

// targetUser takes the remote's user away on the target, or makes it anew with the password and the grants that it had.
func (p *play) targetUser(ctx context.Context, st scenarios.Step) {
	user := p.account(st.Remote)
	if st.To == "created" {
		if err := p.linkUser(ctx, user, p.topicsOf(st.Remote)); err != nil {
			p.trouble("target_user: %v", err)
		}
		return
	}
	p.onTarget(ctx, http.StatusNoContent, "user.delete", user.name, func(ctx context.Context, c *client.Client) error {
		return c.Users().Delete(ctx, user.name)
	})
}

func (p *play) targetGrant(ctx context.Context, st scenarios.Step) {
	user := p.account(st.Remote)
	grants := []wire.Grant{}
	if st.To == "restored" {
		grants = []wire.Grant{{Action: wire.ActionProduce, Patterns: p.topicsOf(st.Remote)}}
	}
	p.onTarget(ctx, http.StatusOK, "user.grants", user.name, func(ctx context.Context, c *client.Client) error {
		_, err := c.Users().ReplaceGrants(ctx, user.name, grants)
		return err
	})
}

// topicsOf are the topics on the target that a remote's links send to.
func (p *play) topicsOf(remote string) (topics []string) {
	for _, l := range p.s.Links {
		if l.Remote == remote {
			topics = append(topics, l.Topic)
		}
	}
	return topics
}

// recreateParent deletes a parent without children and creates it anew under its name. What it held is kept, marked as gone: nobody owes it
// any more.
func (p *play) recreateParent(ctx context.Context, source cluster.Node, l scenarios.Link, st scenarios.Step) {
	p.keepParent(ctx, l.Parent)
	a := p.admin(ctx, source, request{
		ok: http.StatusNoContent, action: "topic.delete", target: l.Parent, expect: http.StatusNoContent,
		do: func(ctx context.Context, c *client.Client) error { return c.DeleteTopic(ctx, l.Parent, false) },
	})
	if a.Status != http.StatusNoContent {
		return
	}
	p.mu.Lock()
	for i := range p.kept {
		if r := &p.kept[i]; r.Topic == l.Parent && r.Gone == 0 {
			r.Gone = p.now()
		}
	}
	p.mu.Unlock()
	t := p.s.Topics[l.Parent]
	body := wire.CreateTopic{Name: l.Parent, Partitions: t.Partitions}
	if t.Retention > 0 {
		ms := t.Retention.D().Milliseconds()
		body.RetentionMS = &ms
	}
	p.admin(ctx, source, request{
		ok: http.StatusCreated, action: "topic.create", target: l.Parent, expect: st.Expect,
		do: func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateTopic(ctx, body)
			return err
		},
	})
}
