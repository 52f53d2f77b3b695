package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/config"
)

// A node whose metadata holds a remote does not start with security off, nor without a cluster secret.
//
// covers: CRD-14
func TestANodeWithARemoteNeedsItsSecret(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.source.stop()
		whole, secrets := p.source.config, p.source.secrets
		p.source.secrets.ClusterSecret = ""
		require.ErrorContains(t, p.source.tryStart(), "the metadata holds a remote")
		p.source.config, p.source.secrets = whole, secrets
		p.source.config.Security.Enabled = false
		p.source.config.Remotes = config.Default().Remotes
		require.ErrorContains(t, p.source.tryStart(), "the metadata holds a remote")
		p.source.config = whole
		p.source.start()
		p.produce(0, 6)
		p.shipped(6)
		p.source.stop()
		p.target.stop()
	})
}
