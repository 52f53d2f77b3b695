package sim

import (
	"context"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/faults"
	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/client"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

// onRig runs f on a rig of one node a side, with a topic on the source.
func onRig(t *testing.T, f func(t *testing.T, r cluster.Rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &Backend{Random: SeededSecrets(1)}
		r, err := b.Start(t.Context(), cluster.Spec{
			Scenario: "breaks", Dir: t.TempDir(), Seed: 1, Epoch: time.Now(), Source: cluster.Side{Nodes: 1}, Target: cluster.Side{Nodes: 1},
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close(context.Background())) }()
		n, err := r.Node("source-1")
		require.NoError(t, err)
		_, err = n.Client().CreateTopic(t.Context(), wire.CreateTopic{Name: "orders", Partitions: 3})
		require.NoError(t, err)
		f(t, r)
	})
}

// whileProducing injects a fault for 10 s while records are produced, every 50 ms, and tells how many were acknowledged meanwhile.
func whileProducing(t *testing.T, r cluster.Rig, s faults.Spec) (line ledger.Fault, acknowledged int) {
	t.Helper()
	s.Node = "source-1"
	f, err := faults.New(s)
	require.NoError(t, err)
	n, err := r.Node(s.Node)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		line, err = faults.Do(t.Context(), r, f, 10*time.Second, time.Now(), rand.New(rand.NewPCG(1, 2)))
	}()
	for {
		select {
		case <-done:
			require.NoError(t, err)
			return line, acknowledged
		case <-time.After(50 * time.Millisecond):
		}
		if produced(t.Context(), n) == nil {
			acknowledged++
		}
	}
}

func produced(ctx context.Context, n cluster.Node) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return n.Client().Produce(ctx, "orders", []byte(`{"a":1}`), client.ProduceOptions{})
}

// covers: HAR-02
func TestDiskFaultsLandAndHeal(t *testing.T) {
	for name, c := range map[string]struct {
		spec   faults.Spec
		landed bool
		refuse bool // it takes no record while it lasts
		start  bool // it wants a new start afterwards
	}{
		"full":              {faults.Spec{Kind: "full", Disk: cluster.DiskFault{Files: "all"}}, true, true, false},
		"full cursors":      {faults.Spec{Kind: "full", Disk: cluster.DiskFault{Files: "cursors"}}, false, false, false}, // there is none
		"failing syncs":     {faults.Spec{Kind: "fsync_error", Disk: cluster.DiskFault{Files: "wal"}}, true, true, true},
		"slow syncs":        {faults.Spec{Kind: "slow_fsync", Disk: cluster.DiskFault{Files: "all", Delay: 20 * time.Millisecond}}, true, false, false},
		"loss of nothing":   {faults.Spec{Kind: "bit_flip", Disk: cluster.DiskFault{Files: "segments"}}, false, false, false}, // none is sealed
		"a loss of power":   {faults.Spec{Kind: "power_loss"}, false, true, false},                                            // syncs take no time, so that nothing is lost
		"files of no node":  {faults.Spec{Kind: "full", Disk: cluster.DiskFault{Files: "none"}}, false, false, false},
		"rot under the eye": {faults.Spec{Kind: "bit_flip", Disk: cluster.DiskFault{Files: "cursors"}}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			onRig(t, func(t *testing.T, r cluster.Rig) {
				if name == "files of no node" || name == "rot under the eye" {
					f, err := faults.New(faults.Spec{Kind: c.spec.Kind, Node: "source-1", Disk: c.spec.Disk})
					require.NoError(t, err)
					_, err = faults.Do(t.Context(), r, f, time.Second, time.Now(), rand.New(rand.NewPCG(1, 2)))
					require.ErrorIs(t, err, cluster.ErrTrouble)
					return
				}
				line, acknowledged := whileProducing(t, r, c.spec)
				require.Equal(t, c.landed, line.Landed, "%v", line.Evidence)
				if c.refuse {
					require.LessOrEqual(t, acknowledged, 2, "%v", line.Evidence)
				} else {
					require.Greater(t, acknowledged, 20, "%v", line.Evidence)
				}
				n, err := r.Node("source-1")
				require.NoError(t, err)
				if c.start {
					require.Error(t, produced(t.Context(), n))
					require.NoError(t, n.Kill(t.Context()))
					require.NoError(t, n.Start(t.Context()))
				}
				require.NoError(t, produced(t.Context(), n))
			})
		})
	}
}

