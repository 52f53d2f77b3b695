package move

import (
	"context"
	"time"
)

// gate stands in front of the commits of one partition of this node.
type gate struct {
	commits int           // under way
	idle    chan struct{} // closed once commits is 0; nil while nobody waits for that
	frozen  *freeze       // nil while the partition serves
	turn    chan struct{} // holds a token while somebody freezes or thaws
}

// freeze is the end of a move as its source remembers it.
type freeze struct {
	attempt     string
	token       string    // of the target's last freeze; empty for one of before a restart
	until       time.Time // then the source acts by itself
	settled     bool      // nothing writes any more, the files are on the disk
	fenced      bool      // thaws by the metadata alone
	thawing     bool      // the token is void
	withdrawing bool      // a proposal is under way
	high        int64
}

// Enter lets a commit to a partition of this node begin; leave is called at its end. Errors are ErrFrozen and ErrStarting. Whether
// the node owns the partition is the caller's to check, behind Enter: what was seen before may have ended since.
func (m *Moves) Enter(topicID string, partition int) (leave func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready() {
		return nil, ErrStarting
	}
	g := m.gate(place{topicID, partition})
	if g.frozen != nil {
		return nil, ErrFrozen
	}
	g.commits++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if g.commits--; g.commits == 0 && g.idle != nil {
			close(g.idle)
			g.idle = nil
		}
	}, nil
}

// Serves tells whether a partition that this node owns gives records to consumers and may have cursors.
func (m *Moves) Serves(topicID string, partition int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gates[place{topicID, partition}]
	return m.ready() && (g == nil || g.frozen == nil)
}

// Begin lets the node serve. It is called once the replica was current for the first time since the start. A partition with a claimed
// attempt may have been fenced by the process before, so it begins frozen, and the attempt is withdrawn.
func (m *Moves) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready() {
		return
	}
	for _, t := range m.o.State.Topics() {
		for _, mv := range t.Moves {
			if mv.Attempt != "" && t.NodeOf(mv.Partition) == m.o.NodeID {
				m.gate(place{t.ID, mv.Partition}).frozen = &freeze{attempt: mv.Attempt, fenced: true, until: time.Now()}
			}
		}
	}
	close(m.begun)
}

func (m *Moves) ready() bool {
	select {
	case <-m.begun:
		return true
	default:
		return false
	}
}

// gate finds or makes a gate. The caller holds mu.
func (m *Moves) gate(at place) *gate {
	g := m.gates[at]
	if g == nil {
		g = &gate{turn: make(chan struct{}, 1)}
		m.gates[at] = g
	}
	return g
}

// quiet returns once no commit is under way. The gate is closed already.
func (m *Moves) quiet(ctx context.Context, g *gate) error {
	m.mu.Lock()
	if g.commits == 0 {
		m.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	m.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// thaw opens the gate again. Nobody else freezes or thaws meanwhile.
func (m *Moves) thaw(at place, g *gate) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	m.o.Consumers.Unhold(at.topicID, at.partition)
	m.mu.Lock()
	g.frozen = nil
	m.mu.Unlock()
	m.o.Cursors.Release(at.topicID, at.partition) // behind the gate, which their confirmation asks
}
