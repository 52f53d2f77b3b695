package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const patch = `Bug: the greeting is wrong
Promise: greeting
Scenario: scenarios/x.yaml
Backend: sim

--- a/hello.txt
+++ b/hello.txt
@@ -1 +1 @@
-hello
+bye
`

func put(t *testing.T, dir, name, body string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	return path
}

func TestPlantChangesTheCopyAlone(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	put(t, root, "hello.txt", "hello\n")
	m, err := parse(put(t, root, "bug-greeting.patch", patch), []byte(patch))
	require.NoError(t, err)
	require.Equal(t, "greeting", m.Name)
	overlay, err := plant(t.Context(), root, dir, m)
	require.NoError(t, err)
	changed, err := os.ReadFile(filepath.Join(dir, "hello.txt"))
	require.NoError(t, err)
	require.Equal(t, "bye\n", string(changed))
	original, err := os.ReadFile(filepath.Join(root, "hello.txt"))
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(original))
	body, err := os.ReadFile(overlay)
	require.NoError(t, err)
	require.Contains(t, string(body), "hello.txt")
}

func TestAPatchThatNoLongerAppliesFails(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	put(t, root, "hello.txt", "good morning\n")
	m, err := parse(put(t, root, "bug-greeting.patch", patch), []byte(patch))
	require.NoError(t, err)
	_, err = plant(t.Context(), root, dir, m)
	require.ErrorIs(t, err, ErrStale)
}

func TestHeaders(t *testing.T) {
	for name, body := range map[string]string{
		"lacks Promise": "Bug: x\nScenario: s\nBackend: sim\n--- a/x\n+++ b/x\n",
		"unknown line":  "Buk: x\n" + patch,
		"no such":       "Bug: x\nPromise: p\nScenario: s\nBackend: moon\n--- a/x\n+++ b/x\n",
		"names no file": "Bug: x\nPromise: p\nScenario: s\nBackend: sim\n",
	} {
		_, err := parse("bug-x.patch", []byte(body))
		require.Error(t, err, name)
	}
}

func TestVerdictWantsTheNamedPromise(t *testing.T) {
	out := t.TempDir()
	put(t, out, "run/scenario/verdicts.json", `[{"name":"no gap","verdict":"pass"},{"name":"order","verdict":"fail","says":"key k"}]`)
	says, err := verdict(out, Mutant{Name: "x", Promise: "order"}, "")
	require.NoError(t, err)
	require.Contains(t, says, "key k")
	_, err = verdict(out, Mutant{Name: "x", Promise: "no gap"}, "")
	require.ErrorIs(t, err, ErrSurvived)
	_, err = verdict(t.TempDir(), Mutant{Name: "x", Promise: "no gap"}, "exit 2")
	require.ErrorIs(t, err, ErrSurvived)
}

// TestThePatchesOfThisFolderApply holds each planted bug against the code as it is.
func TestThePatchesOfThisFolderApply(t *testing.T) {
	all, err := Load(".")
	require.NoError(t, err)
	for _, m := range all {
		_, err := plant(t.Context(), filepath.Join("..", ".."), t.TempDir(), m)
		require.NoError(t, err)
	}
}

// TestAMissIsPlayedAgain: what no try catches survived, whatever the other tries said; a stale patch is not tried again.
func TestAMissIsPlayedAgain(t *testing.T) {
	played := 0
	catches := func(at int) func(int) (string, error) {
		played = 0
		return func(try int) (string, error) {
			played++
			if try == at {
				return "no gap: key k", nil
			}
			return "", fmt.Errorf("try %d: %w", try, ErrSurvived)
		}
	}
	says, err := repeat(t.Context(), 3, catches(0))
	require.NoError(t, err)
	require.Equal(t, "no gap: key k", says)
	require.Equal(t, 1, played)
	says, err = repeat(t.Context(), 3, catches(2))
	require.NoError(t, err)
	require.Equal(t, "on try 3: no gap: key k", says)
	_, err = repeat(t.Context(), 3, catches(3))
	require.ErrorIs(t, err, ErrSurvived)
	require.ErrorContains(t, err, "try 0")
	require.Equal(t, 3, played)
	_, err = repeat(t.Context(), 0, catches(1))
	require.ErrorIs(t, err, ErrSurvived)
	require.Equal(t, 1, played)
	played = 0
	_, err = repeat(t.Context(), 3, func(int) (string, error) { played++; return "", ErrStale })
	require.ErrorIs(t, err, ErrStale)
	require.Equal(t, 1, played)
}
