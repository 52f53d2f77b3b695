package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// Names of the rows of clusters, which are no PRF rows of their own.
const (
	rowThreeDrain = "three-drain"
	rowOther      = "other-produce"
	rowLeader     = "leader-lost"
	rowMove       = "move"
	rowMoveWire   = "move-wire"
)

// measureThree compares a drain from three nodes with one from one node. All nodes share this machine.
func measureThree(ctx context.Context, s *stand) (map[string]sample, error) {
	t, p, err := s.threeNodes(ctx)
	if err != nil {
		return nil, err
	}
	k := copying{of: s.plain(), lanes: 1, remote: remoteName}
	k.of.partitions = founders
	three := &pair{source: t.nodes[0], target: p.target}
	ours, reference, err := s.both(ctx,
		func(ctx context.Context) (copied, error) { return s.drainPair(ctx, three, k) },
		func(ctx context.Context) (copied, error) { return s.drainPair(ctx, p, k) })
	return map[string]sample{rowThreeDrain: {ours.rate(), reference.rate()}}, err
}

// measureOther compares single produce to one partition through a node that is not its owner with the same through the owner. The clock runs until
// every record is in the partition: a 202 promises it to the node that was asked only.
func measureOther(ctx context.Context, s *stand) (map[string]sample, error) {
	t, _, err := s.threeNodes(ctx)
	if err != nil {
		return nil, err
	}
	ours, reference, err := s.both(ctx,
		func(ctx context.Context) (copied, error) { return s.pinned(ctx, t, false) },
		func(ctx context.Context) (copied, error) { return s.pinned(ctx, t, true) })
	return map[string]sample{rowOther: {ours.rate(), reference.rate()}}, err
}

// pinned produces to partition 0 of a topic of its own, through its owner or another node.
func (s *stand) pinned(ctx context.Context, t *several, owner bool) (copied, error) {
	topic, err := s.topic(ctx, t.nodes[0], "pinned")
	if err != nil {
		return copied{}, err
	}
	d, err := t.nodes[0].client.Topic(ctx, topic, nil)
	if err != nil {
		return copied{}, err
	}
	if len(d.PartitionStats) == 0 {
		return copied{}, fmt.Errorf("%s shows no partition", topic)
	}
	for _, n := range t.nodes {
		if (d.PartitionStats[0].OwnerNode == n.name) != owner {
			continue
		}
		l := load{topic: topic, clients: singleClients, records: 1, request: func(i int) []byte {
			return s.post(n, "/v1/topics/"+topic+"/produce?partition=0&key="+key(i), payload(nil, i))
		}}
		start := time.Now()
		c, err := s.run(ctx, n, l, produceFor)
		if err != nil {
			return copied{}, err
		}
		if err = stored(ctx, n, topic, c.records); err != nil {
			return copied{}, err
		}
		c.took = time.Since(start)
		return c, t.nodes[0].client.DeleteTopic(ctx, topic, false)
	}
	return copied{}, fmt.Errorf("partition 0 of %s belongs to %q, none of %s", topic, d.PartitionStats[0].OwnerNode, t.name)
}

// withoutLeader is the seconds from the death of who leads three nodes until a topic can be created again. Meanwhile each produce through another
// node must be taken.
func (s *stand) withoutLeader(ctx context.Context) (float64, error) {
	t, err := s.newSeveral(ctx, fmt.Sprintf("led-%d", s.round), founders)
	if err != nil {
		return 0, err
	}
	defer t.end()
	topic, err := s.topic(ctx, t.nodes[0], "led")
	if err != nil {
		return 0, err
	}
	leads, others, err := t.leader(ctx)
	if err != nil {
		return 0, err
	}
	if err = others[0].client.Produce(ctx, topic, []byte(`1`), client.ProduceOptions{}); err != nil { // it knows the topic from here on
		return 0, err
	}
	leads.kill()
	start := time.Now()
	err = poll(ctx, readyLimit, 10*time.Millisecond, "a topic without the leader that was", func(ctx context.Context) (bool, error) {
		if failed := others[0].client.Produce(ctx, topic, []byte(`1`), client.ProduceOptions{}); failed != nil {
			return false, fmt.Errorf("produce without a leader: %w", failed)
		}
		_, failed := s.topic(ctx, others[0], "after")
		var refused *client.Error
		if errors.As(failed, &refused) && refused.Status >= http.StatusInternalServerError {
			return false, nil
		}
		return failed == nil, failed
	})
	return time.Since(start).Seconds(), err
}

// measureMove compares how fast a member that leaves gives its partitions away with a plain copy of their files on the same disk, in bytes a second. The
// clock of the moves runs from the request to decommission it until the member owns none. A plain copy never leaves the kernel and
// needs no wire; move-wire compares with the least work that takes files from one node to another.
func measureMove(ctx context.Context, s *stand) (map[string]sample, error) {
	t, err := s.newSeveral(ctx, fmt.Sprintf("moving-%d", s.round), founders+1)
	if err != nil {
		return nil, err
	}
	defer t.end()
	leaves, stays := t.nodes[founders], t.nodes[0]
	of := s.plain()
	of.partitions = len(t.nodes)
	if _, err = stays.client.CreateTopic(ctx, wire.CreateTopic{Name: of.topic(), Partitions: of.partitions}); err != nil {
		return nil, err
	}
	if err = of.produce(ctx, stays, of.topic()); err != nil {
		return nil, err
	}
	d, err := stays.client.Topic(ctx, of.topic(), nil)
	if err != nil {
		return nil, err
	}
	size := int64(0)
	for _, p := range d.PartitionStats {
		if p.OwnerNode == leaves.name {
			size += p.SizeBytes
		}
	}
	if size == 0 {
		return nil, fmt.Errorf("%s owns nothing that could move", leaves.name)
	}
	if err = warm(ctx, s.path(leaves.name), s.path(t.name+"-warm")); err != nil {
		return nil, err
	}
	reference, err := copyFiles(ctx, s.path(leaves.name), s.path(t.name+"-copy")) // first: a move deletes them
	if err = errors.Join(err, os.RemoveAll(s.path(t.name+"-copy"))); err != nil {
		return nil, err
	}
	floor, err := s.copyOverTLS(ctx, s.path(leaves.name), s.path(t.name+"-sent"))
	if err != nil {
		return nil, err
	}
	ours, err := emptied(ctx, stays, leaves, int(size))
	return map[string]sample{rowMove: {ours.rate(), reference.rate()}, rowMoveWire: {ours.rate(), floor.rate()}}, err
}

// emptied lets a member leave and waits until it owns nothing; records stand for bytes.
func emptied(ctx context.Context, asked, leaves *node, size int) (copied, error) {
	start := time.Now()
	if err := asked.client.Decommission(ctx, leaves.name); err != nil {
		return copied{}, err
	}
	err := poll(ctx, drainLimit, pollEvery, leaves.name+" to own nothing", func(ctx context.Context) (bool, error) {
		all, err := asked.client.Members(ctx, false)
		for _, m := range all.Members {
			if m.ID == leaves.name && m.OwnedPartitions > 0 {
				return false, err
			}
		}
		return err == nil, err
	})
	return copied{took: time.Since(start), records: size}, err
}
