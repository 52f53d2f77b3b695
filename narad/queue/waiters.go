package queue

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// anyPartition is the wish of a consumer who names none.
const anyPartition = -1

// topicQueue holds the partitions of one topic and the consumers who wait for it.
type topicQueue struct {
	m    *Manager
	id   string
	turn atomic.Uint64 // the partition at which the next consume begins

	// mu guards the waiting consumers, in the order they came.
	mu      sync.Mutex
	waiting []*waiter

	// opening guards what follows; nothing is opened under it, since that waits for the disk.
	opening sync.RWMutex
	parts   map[int]*partitionQueue // nil once the topic is released for good
	busy    map[int]chan struct{}   // partitions that are being opened; closed when that is done
	held    map[int]bool            // partitions that may not be opened: they are being moved
}

// waiter is a consumer who waits. came gets the number of the partition that woke it, once.
type waiter struct {
	wish int
	came chan int
}

// part returns a partition's state, opening it at first use.
func (t *topicQueue) part(index int) (*partitionQueue, error) {
	for {
		t.opening.RLock()
		q := t.parts[index]
		t.opening.RUnlock()
		if q != nil {
			return q, nil
		}
		t.opening.Lock()
		if t.parts == nil {
			t.opening.Unlock()
			return nil, errReleased
		}
		if t.held[index] {
			t.opening.Unlock()
			return nil, errHeld
		}
		busy := t.busy[index]
		if busy == nil && t.parts[index] == nil {
			busy = make(chan struct{})
			t.busy[index] = busy
			t.opening.Unlock()
			return t.open(index, busy)
		}
		t.opening.Unlock()
		if busy != nil {
			<-busy
		}
	}
}

// open opens a partition for everybody who waits until busy is closed.
func (t *topicQueue) open(index int, busy chan struct{}) (*partitionQueue, error) {
	defer close(busy)
	q, err := openQueue(t, index)
	t.opening.Lock()
	delete(t.busy, index)
	gone := errReleased
	switch {
	case t.parts == nil:
	case t.held[index]:
		gone = errHeld
	default:
		gone = nil
	}
	if err == nil && gone == nil {
		t.parts[index] = q
	}
	t.opening.Unlock()
	if err == nil && gone != nil {
		return nil, errors.Join(gone, q.release(false))
	}
	return q, err
}

// settled waits until none of the partitions that are being opened now, or this one alone, is being opened any more.
func (t *topicQueue) settled(only *int) {
	t.opening.RLock()
	var list []chan struct{}
	for index, busy := range t.busy {
		if only == nil || *only == index {
			list = append(list, busy)
		}
	}
	t.opening.RUnlock()
	for _, busy := range list {
		<-busy
	}
}

// enlist adds a consumer to those who wait.
func (t *topicQueue) enlist(wish int) *waiter {
	w := &waiter{wish: wish, came: make(chan int, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, w)
	return w
}

// leave takes a consumer away from those who wait. One who was woken and goes passes it on, if there is something left.
func (t *topicQueue) leave(w *waiter, s Settings) {
	t.mu.Lock()
	i := slices.Index(t.waiting, w)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i >= 0 {
		return
	}
	select {
	case index := <-w.came:
		t.pass(index, s)
	default: // taken by the consumer itself
	}
}

// pass wakes a consumer for a partition if it has something left.
func (t *topicQueue) pass(index int, s Settings) {
	t.opening.RLock()
	q := t.parts[index]
	t.opening.RUnlock()
	if q != nil && q.more(s) {
		t.wake(index)
	}
}

// wake tells the one who waits for longest, among those whom the partition concerns, to look.
func (t *topicQueue) wake(index int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.waiting, func(w *waiter) bool { return w.wish == anyPartition || w.wish == index })
	if i < 0 {
		return
	}
	w := t.waiting[i]
	t.waiting = slices.Delete(t.waiting, i, i+1)
	w.came <- index
}

// wakeAll tells all who wait to look.
func (t *topicQueue) wakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waiting {
		w.came <- anyPartition
	}
	t.waiting = nil
}
