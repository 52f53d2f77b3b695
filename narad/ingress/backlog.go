package ingress

import (
	"context"
	"sync"
)

// backlog counts the records that were taken in and are not done, per topic incarnation.
type backlog struct {
	mu       sync.Mutex // guards the rest
	draining bool       // the node stops
	leaving  bool       // the node is decommissioned
	total    int64
	topics   map[string]int64 // by topic ID; no zero
	empty    chan struct{}    // closed when total reaches 0, replaced when it leaves it
}

func newBacklog() *backlog {
	b := &backlog{topics: map[string]int64{}, empty: make(chan struct{})}
	close(b.empty)
	return b
}

// enter counts records on their way in; false while draining, then nothing is counted.
func (b *backlog) enter(topicID string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.draining || b.leaving {
		return false
	}
	b.add(topicID, n)
	return true
}

// recovered counts records that the log held when it was opened.
func (b *backlog) recovered(topicID string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(topicID, n)
}

func (b *backlog) leave(topicID string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(topicID, -n)
}

func (b *backlog) add(topicID string, n int64) {
	if n == 0 {
		return
	}
	was := b.total
	b.total += n
	if b.topics[topicID] += n; b.topics[topicID] == 0 {
		delete(b.topics, topicID)
	}
	if was == 0 {
		b.empty = make(chan struct{})
	}
	if b.total == 0 {
		close(b.empty)
	}
}

func (b *backlog) of(topicID string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.topics[topicID]
}

func (b *backlog) sum() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

func (b *backlog) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draining = true
}

func (b *backlog) leaves(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaving = yes
}

func (b *backlog) refusing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.draining || b.leaving
}

// waitEmpty returns once nothing is left, or with the context's error.
func (b *backlog) waitEmpty(ctx context.Context) error {
	b.mu.Lock()
	empty := b.empty
	b.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
