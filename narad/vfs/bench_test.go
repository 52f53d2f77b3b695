package vfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkWrite appends 192 MiB to a file that is new, in writes of several sizes, without a sync.
func BenchmarkWrite(b *testing.B) {
	const size = 192 << 20
	for _, at := range []int{64 << 10, 1 << 20, 3 << 20, 8 << 20} {
		b.Run(fmt.Sprintf("%dKiB", at>>10), func(b *testing.B) {
			piece := make([]byte, at)
			b.SetBytes(size)
			path := filepath.Join(b.TempDir(), "file")
			for b.Loop() {
				f, err := OS().OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
				require.NoError(b, err)
				for off := 0; off < size; off += at {
					_, err = f.WriteAt(piece, int64(off))
					require.NoError(b, err)
				}
				require.NoError(b, f.Close())
			}
		})
	}
}
