package cluster

import (
	"context"
	"slices"
)

// leads tells whether the cut is of what from says to to.
func (c *Cut) leads(from, to string) bool {
	return slices.Contains(c.From, from) && slices.Contains(c.To, to)
}

func (c *Cut) carried(carries string) bool {
	return c.Carries == "" || c.Carries == CarriesAll || c.Carries == carries
}

// holds tells whether what from says to to is held.
func (c *Cut) holds(from, to, carries string) bool {
	return c.Silent && c.carried(carries) && (c.leads(from, to) || !c.OneWay && c.leads(to, from))
}

// meets tells whether a connection of the way ends, or does not come about. None comes about when either direction is silent.
func (c *Cut) meets(w way) bool {
	return c.carried(w.carries) && (c.leads(w.from, w.to) || (!c.OneWay || c.Silent) && c.leads(w.to, w.from))
}

// meshCut is a cut in force.
type meshCut struct {
	mesh   *mesh
	cut    Cut
	mended context.Context
	mend   context.CancelFunc
	met    CutMet // guarded by mesh.mu
}

// part begins a cut: connections that it meets are reset, or held.
func (m *mesh) part(cut Cut) *meshCut {
	c := &meshCut{mesh: m, cut: cut}
	c.mended, c.mend = context.WithCancel(m.alone)
	m.mu.Lock()
	m.cuts = append(m.cuts, c)
	var ended []*trip
	for t := range m.trips {
		if cut.meets(t.way) {
			ended = append(ended, t)
		}
	}
	c.met.Ended = len(ended)
	m.mu.Unlock()
	if !cut.Silent {
		for _, t := range ended {
			t.reset()
		}
	}
	return c
}

// Met is what met the cut so far.
func (c *meshCut) Met() CutMet {
	c.mesh.mu.Lock()
	defer c.mesh.mu.Unlock()
	return c.met
}

// Mend takes the cut back: what it held goes on as if nothing had been.
func (c *meshCut) Mend(context.Context) error {
	c.mesh.mu.Lock()
	c.mesh.cuts = slices.DeleteFunc(c.mesh.cuts, func(o *meshCut) bool { return o == c })
	c.mesh.mu.Unlock()
	c.mend()
	return nil
}

// holding is over when the cut that holds what from says to to is; nil when there is none.
func (m *mesh) holding(from, to, carries string) context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.cuts {
		if c.cut.holds(from, to, carries) {
			return c.mended
		}
	}
	return nil
}

func (m *mesh) partings() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.cuts)
}
