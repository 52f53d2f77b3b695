package sim

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"narad.example/harness/cluster"
)

// wallClock is a node's wall clock: the bubble's, moved.
type wallClock struct {
	mu    sync.Mutex // guards all below
	since time.Time
	step  time.Duration
	drift time.Duration // gained in each second since
}

// now has no monotonic reading, so that nothing can measure an interval by it without a step showing.
func (c *wallClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	moved := c.step
	if c.drift != 0 {
		moved += time.Duration(float64(c.drift) * now.Sub(c.since).Seconds())
	}
	return now.Round(0).Add(moved)
}

// SetClock moves the node's wall clock (cluster.Clocked).
func (n *simNode) SetClock(_ context.Context, step, drift time.Duration) error {
	n.clock.mu.Lock()
	defer n.clock.mu.Unlock()
	n.clock.since, n.clock.step, n.clock.drift = time.Now(), step, drift
	return nil
}

// ReportedTime is the Date of the node's own answer (cluster.Clocked).
func (n *simNode) ReportedTime(ctx context.Context) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.name+":"+apiPort+"/healthz", nil)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", cluster.ErrTrouble, err)
	}
	res, err := n.http.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err = io.Copy(io.Discard, res.Body); err != nil {
		return time.Time{}, err
	}
	return http.ParseTime(res.Header.Get("Date"))
}
