package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"narad.example/narad/client"
)

// olderEnv has the chaos build of narad pose as a release before remotes. No other build looks at it.
const olderEnv = "NARAD_CHAOS_OLDER"

// olderBuild is that build.
func (b *Binaries) olderBuild() (string, error) {
	if info, err := os.Stat(b.Older); err != nil || info.IsDir() {
		return "", fmt.Errorf("%w: no build that can pose as an older release lies at %q: make build", ErrTrouble, b.Older)
	}
	return b.Older, nil
}

// IsOlder asks a node for its remotes: a release before them answers in Go's words that there is no such route. A node that says
// nothing yet, or that it is starting, is asked again until ctx ends.
func IsOlder(ctx context.Context, n Node) (bool, error) {
	for {
		_, err := n.Client().Remotes().List(ctx, false)
		var refused *client.Error
		switch {
		case err == nil:
			return false, nil
		case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			return true, nil
		case ctx.Err() != nil:
			return false, fmt.Errorf("%s does not say of which release it is: %w", n.Name(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}
