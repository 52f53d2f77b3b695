package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrStale is the cause when a patch no longer applies: the code moved and the bug must be planted again.
var ErrStale = errors.New("the patch no longer applies")

// plant copies the files that the patch names into dir, patches the copies and writes the overlay that puts them in place of
// the originals. It returns the overlay's path.
func plant(ctx context.Context, root, dir string, m Mutant) (string, error) {
	overlay := map[string]string{}
	for _, name := range m.Files {
		body, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", fmt.Errorf("%s: %w: %w", m.Patch, ErrStale, err)
		}
		to := filepath.Join(dir, name)
		if err = os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err = os.WriteFile(to, body, 0o600); err != nil {
			return "", err
		}
		original, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		overlay[original] = to
	}
	patch, err := filepath.Abs(m.Patch)
	if err != nil {
		return "", err
	}
	out, err := command(ctx, dir, "git", "apply", "--unsafe-paths", "--whitespace=nowarn", patch)
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", m.Patch, ErrStale, out)
	}
	body, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, body, 0o600)
}

// poser is the broker's build that can pose as an older release.
const poser = "narad-chaos"

// build makes the binaries of the mutant in dir: the harness's own, which holds the broker for sim, and for another backend the
// broker's too. What the patch leaves alone comes from Go's build cache, which all mutants share.
func build(ctx context.Context, root, dir, overlay, backend string) error {
	binaries := map[string]string{"chaos": "./harness/cmd/chaos"}
	if backend != "sim" {
		binaries["narad"], binaries[poser] = "./narad/cmd/narad", "./narad/cmd/narad"
	}
	for name, pkg := range binaries {
		args := []string{"build", "-overlay", overlay, "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, name)}
		if name == poser {
			args = append(args, "-tags", "chaos")
		}
		out, err := command(ctx, root, "go", append(args, pkg)...)
		if err != nil {
			return fmt.Errorf("building %s: %w: %s", name, err, out)
		}
	}
	return nil
}

// command runs a program in dir and returns what it printed.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return strings.TrimSpace(out.String()), err
}
