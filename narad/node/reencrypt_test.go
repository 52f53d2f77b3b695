package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// The cluster secret is rotated: all nodes stop and start under a new one with the old one as the previous. Links go on, a re-encrypt moves
// the password while they run, decrypting it once more for itself alone, and then the previous secret can go. Without that re-encrypt
// the link is credential_unreadable and sends nothing.
//
// covers: CRD-10, CRD-11, CRD-09, BRK-13
func TestTheClusterSecretIsRotated(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.produce(0, 6)
		p.shipped(6)
		remotes := func() client.Remotes { return p.source.client().Remotes() }
		first, err := remotes().Get(t.Context(), "dr", false)
		require.NoError(t, err)
		restart := func(secret, previous string) {
			p.source.stop()
			p.source.secrets.ClusterSecret, p.source.secrets.PreviousSecret = secret, previous
			p.source.start()
		}
		const fresh = "8c1d5b0f6a7e4932c0ffee00aa55bb66dd77ee8899aabbccddeeff0011223344"

		restart(fresh, "") // the old one is gone too early
		p.produce(6, 12)
		b.eventually("nothing opens", func() bool { _, e := p.lag(); return e.State == wire.CredentialUnreadable })
		got, err := remotes().Reencrypt(t.Context())
		require.NoError(t, err)
		require.Equal(t, []wire.ReencryptError{{Name: "dr", Reason: wire.KeyUnknown}}, got.Failed)
		require.Equal(t, 6, p.target.count("orders"))

		restart(fresh, clusterSecret)
		p.shipped(12)
		decrypts := func() string {
			_, page := p.source.get("/metrics", true)
			return metric(page, `narad_remote_credential_decrypts_total{remote="dr"}`) + " " + metric(page, "narad_remote_reseal_opens_total") +
				" " + metric(page, `narad_remote_credential_key_current{remote="dr"}`)
		}
		require.Equal(t, "1 0 0", decrypts())
		got, err = remotes().Reencrypt(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"dr"}, got.Reencrypted)
		p.produce(12, 18)
		p.shipped(18)
		require.Equal(t, "1 1 1", decrypts())
		now, err := remotes().Get(t.Context(), "dr", true)
		require.NoError(t, err)
		require.Equal(t, first.CredentialVersion, now.CredentialVersion)
		require.Equal(t, first.Revision, now.Revision)
		require.Equal(t, got.KeyVersion, now.Password.KeyVersion)
		require.Equal(t, got.KeyVersion, now.Nodes[0].KeyVersion)
		require.NotEqual(t, first.Password.Fingerprint, now.Password.Fingerprint)

		restart(fresh, "")
		p.produce(18, 24)
		p.shipped(24)
		time.Sleep(time.Second)
		got, err = remotes().Reencrypt(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"dr"}, got.AlreadyCurrent)
		p.source.stop()
		p.target.stop()
	})
}
