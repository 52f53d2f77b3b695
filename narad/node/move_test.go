package node_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/move"
	"narad.example/narad/wire"
)

// other is a machine that is none of those.
func other(all []*machine, not ...*machine) *machine {
	for _, m := range all {
		free := true
		for _, n := range not {
			free = free && m != n
		}
		if free {
			return m
		}
	}
	return nil
}

// moved waits until every node that runs says that a partition is at a machine, or at any of some.
func (b *bubble) moved(all []*machine, topic string, p int, at ...*machine) (where *machine) {
	b.t.Helper()
	for _, m := range all {
		if m.node == nil {
			continue
		}
		b.eventually(fmt.Sprintf("%s/%d has moved, says %s", topic, p, m.name), func() bool {
			d, err := m.client().Topic(b.t.Context(), topic, nil)
			if err != nil || d.Partial || m.moving(topic) {
				return false
			}
			for _, want := range at {
				if d.PartitionStats[p].OwnerNode == want.name {
					where = want
					return true
				}
			}
			return false
		})
	}
	return where
}

// moving tells whether a topic has a move, by the machine's replica.
func (m *machine) moving(topic string) bool { return m.node.Moving(topic) }

// steady produces numbered records of some keys until stop, through whichever machine runs, and returns how many were accepted.
type steady struct {
	wg       sync.WaitGroup
	stop     context.CancelFunc
	accepted [][]string // by key
}

func (b *bubble) produceSteadily(all []*machine, topic string) *steady {
	ctx, cancel := context.WithCancel(b.t.Context())
	s := &steady{stop: cancel, accepted: make([][]string, 6)}
	for k := range s.accepted {
		clients := make([]*client.Client, len(all))
		for i, m := range all {
			clients[i] = m.client()
		}
		s.wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				payload := fmt.Sprintf("k%d-%05d", k, i)
				// One node a key: two nodes' ingresses know no order between them.
				if err := clients[k%len(clients)].Produce(b.t.Context(), topic, []byte(payload), client.ProduceOptions{Key: fmt.Sprint("k", k)}); err == nil {
					s.accepted[k] = append(s.accepted[k], payload)
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	return s
}

func (s *steady) end() (total int) {
	s.stop()
	s.wg.Wait()
	for _, k := range s.accepted {
		total += len(k)
	}
	return total
}

// holds checks that a topic has every accepted record of each key, firsts in order; duplicates may be there.
func (s *steady) holds(t *testing.T, what string, parts [][]string) {
	t.Helper()
	at := map[string][]string{}
	seen := map[string]bool{}
	for _, part := range parts {
		for _, r := range part {
			if !seen[r] {
				seen[r] = true
				at[r[:2]] = append(at[r[:2]], r)
			}
		}
	}
	for k, want := range s.accepted {
		key := fmt.Sprint("k", k)
		require.IsIncreasing(t, at[key], "order of %s in %s", key, what)
		for _, r := range want {
			require.True(t, seen[r], "%s lost %s", what, r)
		}
	}
}

// A partition moves under load, with a local child and a link on its topic, there and back: nobody loses a record, order stays, the old
// owner keeps nothing of it, no series and no file, and no record of the link is sent twice, since positions and lane marks travel.
//
// covers: BRK-06, BRK-07, CUR-12, CUR-13
func TestAPartitionMovesUnderLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, target := farLink(t, b)
		all[0].create("copy")
		b.everywhere(all, "copy")
		_, err := all[1].client().AttachChild(t.Context(), "orders", wire.AttachChild{Child: "copy"})
		require.NoError(t, err)
		d := b.everywhere(all, "orders")
		load := b.produceSteadily(all, "orders")
		time.Sleep(3 * time.Second)
		for p := range 3 {
			from := owner(all, d, p)
			to := other(all, from)
			require.NoError(t, to.node.Move(t.Context(), "orders", p, to.name))
			b.moved(all, "orders", p, to)
			b.eventually("its files are gone", func() bool {
				_, err := from.disk.Stat(fmt.Sprintf("/%s/topics/%s/%d", from.name, d.ID, p))
				return err != nil
			})
			b.eventually("its series are gone", func() bool {
				_, page := from.get("/metrics", true)
				return !hasSeries(page, "narad_fanout_remote_state", fmt.Sprintf("partition=%q", fmt.Sprint(p)))
			})
			require.NoError(t, from.node.Move(t.Context(), "orders", p, from.name))
			b.moved(all, "orders", p, from)
		}
		total := load.end()
		require.Greater(t, total, 100)
		b.eventually("shipped and copied", func() bool {
			return target.count("orders") >= total && all[0].count("copy") >= total
		})
		b.eventually("drained", func() bool { e := all[2].child("orders", "orders-dr"); return e.LagComplete && e.LagMessages == 0 })
		load.holds(t, "the parent", all[0].stored("orders"))
		load.holds(t, "the target", target.stored("orders"))
		load.holds(t, "the child", all[1].stored("copy"))
		require.Equal(t, total, target.count("orders"), "positions and marks travelled: nothing was sent twice")
		for _, m := range append(all, target) {
			m.stop()
		}
	})
}

