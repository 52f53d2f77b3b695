package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// spoiled notes that the state of q is to be written.
func (m *Manager) spoiled(q *partitionQueue) {
	m.mu.Lock()
	m.soiled[q] = struct{}{}
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Run writes the frontiers that change to the page cache within 100 ms and to the disk within 1 s, until ctx ends; then it
// writes and syncs what is left. At rest it sleeps. It returns the error of that last write.
func (m *Manager) Run(ctx context.Context) error {
	unsynced := map[*partitionQueue]struct{}{}
	var since time.Time // of the oldest write that is not synced
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	for {
		var due <-chan time.Time
		changed := m.changed
		switch {
		case m.hasSoiled():
			timer.Reset(writeAfter)
			due, changed = timer.C, nil
		case len(unsynced) > 0:
			timer.Reset(time.Until(since.Add(m.o.CommitInterval)))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return errors.Join(m.write(unsynced), m.sync(unsynced))
		case <-m.done:
			return nil
		case <-changed:
			continue
		case <-due:
		}
		if len(unsynced) == 0 {
			since = time.Now()
		}
		err := m.write(unsynced)
		if time.Since(since) >= m.o.CommitInterval {
			err = errors.Join(err, m.sync(unsynced))
			since = time.Now()
		}
		if err == nil {
			continue
		}
		m.log.Error("a frontier could not be saved; it is tried again", "error", err)
		timer.Reset(retryAfter)
		select {
		case <-ctx.Done():
		case <-m.done:
		case <-timer.C:
		}
	}
}

func (m *Manager) hasSoiled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.soiled) > 0
}

// write puts the states that changed into the page cache, and into unsynced.
func (m *Manager) write(unsynced map[*partitionQueue]struct{}) error {
	m.mu.Lock()
	list := slices.Collect(maps.Keys(m.soiled))
	clear(m.soiled)
	m.mu.Unlock()
	var errs error
	for _, q := range list {
		if err := q.save(); err != nil {
			errs = errors.Join(errs, m.failed(q, err))
			m.spoiled(q)
			continue
		}
		unsynced[q] = struct{}{}
	}
	return errs
}

// sync puts what was written on the disk, and takes it out of unsynced. Between two slow syncs it writes what has changed, so
// that acks reach the page cache in time.
func (m *Manager) sync(unsynced map[*partitionQueue]struct{}) error {
	var errs error
	wrote := time.Now()
	for _, q := range slices.Collect(maps.Keys(unsynced)) {
		delete(unsynced, q)
		if err := q.sync(); err != nil {
			unsynced[q] = struct{}{}
			errs = errors.Join(errs, m.failed(q, err))
		}
		if time.Since(wrote) >= writeAfter {
			errs = errors.Join(errs, m.write(unsynced))
			wrote = time.Now()
		}
	}
	return errs
}

// failed counts an error and says where it happened.
func (m *Manager) failed(q *partitionQueue, err error) error {
	m.metrics.Failed(q.topic.id, q.index)
	return fmt.Errorf("partition %d of topic %s: %w", q.index, q.topic.id, err)
}

// Hold releases a partition and lets nobody open it until Unhold: a move copies its file meanwhile. Consumers get Unavailable.
func (m *Manager) Hold(topicID string, index int) error {
	t, err := m.queueOf(topicID)
	if err != nil {
		return err
	}
	t.opening.Lock()
	t.held[index] = true
	t.opening.Unlock()
	return m.Release(topicID, index)
}

// Unhold ends a Hold.
func (m *Manager) Unhold(topicID string, index int) {
	m.mu.Lock()
	t := m.topics[topicID]
	m.mu.Unlock()
	if t == nil {
		return
	}
	t.opening.Lock()
	delete(t.held, index)
	t.opening.Unlock()
	t.wakeAll()
}

// Release saves the frontier of a partition and forgets its leases, as when the node stops owning it. A later consume opens
// it anew.
func (m *Manager) Release(topicID string, index int) error {
	m.mu.Lock()
	t := m.topics[topicID]
	m.mu.Unlock()
	if t == nil {
		return nil
	}
	t.settled(&index)
	t.opening.Lock()
	q := t.parts[index]
	delete(t.parts, index)
	t.opening.Unlock()
	if q == nil {
		return nil
	}
	err := q.release(true)
	t.wakeAll()
	return err
}

// Forget drops everything about a deleted topic without writing. Those who wait for it look it up again.
func (m *Manager) Forget(topicID string) error {
	m.mu.Lock()
	t := m.topics[topicID]
	delete(m.topics, topicID)
	m.mu.Unlock()
	if t == nil {
		return nil
	}
	return t.end(false)
}

// end releases all partitions for good.
func (t *topicQueue) end(keep bool) error {
	t.opening.Lock()
	parts := t.parts
	t.parts = nil
	t.opening.Unlock()
	t.settled(nil)
	var errs error
	for _, q := range parts {
		errs = errors.Join(errs, q.release(keep))
	}
	t.wakeAll()
	return errs
}

// Close saves every frontier, ends all leases and sends those who wait away. The partitions stay open: they are the Store's.
func (m *Manager) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	topics := slices.Collect(maps.Values(m.topics))
	m.mu.Unlock()
	close(m.done)
	var errs error
	for _, t := range topics {
		errs = errors.Join(errs, t.end(true))
	}
	return errs
}
