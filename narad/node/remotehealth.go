package node

import (
	"strings"
	"sync"
	"time"
)

// remoteHealth remembers how requests to each remote went from this node: when one was last answered well, and of which class the newest
// trouble is, until a good answer ends it (link.Health). What a good answer still lacked, such as Narad's shape, is a trouble of its own.
type remoteHealth struct {
	now func() time.Time

	mu      sync.Mutex // guards remotes
	remotes map[string]remoteFare
}

type remoteFare struct {
	lastOK  time.Time
	trouble string // a class, empty when clean
}

func newRemoteHealth(now func() time.Time) *remoteHealth {
	return &remoteHealth{now: now, remotes: map[string]remoteFare{}}
}

// Remote tells how a remote fared: the zero time for never, an empty class when clean.
func (h *remoteHealth) Remote(name string) (lastOK time.Time, lastError string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.remotes[name]
	return f.lastOK, f.trouble
}

// answered notes a status in digits, or "error".
func (h *remoteHealth) answered(remote, code string) {
	if !strings.HasPrefix(code, "2") {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remotes[remote] = remoteFare{lastOK: h.now()}
}

func (h *remoteHealth) failed(remote, class string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.remotes[remote]
	f.trouble = class
	h.remotes[remote] = f
}

func (h *remoteHealth) forget(remote string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.remotes, remote)
}
