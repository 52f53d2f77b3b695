package seglog

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkAppend appends batches of 500 frames of 1 KiB to the real disk.
func BenchmarkAppend(b *testing.B) {
	for name, writers := range map[string]int{"1 writer": 1, "4 writers": 4} {
		b.Run(name, func(b *testing.B) {
			l := open(b, Options{Dir: b.TempDir()})
			payload := body(0, 1024)
			b.ReportAllocs()
			began, done := time.Now(), 0
			var wg sync.WaitGroup
			share := (b.N + writers - 1) / writers
			for range writers {
				wg.Go(func() {
					for range share {
						batch := NewBatch()
						for range 500 {
							batch.Add(payload)
						}
						_, err := l.Append(context.Background(), batch)
						if err != nil {
							b.Error(err)
							return
						}
						batch.Free()
					}
				})
				done += share * 500
			}
			wg.Wait()
			b.ReportMetric(float64(done)/time.Since(began).Seconds(), "frames/s")
		})
	}
}

// BenchmarkRead reads forward, 1 MiB at once.
func BenchmarkRead(b *testing.B) {
	l := open(b, Options{Dir: b.TempDir()})
	for range 100 {
		put(b, l, 500, 1024)
	}
	var buf Buffer
	b.ReportAllocs()
	b.ResetTimer()
	frames, seq := 0, int64(0)
	for b.Loop() {
		got, err := l.Read(seq, 4096, 1<<20, &buf)
		require.NoError(b, err)
		frames += len(got)
		if seq += int64(len(got)); seq >= l.Next() {
			seq = 0
		}
	}
	b.ReportMetric(float64(frames)/b.Elapsed().Seconds(), "frames/s")
}

// BenchmarkReadOne reads single frames at random places, through the index.
func BenchmarkReadOne(b *testing.B) {
	l := open(b, Options{Dir: b.TempDir()})
	for range 100 {
		put(b, l, 500, 1024)
	}
	var buf Buffer
	b.ReportAllocs()
	seq := int64(0)
	for b.Loop() {
		seq = (seq + 17_389) % l.Next()
		_, err := l.Read(seq, 1, 1<<20, &buf)
		require.NoError(b, err)
	}
}

// BenchmarkOpen verifies a log of 50 MiB.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	l := open(b, Options{Dir: dir})
	for range 100 {
		put(b, l, 500, 1024)
	}
	require.NoError(b, l.Close())
	for b.Loop() {
		l, err := Open(Options{Dir: dir})
		require.NoError(b, err)
		require.NoError(b, l.Close())
	}
}
