// Package cycle combines requests that wait at the same time into one piece of work, which is how many producers share one
// fsync: while a cycle runs, newcomers gather, and the next cycle takes them all.
//
// It promises that a request that was taken into a cycle learns that cycle's true outcome, that cycles never overlap, and
// that requests are taken in the order they came. It runs no goroutine: one of the callers leads, and hands over to
// the next when its own request is done, so nobody works for others longer than one cycle. It refused a committer
// goroutine, since that has to be started, stopped and waited for in every log of a thousand.
package cycle

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrClosed is returned by Do after Close.
var ErrClosed = errors.New("closed")

// Cycle combines requests of type T, usually a pointer that run fills with the outcome.
type Cycle[T any] struct {
	run   func([]T)
	size  func(T) int64
	limit int64

	// mu guards what follows; it is not held while run works.
	mu      sync.Mutex
	waiting []*entry[T]
	leading bool
	closed  bool
	idle    chan struct{} // made by Close, closed by the last leader
}

type entry[T any] struct {
	item T
	news chan bool // true: lead the next cycle; false: a cycle is done with the item
}

// New makes a Cycle. run works on what one cycle took, at least one request; its sizes together stay below limit unless
// the first alone is above it.
func New[T any](run func([]T), size func(T) int64, limit int64) *Cycle[T] {
	return &Cycle[T]{run: run, size: size, limit: limit}
}

// Do hands item to a cycle and returns when that cycle has run. A ctx that ends before a cycle took the item
// withdraws it and is the error; later the true outcome is waited for. The other error is ErrClosed.
func (c *Cycle[T]) Do(ctx context.Context, item T) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	e := &entry[T]{item: item}
	c.waiting = append(c.waiting, e)
	if !c.leading {
		c.leading = true
		c.lead(e)
		return nil
	}
	e.news = make(chan bool, 1)
	c.mu.Unlock()
	select {
	case lead := <-e.news:
		if lead {
			c.mu.Lock()
			c.lead(e)
		}
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	if i := slices.Index(c.waiting, e); i > 0 || i == 0 && len(e.news) == 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
		c.mu.Unlock()
		return context.Cause(ctx)
	}
	c.mu.Unlock()
	if <-e.news {
		c.mu.Lock()
		c.lead(e)
	}
	return nil
}

// lead runs one cycle, which own is part of, and names the next leader. mu is held when it is called and is given back.
func (c *Cycle[T]) lead(own *entry[T]) {
	taken, items := c.take()
	c.mu.Unlock()
	c.run(items)
	for _, e := range taken {
		if e != own {
			e.news <- false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		c.waiting[0].news <- true
		return
	}
	c.leading = false
	if c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// take removes from the waiting what fits into one cycle; the leader's own entry stands first. mu is held.
func (c *Cycle[T]) take() ([]*entry[T], []T) {
	n, sum := 0, int64(0)
	for ; n < len(c.waiting); n++ {
		sum += c.size(c.waiting[n].item)
		if n > 0 && sum > c.limit {
			break
		}
	}
	taken := slices.Clone(c.waiting[:n])
	c.waiting = slices.Delete(c.waiting, 0, n)
	items := make([]T, n)
	for i, e := range taken {
		items[i] = e.item
	}
	return taken, items
}

// Close refuses new requests and returns when those that were waiting have been worked on.
func (c *Cycle[T]) Close() {
	c.mu.Lock()
	c.closed = true
	if !c.leading {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	<-idle
}
