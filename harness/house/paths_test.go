package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machinePath matches a path of somebody's machine. It is put together here so that this file does not match itself.
var machinePath = regexp.MustCompile(`(^|[^A-Za-z0-9_.~-])/(` + strings.Join([]string{"home", "root", "work", "Users", "farm", "tmp"}, "|") + `)/[A-Za-z]`)

// TestNoFileNamesAMachine reads every file that git would commit.
func TestNoFileNamesAMachine(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("no git checkout here")
	}
	for file := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		if strings.HasSuffix(file, "go.sum") || strings.Contains(file, "testdata/fuzz/") {
			continue
		}
		body, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		for i, line := range strings.Split(string(body), "\n") {
			require.False(t, machinePath.MatchString(line), "%s:%d names a path of a machine", file, i+1)
		}
	}
}
