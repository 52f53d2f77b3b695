package ingress

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/slots"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

// firsts keeps the first of each value, in order.
func firsts(values []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, v := range values {
		if !seen[v] {
			out = append(out, v)
		}
		seen[v] = true
	}
	return out
}

// covers: BRK-02, BRK-04
func TestCrashesLoseNothingAndKeepOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		lives := rapid.IntRange(1, 5).Draw(rt, "lives")
		power := rapid.Bool().Draw(rt, "power loss")
		synctest.Test(t, func(t *testing.T) { crash(t, rand.New(rand.NewPCG(seed, 1)), lives, power) })
	})
}

func crash(t *testing.T, random *rand.Rand, lives int, power bool) {
	const partitions = 3
	files, commits, state := vfs.NewMem(), newCommits(), newState(orders(partitions))
	var want [partitions][]string
	count := 0
	for life := range lives + 1 {
		failing := random.IntN(partitions + 1)
		commits.refusing(func(_ string, p int) error {
			if p == failing && life < lives {
				return errors.New("down")
			}
			return nil
		})
		commits.took = time.Duration(random.IntN(3)) * time.Millisecond
		o := options(files, state, commits)
		o.SegmentBytes = 512
		n := start(t, o)
		for range random.IntN(40) {
			recs := make([]wire.NewRecord, 1+random.IntN(3))
			for i := range recs {
				recs[i] = pinned(random.IntN(partitions), fmt.Sprintf("%d", count))
				count++
			}
			require.NoError(t, n.Produce(t.Context(), "orders", "", recs))
			for _, r := range recs {
				want[r.Partition] = append(want[r.Partition], "="+string(r.Payload))
			}
			if random.IntN(3) == 0 {
				time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
			}
		}
		if life == lives {
			time.Sleep(time.Minute)
			require.Zero(t, n.BacklogTotal())
			n.stop()
			break
		}
		files.Freeze()
		n.stop()
		if power {
			files.DropUnsynced()
		}
		files.Thaw()
	}
	for p := range partitions {
		require.Equal(t, want[p], firsts(commits.of(orders(partitions).ID, p)))
	}
}

func TestAfterAGracefulStopNothingIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, commits, state := vfs.NewMem(), newCommits(), newState(orders(1))
		for life := range 3 {
			n := start(t, options(files, state, commits))
			require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain(fmt.Sprint(life))}))
			synctest.Wait()
			n.stop()
			files.DropUnsynced()
		}
		require.Equal(t, []string{"=0", "=1", "=2"}, commits.of(orders(1).ID, 0))
	})
}

func TestAKillRepeatsOnlyWhatWasInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, commits, state := vfs.NewMem(), newCommits(), newState(orders(1))
		n := start(t, options(files, state, commits))
		for i := range 10 {
			require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain(fmt.Sprint(i))}))
		}
		synctest.Wait() // the checkpoint is in the page cache, no second has passed
		files.Freeze()
		n.stop()
		files.Thaw()
		n = start(t, options(files, state, commits))
		defer n.stop()
		synctest.Wait()
		require.Len(t, commits.of(orders(1).ID, 0), 10)
	})
}

func TestSegmentsBelowTheCheckpointAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(vfs.NewMem(), newState(orders(1)), newCommits())
		o.SegmentBytes = 1024
		n := start(t, o)
		defer n.stop()
		for range 100 {
			require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("0123456789")}))
			synctest.Wait()
		}
		require.Greater(t, len(n.log.Segments()), 3)
		time.Sleep(2 * checkpointSync)
		require.LessOrEqual(t, len(n.log.Segments()), 2)
	})
}

func TestADamagedCheckpointRepeatsAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, commits, state, log := vfs.NewMem(), newCommits(), newState(orders(1)), &logged{}
		n := start(t, options(files, state, commits))
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("a")}))
		synctest.Wait()
		n.stop()
		require.NoError(t, vfs.WriteFile(files, dir+"/"+checkpointName, make([]byte, 2*slots.Size), 0o600))
		o := options(files, state, commits)
		o.Logger = log.logger()
		n = start(t, o)
		defer n.stop()
		synctest.Wait()
		require.Equal(t, []string{"=a", "=a"}, commits.of(orders(1).ID, 0))
		require.Contains(t, log.String(), "the ingress checkpoint is damaged")
	})
}

func TestACheckpointThatCannotBeWrittenStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, commits, log := vfs.NewMem(), newCommits(), &logged{}
		o := options(files, newState(orders(1)), commits)
		o.Logger = log.logger()
		n := start(t, o)
		files.FailNext(vfs.OpOpen, errors.New("disk"), checkpointName)
		require.NoError(t, n.Produce(t.Context(), "orders", "", []wire.NewRecord{plain("a")}))
		synctest.Wait()
		require.Equal(t, []string{"=a"}, commits.of(orders(1).ID, 0))
		require.Contains(t, log.String(), "the ingress checkpoint cannot be written")
		time.Sleep(3 * checkpointSync)
		synctest.Wait()
		require.EqualValues(t, 1, n.d.keeper.synced)
		n.stop()
	})
}
