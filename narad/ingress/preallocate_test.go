package ingress

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/vfs"
)

// storage.ingress_wal_prealloc reserves the room of the WAL's segment, and only then.
func TestAReservedWAL(t *testing.T) {
	for _, on := range []bool{false, true} {
		mem := vfs.NewMem()
		i, err := Open(Options{FS: mem, Dir: "ingress", SegmentBytes: 1 << 20, Preallocate: on})
		require.NoError(t, err)
		want := int64(0)
		if on {
			want = 1 << 20
		}
		require.Equal(t, want, mem.Reserved(fmt.Sprintf("ingress/%020d.log", 0)))
		require.NoError(t, i.Close())
	}
}
