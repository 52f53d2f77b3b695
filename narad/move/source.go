package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

func behind(what string) error { return wire.Refuse(wire.Unavailable, "%s", what).After(time.Second) }

// errVoid is the refusal of a token that the source no longer knows: it thawed, or was started anew.
func errVoid() error {
	return wire.Refuse(wire.Conflict, "the freeze has ended").With("class", classVoid)
}

// errTrimmed is the refusal of a read below the oldest record, or above the newest.
func errTrimmed() error {
	return wire.Refuse(wire.Gone, "the source does not hold these records").With("class", classTrimmed)
}

const (
	classVoid    = "void"
	classTrimmed = "trimmed"
)

// Handle answers an op of a source. Ops are OpFreeze, OpFiles and OpFence.
func (m *Moves) Handle(op string) func(ctx context.Context, body []byte) ([]byte, error) {
	do := map[string]func(context.Context, ask, place) ([]byte, error){
		OpFreeze: m.serveFreeze, OpFiles: m.serveFiles, OpFence: m.serveFence,
	}[op]
	return func(ctx context.Context, body []byte) ([]byte, error) {
		q, err := m.asked(ctx, body)
		if err != nil {
			return nil, err
		}
		return do(ctx, q, place{q.TopicID, q.Partition})
	}
}

// Read answers OpRead in two parts. The second lies in memory that is read into again once done was called.
func (m *Moves) Read(ctx context.Context, body []byte) (head, records []byte, done func(), err error) {
	q, err := m.asked(ctx, body)
	if err != nil {
		return nil, nil, nil, err
	}
	s, _ := m.reads.Get().(*partition.Stored) // the pool holds nothing else
	done = func() { m.reads.Put(s) }
	b, err := m.serveRead(q, place{q.TopicID, q.Partition}, s)
	if err == nil {
		head, err = headOf(b, s.Records)
	}
	if err != nil {
		done()
		return nil, nil, nil, err
	}
	return head, s.Frames, done, nil
}

// asked reads a call and refuses it unless it is this node's to answer.
func (m *Moves) asked(ctx context.Context, body []byte) (q ask, err error) {
	if err = json.Unmarshal(body, &q); err != nil {
		return q, wire.Refuse(wire.Precondition, "this node cannot read the call; bring all members to one release")
	}
	return q, m.mine(ctx, q)
}

// mine refuses a call unless this node owns the partition and the attempt is the one of now.
func (m *Moves) mine(ctx context.Context, q ask) error {
	m.mu.Lock()
	ready := m.ready()
	m.mu.Unlock()
	if !ready {
		return behind("this node is starting")
	}
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	if err := m.o.Leader.WaitApplied(ctx, q.Applied); err != nil {
		return behind("this node is behind the one that asks")
	}
	t, ok := m.o.State.TopicByID(q.TopicID)
	mv, moves := t.Move(q.Partition)
	if !ok || !moves || q.Attempt == "" || mv.Attempt != q.Attempt || t.NodeOf(q.Partition) != m.o.NodeID {
		return behind("the move is another one by now")
	}
	return nil
}

func (m *Moves) open(at place) (*partition.Partition, bounds, error) {
	p, err := m.o.Store.Open(at.topicID, at.partition)
	if err != nil {
		return nil, bounds{}, err
	}
	return p, bounds{Oldest: p.Oldest(), High: p.HighWatermark()}, nil
}

// serveRead fills s.
func (m *Moves) serveRead(q ask, at place, s *partition.Stored) (bounds, error) {
	s.Records, s.Frames = 0, nil
	if q.Token != "" {
		if err := m.renew(at, q.Token); err != nil {
			return bounds{}, err
		}
	}
	p, b, err := m.open(at)
	if err != nil || q.From < 0 {
		return b, err
	}
	if q.From > b.High {
		return b, errTrimmed()
	}
	most := readRecords
	if q.Records > 0 {
		most = min(most, q.Records)
	}
	switch err = p.ReadStored(q.From, most, readBytes, s); {
	case errors.Is(err, partition.ErrTrimmed):
		return b, errTrimmed()
	case err != nil:
		return b, fmt.Errorf("read for a move: %w", err)
	}
	return b, nil
}

// renew prolongs a freeze by FreezeTTL.
func (m *Moves) renew(at place, token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.gate(at).frozen
	if f == nil || token == "" || f.token != token || f.thawing || !f.settled {
		return errVoid()
	}
	f.until = time.Now().Add(FreezeTTL)
	return nil
}

