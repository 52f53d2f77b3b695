package ledger

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// covers: HAR-12
func TestReplaceIsSeenWholeOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), SoakName)
	long := strings.Repeat("x", 200_000)
	require.NoError(t, WriteJSON(path, Soak{Says: long}))
	var writer sync.WaitGroup
	over := make(chan struct{})
	var failed error
	writer.Go(func() {
		defer close(over)
		for i := range 50 {
			if err := WriteJSON(path, Soak{Seed: uint64(i), Says: long}); err != nil {
				failed = err
				return
			}
		}
	})
	for reading := true; reading; {
		select {
		case <-over:
			reading = false
		default:
		}
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		var s Soak
		require.NoError(t, json.Unmarshal(body, &s))
		require.Len(t, s.Says, len(long))
	}
	writer.Wait()
	require.NoError(t, failed)
}

// covers: HAR-12
func TestAReplaceThatFailsLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), SoakName)
	require.NoError(t, Replace(path, []byte("old")))
	require.NoError(t, os.MkdirAll(filepath.Join(path+".new", "in the way"), 0o755))
	require.ErrorContains(t, Replace(path, []byte("new")), "replacing "+SoakName)
	body, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(body))
}
