package sender

import "slices"

// turns is who may be the probe of a closed gate, and in which order (DEC-24, DEC-25): cursors take turns, the longest wait
// first, and a cursor goes to the end with its probe. It is pure and guarded by its gate.
type turns struct {
	queue []*place // the longest wait first; each cursor once
}

// place is one waiting cursor: its lanes that hold a chunk, the reader that waits to read a slab, the check that is due. It has at
// least one of them.
type place struct {
	cursor *Cursor
	lanes  []*ticket
	reader *ticket
	check  *ticket
}

// errand is what a waiter wants of a gate.
type errand uint8

const (
	toSend  errand = iota // a lane with a chunk
	toRead                // a cursor before it reads a slab
	toCheck               // a check that is due, or the batch-size probe
)

// ticket is one waiter at a gate. grant is closed when the waiter may go on; the gate sets the other fields before that.
type ticket struct {
	cursor  *Cursor
	errand  errand
	grant   chan struct{}
	granted bool
	probe   bool     // the waiter is the probe; else the gate is open
	checked *verdict // of the check that the cursor's reader made in this turn; nil when the probe has to begin with one
}

func (t *turns) join(k *ticket) {
	i := slices.IndexFunc(t.queue, func(p *place) bool { return p.cursor == k.cursor })
	if i < 0 {
		t.queue = append(t.queue, &place{cursor: k.cursor})
		i = len(t.queue) - 1
	}
	switch p := t.queue[i]; k.errand {
	case toRead:
		p.reader = k
	case toCheck:
		p.check = k
	default:
		p.lanes = append(p.lanes, k)
	}
}

// leave takes a waiter out.
func (t *turns) leave(k *ticket) {
	for i, p := range t.queue {
		if p.cursor != k.cursor {
			continue
		}
		if p.reader == k {
			p.reader = nil
		}
		if p.check == k {
			p.check = nil
		}
		p.lanes = slices.DeleteFunc(p.lanes, func(other *ticket) bool { return other == k })
		if p.reader == nil && p.check == nil && len(p.lanes) == 0 {
			t.queue = slices.Delete(t.queue, i, i+1)
		}
		return
	}
}

// next takes out the waiter whose turn it is, and puts its cursor at the end; nil when nobody waits. Cursors that hold a chunk go
// first, then those that would read or have a check to make (DEC-24).
func (t *turns) next() *ticket {
	i := slices.IndexFunc(t.queue, func(p *place) bool { return len(p.lanes) > 0 })
	if i < 0 {
		i = 0
	}
	if len(t.queue) == 0 {
		return nil
	}
	p := t.queue[i]
	k := p.check
	switch {
	case len(p.lanes) > 0:
		k = p.lanes[0]
	case p.reader != nil:
		k = p.reader
	}
	t.queue = append(slices.Delete(t.queue, i, i+1), p)
	t.leave(k)
	return k
}

// lane takes out a lane of the cursor; nil when none waits.
func (t *turns) lane(c *Cursor) *ticket {
	for _, p := range t.queue {
		if p.cursor == c && len(p.lanes) > 0 {
			k := p.lanes[0]
			t.leave(k)
			return k
		}
	}
	return nil
}

// all takes everyone out.
func (t *turns) all() []*ticket {
	var out []*ticket
	for _, p := range t.queue {
		out = append(out, p.lanes...)
		for _, k := range []*ticket{p.reader, p.check} {
			if k != nil {
				out = append(out, k)
			}
		}
	}
	t.queue = nil
	return out
}

func (t *turns) empty() bool { return len(t.queue) == 0 }
