package fanout

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/slots"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

func TestAPartitionThatWasClosedIsOpenedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		gate := make(chan struct{})
		g.target.wait = g.target.waitAfter(0, gate)
		g.commit(orders(1), 0, 10)
		g.start()
		defer g.end()
		synctest.Wait()
		require.NoError(t, g.store.Release(orders(1).ID, 0))
		g.commit(orders(1), 0, 5)
		close(gate)
		time.Sleep(time.Hour)
		require.Equal(t, numbers(0, 15), g.target.got("copy", 0))
		require.NotContains(t, g.log.String(), "level=ERROR")
	})
}

func TestADeletedParentEndsItsCursorsQuietly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 10)
		g.start()
		defer g.end()
		synctest.Wait()
		g.meta.change(func(all map[string]meta.Topic) {
			delete(all, "orders")
			delete(all, "copy")
		})
		require.NoError(t, g.store.Drop(orders(1).ID))
		time.Sleep(time.Hour)
		require.Empty(t, g.runner.All())
		require.NotContains(t, g.log.String(), "level=ERROR")
		exists, err := g.store.Exists(orders(1).ID, 0)
		require.NoError(t, err)
		require.False(t, exists, "nothing made the folder again")
	})
}

// A parent of the same name is another topic: BR-05 C.
// covers: CUR-03, CUR-04, BRK-09
func TestARecreatedParentStartsFromItsOwnAttachPoint(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 50)
		g.start()
		defer g.end()
		synctest.Wait()
		again, child := orders(1), link(1, 8)
		again.ID, child.AttachEpoch, child.ID = "eeeeeeeeeeeeeeee", epoch2, "ffffffffffffffff"
		g.commit(again, 0, 20) // an attach never names an offset above its high watermark
		g.meta.change(func(all map[string]meta.Topic) { all["orders"], all["copy"] = again, child })
		time.Sleep(time.Minute)
		require.Equal(t, append(numbers(0, 50), numbers(8, 20)...), g.target.got("copy", 0))
		_, v := g.verdict("copy")
		require.Equal(t, slots.Missing, v, "the old attach's file is gone")
	})
}

func TestAFailedSyncIsNoticedWhileIdle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 10)
		g.files.FailNext(vfs.OpSync, errors.New("disk"), "fanout-copy")
		g.start()
		defer g.end()
		synctest.Wait()
		require.Equal(t, wire.UnknownState, g.runner.Stats("copy")[0].State)
		require.Equal(t, 1, strings.Count(g.log.String(), "the cursor file cannot be written"))
		time.Sleep(faultRetry + time.Second)
		require.Equal(t, wire.Running, g.runner.Stats("copy")[0].State)
		p, _ := g.verdict("copy")
		require.EqualValues(t, 10, p.next)
	})
}

type slowCommits struct {
	Committer
	ended atomic.Int64
	cut   atomic.Int64
}

func (s *slowCommits) Commit(ctx context.Context, topicID string, p int, recs []partition.Record) error {
	select {
	case <-time.After(3 * time.Second):
	case <-ctx.Done():
		s.cut.Add(1)
		return ctx.Err()
	}
	s.ended.Add(1)
	return s.Committer.Commit(ctx, topicID, p, recs)
}

func TestAStopLetsALocalCommitEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), local(1))
		g.commit(orders(1), 0, 10)
		slow := &slowCommits{Committer: g.opts.Commit}
		g.opts.Commit = slow
		g.start()
		time.Sleep(time.Second)
		g.stop()
		require.EqualValues(t, 1, slow.ended.Load())
		require.Zero(t, slow.cut.Load())
		p, _ := g.verdict("audit")
		require.EqualValues(t, 10, p.next)
		require.Len(t, g.read(local(1).ID, 0), 10)
		g.end()
	})
}

// covers: CUR-10
func TestARestartAfterRetentionPassedCountsTheLoss(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newRig(t, orders(1), link(1))
		g.commit(orders(1), 0, 100)
		g.start()
		synctest.Wait()
		g.stop()
		g.commit(orders(1), 0, 2900)
		oldest := g.retain(0)
		require.Greater(t, oldest, int64(100))
		g.reopen()
		defer g.end()
		synctest.Wait()
		require.Equal(t, oldest-100, g.counts.dropped)
		hw := int(g.partition(orders(1).ID, 0).HighWatermark())
		require.Equal(t, append(numbers(0, 100), numbers(int(oldest), hw)...), g.target.got("copy", 0))
	})
}
