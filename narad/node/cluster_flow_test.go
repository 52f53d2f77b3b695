package node_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// three starts a cluster of three nodes, those of the numbers given of a release before remotes, and waits until each is ready.
func (b *bubble) three(prefix string, older ...int) []*machine {
	b.t.Helper()
	next := 0
	return b.threeWith(prefix, func(m *machine) {
		m.older = slices.Contains(older, next)
		next++
	})
}

// threeWith is three whose nodes are changed before they start.
func (b *bubble) threeWith(prefix string, change func(*machine)) []*machine {
	b.t.Helper()
	var peers []string
	for i := range 3 {
		peers = append(peers, fmt.Sprintf("%s%d@%s%d:7943", prefix, i+1, prefix, i+1))
	}
	var all []*machine
	for i := range 3 {
		m := b.machine(fmt.Sprintf("%s%d", prefix, i+1))
		m.config.Cluster.Addr, m.config.Cluster.Peers = ":7943", peers
		m.config.Security.AllowPlaintextRaft = true
		change(m)
		all = append(all, m)
	}
	for _, m := range all {
		m.start()
	}
	for _, m := range all {
		b.ready(m)
	}
	return all
}

// ready waits until a node is ready and knows all of three members.
func (b *bubble) ready(m *machine) {
	b.t.Helper()
	b.eventually(m.name+" is ready", func() bool {
		_, err := m.client().Ready(b.t.Context())
		return err == nil
	})
}

// everywhere waits until a topic is known on all nodes.
func (b *bubble) everywhere(all []*machine, topic string) wire.TopicDetail {
	b.t.Helper()
	var d wire.TopicDetail
	for _, m := range all {
		b.eventually(topic+" on "+m.name, func() bool {
			var err error
			d, err = m.client().Topic(b.t.Context(), topic, nil)
			return err == nil && !d.Partial
		})
	}
	return d
}

// owner finds the machine that owns a partition.
func owner(all []*machine, d wire.TopicDetail, p int) *machine {
	for _, m := range all {
		if m.name == d.PartitionStats[p].OwnerNode {
			return m
		}
	}
	return nil
}

// Records that any of three nodes took reach their owners in order, and any node leases, acks, replays and describes them.
//
// covers: BRK-02, BRK-05, BRK-07, CUR-02
func TestAnyNodeServesAnyPartition(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		time.Sleep(time.Second)
		all[1].create("orders")
		d := b.everywhere(all, "orders")
		owners := map[string]bool{}
		for _, s := range d.PartitionStats {
			owners[s.OwnerNode] = true
		}
		require.Len(t, owners, 3, "the partitions are spread over all members")
		for i := range 30 {
			all[i%3].produce("orders", fmt.Sprint("k", i%5, "-", i%3), id("r", i))
		}
		for _, m := range all {
			b.eventually("all is committed", func() bool { return m.count("orders") == 30 })
			total := 0
			for _, part := range m.stored("orders") {
				total += len(part)
			}
			require.Equal(t, 30, total, "replay through %s", m.name)
		}
		seen := map[string]int{}
		for i := 0; len(seen) < 30; i++ {
			require.Less(t, i, 200)
			m := all[i%3]
			msgs, err := m.client().ConsumeBatch(t.Context(), "orders", 4, client.ConsumeOptions{Wait: time.Second})
			require.NoError(t, err)
			for j := range msgs {
				body, err := client.Payload(&msgs[j], false)
				require.NoError(t, err)
				seen[string(body)]++
				require.NoError(t, all[(i+1)%3].client().Settle(t.Context(), "orders", msgs[j].ReceiptHandle, client.Ack), "acked through another node")
			}
		}
		for r, n := range seen {
			require.Equal(t, 1, n, r)
		}
		p := 1
		at := owner(all, d, p)
		at.kill(false)
		for _, m := range all {
			if m == at {
				continue
			}
			_, err := m.client().Replay(t.Context(), "orders", p, 0)
			require.Equal(t, 503, statusOf(err), "the owner is away: %v", err)
			got, err := m.client().Topic(t.Context(), "orders", nil)
			require.NoError(t, err)
			require.True(t, got.Partial)
			require.Equal(t, "owner_unavailable", got.PartitionStats[p].Status)
		}
		at.start()
		b.ready(at)
		b.everywhere(all, "orders")
		for _, m := range all {
			m.stop()
		}
	})
}

