package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

const (
	backlogTopic = "backlog"
	fillBytes    = 1 << 20 // of a batch, about
	fillLimit    = 10 * time.Minute
	drainLimit   = 10 * time.Minute
	pollEvery    = 10 * time.Millisecond
	fillBatch    = 500
)

// backlog is records that wait on the source for drains.
type backlog struct {
	partitions, records, size int // bytes of a payload
	binary                    bool
}

// plain is the backlog of most rows: one partition of 1 KiB JSON records.
func (s *stand) plain() backlog {
	return backlog{partitions: 1, records: s.o.Records, size: RecordBytes}
}

func (b backlog) topic() string {
	kind := "json"
	if b.binary {
		kind = "binary"
	}
	return fmt.Sprintf("%s-%d-%s-%d-%d", backlogTopic, b.partitions, kind, b.size, b.records)
}

// topics hold at least three partitions; a backlog of fewer leaves the others empty.
const fewestPartitions = 3

// fill produces a backlog once for all drains of a run. Every batch is pinned to one partition, one after the other.
func (s *stand) fill(ctx context.Context, p *pair, b backlog) error {
	topic := b.topic()
	if s.filled[p.held(b)] {
		return nil
	}
	if _, err := p.source.client.CreateTopic(ctx, wire.CreateTopic{Name: topic, Partitions: max(fewestPartitions, b.partitions)}); err != nil {
		return fmt.Errorf("backlog: %w", err)
	}
	s.filled[p.held(b)] = true
	return b.produce(ctx, p.source, topic)
}

// held names a backlog on the source of a pair.
func (p *pair) held(b backlog) string { return p.source.name + "/" + b.topic() }

func (b backlog) produce(ctx context.Context, n *node, topic string) error {
	batch := min(fillBatch, max(1, fillBytes/(b.size+256)))
	g, limited := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for from := 0; from < b.records && limited.Err() == nil; from += batch {
		g.Go(func() error {
			body := b.body(from, min(batch, b.records-from), from/batch%b.partitions)
			return n.client.ProduceBody(limited, topic, "", body, "")
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("backlog: %w", err)
	}
	return stored(ctx, n, topic, b.records)
}

// drop deletes a backlog that no later drain needs.
func (s *stand) drop(ctx context.Context, p *pair, b backlog) error {
	delete(s.filled, p.held(b))
	return p.source.client.DeleteTopic(ctx, b.topic(), false)
}

// stored waits until a topic's partitions hold n records: a 202 promises them to the log of arrivals only.
func stored(ctx context.Context, n *node, topic string, records int) error {
	return poll(ctx, fillLimit, 20*time.Millisecond, fmt.Sprintf("%d records in %s", records, topic), func(ctx context.Context) (bool, error) {
		d, err := n.client.Topic(ctx, topic, nil)
		sum := int64(0)
		for _, p := range d.PartitionStats {
			sum += p.HighWatermark
		}
		return sum >= int64(records), errors.Join(err, n.check())
	})
}

// copying is one drain.
type copying struct {
	of     backlog
	lanes  int
	remote string // of remoteName, zstdRemote, farRemote
}

// drain attaches a link to the whole backlog and measures from the attach's answer until the listing shows no lag. The CPU
// counts from before the attach until the target's partitions hold every record, so that no work is left out; the allocations are
// the source's in the same time.
func (s *stand) drain(ctx context.Context, k copying) (copied, error) {
	p, err := s.direct(ctx)
	if err != nil {
		return copied{}, err
	}
	return s.drainPair(ctx, p, k)
}

func (s *stand) drainPair(ctx context.Context, p *pair, k copying) (copied, error) {
	err := s.fill(ctx, p, k.of)
	if err != nil {
		return copied{}, err
	}
	s.copies++
	topic, child := fmt.Sprintf("copy-%d", s.copies), fmt.Sprintf("child-%d", s.copies)
	_, err = p.target.client.CreateTopic(ctx, wire.CreateTopic{Name: topic, Partitions: max(fewestPartitions, k.of.partitions)})
	if err != nil {
		return copied{}, fmt.Errorf("topic of the drain: %w", err)
	}
	before, err := p.cost(ctx)
	if err != nil {
		return copied{}, err
	}
	err = attach(ctx, p.source, k.of.topic(), wire.AttachChild{
		Child: child, Remote: k.remote, RemoteTopic: topic, From: "earliest", Lanes: k.lanes,
	})
	if err != nil {
		return copied{}, err
	}
	start := time.Now()
	profiled := s.profile(ctx, fmt.Sprintf("drain-%d-lanes-%d", k.lanes, s.round), p.source, p.target)
	defer profiled()
	if err = noLag(ctx, p.source, k.of.topic(), child); err != nil {
		return copied{}, err
	}
	c := copied{took: time.Since(start), records: k.of.records}
	if err = stored(ctx, p.target, topic, k.of.records); err != nil {
		return copied{}, err
	}
	after, err := p.cost(ctx)
	if err != nil {
		return copied{}, err
	}
	c.cpu, c.allocations = after.cpu-before.cpu, after.allocations-before.allocations
	if err = detach(ctx, p.source, k.of.topic(), child); err != nil {
		return copied{}, err
	}
	if err = p.target.client.DeleteTopic(ctx, topic, false); err != nil {
		return copied{}, fmt.Errorf("topic of the drain: %w", err)
	}
	return c, nil
}

// cost is what the nodes of a pair have used until now.
type cost struct {
	cpu         time.Duration // of both
	allocations float64       // of the source, objects
}

func (p *pair) cost(ctx context.Context) (cost, error) {
	cpu, err := p.cpu()
	text, errMetrics := p.source.client.Metrics(ctx)
	if err = errors.Join(err, errMetrics); err != nil {
		return cost{}, err
	}
	allocations, err := series(string(text), "go_memstats_mallocs_total")
	return cost{cpu, allocations}, err
}

// series is the value of a series without labels in the text form of metrics.
func series(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			return strconv.ParseFloat(f[1], 64)
		}
	}
	return 0, fmt.Errorf("no %s in /metrics", name)
}

