package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/peer"
	"narad.example/narad/queue"
	"narad.example/narad/wire"
)

// consumer gives records to consumers whichever node owns their partitions (api.Consumer): this node's own from its queue, others by
// asking their owners.
type consumer struct {
	n    *Node
	turn atomic.Uint64 // whose partitions a consume looks at first
}

// consumeAsk asks an owner for records of its partitions, or of one.
type consumeAsk struct {
	Topic     string `json:"topic"`
	TopicID   string `json:"topic_id"`
	Partition *int   `json:"partition,omitempty"`
	Offset    int64  `json:"offset,omitempty"` // of a replay
	Most      int    `json:"most,omitempty"`
	WaitMS    int64  `json:"wait_ms,omitempty"`
}

type consumed struct {
	Deliveries []wire.Delivery `json:"deliveries,omitempty"`
}

// settleAsk acks, gives back or extends a lease on its owner.
type settleAsk struct {
	Topic  string `json:"topic"`
	Verb   string `json:"verb"`
	Handle string `json:"handle"`
}

const (
	verbAck    = "ack"
	verbNack   = "nack"
	verbExtend = "extend"
)

// owner is the node that owns a partition; "" when the queue of this node is to answer, which refuses what is wrong with the request.
func (c *consumer) owner(topic string, p int) (meta.Topic, string) {
	t, ok := c.n.meta.Topic(topic)
	if !ok || t.IsStub() || p < 0 || p >= len(t.Nodes) || t.Nodes[p] == c.n.id {
		return t, ""
	}
	return t, t.Nodes[p]
}

// owners lists the owners of a topic, this node among them, beginning with another one each time.
func (c *consumer) owners(t *meta.Topic) []string {
	var out []string
	seen := map[string]bool{}
	for _, o := range t.Nodes {
		if !seen[o] && o != "" {
			seen[o] = true
			out = append(out, o)
		}
	}
	if len(out) < 2 {
		return out
	}
	start := int(c.turn.Add(1) % uint64(len(out)))
	return append(out[start:len(out):len(out)], out[:start]...)
}

// Consume leases records of one partition, or of any: first those that are there, each owner in its turn, then the first that come
// within wait. An owner that is away is left out as long as another one answers, and one that counts as dead is not asked.
func (c *consumer) Consume(ctx context.Context, topic string, p *int, limit int, wait time.Duration) ([]wire.Delivery, error) {
	if p != nil {
		t, owner := c.owner(topic, *p)
		if owner == "" {
			return c.n.queues.Consume(ctx, topic, p, limit, wait)
		}
		return c.from(ctx, owner, consumeAsk{Topic: topic, TopicID: t.ID, Partition: p, Most: limit, WaitMS: wait.Milliseconds()})
	}
	t, ok := c.n.meta.Topic(topic)
	owners := c.owners(&t)
	if !ok || t.IsStub() || len(owners) == 0 || len(owners) == 1 && owners[0] == c.n.id {
		return c.n.queues.Consume(ctx, topic, nil, limit, wait)
	}
	ask := consumeAsk{Topic: topic, TopicID: t.ID, Most: limit}
	var failed error
	silent := map[string]bool{}
	for _, o := range owners {
		if c.n.dead(o) { // each consume would wait for it, for as long as it is away
			failed, silent[o] = away(peer.ErrUnreachable, o, false), true
			continue
		}
		out, err := c.from(ctx, o, ask)
		if len(out) > 0 {
			return out, nil
		}
		if err != nil {
			failed, silent[o] = err, true
		}
	}
	if len(silent) == len(owners) {
		return nil, failed
	}
	if wait <= 0 {
		return nil, nil
	}
	ask.WaitMS = wait.Milliseconds()
	return c.race(ctx, owners, silent, ask)
}

// race waits at all owners that answer, until one has records. What another one has too goes back to it at once; what is lost on its
// way is given again after its visibility timeout.
func (c *consumer) race(ctx context.Context, owners []string, silent map[string]bool, ask consumeAsk) ([]wire.Delivery, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // guards won
	var won []wire.Delivery
	var all sync.WaitGroup
	for _, o := range owners {
		if silent[o] {
			continue
		}
		all.Go(func() {
			out, err := c.from(ctx, o, ask)
			if err != nil || len(out) == 0 {
				return // an owner that went away, or that had nothing, leaves it to the others
			}
			mu.Lock()
			first := won == nil
			if first {
				won = out
			}
			mu.Unlock()
			if first {
				cancel()
				return
			}
			c.giveBack(ctx, ask.Topic, out)
		})
	}
	all.Wait()
	if won == nil && context.Cause(ctx) != nil {
		return nil, context.Cause(ctx)
	}
	return won, nil
}

