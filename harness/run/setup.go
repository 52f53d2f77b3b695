package run

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/client"
	"narad.example/narad/wire"
	"narad.example/scenarios"
)

// setup brings an empty rig to where the load can begin: topics on both sides, users on the target, remotes, links.
func (p *play) setup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setupLimit)
	defer cancel()
	if err := p.releases(ctx); err != nil {
		return err
	}
	source := p.sources()[0]
	for _, name := range slices.Sorted(maps.Keys(p.s.Topics)) {
		t := p.s.Topics[name]
		if err := p.topic(ctx, source, name, t.Partitions, t.Retention); err != nil {
			return err
		}
	}
	if p.s.Target.Fake == nil {
		for _, t := range targetTopics(p.s) {
			if err := p.topic(ctx, p.rig.Nodes(cluster.Target)[0], t.name, t.partitions, 0); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.s.Remotes)) {
		if err := p.remote(ctx, source, name); err != nil {
			return err
		}
	}
	return p.attachAll(ctx, "before")
}

// releases wants the nodes that pose as an older release to be known for one: without that the scenario would prove nothing.
func (p *play) releases(ctx context.Context) error {
	for side, numbers := range map[string][]int{cluster.Source: p.s.Source.Older, cluster.Target: p.s.Target.Older} {
		for _, i := range numbers {
			n := p.rig.Nodes(side)[i-1]
			if older, err := cluster.IsOlder(ctx, n); err != nil || !older {
				return fmt.Errorf("%s does not answer as an older release: %w", n.Name(), errors.Join(err, cluster.ErrTrouble))
			}
		}
	}
	return nil
}

func (p *play) topic(ctx context.Context, n cluster.Node, name string, partitions int, retention scenarios.Duration) error {
	body := wire.CreateTopic{Name: name, Partitions: partitions}
	if retention > 0 {
		ms := retention.D().Milliseconds()
		body.RetentionMS = &ms
	}
	err := p.insist(ctx, n, request{
		ok: http.StatusCreated, action: "topic.create", target: name,
		do: func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateTopic(ctx, body)
			return err
		},
	})
	if err != nil {
		return err
	}
	return p.everywhere(ctx, n.Side(), "topic "+name, func(ctx context.Context, c *client.Client) error {
		_, err := c.Topic(ctx, name, nil)
		return err
	})
}

// everywhere waits until every node of a side has what one of them took: a write is visible on the node that answered it, on the
// others a moment later.
func (p *play) everywhere(ctx context.Context, side, what string, look func(ctx context.Context, c *client.Client) error) error {
	nodes := p.rig.Nodes(side)
	if len(nodes) < 2 {
		return nil
	}
	for _, n := range nodes {
		for {
			limited, cancel := context.WithTimeout(ctx, callLimit)
			err := look(limited, n.Client())
			cancel()
			if err == nil {
				break
			}
			if !sleep(ctx, 50*time.Millisecond) {
				return fmt.Errorf("%s is not known on %s: %w", what, n.Name(), err)
			}
		}
	}
	return nil
}