// serveFreeze closes the gate, waits for the commits under way, ends the cursors and saves the consumers' frontier.
func (m *Moves) serveFreeze(ctx context.Context, q ask, at place) ([]byte, error) {
	m.mu.Lock()
	g := m.gate(at)
	m.mu.Unlock()
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m.mu.Lock()
	if f := g.frozen; m.jobs[at] != nil || f != nil && (f.fenced || f.thawing || f.attempt != q.Attempt) {
		m.mu.Unlock()
		return nil, behind("an earlier freeze of the partition has not ended yet")
	}
	f := &freeze{attempt: q.Attempt, token: q.Token, until: time.Now().Add(FreezeTTL)}
	g.frozen = f
	m.mu.Unlock()
	m.again() // the loop watches over it
	if err := m.quiet(ctx, g); err != nil {
		return nil, err
	}
	if err := m.o.Cursors.Hold(ctx, at.topicID, at.partition); err != nil {
		return nil, err
	}
	if err := m.o.Consumers.Hold(at.topicID, at.partition); err != nil {
		return nil, fmt.Errorf("save the consumers' frontier: %w", err)
	}
	_, b, err := m.open(at)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	f.settled, f.high, f.until = true, b.High, time.Now().Add(FreezeTTL)
	m.mu.Unlock()
	m.o.Logger.Info("a partition is frozen for its move", slog.String("topic_id", at.topicID), slog.Int("partition", at.partition))
	return json.Marshal(b)
}

// serveFiles reads the files that travel with the partition. Nobody writes them while it is frozen.
func (m *Moves) serveFiles(_ context.Context, q ask, at place) ([]byte, error) {
	if err := m.renew(at, q.Token); err != nil {
		return nil, err
	}
	dir := m.o.Store.Dir(at.topicID, at.partition)
	list, err := m.o.FS.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the files of a partition: %w", err)
	}
	var a filesAnswer
	for _, e := range list {
		if !travels(e.Name()) {
			continue
		}
		data, err := vfs.ReadFile(m.o.FS, filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read a file of a partition: %w", err)
		}
		a.Files = append(a.Files, file{e.Name(), data})
	}
	if err := m.renew(at, q.Token); err != nil { // it did not thaw while they were read
		return nil, err
	}
	return json.Marshal(a)
}

// serveFence has the freeze outlive the clock.
func (m *Moves) serveFence(_ context.Context, q ask, at place) ([]byte, error) {
	if err := m.renew(at, q.Token); err != nil {
		return nil, err
	}
	p, b, err := m.open(at)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.gate(at).frozen
	switch {
	case f == nil || f.token != q.Token || f.thawing:
		return nil, errVoid()
	case p.Failed() != nil || f.high != b.High:
		return nil, behind("the source's log failed")
	}
	f.fenced = true
	return json.Marshal(b)
}

// review looks after the freezes and returns when it has to look again.
func (m *Moves) review(ctx context.Context) (next time.Time, ok bool) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, g := range m.gates {
		t, known := m.o.State.TopicByID(at.topicID)
		if !known && g.commits == 0 && g.frozen == nil {
			delete(m.gates, at)
			continue
		}
		f := g.frozen
		if f == nil || f.thawing || f.withdrawing || known && t.NodeOf(at.partition) != m.o.NodeID {
			continue // in the last case what lies here goes, and the freeze with it
		}
		mv, _ := t.Move(at.partition)
		switch {
		case mv.Attempt != f.attempt || !f.fenced && !now.Before(f.until):
			f.thawing = true
			m.workers.Go(func() { m.thaw(at, g) })
		case !now.Before(f.until):
			f.withdrawing = true
			m.workers.Go(func() { m.withdraw(ctx, at, mv, f) })
		case !ok || f.until.Before(next):
			next, ok = f.until, true
		}
	}
	return next, ok
}

// withdraw takes the attempt of a fenced freeze away. Whether that came before the flip the replica tells.
func (m *Moves) withdraw(ctx context.Context, at place, mv meta.Move, f *freeze) {
	ask, cancel := context.WithTimeout(ctx, withdrawWait)
	_, err := m.o.Leader.Propose(ask, meta.ClaimMove{TopicID: at.topicID, Partition: at.partition, MoveID: mv.ID, Was: mv.Attempt})
	cancel()
	if err != nil {
		m.o.Logger.Warn("a frozen partition waits for the leader to say who owns it", slog.String("topic_id", at.topicID),
			slog.Int("partition", at.partition), slog.Any("error", err))
		pause(ctx, retryAfter)
	}
	m.mu.Lock()
	f.withdrawing = false
	m.mu.Unlock()
	m.again()
}
