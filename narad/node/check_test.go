package node_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/config"
	"narad.example/narad/wire"
)

// refusedCheck is what a refused attach or resume carries.
type refusedCheck struct {
	Class  string       `json:"class"`
	Checks []wire.Check `json:"checks"`
}

func checkOf(t *testing.T, err error, status int) refusedCheck {
	t.Helper()
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, status, e.Status, e.Text)
	var r refusedCheck
	require.NoError(t, json.Unmarshal(e.Body, &r))
	return r
}

// Three members check a target, each over its own connection with its own credential: a dry run and a test through any of them show three
// reports, an attach records the one ID that all have seen. One that is away is unreachable, and holds an attach back. An admin's
// credential and a target without security are found out, and neither leaves a link.
//
// covers: TGT-01, TGT-02, TGT-04, TGT-08, TGT-09, TGT-12
func TestThreeMembersCheckATarget(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, target := farLinkWith(t, b, func(m *machine) { m.config.Remotes.AllowedHosts = []string{"target"} })
		d, err := target.client().Topic(t.Context(), "orders", nil)
		require.NoError(t, err)
		stub, err := all[0].client().Topic(t.Context(), "orders-dr", nil)
		require.NoError(t, err)
		require.Equal(t, d.ID, stub.Remote.TargetID)
		time.Sleep(10 * time.Second)
		all[0].create("more")
		b.everywhere(all, "more")
		target.create("more")
		grants := []wire.Grant{{Action: wire.ActionProduce, Patterns: []string{"*"}}}
		_, err = target.client().Users().ReplaceGrants(t.Context(), linkUser, grants)
		require.NoError(t, err)
		ask := wire.AttachChild{Child: "more-dr", Remote: "dr"}
		dry, err := all[2].client().DryRunAttach(t.Context(), "more", ask)
		require.NoError(t, err)
		require.Equal(t, &wire.Capabilities{MaxMessages: 1000, Zstd: true}, dry.Capabilities)
		require.Equal(t, []int64{0, 0, 0}, dry.AttachOffsets)
		tested := dry.Checks
		for i := range 2 {
			require.Len(t, tested, 3)
			for j, r := range tested {
				require.Equal(t, all[j].name, r.Node)
				require.Equal(t, "pass", r.Result, r.Class)
				require.True(t, r.TargetServesIDs)
				require.NotEmpty(t, r.TargetID)
				require.NotNil(t, r.RTTMS)
				require.Equal(t, wire.Posture{Security: true, APIHopEncrypted: true}, *r.Posture)
			}
			time.Sleep(6 * time.Second)
			got, testErr := all[i].client().Remotes().Test(t.Context(), "dr", wire.TestRemote{Topic: "more", Source: "more"})
			require.NoError(t, testErr)
			tested = got.Checks
		}

		time.Sleep(6 * time.Second)
		admin := append(grants, wire.Grant{Action: wire.ActionAdmin})
		_, err = target.client().Users().ReplaceGrants(t.Context(), linkUser, admin)
		require.NoError(t, err)
		_, err = all[0].client().AttachRemote(t.Context(), "more", ask)
		r := checkOf(t, err, 409)
		require.Equal(t, "admin_credential", r.Class)
		require.Len(t, r.Checks, 3)
		_, err = target.client().Users().ReplaceGrants(t.Context(), linkUser, grants)
		require.NoError(t, err)

		all[1].kill(false)
		time.Sleep(10 * time.Second) // a leader again
		got, err := all[0].client().Remotes().Test(t.Context(), "dr", wire.TestRemote{Topic: "more", Source: "more"})
		require.NoError(t, err)
		require.Equal(t, "unreachable", got.Class)
		require.Equal(t, wire.Check{Node: all[1].name, Result: "fail", Class: "unreachable"}, got.Checks[1])
		_, err = all[0].client().AttachRemote(t.Context(), "more", ask)
		require.Equal(t, "unreachable", checkOf(t, err, 412).Class)
		all[1].start()
		b.ready(all[1])

		target.stop()
		target.config.Security.Enabled, target.config.Remotes = false, config.Default().Remotes
		target.start()
		time.Sleep(10 * time.Second)
		_, err = all[1].client().AttachRemote(t.Context(), "more", ask)
		r = checkOf(t, err, 409)
		require.Equal(t, "target_security_off", r.Class)
		require.Len(t, r.Checks, 3)
		_, err = all[0].client().Topic(t.Context(), "more-dr", nil)
		require.Equal(t, 404, statusOf(err))
		for _, m := range append(all, target) {
			m.stop()
		}
	})
}

// A target that says nothing costs each member the 15 s of its check, and the node that was asked still has the answer of the leader.
//
// covers: TGT-01, TGT-10, WRT-01
func TestAnAttachToASilentTarget(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, target := farLinkWith(t, b, func(m *machine) { m.config.Remotes.AllowedHosts = []string{"target"} })
		time.Sleep(10 * time.Second)
		all[0].create("more")
		b.everywhere(all, "more")
		target.host.Freeze(true)
		for _, m := range all {
			_, err := m.client().AttachRemote(t.Context(), "more", wire.AttachChild{Child: "more-dr", Remote: "dr"})
			r := checkOf(t, err, 503)
			require.Equal(t, "unavailable", r.Class, m.name)
			require.Len(t, r.Checks, 3)
			time.Sleep(10 * time.Second)
		}
		target.host.Freeze(false)
		for _, m := range append(all, target) {
			m.stop()
		}
	})
}