// remote makes the remote's user on the target, with a produce grant on the topics that it sends to, and the remote itself.
func (p *play) remote(ctx context.Context, source cluster.Node, name string) error {
	far := p.rig.Remote()
	user := &account{name: far.User, password: far.Password}
	if p.s.Target.Fake == nil {
		user = &account{name: "link-" + name, password: p.newSecret()}
		var topics []string
		for _, l := range p.s.Links {
			if l.Remote == name {
				topics = append(topics, l.Topic)
			}
		}
		if len(topics) == 0 {
			return nil // a remote that no link uses needs nothing
		}
		if err := p.linkUser(ctx, user, topics); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.users[name] = user
	p.mu.Unlock()
	if len(p.s.Source.Older) > 0 {
		return nil // a step makes it, once every node of the source knows remotes
	}
	return p.insist(ctx, source, p.remoteRequest(name, user))
}

// remoteRequest makes the remote itself.
func (p *play) remoteRequest(name string, user *account) request {
	far := p.rig.Remote()
	l := p.s.Remotes[name].Limits
	limits := wire.Limits{
		MaxInFlight: l.MaxInFlight, RequestTimeoutMS: int64(l.RequestTimeoutMS), IdleConnTimeoutMS: int64(l.IdleConnTimeoutMS),
		ConnMaxAgeMS: int64(l.ConnMaxAgeMS), CheckIntervalMS: int64(l.CheckIntervalMS), Compression: l.Compression,
	}
	body := wire.CreateRemote{Name: name, URL: far.URL, Username: user.name, Password: user.password, CAPEM: far.CAPEM}
	if limits != (wire.Limits{}) {
		body.Limits = &limits
	}
	return request{
		ok: http.StatusCreated, action: "remote.create", target: name,
		do: func(ctx context.Context, c *client.Client) error {
			_, err := c.Remotes().Create(ctx, body)
			return err
		},
	}
}

func (p *play) linkUser(ctx context.Context, user *account, topics []string) error {
	body := wire.CreateUser{Username: user.name, Password: user.password, Grants: []wire.Grant{{Action: wire.ActionProduce, Patterns: topics}}}
	err := p.insist(ctx, p.rig.Nodes(cluster.Target)[0], request{
		ok: http.StatusCreated, action: "user.create", target: user.name,
		do: func(ctx context.Context, c *client.Client) error {
			_, err := c.Users().Create(ctx, body)
			return err
		},
	})
	if err != nil {
		return err
	}
	return p.everywhere(ctx, cluster.Target, "user "+user.name, func(ctx context.Context, c *client.Client) error {
		_, err := c.Users().Get(ctx, user.name)
		return err
	})
}

// newSecret is a password that the judge of secrets will look for. It is random and not of the seed: nothing of the run depends on it.
func (p *play) newSecret() string {
	var b [18]byte
	_, _ = rand.Read(b[:]) // never fails
	secret := hex.EncodeToString(b[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets = append(p.secrets, secret)
	return secret
}

// attachAll attaches the links that want it now: "before" or "after" the load.
func (p *play) attachAll(ctx context.Context, when string) error {
	for _, l := range p.s.Links {
		if l.Attach != when {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, attachLimit)
		var stub wire.Attached
		began := p.now()
		err := p.insist(limited, anyRunning(p.sources()), attachRequest(l, &stub))
		if err == nil {
			err = p.attached(limited, l, stub.Topic, began)
		}
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func attachRequest(l scenarios.Link, stub *wire.Attached) request {
	body := wire.AttachChild{
		Child: l.Child, DelayMS: l.Delay.D().Milliseconds(), Remote: l.Remote, RemoteTopic: l.Topic, From: l.From, Lanes: l.Lanes,
	}
	return request{
		ok: http.StatusCreated, action: "remote_child.create", target: l.Child,
		do: func(ctx context.Context, c *client.Client) error {
			var err error
			*stub, err = c.AttachRemote(ctx, l.Parent, body)
			return err
		},
	}
}

// attached writes an epoch down that began at the time given: when the attach was asked for, since a link may send before its attach is
// answered. It reads the answer to the attach or, where that was lost, the
// stub itself.
func (p *play) attached(ctx context.Context, l scenarios.Link, stub wire.Topic, began int64) error {
	if stub.Remote == nil || stub.AttachEpoch == "" {
		detail, err := anyRunning(p.sources()).Client().Topic(ctx, l.Child, nil)
		if err != nil {
			return fmt.Errorf("the stub of %s: %w", l.Child, err)
		}
		stub = detail.Topic
	}
	if stub.Remote == nil || stub.AttachEpoch == "" {
		return fmt.Errorf("the stub of %s has no remote or no epoch", l.Child)
	}
	p.change(func(f *ledger.Facts) {
		for _, e := range f.Links {
			if e.TargetTopic == l.Topic && e.Remote == l.Remote {
				began = max(began, e.DetachedAt+1)
			}
		}
		f.Links = append(f.Links, ledger.Link{
			Parent: l.Parent, Child: l.Child, Remote: l.Remote, TargetTopic: l.Topic, TargetID: stub.Remote.TargetID, Epoch: stub.AttachEpoch,
			Lanes: stub.Remote.Lanes, DelayMS: stub.FanoutDelayMS, StartOffsets: stub.AttachOffsets, AttachedAt: began,
		})
	})
	return nil
}
