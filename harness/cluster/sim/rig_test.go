package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"narad.example/harness/cluster"
	"narad.example/harness/cluster/rigtest"
)

// covers: HAR-02, HAR-16
func TestConformance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rigtest.Run(t, &Backend{Random: SeededSecrets(1)}, cluster.Spec{
			Scenario: "conformance", Dir: t.TempDir(), Seed: 1, Epoch: time.Now(),
			Source: cluster.Side{Nodes: 1}, Target: cluster.Side{Nodes: 1},
		})
	})
}
