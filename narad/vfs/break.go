package vfs

import (
	"strings"
	"time"
)

// Break is something of a Mem that stays broken until Mend. The zero Op of a Break with a Delay is a slow sync.
type Break struct {
	Op    Op            // which operation fails
	Err   error         // with what
	Match string        // in names that contain it; "" is any
	Delay time.Duration // instead of a failure: how much longer a sync takes

	hits int64 // guarded by the Mem's mutex
}

// Break breaks b until Mend. It must not be changed or broken twice meanwhile.
func (m *Mem) Break(b *Break) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b.hits = 0
	m.breaks = append(m.breaks, b)
}

// Mend ends b and returns how many operations it met.
func (m *Mem) Mend(b *Break) (hits int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.breaks[:0]
	for _, other := range m.breaks {
		if other != b {
			kept = append(kept, other)
		}
	}
	m.breaks = kept
	return b.hits
}

// Hits is how many operations b has met so far.
func (m *Mem) Hits(b *Break) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return b.hits
}

// broke is the error of what is broken for op on name, nil for none. mu is held.
func (m *Mem) broke(op Op, name string) error {
	for _, b := range m.breaks {
		if b.Delay == 0 && b.Op == op && strings.Contains(name, b.Match) {
			b.hits++
			return b.Err
		}
	}
	return nil
}

// slow is how much longer a sync of name takes. mu is held.
func (m *Mem) slow(name string) (sum time.Duration) {
	for _, b := range m.breaks {
		if b.Delay > 0 && strings.Contains(name, b.Match) {
			b.hits++
			sum += b.Delay
		}
	}
	return sum
}

// Fill makes the disk full: a file that grows is refused with ENOSPC from now on, unless others shrink. It returns how many
// writes were refused before.
func (m *Mem) Fill() (refused int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = max(1, m.used)
	return m.refused
}

// Refused is how many writes met a full disk so far.
func (m *Mem) Refused() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

// Flip changes one bit in each 512 bytes of every file that choose names, in its middle, as if it had rotted on the disk, and
// returns how many files it changed. A second call with the same choice changes them back. Files of no bytes are left alone.
func (m *Mem) Flip(choose func(name string) bool) (files int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.root.flip("", choose)
}

func (n *node) flip(name string, choose func(string) bool) (files int) {
	if n.entries != nil {
		for last, child := range n.entries {
			files += child.flip(name+"/"+last, choose)
		}
		return files
	}
	if len(n.data) == 0 || !choose(name) {
		return 0
	}
	for at := min(sector, len(n.data)) / 2; at < len(n.data); at += sector {
		n.data[at] ^= 1
	}
	return 1
}
