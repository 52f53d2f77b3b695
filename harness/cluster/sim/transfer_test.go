package sim

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/faults"
	"narad.example/harness/cluster"
)

// unled is a rig whose leader says that it handed its lead over, and kept it.
type unled struct{ *rig }

type clings struct{ *simNode }

func (clings) StepDown(context.Context) error { return nil }

func (u unled) Node(name string) (cluster.Node, error) {
	n, err := u.rig.Node(name)
	return clings{n.(*simNode)}, err
}

// quits is a rig whose nodes hand their lead over in a graceful stop alone, as those of real backends.
type quits struct{ *rig }

type plain struct{ cluster.Node }

func (q quits) Node(name string) (cluster.Node, error) {
	n, err := q.rig.Node(name)
	return plain{n}, err
}

// The leader hands over and another one leads in a later term, with a step down and with a graceful stop; who does not lead is refused, and who
// keeps the lead has not landed.
//
// covers: HAR-02
func TestATransferLandsWhenAnotherNodeLeads(t *testing.T) {
	onThree(t, func(t *testing.T, r cluster.Rig) {
		lead := func() string {
			for {
				for _, n := range r.Nodes(cluster.Source) {
					if n.Running() && cluster.Leads(t.Context(), n) {
						return n.Name()
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		do := func(rig cluster.Rig, name string) (bool, map[string]any, error) {
			f, err := faults.New(faults.Spec{Kind: faults.Transferred, Node: name})
			require.NoError(t, err)
			line, err := faults.Do(t.Context(), rig, f, time.Second, time.Now(), rand.New(rand.NewPCG(1, 2)))
			t.Log(name, line.Landed, line.Evidence)
			return line.Landed, line.Evidence, err
		}
		was := lead()
		landed, e, err := do(r, was)
		require.NoError(t, err)
		require.True(t, landed)
		require.Greater(t, e["term"], e["term_before"])
		require.Equal(t, lead(), e["leader"])
		require.NotEqual(t, was, lead())
		_, _, err = do(r, was)
		require.ErrorContains(t, err, was+" does not lead")
		landed, _, err = do(unled{r.(*rig)}, lead())
		require.NoError(t, err)
		require.False(t, landed)
		was = lead()
		landed, e, err = do(quits{r.(*rig)}, was)
		require.NoError(t, err)
		require.True(t, landed)
		require.Equal(t, "graceful stop", e["by"])
		require.NotEqual(t, was, lead())
		n, err := r.Node(was)
		require.NoError(t, err)
		require.True(t, n.Running())
	})
}
