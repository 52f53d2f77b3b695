package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// A node with an allowlist warns of the target's certificate as soon as it expires within 14 days, by the node's clock, and its row of the
// remote tells when that is.
//
// covers: TGT-05, LST-05
func TestATargetWhoseCertificateExpiresSoon(t *testing.T) {
	const half = 365 * 24 * time.Hour // the harness's CA issues for a year before and after
	inBubble(t, func(t *testing.T, b *bubble) {
		end := time.Now().Add(14*24*time.Hour + time.Minute).Truncate(time.Second)
		source, target := b.machine("source"), b.machine("target")
		ca := target.serveTLSFrom(end.Add(-half))
		source.config.Remotes.AllowedHosts = []string{"target"}
		target.start()
		source.start()
		target.create("orders")
		remotes := source.client().Remotes()
		_, err := remotes.Create(t.Context(), wire.CreateRemote{
			Name: "dr", URL: "https://target:" + apiPort, Username: linkUser, Password: remotePassword, CAPEM: ca,
		})
		require.NoError(t, err)
		_, err = target.client().Users().Create(t.Context(), wire.CreateUser{Username: linkUser, Password: remotePassword, Grants: []wire.Grant{
			{Action: wire.ActionProduce, Patterns: []string{"orders"}}, {Action: wire.ActionConsume, Patterns: []string{"orders"}},
		}})
		require.NoError(t, err)
		warnings := func() []string {
			tested, testErr := remotes.Test(t.Context(), "dr", wire.TestRemote{Topic: "orders"})
			require.NoError(t, testErr)
			require.Equal(t, "pass", tested.Result, tested.Class)
			require.Equal(t, end.UTC().Format(time.RFC3339), tested.Checks[0].ServerCertNotAfter)
			require.Positive(t, *tested.Checks[0].LaneCapacityPerS)
			return tested.Checks[0].Warnings
		}
		require.Empty(t, warnings())
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"the target's certificate expires within 14 days: at " + end.UTC().Format(time.RFC3339)}, warnings())
		shown, err := remotes.Get(t.Context(), "dr", true)
		require.NoError(t, err)
		require.Equal(t, end.UTC().Format(time.RFC3339), *shown.Nodes[0].ServerCertNotAfter)
		source.stop()
		target.stop()
	})
}
