package link

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// A remote has a row of every member: its own word, stale when its credential is older, missing when it has none, unknown when it says
// nothing; what this replica no longer has and another one does is lingering.
//
// covers: LST-02, LST-05
func TestEveryMemberHasARow(t *testing.T) {
	ready := func(node string, version uint64) wire.RemoteNode {
		return wire.RemoteNode{Node: node, State: wire.CredentialReady, CredentialVersion: version, LastError: "none"}
	}
	r := meta.Remote{Name: "dr", ID: "a", CredentialVersion: 2}
	c := crowd{
		answers: map[string][]Holding{
			"n1": {{Name: "dr", ID: "a", Node: ready("n1", 2)}},
			"n2": {{Name: "dr", ID: "a", Node: ready("n2", 1)}, {Name: "old", ID: "b", Node: ready("n2", 1)}},
			"n3": {{Name: "dr", ID: "earlier", Node: ready("n3", 2)}},
		},
		silent: []string{"n4"},
	}
	var states []string
	for i, row := range c.nodes(r) {
		require.Equal(t, []string{"n1", "n2", "n3", "n4"}[i], row.Node)
		states = append(states, row.State)
	}
	require.Equal(t, []string{wire.CredentialReady, wire.CredentialStale, wire.CredentialMissing, wire.CredentialUnknown}, states)
	require.Equal(t, []wire.Lingering{
		{Name: "dr", ID: "earlier", Holding: []string{"n3"}, NotAnswering: []string{"n4"}},
		{Name: "old", ID: "b", Holding: []string{"n2"}, NotAnswering: []string{"n4"}},
	}, c.lingering([]meta.Remote{r}))
}
