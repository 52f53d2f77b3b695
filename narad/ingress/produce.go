package ingress

import (
	"context"
	"errors"
	"fmt"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/seglog"
	"narad.example/narad/wire"
)

// Reasons of produce_rejections_total (metrics.md).
const (
	reasonSchema  = "schema"
	reasonDelayed = "delayed_child"
	reasonRemote  = "remote_child"
)

// roundRobins bounds the topics whose turn is remembered; forgetting one restarts its round.
const roundRobins = 4096

// Produce takes records in, all or none, and returns nil once they are fsynced here (BRK-01). ifTopicID, when not empty, is the
// incarnation that the records are meant for (RUN-12). Refusals are a *wire.Problem: NotFound, Precondition, Conflict (a
// remote child's stub, a delay child), Invalid ("message N: ...", N from 0), Unavailable (draining, disk full; nothing
// stored). With ctx's own error nothing is stored either. Any other error leaves the outcome unknown.
//
// A record with Partition >= 0 goes there; else a keyed one by partition.ForKey, a keyless one to the topic's next partition.
func (i *Ingress) Produce(ctx context.Context, topic, ifTopicID string, recs []wire.NewRecord) error {
	if i.backlog.refusing() {
		return drainingProblem()
	}
	t, err := i.target(topic, ifTopicID)
	if err != nil {
		return err
	}
	if err = i.check(ctx, t, recs); err != nil {
		return err
	}
	b := seglog.NewBatch()
	defer b.Free()
	bytes := i.encode(b, t, recs)
	n := int64(len(recs))
	if !i.backlog.enter(t.ID, n) {
		return drainingProblem()
	}
	if _, err = i.log.Append(ctx, b); err != nil {
		i.backlog.leave(t.ID, n)
		return i.unstored(err)
	}
	i.o.Observer.Accepted(len(recs), bytes)
	return nil
}

// unstored turns the error of an append into an answer. ErrFailed alone leaves the outcome unknown.
func (i *Ingress) unstored(err error) error {
	switch {
	case errors.Is(err, seglog.ErrFull):
		return wire.Refuse(wire.Unavailable, "the disk is full, nothing was stored")
	case errors.Is(err, seglog.ErrTooLarge):
		return wire.Refuse(wire.TooLarge, "message too large")
	case errors.Is(err, seglog.ErrFailed):
		i.o.Observer.Failed()
	}
	return fmt.Errorf("ingress: %w", err)
}

func drainingProblem() error {
	return wire.Refuse(wire.Unavailable, "this node is being decommissioned and takes no new produce").After(time.Second)
}

// target finds the topic and refuses those that take no produce.
func (i *Ingress) target(topic, ifTopicID string) (meta.Topic, error) {
	t, ok := i.o.State.Topic(topic)
	switch {
	case !ok:
		return t, wire.Refuse(wire.NotFound, "topic not found")
	case ifTopicID != "" && ifTopicID != t.ID:
		return t, wire.Refuse(wire.Precondition, "the topic is another incarnation than the one in %s", wire.HeaderIfTopicID)
	case t.IsStub():
		i.o.Observer.Rejected(t.Name, reasonRemote)
		return t, wire.Refuse(wire.Conflict, "remote child %q lives on remote %s; consume it there", t.Name, t.Remote.Remote)
	case t.Parent != "" && t.FanoutDelayMS > 0:
		i.o.Observer.Rejected(t.Name, reasonDelayed)
		return t, wire.Refuse(wire.Conflict, "produce to a delayed child topic is not allowed")
	}
	return t, nil
}

// check is the second pass of api.md (Messages): schema and partition range, the first failing message counts.
func (i *Ingress) check(ctx context.Context, t meta.Topic, recs []wire.NewRecord) error {
	if len(recs) == 0 {
		return wire.Refuse(wire.Invalid, "messages required")
	}
	validates := i.o.Validate != nil && len(t.Schemas) > 0
	for n := range recs {
		r := &recs[n]
		if len(r.Payload) == 0 {
			return wire.Refuse(wire.Invalid, "message %d: payload required", n)
		}
		if r.Partition >= t.Partitions {
			return wire.Refuse(wire.Invalid, "message %d: partition out of range", n)
		}
		if !validates {
			continue
		}
		if err := i.o.Validate(ctx, t, r.Payload); err != nil {
			return i.invalid(t, n, err)
		}
	}
	return nil
}

func (i *Ingress) invalid(t meta.Topic, n int, err error) error {
	p, ok := errors.AsType[*wire.Problem](err)
	if !ok {
		return fmt.Errorf("ingress: validate: %w", err)
	}
	if p.Kind == wire.Invalid {
		i.o.Observer.Rejected(t.Name, reasonSchema)
	}
	q := *p
	q.Text = fmt.Sprintf("message %d: %s", n, p.Text)
	return &q
}

// encode adds one frame a record and returns the payload bytes.
func (i *Ingress) encode(b *seglog.Batch, t meta.Topic, recs []wire.NewRecord) (payload int64) {
	keyless := 0
	for n := range recs {
		if recs[n].Partition < 0 && len(recs[n].Key) == 0 {
			keyless++
		}
	}
	turn := i.turns(t.ID, keyless)
	now := i.o.Now().UnixMilli()
	head := make([]byte, 0, 128)
	for n := range recs {
		r := &recs[n]
		var flags byte
		p := r.Partition
		switch {
		case p >= 0:
			flags = flagPinned
		case len(r.Key) > 0:
			p = partition.ForKey(r.Key, t.Partitions)
		default:
			p = int(turn % uint64(t.Partitions))
			turn++
		}
		if len(r.Key) > 0 {
			flags |= flagKeyed
		}
		head = appendHead(head[:0], flags, now, t.Name, t.ID, p, len(r.Key))
		b.Add(head, r.Key, r.Payload)
		payload += int64(len(r.Payload))
	}
	return payload
}

// turns takes n turns of the topic's round-robin and returns the first.
func (i *Ingress) turns(topicID string, n int) uint64 {
	if n == 0 {
		return 0
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.next) >= roundRobins {
		clear(i.next)
	}
	first := i.next[topicID]
	i.next[topicID] = first + uint64(n)
	return first
}