func attach(ctx context.Context, n *node, parent string, req wire.AttachChild) error {
	return patient(ctx, "attach", func(ctx context.Context) error {
		_, err := n.client.AttachRemote(ctx, parent, req)
		return err
	})
}

func detach(ctx context.Context, n *node, parent, child string) error {
	return patient(ctx, "detach", func(ctx context.Context) error { return n.client.Detach(ctx, parent, child, false) })
}

// patient repeats what is refused with 429: the checks of a parent are limited in rate, and drains follow each other fast.
func patient(ctx context.Context, what string, do func(context.Context) error) error {
	return poll(ctx, readyLimit, time.Second, what, func(ctx context.Context) (bool, error) {
		err := do(ctx)
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", what, err)
		}
		return true, nil
	})
}

// noLag waits until the children listing shows the children without lag.
func noLag(ctx context.Context, n *node, parent string, children ...string) error {
	last := wire.ChildEntry{}
	err := poll(ctx, drainLimit, pollEvery, "lag 0 of "+strings.Join(children, ", "), func(ctx context.Context) (bool, error) {
		list, err := n.client.Children(ctx, parent, false)
		if err != nil {
			return false, errors.Join(err, n.check())
		}
		done := 0
		for _, c := range list.Children {
			switch {
			case !slices.Contains(children, c.Name):
			case c.LagComplete && c.LagMessages == 0:
				done++
			default:
				last = c
			}
		}
		return done == len(children), nil
	})
	if err != nil && last.RemoteEntry != nil {
		return fmt.Errorf("%w (lag %d, state %s)", err, last.LagMessages, last.State)
	}
	return err
}

// batchBody is a batch of n plain records from the i-th on; a partition below 0 pins none.
func batchBody(from, n, partition int) []byte {
	return backlog{size: RecordBytes}.body(from, n, partition)
}

func (b backlog) body(from, n, partition int) []byte {
	body := append(make([]byte, 0, n*(b.size+b.size/2+160)), bodyOpen...)
	for i := from; i < from+n; i++ {
		if i > from {
			body = append(body, ',')
		}
		body = append(append(append(body, keyOpen...), key(i)...), '"')
		if partition >= 0 {
			body = fmt.Appendf(body, `,"partition":%d`, partition)
		}
		if b.binary {
			body = append(append(append(body, `,"payload_encoding":"base64","payload":"`...), noise(i, b.size)...), `"}`...)
			continue
		}
		body = append(sized(append(body, `,"payload":`...), i, b.size), '}')
	}
	return append(body, bodyClose...)
}

// profileSeconds is how long a CPU profile takes; a drain that is shorter shares it with idle time.
const profileSeconds = 3

// profile writes a CPU profile of each node into the folder that was asked for; the function that it returns waits for them.
// A profile that fails is said on the progress lines and costs no figure.
func (s *stand) profile(ctx context.Context, name string, nodes ...*node) (wait func()) {
	var all sync.WaitGroup
	if s.o.Profile == "" {
		return all.Wait
	}
	for _, n := range nodes {
		all.Go(func() {
			file := filepath.Join(s.o.Profile, name+"-"+n.name+".pprof")
			url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", n.pprof, profileSeconds)
			if err := fetch(ctx, s.http, url, file); err != nil {
				s.say("  no profile of %s: %v", n.name, err)
			}
		})
	}
	return all.Wait
}

func fetch(ctx context.Context, c *http.Client, url, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return &client.Error{Status: res.StatusCode, Body: body}
	}
	return os.WriteFile(file, body, 0o600)
}
