package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"narad.example/narad/wire"
)

const (
	manyLinks      = 16
	manyPartitions = 63
	caughtUpFor    = 75 * time.Second // longer than a check interval with its jitter
	heldBudget     = 256              // MiB, remotes.max_held_bytes as it stands by itself
)

// tie attaches a link of a topic of the source through each of the remotes, each to a topic of its own on the target, and waits until they are caught up.
func tie(ctx context.Context, source, target *node, topic string, remotes []string) (children []string, err error) {
	for i, remote := range remotes {
		child := fmt.Sprintf("%s-%d", topic, i)
		if _, err = target.client.CreateTopic(ctx, wire.CreateTopic{Name: child}); err != nil {
			return nil, err
		}
		if err = attach(ctx, source, topic, wire.AttachChild{Child: child, Remote: remote, RemoteTopic: child, Lanes: 1}); err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return children, noLag(ctx, source, topic, children...)
}

// caughtUp is the CPU, in percent of a core, that a source needs for manyLinks x manyPartitions cursors with nothing to send.
func (s *stand) caughtUp(ctx context.Context) (float64, error) {
	p, err := s.direct(ctx)
	if err != nil {
		return 0, err
	}
	s.copies++
	topic := fmt.Sprintf("quiet-%d", s.copies)
	if _, err = p.source.client.CreateTopic(ctx, wire.CreateTopic{Name: topic, Partitions: manyPartitions}); err != nil {
		return 0, err
	}
	idle, err := p.source.busy(ctx, 10*time.Second)
	if err != nil {
		return 0, err
	}
	children, err := tie(ctx, p.source, p.target, topic, slices.Repeat([]string{remoteName}, manyLinks))
	if err != nil {
		return 0, err
	}
	busy, err := p.source.busy(ctx, caughtUpFor)
	if err != nil {
		return 0, err
	}
	return busy - idle, untie(ctx, p.source, p.target, topic, children)
}

// untie detaches what tie attached and deletes all the topics.
func untie(ctx context.Context, source, target *node, topic string, children []string) error {
	for _, child := range children {
		if err := errors.Join(detach(ctx, source, topic, child), target.client.DeleteTopic(ctx, child, false)); err != nil {
			return err
		}
	}
	return source.client.DeleteTopic(ctx, topic, false)
}

// busy is the share of a core, in percent, that a node used in a time.
func (n *node) busy(ctx context.Context, long time.Duration) (float64, error) {
	before, err := n.cpu()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err = pause(ctx, long); err != nil {
		return 0, err
	}
	after, err := n.cpu()
	return 100 * float64(after-before) / float64(time.Since(start)), err
}