// A folder is a file of its disk: when syncs fail, a file that was removed from one comes back with a loss of power.
// covers: HAR-02
func TestFailingSyncsMeetFolders(t *testing.T) {
	onRig(t, func(t *testing.T, r cluster.Rig) {
		n, err := r.Node("source-1")
		require.NoError(t, err)
		files := n.(*simNode).fs
		const dir = "/source-1/topics/x"
		require.NoError(t, files.MkdirAll(dir, 0o700))
		require.NoError(t, vfs.WriteFile(files, dir+"/a", []byte("a"), 0o600))
		for _, d := range []string{dir, "/source-1/topics", "/source-1"} {
			require.NoError(t, files.SyncDir(d))
		}
		failing, err := n.(cluster.Disk).Damage(t.Context(), cluster.DiskFault{Kind: cluster.FsyncError, Files: cluster.FilesParts})
		require.NoError(t, err)
		require.NoError(t, files.Remove(dir+"/a"))
		require.ErrorIs(t, files.SyncDir(dir), syscall.EIO)
		require.EqualValues(t, 1, failing.Hits())
		require.NoError(t, failing.Mend(t.Context()))
		_, err = n.(cluster.Disk).CutPower(t.Context(), nil)
		require.NoError(t, err)
		body, err := vfs.ReadFile(files, dir+"/a")
		require.NoError(t, err)
		require.Equal(t, "a", string(body))
	})
}

// A loss of power in the middle of a slow sync takes what was not synced, and no record that was acknowledged.
// covers: HAR-02, BRK-04
func TestALossOfPowerTakesWhatWasNotSynced(t *testing.T) {
	onRig(t, func(t *testing.T, r cluster.Rig) {
		n, err := r.Node("source-1")
		require.NoError(t, err)
		slow, err := n.(cluster.Disk).Damage(t.Context(), cluster.DiskFault{Kind: cluster.SlowFsync, Files: cluster.FilesAll, Delay: 30 * time.Millisecond})
		require.NoError(t, err)
		cuts := 0
		line, acknowledged := whileProducing(t, r, faults.Spec{
			Kind: "torn", Flap: &faults.Flap{On: 200 * time.Millisecond, Off: 600 * time.Millisecond}, Dying: func(_ context.Context, graceful bool) func() {
				require.False(t, graceful)
				return func() {
					require.False(t, n.Running())
					cuts++
				}
			},
		})
		require.True(t, line.Landed, "%v", line.Evidence)
		require.Equal(t, line.Evidence["times_on"], cuts)
		require.Greater(t, cuts, 3)
		require.Positive(t, slow.Hits())
		require.NoError(t, slow.Mend(t.Context()))
		time.Sleep(5 * time.Second)
		detail, err := n.Client().Topic(t.Context(), "orders", nil)
		require.NoError(t, err)
		stored := int64(0)
		for _, p := range detail.PartitionStats {
			stored += p.HighWatermark
		}
		require.GreaterOrEqual(t, stored, int64(acknowledged))
	})
}

// covers: HAR-02
func TestClockFaultsLandAndHeal(t *testing.T) {
	onRig(t, func(t *testing.T, r cluster.Rig) {
		for _, s := range []faults.Spec{{Step: 25 * time.Hour}, {Step: -2 * time.Hour}, {Drift: 500 * time.Millisecond}, {Step: time.Minute, Drift: -time.Millisecond}} {
			s.Kind = "clock"
			line, _ := whileProducing(t, r, s)
			require.True(t, line.Landed, "%v", line.Evidence)
		}
		line, _ := whileProducing(t, r, faults.Spec{Kind: "clock", Step: 300 * time.Millisecond})
		require.False(t, line.Landed, "no node tells less than a second")
	})
}

// Two scrapes at once of a node whose partitions open slowly: neither waits for the other with a lock held, which would stop the clock
// of the bubble for good.
// covers: HAR-02
func TestScrapesOfANodeWithASlowDisk(t *testing.T) {
	onRig(t, func(t *testing.T, r cluster.Rig) {
		n, err := r.Node("source-1")
		require.NoError(t, err)
		require.NoError(t, produced(t.Context(), n))
		require.NoError(t, n.Kill(t.Context()))
		slow, err := n.(cluster.Disk).Damage(t.Context(), cluster.DiskFault{Kind: cluster.SlowFsync, Files: cluster.FilesParts, Delay: time.Second})
		require.NoError(t, err)
		require.NoError(t, n.Start(t.Context()))
		answers := make(chan error, 3)
		for range cap(answers) {
			go func() {
				_, merr := n.Metrics(t.Context())
				answers <- merr
			}()
		}
		for range cap(answers) {
			require.NoError(t, <-answers)
		}
		require.Positive(t, slow.Hits())
		require.NoError(t, slow.Mend(t.Context()))
	})
}
