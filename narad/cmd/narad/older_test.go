package main

import (
	"bytes"
	"go/build"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What ships poses as no older release, whatever its environment says, and no file of it names the variable. The build of the tag chaos does.
//
// covers: WRT-02
func TestOnlyTheChaosBuildPosesAsAnOlderRelease(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	shipped, chaos := build.Default, build.Default
	shipped.BuildTags, chaos.BuildTags = nil, []string{"chaos"}
	named := 0
	for _, f := range files {
		body, rerr := os.ReadFile(f)
		require.NoError(t, rerr)
		if f == "older_test.go" || !bytes.Contains(body, []byte("NARAD_CHAOS_OLDER")) {
			continue
		}
		named++
		in, merr := shipped.MatchFile(".", f)
		require.NoError(t, merr)
		require.False(t, in, f)
		in, merr = chaos.MatchFile(".", f)
		require.NoError(t, merr)
		require.True(t, in, f)
	}
	require.Equal(t, 1, named)
	t.Setenv("NARAD_CHAOS_OLDER", "1")
	require.Equal(t, tagged, older())
	t.Setenv("NARAD_CHAOS_OLDER", "")
	require.False(t, older())
}
