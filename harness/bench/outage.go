package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"narad.example/narad/wire"
)

// outage is how much more memory, in MiB, a source with manyLinks links to a dead target takes than one without links under the
// same steady load, at the end of Options.Outage. Both run at the same time.
func (s *stand) outage(ctx context.Context) (float64, error) {
	target, password, err := s.linkTarget(ctx, fmt.Sprintf("gone-%d", s.round))
	if err != nil {
		return 0, err
	}
	defer target.kill()
	tied, err := s.linkSource(ctx, fmt.Sprintf("tied-%d", s.round), target.addr)
	if err != nil {
		return 0, err
	}
	defer tied.kill()
	alone, err := s.start(ctx, fmt.Sprintf("alone-%d", s.round), nil)
	if err != nil {
		return 0, err
	}
	defer alone.kill()
	err = s.remote(ctx, tied, password, wire.CreateRemote{Name: remoteName, URL: "https://" + target.addr})
	if err != nil {
		return 0, err
	}
	const topic = "events"
	for _, n := range []*node{tied, alone} {
		if _, err = n.client.CreateTopic(ctx, wire.CreateTopic{Name: topic}); err != nil {
			return 0, err
		}
	}
	if _, err = tie(ctx, tied, target, topic, slices.Repeat([]string{remoteName}, manyLinks)); err != nil {
		return 0, err
	}
	target.kill()
	g, loading := errgroup.WithContext(ctx)
	for _, n := range []*node{tied, alone} {
		g.Go(func() error {
			return s.pace(loading, n, topic, s.o.Outage, func(i int) []byte { return payload(nil, i) })
		})
	}
	if err = g.Wait(); err != nil {
		return 0, err
	}
	with, err := tied.rss()
	if err != nil {
		return 0, err
	}
	without, err := alone.rss()
	s.say("  outage of %s: %s MiB with links, %s without", s.o.Outage.Round(time.Second), figure(with), figure(without))
	return with - without, err
}
