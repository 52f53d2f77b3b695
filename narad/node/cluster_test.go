package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// Three nodes over plaintext Raft: a remote that a follower took has its ingress line there and its leader line on the leader, under
// one request ID; every node that holds it warns, shows it in its gauge, and goes on doing so after a restart. With the leader
// killed the others go on.
//
// covers: WRT-01, WRT-06, WRT-11, BRK-07
func TestThreeNodesHoldARemote(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var all []*machine
		for i := range 3 {
			m := b.machine(fmt.Sprintf("n%d", i+1))
			m.config.Cluster.Addr = ":7943"
			m.config.Cluster.Peers = []string{"n1@n1:7943", "n2@n2:7943", "n3@n3:7943"}
			m.config.Security.AllowPlaintextRaft = true
			m.disk.SetSyncDelay(0)
			all = append(all, m)
		}
		ready := func(m *machine) func() bool {
			return func() bool { _, err := m.client().Ready(t.Context()); return err == nil }
		}
		for _, m := range all {
			m.start()
		}
		for _, m := range all {
			b.eventually("ready", ready(m))
		}
		ca, err := fakes.NewCA(time.Now())
		require.NoError(t, err)
		ids := map[string]*machine{}
		for i, m := range all {
			request := fmt.Sprintf("00000000000000b%d", i)
			ids[request] = m
			time.Sleep(time.Second) // its replica knows every member by now
			_, err = m.client().Remotes().Create(client.WithRequestID(t.Context(), request), wire.CreateRemote{
				Name: fmt.Sprint("dr", i), URL: fmt.Sprint("https://target", i, ":7942"), Username: linkUser, Password: remotePassword, CAPEM: ca.PEM(),
			})
			require.NoError(t, err)
			for _, other := range all { // two first creates at once are refused (DEC-30)
				b.eventually("the remote is everywhere", func() bool {
					_, err := other.client().Remotes().Get(t.Context(), fmt.Sprint("dr", i), false)
					return err == nil
				})
			}
		}
		leaders := map[*machine]int{}
		for request, took := range ids {
			for _, m := range all {
				for _, line := range m.log.with("audit") {
					if line["request_id"] != request {
						continue
					}
					if _, ingress := line["status"]; ingress {
						require.Same(t, took, m, "the ingress line stands on the node that took the request")
						require.EqualValues(t, 201, line["status"])
						continue
					}
					require.Equal(t, "committed", line["outcome"])
					leaders[m]++
				}
			}
		}
		require.Len(t, leaders, 1, "one node leads")
		for leader, lines := range leaders {
			require.Equal(t, 3, lines)
			leader.kill(false)
		}
		const warning = "this node holds remotes over plaintext Raft: set cluster.tls_cert_file, cluster.tls_key_file and cluster.tls_ca_file"
		for _, m := range all {
			if m.node == nil {
				m.start()
			}
			b.eventually("ready", ready(m))
			b.eventually("the gauge", func() bool {
				_, page := m.get("/metrics", true)
				return metric(page, "narad_remotes_plaintext_raft") == "1"
			})
			require.NotEmpty(t, m.log.with(warning))
		}
		all[0].create("orders")
		for _, m := range all {
			b.eventually("the topic is everywhere", func() bool { _, err := m.client().Topic(t.Context(), "orders", nil); return err == nil })
			require.NotContains(t, m.log.String(), remotePassword)
			require.NotContains(t, m.log.String(), "https://target")
		}
		for _, m := range all {
			m.stop()
		}
	})
}