// hasSeries tells whether a page has a series of a metric with a label.
func hasSeries(page, metric, label string) bool {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, metric+"{") && strings.Contains(line, label) {
			return true
		}
	}
	return false
}

// What consumers acked on the old owner, also ahead of the frontier, is not given again by the new one, and all else is.
//
// covers: BRK-05, BRK-07
func TestAcksMoveWithThePartition(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n")
		time.Sleep(time.Second)
		all[0].create("orders")
		d := b.everywhere(all, "orders")
		from := owner(all, d, 0)
		to := other(all, from)
		for i := range 10 {
			to.pinned("orders", 0, id("r", i))
		}
		b.eventually("committed", func() bool { return from.count("orders") == 10 })
		msgs, err := to.client().ConsumeBatch(t.Context(), "orders", 8, client.ConsumeOptions{})
		require.NoError(t, err)
		require.Len(t, msgs, 8)
		for _, i := range []int{0, 1, 4, 6} {
			require.NoError(t, to.client().Settle(t.Context(), "orders", msgs[i].ReceiptHandle, client.Ack))
		}
		require.NoError(t, from.node.Move(t.Context(), "orders", 0, to.name))
		b.moved(all, "orders", 0, to)
		var offsets []int64
		b.eventually("given again", func() bool {
			more, err := from.client().ConsumeBatch(t.Context(), "orders", 10, client.ConsumeOptions{})
			for i := range more {
				offsets = append(offsets, more[i].Offset)
			}
			return err == nil && len(offsets) >= 6
		})
		require.Equal(t, []int64{2, 3, 5, 7, 8, 9}, offsets)
		require.Equal(t, 410, statusOf(to.client().Settle(t.Context(), "orders", msgs[2].ReceiptHandle, client.Ack)), "leases do not move")
		for _, m := range all {
			m.stop()
		}
	})
}

// An admin sees a move and ends it, at whichever step it is, through any node: the owner keeps the partition and the copy goes.
//
// covers: BRK-07
func TestAnAdminAbortsAMove(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		fail := &failpoint{}
		b.atStep = fail.at
		all := b.three("n")
		time.Sleep(time.Second)
		all[0].create("orders")
		d := b.everywhere(all, "orders")
		from := owner(all, d, 0)
		to := other(all, from)
		third := other(all, from, to)
		_, err := third.client().AbortMove(t.Context(), "orders", 0)
		require.Equal(t, 404, statusOf(err))
		for _, step := range []move.Step{move.Cleaned, move.Frozen, move.Fenced} {
			from.pinned("orders", 0, "before "+string(step))
			b.eventually("committed", func() bool { return from.backlog() == "0" })
			reached, letGo := fail.arm(step)
			require.NoError(t, third.node.Move(t.Context(), "orders", 0, to.name))
			<-reached
			got, err := from.client().Moves(t.Context())
			require.NoError(t, err)
			require.Equal(t, []wire.Move{{Topic: "orders", From: from.name, To: to.name, FromStatus: "alive", ToStatus: "alive"}}, got.Moves)
			a, err := third.client().AbortMove(t.Context(), "orders", 0)
			require.NoError(t, err)
			require.Equal(t, got.Moves[0], a.Move)
			letGo()
			b.eventually("the copy is gone", func() bool {
				_, err := to.disk.Stat(fmt.Sprintf("/%s/topics/%s/0", to.name, d.ID))
				return err != nil
			})
			b.moved(all, "orders", 0, from)
			third.pinned("orders", 0, "after "+string(step))
			b.eventually("it takes records at once", func() bool { return third.backlog() == "0" })
		}
		b.everywhere(all, "orders")
		require.Len(t, all[0].stored("orders")[0], 6)
		for _, m := range all {
			m.stop()
		}
	})
}
