package schema

import (
	"container/list"
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"time"

	"narad.example/narad/wire"
)

// Bounds of what a node keeps compiled and of who waits (package comment).
const (
	maxTopics = 1024
	maxParts  = 200_000 // about a KiB each
	patience  = 2 * time.Second
)

// Subject is a topic's current schema.
type Subject struct {
	TopicID string
	Version int
	Sum     string
	Raw     json.RawMessage
}

// Validators checks the payloads of one node. All methods may be called at once from any goroutine.
type Validators struct {
	slots chan struct{}

	mu     sync.Mutex // guards the rest, and the places of the topics in the list
	topics map[string]*topic
	recent *list.List // of *topic, the latest use first
	parts  int
}

// topic is a topic's compiled schema. Form and err belong to whoever has the turn; size, place and gone to the Validators' lock.
type topic struct {
	id, sum string
	turn    chan struct{}
	form    *form
	err     error

	size  int
	place *list.Element // nil once it is kept no more
}

// NewValidators makes the checks of a node; half the processors may check at once, two at least.
func NewValidators() *Validators {
	return &Validators{
		slots: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)/2)), topics: map[string]*topic{}, recent: list.New(),
	}
}

// Validate checks one payload. The error is a *wire.Problem: Invalid for the payload, Unavailable with `schema validation slot` when none
// came free in 2 s or ctx ended, Internal for a stored schema that this release cannot compile. Nothing was stored with any of them.
func (v *Validators) Validate(ctx context.Context, s Subject, payload []byte) error {
	t := v.topic(s)
	if !take(ctx, t.turn, v.slots) {
		return noSlot()
	}
	defer func() { <-v.slots; <-t.turn }()
	if t.form == nil && t.err == nil {
		v.compile(t, s)
	}
	if t.err != nil {
		return t.err
	}
	return safely(func() error { return t.form.check(s.Version, payload) })
}

// Parse is the function of the same name in one of the slots: compiling takes time. Its error may be Unavailable too, as Validate's.
func (v *Validators) Parse(ctx context.Context, raw []byte) (Document, error) {
	if !take(ctx, make(chan struct{}, 1), v.slots) {
		return Document{}, noSlot()
	}
	defer func() { <-v.slots }()
	return Parse(raw)
}

func noSlot() error {
	return wire.Refuse(wire.Unavailable, "no schema validation slot came free; nothing was stored; try again").After(time.Second)
}

// safely turns a panic of the library into a refusal: a payload of a stranger must not end the process.
func safely(check func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = refuse("the payload cannot be checked by its topic's schema")
		}
	}()
	return check()
}

// take fills one place in each channel in their order, or none.
func take(ctx context.Context, turn, slots chan struct{}) bool {
	select {
	case turn <- struct{}{}:
		select {
		case slots <- struct{}{}:
			return true
		default:
			<-turn
		}
	default:
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case turn <- struct{}{}:
	case <-wait.C:
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	<-turn
	return false
}

// topic finds a topic's compiled schema, or makes room for one; another sum replaces what was kept.
func (v *Validators) topic(s Subject) *topic {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.topics[s.TopicID]
	if t != nil && t.sum == s.Sum {
		v.recent.MoveToFront(t.place)
		return t
	}
	if t != nil {
		v.drop(t)
	}
	t = &topic{id: s.TopicID, sum: s.Sum, turn: make(chan struct{}, 1)}
	t.place = v.recent.PushFront(t)
	v.topics[t.id] = t
	v.shrink()
	return t
}

// compile makes the form of a topic whose turn the caller has.
func (v *Validators) compile(t *topic, s Subject) {
	value, err := decoded(s.Raw)
	if err == nil {
		t.form, err = compile(value)
	}
	if err != nil {
		t.err = wire.Refuse(wire.Internal, "the topic's schema, version %d, does not compile on this node", s.Version)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.place == nil { // dropped meanwhile
		return
	}
	t.size = t.form.size
	v.parts += t.size
	v.shrink()
}

// shrink drops the topics that were not used for longest, but never the latest one.
func (v *Validators) shrink() {
	for (len(v.topics) > maxTopics || v.parts > maxParts) && v.recent.Len() > 1 {
		v.drop(v.recent.Back().Value.(*topic))
	}
}

func (v *Validators) drop(t *topic) {
	v.recent.Remove(t.place)
	t.place = nil
	delete(v.topics, t.id)
	v.parts -= t.size
}

// Keep drops what is kept of every topic that has says no of.
func (v *Validators) Keep(has func(topicID string) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, t := range v.topics {
		if !has(id) {
			v.drop(t)
		}
	}
}
