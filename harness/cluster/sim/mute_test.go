package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/faults"
	"narad.example/harness/cluster"
	"narad.example/narad/wire"
)

// deaf is a rig that says it muted a node, and did nothing.
type deaf struct{ *rig }

func (deaf) Mute(context.Context, string, string, string) (cluster.Muted, error) { return calm{}, nil }

type calm struct{}

func (calm) Met() int                   { return 0 }
func (calm) Mend(context.Context) error { return nil }

// A node that never answers, whatever comes from there, lands by what the other nodes meet, and is well after it; one that does answer has not
// landed.
//
// covers: HAR-02
func TestAMutedNodeLandsAndHeals(t *testing.T) {
	onThree(t, func(t *testing.T, r cluster.Rig) {
		n, err := r.Node("source-1")
		require.NoError(t, err)
		_, err = n.Client().CreateTopic(t.Context(), wire.CreateTopic{Name: "orders"})
		require.NoError(t, err)
		asking, stop := context.WithCancel(t.Context())
		var asked sync.WaitGroup
		asked.Go(func() {
			for asking.Err() == nil {
				_, _ = n.Client().Topic(asking, "orders", nil) // asks the owners
				time.Sleep(time.Second)
			}
		})
		for _, says := range []string{cluster.SaysNothing, cluster.SaysGarbage, cluster.SaysEndless, cluster.SaysRelayed} {
			for _, carries := range []string{cluster.CarriesRPC, cluster.CarriesAll} {
				if says == cluster.SaysRelayed && carries != cluster.CarriesRPC {
					continue // Raft's connections have no proof to relay
				}
				for on, lands := range map[cluster.Rig]bool{r: true, deaf{r.(*rig)}: false} {
					f, err := faults.New(faults.Spec{Kind: faults.Muted, Node: "source-2", Says: says, Parted: cluster.Cut{Carries: carries}})
					require.NoError(t, err)
					line, err := faults.Do(t.Context(), on, f, 20*time.Second, time.Now(), rand.New(rand.NewPCG(1, 2)))
					require.NoError(t, err)
					require.Equal(t, lands, line.Landed, "%s %s: %v", says, carries, line.Evidence)
					time.Sleep(10 * time.Second)
				}
			}
		}
		stop()
		asked.Wait()
		for _, n := range r.Nodes(cluster.Source) {
			require.True(t, n.Running())
			_, err := n.Client().Ready(t.Context())
			require.NoError(t, err, n.Name())
		}
		require.Empty(t, r.(cluster.Watched).Trouble())
	})
}
