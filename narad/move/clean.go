package move

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"

	"narad.example/narad/meta"
)

// scan notes what lies on the disk at the start.
func (m *Moves) scan() {
	ids, err := m.o.Store.Topics()
	if err != nil {
		m.o.Logger.Error("the data folder cannot be listed", slog.Any("error", err))
	}
	for _, id := range ids {
		dirs, err := m.o.FS.ReadDir(filepath.Dir(m.o.Store.Dir(id, 0)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.o.Logger.Error("the data folder cannot be listed", slog.Any("error", err))
		}
		m.mu.Lock()
		for _, d := range dirs {
			if p, err := strconv.Atoi(d.Name()); err == nil && d.IsDir() {
				m.here[place{id, p}] = true
			}
		}
		m.mu.Unlock()
	}
}

// reconcile starts a worker for each partition that comes to this node and for each whose files are of no use here, and ends those
// whose move is no more.
func (m *Moves) reconcile(ctx context.Context) {
	topics := m.o.State.Topics()
	coming, mine, known := map[place]meta.Move{}, map[place]bool{}, map[string]bool{}
	for i := range topics {
		t := &topics[i]
		known[t.ID] = true
		for p, node := range t.Nodes {
			if node == m.o.NodeID {
				mine[place{t.ID, p}] = true
			}
		}
		for _, mv := range t.Moves {
			if mv.To == m.o.NodeID && t.NodeOf(mv.Partition) != m.o.NodeID {
				coming[place{t.ID, mv.Partition}] = mv
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, j := range m.jobs {
		if j.id != "" && coming[at].ID != j.id {
			j.cancel()
		}
	}
	for at := range mine {
		m.here[at] = true
	}
	for at, mv := range coming {
		m.here[at] = true
		if m.jobs[at] == nil {
			m.start(ctx, at, mv.ID, func(ctx context.Context) { m.receive(ctx, at, mv.ID) })
		}
	}
	for at := range m.here {
		_, comes := coming[at]
		switch {
		case !known[at.topicID]:
			delete(m.here, at) // the sweep of deleted topics takes it
		case !mine[at] && !comes && m.jobs[at] == nil:
			m.start(ctx, at, "", func(ctx context.Context) { m.clean(ctx, at) })
		}
	}
}

// start runs the worker of a place. The caller holds mu.
func (m *Moves) start(ctx context.Context, at place, id string, work func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	m.jobs[at] = &job{id: id, cancel: cancel}
	m.workers.Go(func() {
		defer cancel()
		work(ctx)
		m.mu.Lock()
		delete(m.jobs, at)
		m.mu.Unlock()
		m.again()
	})
}

// clean deletes what lies here of a partition that another node owns, once the leader says so (DESIGN.md, Who owns what).
func (m *Moves) clean(ctx context.Context, at place) {
	for ctx.Err() == nil {
		done, err := m.cleanOnce(ctx, at)
		if done {
			return
		}
		m.o.Logger.Warn("the files of a partition that moved away stay for now", slog.String("topic_id", at.topicID),
			slog.Int("partition", at.partition), slog.Any("error", err))
		pause(ctx, retryAfter)
	}
}

func (m *Moves) cleanOnce(ctx context.Context, at place) (done bool, err error) {
	if err = m.o.Leader.Current(ctx); err != nil {
		return false, err
	}
	t, known := m.o.State.TopicByID(at.topicID)
	mv, _ := t.Move(at.partition)
	if !known || t.NodeOf(at.partition) == m.o.NodeID || mv.To == m.o.NodeID {
		return true, nil
	}
	if err = m.remove(ctx, at); err != nil {
		return false, err
	}
	m.mu.Lock()
	delete(m.here, at)
	m.mu.Unlock()
	m.o.Logger.Info("a partition has moved away", slog.String("topic", t.Name), slog.Int("partition", at.partition),
		slog.String("owner", t.NodeOf(at.partition)))
	return true, nil
}

// remove ends whatever uses the partition here, deletes its files and forgets its freeze. A later owner of the same place finds nothing.
func (m *Moves) remove(ctx context.Context, at place) error {
	err := m.hold(ctx, at)
	defer m.release(at)
	if err != nil {
		return err
	}
	return m.o.Store.Remove(at.topicID, at.partition)
}

// hold ends cursors and consumer state of a place until release.
func (m *Moves) hold(ctx context.Context, at place) error {
	if err := m.o.Cursors.Hold(ctx, at.topicID, at.partition); err != nil {
		return err
	}
	return m.o.Consumers.Hold(at.topicID, at.partition)
}

// release ends a hold. A freeze that is still remembered is one of an ownership that has ended: none begins while a worker is here.
func (m *Moves) release(at place) {
	m.o.Consumers.Unhold(at.topicID, at.partition)
	m.mu.Lock()
	if g := m.gates[at]; g != nil {
		g.frozen = nil
	}
	m.mu.Unlock()
	m.o.Cursors.Release(at.topicID, at.partition)
}
