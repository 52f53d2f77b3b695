package sim

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/faults"
	"narad.example/harness/cluster"
)

// A node that poses as an older release answers as one, and only that one; an upgrade lands when the present release answers there, once.
// One that changes nothing has not landed.
//
// covers: HAR-02
func TestAnUpgradeLandsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Backend{Random: SeededSecrets(1)}
		r, err := b.Start(t.Context(), cluster.Spec{
			Scenario: "releases", Dir: t.TempDir(), Seed: 1, Epoch: time.Now(),
			Source: cluster.Side{Nodes: 3, Older: []int{2, 3}}, Target: cluster.Side{Nodes: 1},
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close(context.Background())) }()
		older := func(name string) bool {
			n, found := r.Node(name)
			require.NoError(t, found)
			is, asked := cluster.IsOlder(t.Context(), n)
			require.NoError(t, asked)
			return is
		}
		require.Equal(t, []bool{false, true, true}, []bool{older("source-1"), older("source-2"), older("source-3")})
		do := func(rig cluster.Rig, name string) (bool, error) {
			f, known := faults.New(faults.Spec{Kind: faults.Upgraded, Node: name})
			require.NoError(t, known)
			line, failed := faults.Do(t.Context(), rig, f, time.Second, time.Now(), rand.New(rand.NewPCG(1, 2)))
			t.Log(name, line.Landed, line.Evidence, failed)
			return line.Landed, failed
		}
		landed, err := do(r, "source-2")
		require.NoError(t, err)
		require.True(t, landed)
		require.Equal(t, []bool{false, false, true}, []bool{older("source-1"), older("source-2"), older("source-3")})
		_, err = do(r, "source-2")
		require.ErrorContains(t, err, "source-2 is of no older release")
		landed, err = do(stale{r}, "source-3")
		require.NoError(t, err)
		require.False(t, landed)
		require.True(t, older("source-3"))
	})
}

// stale is a rig whose nodes keep their release.
type stale struct{ cluster.Rig }

type keeps struct{ *simNode }

func (k keeps) Upgrade(context.Context) error { return nil }

func (s stale) Node(name string) (cluster.Node, error) {
	n, err := s.Rig.Node(name)
	return keeps{n.(*simNode)}, err
}
