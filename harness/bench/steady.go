package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

const (
	steadyRate    = 2000 // records a second
	steadyClients = 8
	steadyFor     = 10 * time.Second
	steadyWarm    = 2 * time.Second // whose records are not counted
	readers       = 4
)

// pace sends single produces at steadyRate for a time: each of its clients sends when its next one is due, over one connection. A
// client that is late sends at once until it has caught up, so that a slow node is not spared.
func (s *stand) pace(ctx context.Context, n *node, topic string, long time.Duration, body func(i int) []byte) error {
	g, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for c := range steadyClients {
		g.Go(func() error {
			conn, err := dial(ctx, n.addr)
			if err != nil {
				return err
			}
			defer conn.close()
			for i := c; ; i += steadyClients {
				due := time.Duration(i) * time.Second / steadyRate
				if due >= long {
					return nil
				}
				if err := pause(ctx, time.Until(start.Add(due))); err != nil {
					return err
				}
				if err := conn.post(s.post(n, "/v1/topics/"+topic+"/produce?key="+key(i), body(i))); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("steady load: %w", err)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stamped is a record that carries the time of its request.
type stamped struct {
	At   int64  `json:"at"` // Unix nanoseconds
	Text string `json:"text"`
}

// lag is the p99, in milliseconds, of the time from a produce request at the source until the record is consumed at the target, under
// a steady load: the link's lag and both ends' own work.
func (s *stand) lag(ctx context.Context) (float64, error) {
	p, err := s.direct(ctx)
	if err != nil {
		return 0, err
	}
	topic, err := s.topic(ctx, p.source, "steady")
	if err != nil {
		return 0, err
	}
	if _, err = p.target.client.CreateTopic(ctx, wire.CreateTopic{Name: topic}); err != nil {
		return 0, err
	}
	child := topic + "-to-b"
	if err = attach(ctx, p.source, topic, wire.AttachChild{Child: child, Remote: remoteName, RemoteTopic: topic, Lanes: 1}); err != nil {
		return 0, err
	}
	text := string(payload(nil, 1)[:RecordBytes/2]) // quotes in it are escaped
	from := time.Now().Add(steadyWarm)
	late, err := s.late(ctx, p, topic, from, func(int) []byte {
		body, _ := json.Marshal(stamped{time.Now().UnixNano(), text}) // cannot fail
		return body
	})
	if err != nil {
		return 0, err
	}
	if err = noLag(ctx, p.source, topic, child); err == nil {
		err = detach(ctx, p.source, topic, child)
	}
	if err = errors.Join(err, p.source.client.DeleteTopic(ctx, topic, false), p.target.client.DeleteTopic(ctx, topic, false)); err != nil {
		return 0, err
	}
	if len(late) < steadyRate {
		return 0, fmt.Errorf("only %d records were consumed", len(late))
	}
	slices.Sort(late)
	return late[len(late)*99/100], nil
}

// late paces a load and consumes it at the target, and returns how late each record was, in milliseconds, of those sent after from.
func (s *stand) late(ctx context.Context, p *pair, topic string, from time.Time, body func(int) []byte) ([]float64, error) {
	consuming, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex // guards all
	var all []float64
	g, consuming := errgroup.WithContext(consuming)
	for range readers {
		g.Go(func() error {
			mine, err := p.target.consumeLate(consuming, topic, from)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			return err
		})
	}
	err := s.pace(ctx, p.source, topic, steadyFor+steadyWarm, body)
	if err == nil {
		err = pause(ctx, time.Second) // for the last ones
	}
	stop()
	return all, errors.Join(err, g.Wait())
}

// consumeLate consumes until ctx ends, which is no error.
func (n *node) consumeLate(ctx context.Context, topic string, from time.Time) (late []float64, err error) {
	for {
		ms, err := n.client.ConsumeBatch(ctx, topic, 100, client.ConsumeOptions{Wait: time.Second})
		now := time.Now()
		switch {
		case ctx.Err() != nil:
			return late, nil //nolint:nilerr // the load is over
		case err != nil:
			return late, err
		}
		var handles []string
		for _, m := range ms {
			var r stamped
			if err := json.Unmarshal(m.Payload, &r); err != nil {
				return late, err
			}
			if at := time.Unix(0, r.At); at.After(from) {
				late = append(late, float64(now.Sub(at))/float64(time.Millisecond))
			}
			handles = append(handles, m.ReceiptHandle)
		}
		if len(handles) > 0 {
			if _, err := n.client.SettleBatch(ctx, topic, handles, client.Ack); err != nil && ctx.Err() == nil {
				return late, err
			}
		}
	}
}
