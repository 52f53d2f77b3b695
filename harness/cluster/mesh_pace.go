package cluster

import (
	"context"
	"slices"
)

// meshPace is a pace in force.
type meshPace struct {
	id   int
	pace Pace
	met  int64 // guarded by mesh.mu
}

func (m *mesh) slow(p Pace) (id int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun++
	m.paces = append(m.paces, &meshPace{id: m.begun, pace: p})
	return m.begun
}

// ease takes a pace back. One that is taken back already is no error.
func (m *mesh) ease(id int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paces = slices.DeleteFunc(m.paces, func(p *meshPace) bool { return p.id == id })
}

// beat is at what pace one node speaks to the other now, and how many of n bytes go next; they count unless they are the harness' own.
func (m *mesh) beat(from, to, carries string, n int, own bool) (b Beat, piece int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var slow []*meshPace
	for _, p := range m.paces {
		if p.pace.Slows(from, to, carries) {
			b.Add(p.pace)
			slow = append(slow, p)
		}
	}
	piece = b.Piece(n)
	for _, p := range slow {
		if !own {
			p.met += int64(piece)
		}
	}
	return b, piece
}

// paced is how many paces are in force, and how many bytes went at the one of that number.
func (m *mesh) paced(id int) (count int, met int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.paces {
		if p.id == id {
			met = p.met
		}
	}
	return len(m.paces), met
}

// Pace is Paced.
func (r *meshed) Pace(ctx context.Context, p Pace) (Pacing, error) {
	if err := r.known(slices.Concat(p.From, p.To)...); err != nil {
		return nil, err
	}
	a, err := r.answer(ctx, question{Ask: askSlow, Pace: p})
	if err != nil {
		return nil, err
	}
	return &pacing{r, a.ID}, nil
}

// Pacings is Paced. A mesh that does not answer counts as slowed.
func (r *meshed) Pacings() int {
	if r == nil {
		return 0
	}
	a, err := r.answer(context.Background(), question{Ask: askPaced})
	if err != nil {
		return 1
	}
	return a.Paces
}

// pacing is a pace of a mesh.
type pacing struct {
	rig *meshed
	id  int
}

// Met is Pacing.
func (p *pacing) Met() int64 {
	a, err := p.rig.answer(context.Background(), question{Ask: askPaced, ID: p.id})
	if err != nil {
		return 0 // nothing went at it as far as anybody knows: it has not landed
	}
	return a.Bytes
}

// Mend is Pacing.
func (p *pacing) Mend(ctx context.Context) error {
	_, err := p.rig.answer(ctx, question{Ask: askEase, ID: p.id})
	return err
}
