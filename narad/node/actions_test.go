package node_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// A pause, a resume and a change of the remote act on the running link, and the answering node's listing agrees at once.
//
// covers: WRT-12, LST-06, NET-08, CRD-04
func TestAdminActionsOnARunningLink(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		c := p.source.client()
		p.produce(0, 12)
		p.shipped(12)

		stub, err := c.Pause(client.WithRequestID(t.Context(), "00000000000000b1"), "orders", "orders-dr", "upgrade of the target")
		require.NoError(t, err)
		require.Equal(t, "upgrade of the target", stub.Remote.PauseReason)
		_, e := p.lag()
		require.Equal(t, wire.Paused, e.State)
		require.True(t, e.Paused)
		p.produce(12, 30)
		b.eventually("committed", func() bool { return p.source.count("orders") == 30 })
		time.Sleep(time.Minute)
		require.Equal(t, 12, p.target.count("orders"), "a paused link sends nothing")

		stub, err = c.Resume(client.WithRequestID(t.Context(), "00000000000000b2"), "orders", "orders-dr", false)
		require.NoError(t, err)
		require.False(t, stub.Remote.Paused)
		_, e = p.lag()
		require.NotEqual(t, wire.Paused, e.State)
		require.Equal(t, 30, p.shipped(30))

		_, err = c.Skip(t.Context(), "orders", "orders-dr", 0, 1)
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 409, refused.Status)
		require.JSONEq(t, `null`, string(member(t, refused.Body, "blocked_at")))

		few := 1
		r, err := c.Remotes().Patch(t.Context(), "dr", wire.PatchRemote{Limits: &wire.PatchLimits{MaxInFlight: &few}})
		require.NoError(t, err)
		require.EqualValues(t, 1, r.CredentialVersion)
		p.produce(30, 60)
		require.Equal(t, 60, p.shipped(60))

		fresh := remotePassword + "-second"
		require.NoError(t, p.target.client().Users().ChangePassword(t.Context(), linkUser, wire.ChangePassword{NewPassword: fresh}))
		p.produce(60, 61)
		b.eventually("the old password is refused", func() bool { _, e := p.lag(); return e.State == wire.AuthFailed })
		time.Sleep(5 * time.Second) // since the check of the resume (TGT-13)
		tested, err := c.Remotes().Test(t.Context(), "dr", wire.TestRemote{Topic: "orders", Source: "orders"})
		require.NoError(t, err)
		require.Equal(t, "auth_failed", tested.Class)
		r, err = c.Remotes().Patch(t.Context(), "dr", wire.PatchRemote{Password: &fresh})
		require.NoError(t, err)
		require.EqualValues(t, 2, r.CredentialVersion)
		require.Equal(t, 1, r.Limits.MaxInFlight)
		changed := time.Now()
		require.Equal(t, 61, p.shipped(61))
		require.Less(t, time.Since(changed), 5*time.Second, "a new credential is tried at once")
		p.source.stop()
		p.target.stop()

		for id, event := range map[string]string{"00000000000000b1": "remote_child.pause", "00000000000000b2": "remote_child.resume"} {
			var outcomes []any
			for _, line := range p.source.log.with("audit") {
				if line["request_id"] == id {
					require.Equal(t, event, line["event"])
					require.Equal(t, "orders/orders-dr", line["target"])
					outcomes = append(outcomes, line["outcome"])
				}
			}
			require.Equal(t, []any{"committed", "ok"}, outcomes)
		}
	})
}

// A target topic that was made anew is another one until an admin accepts it.
//
// covers: WRT-12
func TestATargetThatWasMadeAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		c := p.source.client()
		_, err := c.Pause(t.Context(), "orders", "orders-dr", "")
		require.NoError(t, err)
		require.NoError(t, p.target.client().DeleteTopic(t.Context(), "orders", false))
		anew := p.target.create("orders")
		p.produce(0, 6)
		time.Sleep(10 * time.Second)
		_, err = c.Resume(t.Context(), "orders", "orders-dr", false)
		var refused *client.Error
		require.ErrorAs(t, err, &refused)
		require.JSONEq(t, `"target_replaced"`, string(member(t, refused.Body, "class")))
		_, err = c.Resume(t.Context(), "orders", "orders-dr", true)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 429, refused.Status, "it was checked a moment ago")
		require.Positive(t, refused.RetryAfter)
		time.Sleep(refused.RetryAfter)
		stub, err := c.Resume(t.Context(), "orders", "orders-dr", true)
		require.NoError(t, err)
		require.Equal(t, anew.ID, stub.Remote.TargetID)
		require.Equal(t, 6, p.shipped(6))
		p.source.stop()
		p.target.stop()
	})
}

func member(t *testing.T, body []byte, name string) json.RawMessage {
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &m))
	require.Contains(t, m, name)
	return m[name]
}
