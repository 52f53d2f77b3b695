package cluster

import (
	"fmt"
	"slices"
	"sync"
)

// troubles collects what nobody asked for.
type troubles struct {
	mu   sync.Mutex // guards list
	list []string
}

func (t *troubles) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, fmt.Sprintf(format, args...))
}

// Trouble lists what ended or failed without having been asked to.
func (t *troubles) Trouble() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}
