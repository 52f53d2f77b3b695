package cluster

import (
	"context"
	"slices"
)

// leads tells whether the cut is of what one node says to the other.
func (c *Cut) leads(from, to string) bool {
	return slices.Contains(c.From, from) && slices.Contains(c.To, to)
}

func (c *Cut) carried(carries string) bool {
	return c.Carries == "" || c.Carries == CarriesAll || c.Carries == carries
}

// holds tells whether what one node says to the other is held.
func (c *Cut) holds(from, to, carries string) bool {
	return c.Silent && c.carried(carries) && (c.leads(from, to) || !c.OneWay && c.leads(to, from))
}

// meets tells whether a connection of the way ends, or does not come about. None comes about when either direction is silent.
func (c *Cut) meets(w way) bool {
	return c.carried(w.carries) && (c.leads(w.from, w.to) || (!c.OneWay || c.Silent) && c.leads(w.to, w.from))
}

// meshCut is a cut in force.
type meshCut struct {
	id     int
	cut    Cut
	mended context.Context
	mend   context.CancelFunc
	met    CutMet // guarded by mesh.mu
}

// part begins a cut: connections that it meets are reset, or held.
func (m *mesh) part(cut Cut) (id int) {
	c := &meshCut{cut: cut}
	c.mended, c.mend = context.WithCancel(m.alone)
	m.mu.Lock()
	m.begun++
	c.id = m.begun
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
	return c.id
}

// met is what met a cut in force so far, nothing when there is none of that number.
func (m *mesh) met(id int) (met CutMet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.cuts {
		if c.id == id {
			met = c.met
		}
	}
	return met
}

// mend takes a cut back: what it held goes on as if nothing had been. One that is mended already is no error.
func (m *mesh) mend(id int) {
	var over []*meshCut
	m.mu.Lock()
	m.cuts = slices.DeleteFunc(m.cuts, func(c *meshCut) bool {
		if c.id == id {
			over = append(over, c)
		}
		return c.id == id
	})
	m.mu.Unlock()
	for _, c := range over {
		c.mend()
	}
}

// holding is over when the cut is that holds what one node says to the other; nil when there is none.
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
