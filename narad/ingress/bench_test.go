package ingress

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/partition"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

type storeCommits struct{ store *partition.Store }

func (s storeCommits) Commit(ctx context.Context, topicID string, p int, recs []partition.Record) error {
	part, err := s.store.Open(topicID, p)
	if err != nil {
		return err
	}
	_, err = part.Commit(ctx, recs)
	return err
}

// BenchmarkProduceToCommit takes batches of 1,000 records of 1 KiB through the write-ahead log into partitions on a real disk.
func BenchmarkProduceToCommit(b *testing.B) {
	const batch, producers = 1000, 4
	store := partition.NewStore(partition.StoreOptions{FS: vfs.OS(), Dir: b.TempDir()})
	i, err := Open(Options{FS: vfs.OS(), Dir: b.TempDir(), State: newState(orders(3)), Commit: storeCommits{store}})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	recs := make([]wire.NewRecord, batch)
	for n := range recs {
		recs[n] = wire.NewRecord{Key: []byte(keyOf(n%3, 3)), Payload: make([]byte, 1024), Partition: -1}
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.SetParallelism(producers)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := i.Produce(ctx, "orders", "", recs); err != nil {
				b.Error(err)
				return
			}
		}
	})
	require.NoError(b, i.Drain(ctx))
	b.StopTimer()
	b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "records/s")
	cancel()
	require.NoError(b, <-done)
	require.NoError(b, i.Close())
	require.NoError(b, store.Close())
}

// BenchmarkDispatch is the dispatcher alone, from a full log into commits that cost nothing.
func BenchmarkDispatch(b *testing.B) {
	files, state := vfs.NewMem(), newState(orders(3))
	i, err := Open(Options{FS: files, Dir: dir, State: state, Commit: noCommits{}})
	require.NoError(b, err)
	recs := make([]wire.NewRecord, 1000)
	for n := range recs {
		recs[n] = wire.NewRecord{Payload: make([]byte, 1024), Partition: -1}
	}
	for range 100 {
		require.NoError(b, i.Produce(b.Context(), "orders", "", recs))
	}
	require.NoError(b, i.Close())
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		i, err := Open(Options{FS: files, Dir: dir, State: state, Commit: noCommits{}})
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		b.StartTimer()
		go func() { done <- i.Run(ctx) }()
		require.NoError(b, i.Drain(ctx))
		b.StopTimer()
		cancel()
		require.NoError(b, <-done)
		require.NoError(b, i.Close())
		require.NoError(b, files.Remove(dir+"/"+checkpointName))
		b.StartTimer()
	}
	b.ReportMetric(float64(100_000*b.N)/b.Elapsed().Seconds(), "records/s")
}

type noCommits struct{}

func (noCommits) Commit(context.Context, string, int, []partition.Record) error { return nil }
