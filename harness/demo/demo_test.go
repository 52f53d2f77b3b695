package demo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrepareKeepsSecretsOfAnEarlierStart(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Prepare(dir))
	first, err := readEnv(filepath.Join(dir, envName))
	require.NoError(t, err)
	require.Len(t, first, 7)
	require.NoError(t, Prepare(dir))
	second, err := readEnv(filepath.Join(dir, envName))
	require.NoError(t, err)
	require.Equal(t, first, second)
	for _, side := range []string{"source", "target"} {
		body, err := os.ReadFile(filepath.Join(dir, side, "narad.json"))
		require.NoError(t, err)
		require.True(t, json.Valid(body))
	}
}

func TestConnectAsksForPrepare(t *testing.T) {
	require.ErrorContains(t, Connect(t.Context(), t.TempDir(), nil), "prepare first")
}
