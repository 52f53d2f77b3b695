package node_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// Three nodes of two releases are upgraded in turn. Until the last one is, every remote write is refused and the refusal names a member that
// holds it back, whoever leads; a leader of the older release does not know the RemoteWrite at all. No replica stops meanwhile. Afterwards
// the same write is taken, and an older node is one that answers the routes of remotes in Go's words.
//
// covers: WRT-02, WRT-08
func TestAClusterOfTwoReleasesTakesNoRemote(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n", 1, 2)
		ca, err := fakes.NewCA(time.Now())
		require.NoError(t, err)
		create := func(m *machine) error {
			_, failed := m.client().Remotes().Create(t.Context(), wire.CreateRemote{
				Name: "dr", URL: "https://target:" + apiPort, Username: linkUser, Password: remotePassword, CAPEM: ca.PEM(),
			})
			return failed
		}
		all[0].create("orders")
		b.everywhere(all, "orders")
		var refused *client.Error
		require.ErrorAs(t, create(all[1]), &refused)
		require.Equal(t, 404, refused.Status, "n2 poses as an older release")

		b.lead(all, 1, 2)
		_, err = all[0].node.RemoteWrite(t.Context(), []byte(`{"kind":"delete_remote"}`))
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, wire.Precondition, p.Kind)
		require.Equal(t, "old_release", p.Fields["class"])

		for _, m := range all[1:] {
			for _, line := range m.log.with("audit") {
				require.NotEqual(t, "remote.delete", line["event"], "an older release looks at no RemoteWrite")
			}
		}

		for _, i := range []int{1, 2} {
			require.Empty(t, all[0].node.Cluster(), "an older release would stop at the cluster's ID")
			b.lead(all, 0)
			old := []string{"n2", "n3"}[i-1:]
			for _, m := range all[:i] {
				require.ErrorAs(t, create(m), &refused)
				require.Equal(t, 412, refused.Status)
				require.True(t, slices.ContainsFunc(old, func(id string) bool {
					return refused.Text == "member "+id+" is not known to run a release with remotes; upgrade it first"
				}), refused.Text)
			}
			all[i].stop()
			all[i].older = false
			all[i].start()
			b.ready(all[i])
			time.Sleep(time.Second) // it has said anew of which release it is
		}
		require.NoError(t, create(all[2]))
		id := all[0].node.Cluster()
		require.NotEmpty(t, id)
		for _, m := range all {
			require.Equal(t, id, m.node.Cluster())
			b.eventually("the remote is on "+m.name, func() bool { _, err := m.client().Remotes().Get(t.Context(), "dr", false); return err == nil })
			m.stop()
		}
	})
}

// lead has the lead given away until one of these nodes has it.
func (b *bubble) lead(all []*machine, wanted ...int) {
	b.t.Helper()
	b.eventually("the lead is where it is wanted", func() bool {
		for i, m := range all {
			if v := m.member(m.name); v != nil && v.Leader && !slices.Contains(wanted, i) {
				_ = m.node.StepDown(b.t.Context()) // it may have lost the lead by now
				return false
			}
		}
		return slices.ContainsFunc(wanted, func(i int) bool { v := all[i].member(all[i].name); return v != nil && v.Leader })
	})
}
