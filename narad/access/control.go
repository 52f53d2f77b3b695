package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"runtime"
	"sync"

	"golang.org/x/crypto/bcrypt"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// State is what this package reads of the metadata (*meta.State).
type State interface {
	User(name string) (meta.User, bool)
	Users() []meta.User
	Topic(name string) (meta.Topic, bool)
	Children(parent string) []meta.Topic
}

// Options of a Control. Disabled is security.enabled=false: everyone is an admin. Cost is bcrypt's, 0 the default.
type Options struct {
	State    State
	Disabled bool
	Cost     int
}

// maxVerified bounds the remembered credentials; beyond it an arbitrary one is forgotten, which costs its user one bcrypt.
const maxVerified = 4096

// maxPassword is where bcrypt stops reading.
const maxPassword = 72

type credential [sha256.Size]byte

// attempt is one credential being computed, for everyone who brought it meanwhile.
type attempt struct {
	done chan struct{}
	ok   bool
}

// mac is what one digest needs.
type mac struct {
	hash hash.Hash
	buf  []byte
}

// Control checks credentials. All methods may be called at once.
type Control struct {
	state    State
	disabled bool
	cost     int
	macs     sync.Pool
	slots    chan struct{} // one per bcrypt computation that may run
	throttle throttle

	mu       sync.RWMutex // guards the two maps
	verified map[credential]struct{}
	running  map[credential]*attempt
}

// New makes a Control with a fresh random key for its cache.
func New(o Options) *Control {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	cost := o.Cost
	if cost == 0 {
		cost = bcrypt.DefaultCost
	}
	c := &Control{
		state: o.State, disabled: o.Disabled, cost: cost,
		slots:    make(chan struct{}, runtime.GOMAXPROCS(0)),
		verified: map[credential]struct{}{}, running: map[credential]*attempt{},
	}
	c.macs.New = func() any { return &mac{hash: hmac.New(sha256.New, key)} }
	return c
}

// Enabled tells whether security is on.
func (c *Control) Enabled() bool { return !c.disabled }

// Anyone is who everybody is while security is off.
func Anyone() Identity { return Identity{Admin: true, Root: true} }

// Check says who brings these credentials. The error is a *wire.Problem, Unauthorized or Throttled, or ctx's.
func (c *Control) Check(ctx context.Context, user, password string) (Identity, error) {
	if c.disabled {
		return Anyone(), nil
	}
	u, ok := c.state.User(user)
	if !ok {
		return Identity{}, unauthorized()
	}
	key := c.digest(&u, password)
	c.mu.RLock()
	_, ok = c.verified[key]
	c.mu.RUnlock()
	if ok {
		return identify(&u), nil
	}
	right, err := c.verify(ctx, key, &u, password)
	if err != nil {
		return Identity{}, err
	}
	if !right {
		return Identity{}, unauthorized()
	}
	return identify(&u), nil
}

func unauthorized() *wire.Problem { return wire.Refuse(wire.Unauthorized, "unauthorized") }

// digest is the name under which a credential is remembered. The hash is part of it: once a password changes, nothing that was
// verified, or is being verified, against the old one is found again.
func (c *Control) digest(u *meta.User, password string) credential {
	m := c.macs.Get().(*mac)
	defer c.macs.Put(m)
	b := append(binary.AppendUvarint(m.buf[:0], uint64(len(u.Name))), u.Name...)
	b = append(binary.AppendUvarint(b, uint64(len(u.Hash))), u.Hash...)
	b = append(b, password...)
	m.hash.Reset()
	_, _ = m.hash.Write(b)
	clear(b)
	var out credential
	copy(out[:], m.hash.Sum(b[:0]))
	m.buf = b[:0]
	return out
}

// verify computes bcrypt for a credential that is not remembered, once for all who bring it at the same time.
func (c *Control) verify(ctx context.Context, key credential, u *meta.User, password string) (bool, error) {
	c.mu.Lock()
	a, ok := c.running[key]
	if !ok {
		if wait := c.throttle.take(u.Name); wait > 0 {
			c.mu.Unlock()
			return false, wire.Refuse(wire.Throttled, "too many wrong passwords for this user").After(wait)
		}
		a = &attempt{done: make(chan struct{})}
		c.running[key] = a
	}
	c.mu.Unlock()
	if ok {
		select {
		case <-a.done:
			return a.ok, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	c.slots <- struct{}{} // held for one bcrypt each, so the wait is short
	a.ok = len(password) <= maxPassword && bcrypt.CompareHashAndPassword(u.Hash, []byte(password)) == nil
	<-c.slots
	if a.ok {
		c.throttle.right(u.Name)
	}
	c.mu.Lock()
	delete(c.running, key)
	if a.ok {
		c.remember(key)
	}
	c.mu.Unlock()
	close(a.done)
	return a.ok, nil
}

// remember keeps a verified credential. c.mu is held.
func (c *Control) remember(key credential) {
	for old := range c.verified {
		if len(c.verified) < maxVerified {
			break
		}
		delete(c.verified, old)
	}
	c.verified[key] = struct{}{}
}

// same compares a password with a user's hash, outside of the cache and the throttle.
func (c *Control) same(u *meta.User, password string) bool {
	if len(password) > maxPassword {
		return false
	}
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	return bcrypt.CompareHashAndPassword(u.Hash, []byte(password)) == nil
}

// Hash makes the hash of a new password of 1 to 72 bytes.
func (c *Control) Hash(password string) ([]byte, error) {
	if len(password) < 1 || len(password) > maxPassword {
		return nil, wire.Refuse(wire.Invalid, "password must be 1 to 72 bytes")
	}
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	return bcrypt.GenerateFromPassword([]byte(password), c.cost)
}