// giveBack gives leased records back to their owner at once. What it does not take comes again when its lease ends: the consumer that waits is not
// kept for it.
func (c *consumer) giveBack(ctx context.Context, topic string, out []wire.Delivery) {
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWait)
	defer cancel()
	for i := range out {
		_ = c.settle(back, verbNack, topic, out[i].Handle)
	}
}

// from leases records of one owner.
func (c *consumer) from(ctx context.Context, owner string, ask consumeAsk) ([]wire.Delivery, error) {
	wait := time.Duration(ask.WaitMS) * time.Millisecond
	if owner == c.n.id {
		return c.n.queues.Consume(ctx, ask.Topic, ask.Partition, ask.Most, wait)
	}
	var a consumed
	err := c.n.ask(ctx, owner, opConsume, ask, &a, wait+settleWait)
	return a.Deliveries, away(err, owner, false)
}

// Replay reads a record where it is.
func (c *consumer) Replay(ctx context.Context, topic string, p int, offset int64) (*wire.Delivery, error) {
	t, owner := c.owner(topic, p)
	if owner == "" {
		return c.n.queues.Replay(ctx, topic, p, offset)
	}
	var a consumed
	err := c.n.ask(ctx, owner, opReplay, consumeAsk{Topic: topic, TopicID: t.ID, Partition: &p, Offset: offset}, &a, settleWait)
	if err != nil {
		return nil, away(err, owner, true)
	}
	if len(a.Deliveries) == 0 {
		return nil, nil
	}
	return &a.Deliveries[0], nil
}

// Ack ends a lease for good.
func (c *consumer) Ack(ctx context.Context, topic, handle string) error {
	return c.settle(ctx, verbAck, topic, handle)
}

// Nack gives a leased record back.
func (c *consumer) Nack(ctx context.Context, topic, handle string) error {
	return c.settle(ctx, verbNack, topic, handle)
}

// Extend begins the visibility timeout of a lease anew.
func (c *consumer) Extend(ctx context.Context, topic, handle string) error {
	return c.settle(ctx, verbExtend, topic, handle)
}

func (c *consumer) settle(ctx context.Context, verb, topic, handle string) error {
	h, err := queue.ParseHandle(handle)
	if err != nil {
		return err
	}
	ask := settleAsk{Topic: topic, Verb: verb, Handle: handle}
	if _, owner := c.owner(topic, h.Partition); owner != "" {
		return away(c.n.ask(ctx, owner, opSettle, ask, nil, settleWait), owner, false)
	}
	return c.n.settleHere(ctx, ask)
}

func (n *Node) settleHere(ctx context.Context, q settleAsk) error {
	switch q.Verb {
	case verbAck:
		return n.queues.Ack(ctx, q.Topic, q.Handle)
	case verbNack:
		return n.queues.Nack(ctx, q.Topic, q.Handle)
	case verbExtend:
		return n.queues.Extend(ctx, q.Topic, q.Handle)
	}
	return wire.Refuse(wire.Precondition, "this node does not know what to do with the lease; bring all members to one release")
}

// sameTopic refuses a call that means another incarnation than this replica has.
func (n *Node) sameTopic(name, id string) error {
	if t, ok := n.meta.Topic(name); !ok || t.ID != id {
		return wire.Refuse(wire.Unavailable, "the owner knows another state of the topic; try again").After(time.Second)
	}
	return nil
}

// serveConsume answers another node. What was leased for a caller that has gone is given back at once.
func (n *Node) serveConsume(ctx context.Context, q consumeAsk) (consumed, error) {
	if err := n.sameTopic(q.Topic, q.TopicID); err != nil {
		return consumed{}, err
	}
	out, err := n.queues.Consume(ctx, q.Topic, q.Partition, q.Most, time.Duration(q.WaitMS)*time.Millisecond)
	if err != nil || ctx.Err() == nil {
		return consumed{out}, err
	}
	for i := range out {
		_ = n.queues.Nack(context.WithoutCancel(ctx), q.Topic, out[i].Handle) // else it comes again when its lease ends
	}
	return consumed{}, ctx.Err()
}

func (n *Node) serveReplay(ctx context.Context, q consumeAsk) (consumed, error) {
	if err := n.sameTopic(q.Topic, q.TopicID); err != nil {
		return consumed{}, err
	}
	if q.Partition == nil {
		return consumed{}, errors.New("a replay without a partition")
	}
	d, err := n.queues.Replay(ctx, q.Topic, *q.Partition, q.Offset)
	if err != nil || d == nil {
		return consumed{}, err
	}
	return consumed{[]wire.Delivery{*d}}, nil
}

func (n *Node) serveSettle(ctx context.Context, q settleAsk) (struct{}, error) {
	return struct{}{}, n.settleHere(ctx, q)
}
