package sim_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"narad.example/harness/cluster/sim"
	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/scenarios"
)

// small is a whole scenario with a kill on each side, small enough for the race detector; the catalogue is `make chaos`'s.
const small = `
name: small
covers: [HAR-16]
topics: {orders: {partitions: 3}}
links: [{parent: orders, child: orders-to-b, lanes: 2}]
load: [{topic: orders, rate: 60/s, for: 20s, keys: 20, batch: 10, payload: {json: 60%, text: 20%, binary: 20%, size: 200B..1KiB}}]
faults:
  - {at: 4s, for: 3s, kill: target-1}
  - {at: 11s, for: 2s, kill: source-1}
expect: {drained: 60s}
`

// TestAScenarioInVirtualTime runs a scenario from start to verdict in this process, under the race detector of `make test`.
//
// covers: HAR-16
func TestAScenarioInVirtualTime(t *testing.T) { passes(t, small) }

// threeAndThree is the same for two clusters of three nodes, one of which loses each node once.
const threeAndThree = `
name: three and three
covers: [BRK-07, HAR-16]
source: {nodes: 3}
target: {nodes: 3}
topics: {orders: {partitions: 3}}
links: [{parent: orders, child: orders-to-b, lanes: 2}]
load: [{topic: orders, rate: 40/s, for: 20s, keys: 20, batch: 10, payload: {json: 60%, text: 20%, binary: 20%, size: 200B..1KiB}}]
faults:
  - {at: 2s, for: 3s, kill: source-1}
  - {at: 8s, for: 3s, kill: source-2}
  - {at: 14s, for: 3s, kill: source-3}
expect: {drained: 120s}
`

// TestTwoClustersInVirtualTime runs two clusters of three nodes through the death of each node of the source.
//
// covers: BRK-07, HAR-16
func TestTwoClustersInVirtualTime(t *testing.T) { passes(t, threeAndThree) }

func passes(t *testing.T, scenario string) {
	t.Helper()
	s, err := scenarios.Parse("small.yaml", []byte(scenario))
	require.NoError(t, err)
	var result ledger.ScenarioRun
	synctest.Test(t, func(t *testing.T) {
		result = run.Scenario(t.Context(), s, run.Options{
			Backend: &sim.Backend{Random: sim.SeededSecrets(1)}, Seed: 1, Dir: t.TempDir(), Virtual: true,
		})
	})
	says, err := json.MarshalIndent(result, "", " ")
	require.NoError(t, err)
	require.Equal(t, ledger.Pass, result.Verdict, "%s", says)
}