// A consumer that waits through a node which owns none of what comes gets it at once, and nobody else gets it too.
//
// covers: BRK-05
func TestAWaitingConsumerHearsOfOtherNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		time.Sleep(time.Second)
		all[0].create("orders")
		d := b.everywhere(all, "orders")
		for p := range 3 {
			var wg sync.WaitGroup
			got := make([]*wire.Message, 3)
			took := make([]time.Duration, 3)
			began := time.Now()
			for i, m := range all {
				wg.Go(func() {
					msg, err := m.client().Consume(t.Context(), "orders", client.ConsumeOptions{Wait: 8 * time.Second})
					if err == nil {
						got[i], took[i] = msg, time.Since(began)
					}
				})
			}
			time.Sleep(2 * time.Second)
			owner(all, d, (p+1)%3).pinned("orders", p, "x")
			wg.Wait()
			winners := 0
			for i, msg := range got {
				if msg != nil {
					winners++
					require.Less(t, took[i], 3*time.Second)
					require.NoError(t, all[(i+1)%3].client().Settle(t.Context(), "orders", msg.ReceiptHandle, client.Ack))
				}
			}
			require.Equal(t, 1, winners)
		}
		for _, m := range all {
			m.stop()
		}
	})
}

// silentOwner is three nodes with the topic wide, of which the owner of partition 0 says nothing; other owns partition 1.
func (b *bubble) silentOwner() (all []*machine, silent, other *machine) {
	b.t.Helper()
	all = b.three("n")
	time.Sleep(time.Second)
	all[0].create("wide")
	d := b.everywhere(all, "wide")
	silent, other = owner(all, d, 0), owner(all, d, 1)
	silent.host.Freeze(true)
	return all, silent, other
}

// Records that are given back to an owner that says nothing keep the consumer, who has others, no longer than one call may take.
//
// covers: BRK-05
func TestGivingBackToASilentOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, silent, other := b.silentOwner()
		leased := make([]wire.Delivery, 100)
		for i := range leased {
			leased[i].Handle = fmt.Sprintf("0:%d:00112233445566ff", i)
		}
		began := time.Now()
		other.node.GiveBack(t.Context(), "wide", leased)
		require.LessOrEqual(t, time.Since(began), 5*time.Second)
		silent.host.Freeze(false)
		for _, m := range all {
			m.stop()
		}
	})
}

// A consumer of any partition waits for no owner that counts as dead, and hears that nobody is there when all others do.
//
// covers: BRK-05, BRK-07
func TestAConsumerWaitsForNoDeadOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, silent, other := b.silentOwner()
		time.Sleep(45 * time.Second) // it counts as dead, and the client's idle connections are not closed yet
		for i := range 6 {
			other.pinned("wide", 1, id("r", i))
		}
		b.eventually("committed", func() bool { return other.backlog() == "0" })
		for range 6 {
			began := time.Now()
			msg, err := other.client().Consume(t.Context(), "wide", client.ConsumeOptions{})
			require.NoError(t, err)
			require.NotNil(t, msg)
			require.Less(t, time.Since(began), time.Second)
		}
		began := time.Now()
		msg, err := other.client().Consume(t.Context(), "wide", client.ConsumeOptions{Wait: time.Second})
		require.NoError(t, err)
		require.Nil(t, msg)
		require.Less(t, time.Since(began), 2*time.Second)
		silent.host.Freeze(false)
		for _, m := range all {
			m.stop()
		}
	})
}

// An owner that says nothing costs the records of others nothing: once it is known to be silent one commit at a time asks again.
//
// covers: BRK-02
func TestASilentOwnerHoldsNobodyElseUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		time.Sleep(time.Second)
		_, err := all[0].client().CreateTopic(t.Context(), wire.CreateTopic{Name: "wide", Partitions: 66})
		require.NoError(t, err)
		d := b.everywhere(all, "wide")
		silent, other := owner(all, d, 0), owner(all, d, 1)
		took := owner(all, d, 2)
		silent.host.Freeze(true)
		for p, s := range d.PartitionStats {
			if s.OwnerNode == silent.name {
				took.pinned("wide", p, "waits")
			}
		}
		time.Sleep(12 * time.Second)
		for i := range 20 {
			began := time.Now()
			took.pinned("wide", 1, id("goes on", i))
			b.eventually("committed", func() bool {
				msg, err := other.client().Replay(t.Context(), "wide", 1, int64(i))
				return err == nil && msg != nil
			})
			require.Less(t, time.Since(began), time.Second)
			time.Sleep(400 * time.Millisecond)
		}
		silent.host.Freeze(false)
		b.eventually("it answers again", func() bool { return took.backlog() == "0" })
		b.ready(silent)
		for p, s := range b.everywhere(all, "wide").PartitionStats {
			if s.OwnerNode == silent.name {
				require.EqualValues(t, 1, s.HighWatermark, "no straggler landed twice on %d", p)
			}
		}
		for _, m := range all {
			m.stop()
		}
	})
}

func statusOf(err error) int {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return e.Status
	}
	return 0
}
