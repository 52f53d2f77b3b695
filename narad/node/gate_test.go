package node_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// A check that an admin asked for meets a 401, and the remote's gate closes on this node although no cursor sent anything (DEC-48).
//
// covers: GAT-01, GAT-02
func TestACheckOfAnAdminClosesTheGate(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.produce(0, 6)
		p.shipped(6)
		const wait = `narad_remote_gate_backoff_seconds{remote="dr"}`
		_, page := p.source.get("/metrics", true)
		require.Equal(t, "0", metric(page, wait))
		require.NoError(t, p.target.client().Users().ChangePassword(t.Context(), linkUser, wire.ChangePassword{NewPassword: remotePassword + "-second"}))
		time.Sleep(5 * time.Second) // of the bubble's time: the attach checked the remote (TGT-13)
		got, err := p.source.client().Remotes().Test(t.Context(), "dr", wire.TestRemote{Topic: "orders"})
		require.NoError(t, err)
		require.Equal(t, "auth_failed", got.Class)
		_, page = p.source.get("/metrics", true)
		require.Equal(t, "30", metric(page, wait))
		require.NoError(t, p.target.client().Users().ChangePassword(t.Context(), linkUser, wire.ChangePassword{NewPassword: remotePassword}))
		p.produce(6, 12)
		p.shipped(12)
		p.source.stop()
		p.target.stop()
	})
}

// A topic that has a remote child itself is no target: neither for a test nor for an attach.
//
// covers: TGT-06
func TestNoLinkToATopicWithALink(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		var refused *client.Error
		third := b.machine("third")
		ca := third.serveTLS()
		third.start()
		third.create("orders")
		_, err := third.client().Users().Create(t.Context(), wire.CreateUser{Username: linkUser, Password: remotePassword, Grants: []wire.Grant{
			{Action: wire.ActionProduce, Patterns: []string{"orders"}},
		}})
		require.NoError(t, err)
		require.NoError(t, p.source.client().Detach(t.Context(), "orders", "orders-dr", true))
		_, err = p.target.client().Remotes().Create(t.Context(), wire.CreateRemote{
			Name: "on", URL: "https://third:" + apiPort, Username: linkUser, Password: remotePassword, CAPEM: ca,
		})
		require.NoError(t, err)
		_, err = p.target.client().AttachRemote(t.Context(), "orders", wire.AttachChild{Child: "orders-on", Remote: "on"})
		require.NoError(t, err)
		b.eventually("the next check may begin", func() bool {
			_, err = p.source.client().AttachRemote(t.Context(), "orders", wire.AttachChild{Child: "orders-dr", Remote: "dr"})
			return !errors.As(err, &refused) || refused.Status != 429
		})
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 409, refused.Status)
		require.Contains(t, refused.Text, "target_has_remote_children")
		p.source.stop()
		p.target.stop()
		third.stop()
	})
}

// A node that accepts the replayable cluster token holds no remotes: it refuses writes of them, and what its metadata has already
// sends nothing (WRT-03).
//
// covers: CRD-15
func TestLegacyClusterAuthHoldsRemotesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.produce(0, 6)
		p.shipped(6)
		p.source.stop()
		p.source.config.Security.AllowLegacyClusterAuth = true
		p.source.start()
		p.produce(6, 12)
		b.eventually("the link shows it", func() bool { _, e := p.lag(); return e.State == wire.NodeInsecure })
		time.Sleep(5 * time.Minute) // of the bubble's time
		require.Equal(t, 6, p.target.count("orders"))
		_, err := p.source.client().AttachRemote(t.Context(), "orders", wire.AttachChild{Child: "another", Remote: "dr"})
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 412, refused.Status)
		require.Contains(t, string(refused.Body), "node_insecure")
		p.source.stop()
		p.source.config.Security.AllowLegacyClusterAuth = false
		p.source.start()
		p.shipped(12)
		p.source.stop()
		p.target.stop()
	})
}

// Each dial that the guard refuses is counted under its rule, and the connections of a remote tell how far away it is.
//
// covers: NET-04, BRK-13
func TestDialsAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.produce(0, 6)
		p.shipped(6)
		const refused = `narad_remote_destination_refused_total{reason="port",remote="dr"}`
		_, page := p.source.get("/metrics", true)
		require.Empty(t, metric(page, refused))
		require.NotEmpty(t, metric(page, `narad_remote_rtt_seconds{remote="dr"}`))
		p.source.stop()
		p.source.config.Remotes.AllowedPorts = []int{443}
		p.source.start()
		p.produce(6, 7)
		b.eventually("the link shows it", func() bool { _, e := p.lag(); return e.State == wire.DestinationRefused })
		_, page = p.source.get("/metrics", true)
		require.NotEmpty(t, metric(page, refused))
		require.Empty(t, metric(page, `narad_remote_rtt_seconds{remote="dr"}`), "no connection was made")
		p.source.stop()
		p.target.stop()
	})
}
