package sender

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"narad.example/narad/remote/target"
	"narad.example/narad/wire"
)

// ErrClosed is returned by Wait after Close.
var ErrClosed = errors.New("sender: the cursor is closed")

// Record is one record of the parent's log. Key nil or empty is none. Its memory belongs to the reader: it is read until Ship
// returns, never after.
type Record struct {
	Offset       int64
	Key, Payload []byte
}

// Remote is what a node knows of a remote at one moment. State is empty when it can be sent to, else remote_missing,
// credential_unreadable or node_insecure, and then Client is not used. A remote that changed differs in some field: a limits
// change builds a new client. Client must be comparable (a pointer).
type Remote struct {
	Client            target.Doer
	State             wire.LinkState
	CredentialVersion uint64
	ID                string
	Limits            wire.Limits
}

// Remotes is the node's credential cache. Remote must not block; Changed returns a channel that is closed at the next change of
// any remote, and is taken before Remote is read.
type Remotes interface {
	Remote(name string) Remote
	Changed() <-chan struct{}
}

// Options are what one node's senders share.
type Options struct {
	Remotes  Remotes
	Logger   *slog.Logger     // nil is slog.Default()
	Observer Observer         // nil observes nothing
	Now      func() time.Time // the wall clock that successes and checks are stamped by; nil is time.Now
	MaxHeld  int64            // remotes.max_held_bytes: what waiting lanes may hold together; 0 holds nothing (GAT-08)
	Rand     *rand.Rand       // jitter and request IDs; nil is seeded by chance. Not used by anyone else
}

// Senders are the cursors of one node and what they share per remote: the gate, the slots, what the target is known to take.
// It runs no goroutine of its own.
type Senders struct {
	remotes  Remotes
	logger   *slog.Logger
	observer Observer
	dice     *dice
	bodies   sync.Pool // *[]byte, request bodies
	zstd     *encoders
	held     *budget
	now      func() time.Time

	mu    sync.Mutex // guards named
	named map[string]*remote
}

// New makes the senders of one node.
func New(o Options) *Senders {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Observer == nil {
		o.Observer = silent{}
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Senders{
		remotes: o.Remotes, logger: o.Logger, observer: o.Observer, dice: &dice{r: o.Rand},
		bodies: sync.Pool{New: func() any { return new([]byte) }}, named: map[string]*remote{},
		zstd: newEncoders(), held: newBudget(o.MaxHeld, o.Observer), now: o.Now,
	}
}

// remote returns what the node's cursors share of a remote. It stays for good: a cursor that is closed and opened again must find
// the gate as it was.
func (s *Senders) remote(name string) *remote {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.named[name]
	if r == nil {
		r = &remote{senders: s, name: name, caps: map[int]int{}}
		s.named[name] = r
	}
	return r
}

// remote is one remote as all cursors of the node share it.
type remote struct {
	senders *Senders
	name    string
	slots   slots
	rooms   slots // of cursors with a slab that is not held (GAT-10)

	mu      sync.Mutex  // guards the fields below
	id      string      // of the gate's incarnation of the remote
	version uint64      // of the gate's credential
	gate    *gate       // nil until the remote could be sent to for the first time
	size    size        // of batches, under that credential
	caps    map[int]int // byte caps of lanes, and how many lanes have each
}

// view is a remote at one moment, with the gate that belongs to it.
type view struct {
	Remote
	gate *gate
	most int
}

// look reads the remote. A new credential version puts a fresh gate in place (DEC-27); a limits change resizes the slots.
func (r *remote) look() view {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := view{Remote: r.senders.remotes.Remote(r.name)}
	if v.State != "" {
		return v
	}
	if r.gate == nil || r.id != v.ID || r.version != v.CredentialVersion {
		if r.gate != nil {
			r.gate.retire()
		}
		observe := r.senders.observer.GateBackoff
		r.gate = newGate(r.senders.dice, r.name, observe)
		r.id, r.version, r.size = v.ID, v.CredentialVersion, size{most: fewMessages}
		observe(r.name, 0)
	}
	limit := v.Limits.MaxInFlight
	if limit < 1 {
		limit = wire.DefaultLimits().MaxInFlight
	}
	r.slots.resize(limit)
	r.rooms.resize(limit)
	v.gate, v.most = r.gate, r.size.most
	return v
}

// forget takes back what an ending cursor may still have at the gate.
func (r *remote) forget(c *Cursor) {
	r.mu.Lock()
	g := r.gate
	r.mu.Unlock()
	if g != nil {
		g.forget(c)
	}
}

// recap moves a lane from one byte cap to another; 0 is no lane. The lowest is shown.
func (r *remote) recap(from, to int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if from > 0 {
		if r.caps[from]--; r.caps[from] == 0 {
			delete(r.caps, from)
		}
	}
	if to > 0 {
		r.caps[to]++
	}
	lowest := maxBodyBytes
	for c := range r.caps {
		lowest = min(lowest, c)
	}
	r.senders.observer.ChunkLimit(r.name, lowest)
}
