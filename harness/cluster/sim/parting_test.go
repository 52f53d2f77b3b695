package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/faults"
	"narad.example/harness/cluster"
)

// onThree runs f on a rig with a source of three nodes.
func onThree(t *testing.T, f func(t *testing.T, r cluster.Rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &Backend{Random: SeededSecrets(1)}
		r, err := b.Start(t.Context(), cluster.Spec{
			Scenario: "parts", Dir: t.TempDir(), Seed: 1, Epoch: time.Now(), Source: cluster.Side{Nodes: 3}, Target: cluster.Side{Nodes: 1},
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close(context.Background())) }()
		f(t, r)
	})
}

// unheard is a rig that says it parted its nodes, and did nothing.
type unheard struct{ *rig }

type nothing struct{}

func (unheard) Part(context.Context, cluster.Cut) (cluster.Parting, error) { return nothing{}, nil }

func (nothing) Met() cluster.CutMet { return cluster.CutMet{Ended: 1000} }

func (nothing) Mend(context.Context) error { return nil }

// Every cut lands by what its own probes and the nodes meet, and heals; one that did nothing has not landed.
// covers: HAR-02
func TestCutsBetweenNodesLandAndHeal(t *testing.T) {
	onThree(t, func(t *testing.T, r cluster.Rig) {
		alone, rest := []string{"source-1"}, []string{"source-2", "source-3"}
		for _, c := range []cluster.Cut{
			{From: alone, To: rest}, {From: alone, To: rest, OneWay: true}, {From: rest, To: alone, Silent: true},
			{From: rest[:1], To: alone, Silent: true, OneWay: true}, {From: alone, To: rest, Carries: cluster.CarriesRaft},
			{From: alone, To: rest, Carries: cluster.CarriesRPC, Silent: true},
		} {
			what := fmt.Sprintf("%+v", c)
			do := func(rig cluster.Rig) (landed bool) {
				f, err := faults.New(faults.Spec{Kind: faults.Part, Parted: c})
				require.NoError(t, err, what)
				line, err := faults.Do(t.Context(), rig, f, 20*time.Second, time.Now(), rand.New(rand.NewPCG(1, 2)))
				require.NoError(t, err, "%s: %v", what, line.Evidence)
				t.Log(what, line.Landed, line.Evidence)
				return line.Landed
			}
			require.True(t, do(r), what)
			require.Zero(t, r.(cluster.Parted).Partings())
			require.False(t, do(unheard{r.(*rig)}), what)
		}
		_, err := r.(cluster.Parted).Part(t.Context(), cluster.Cut{From: []string{"source-9"}, To: alone})
		require.ErrorIs(t, err, cluster.ErrTrouble)
	})
}

// A node that is cut off from its cluster is not ready until it is back, and one of the majority leads meanwhile.
// covers: BRK-07
func TestANodeThatIsCutOffIsNotReady(t *testing.T) {
	onThree(t, func(t *testing.T, r cluster.Rig) {
		ready := func(name string) error {
			n, err := r.Node(name)
			require.NoError(t, err)
			_, err = n.Client().Ready(t.Context())
			return err
		}
		p, err := r.(cluster.Parted).Part(t.Context(), cluster.Cut{From: []string{"source-1"}, To: []string{"source-2", "source-3"}})
		require.NoError(t, err)
		time.Sleep(20 * time.Second)
		require.Error(t, ready("source-1"))
		for _, name := range []string{"source-2", "source-3"} {
			require.NoError(t, ready(name))
		}
		require.NoError(t, p.Mend(t.Context()))
		eventually(t, "ready again", func() error { return ready("source-1") })
	})
}

// A node that is started slowly says nothing for so long, and is ready then.
// covers: HAR-02
func TestASlowStartIsSilentFirst(t *testing.T) {
	onThree(t, func(t *testing.T, r cluster.Rig) {
		f, err := faults.New(faults.Spec{Kind: faults.Restart, Node: "source-2", Slow: 15 * time.Second})
		require.NoError(t, err)
		began := time.Now()
		line, err := faults.Do(t.Context(), r, f, time.Second, began, rand.New(rand.NewPCG(1, 2)))
		require.NoError(t, err)
		require.True(t, line.Landed, "%v", line.Evidence)
		require.GreaterOrEqual(t, time.Since(began), 16*time.Second)
		n, err := r.Node("source-2")
		require.NoError(t, err)
		eventually(t, "ready", func() error { _, rerr := n.Client().Ready(t.Context()); return rerr })
	})
}
