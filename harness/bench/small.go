package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"narad.example/narad/client"
)

// firstTries is how often a round creates a topic; its figure is their median.
const firstTries = 5

// first is the seconds from the request that creates a topic until its first record is consumed.
func (s *stand) first(ctx context.Context) (float64, error) {
	p, err := s.direct(ctx)
	if err != nil {
		return 0, err
	}
	c := p.source.client
	var all []float64
	for range firstTries {
		start := time.Now()
		topic, err := s.topic(ctx, p.source, "first")
		if err != nil {
			return 0, err
		}
		if err = c.Produce(ctx, topic, []byte(`{"first":true}`), client.ProduceOptions{}); err != nil {
			return 0, fmt.Errorf("first record: %w", err)
		}
		m, err := c.Consume(ctx, topic, client.ConsumeOptions{Wait: 10 * time.Second})
		if err != nil {
			return 0, fmt.Errorf("first record: %w", err)
		}
		all = append(all, time.Since(start).Seconds())
		if m == nil {
			return 0, errors.New("first record: nothing to consume after 10 s")
		}
		if err = c.DeleteTopic(ctx, topic, false); err != nil {
			return 0, err
		}
	}
	return median(all), nil
}

// idleFor is how long a node idles before its memory is read.
const idleFor = 5 * time.Second

// idle is the resident memory in MiB of a node that was just started and got no request but the readiness probe's.
func (s *stand) idle(ctx context.Context) (float64, error) {
	n, err := s.start(ctx, fmt.Sprintf("idle-%d", s.round), nil)
	if err != nil {
		return 0, err
	}
	defer n.kill()
	if err = pause(ctx, idleFor); err != nil {
		return 0, err
	}
	return n.rss()
}
