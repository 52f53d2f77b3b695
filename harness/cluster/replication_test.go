package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// A rig is good for what it is there for: records of the source go through link and tap to the target.
func TestProcessReplicates(t *testing.T) {
	replicates(t, cluster.Processes(), cluster.Spec{Source: cluster.Side{Nodes: 1}, Target: cluster.Side{Nodes: 1}, Binaries: realBinaries(t)})
}

func TestProcessReplicatesToAFake(t *testing.T) {
	replicates(t, cluster.Processes(), cluster.Spec{Fake: fakeOrders(), Binaries: realBinaries(t)})
}

func TestContainerReplicates(t *testing.T) {
	replicates(t, containers(t), cluster.Spec{Source: cluster.Side{Nodes: 1}, Target: cluster.Side{Nodes: 1}, Binaries: realBinaries(t)})
}

func TestContainerReplicatesToAFake(t *testing.T) {
	replicates(t, containers(t), cluster.Spec{Fake: fakeOrders(), Binaries: realBinaries(t)})
}

func fakeOrders() *fakes.Script {
	return &fakes.Script{
		Topics: []fakes.ScriptTopic{{Name: "orders"}},
		Steps:  []fakes.Step{{Name: "busy", When: fakes.When{Route: "produce", Nth: 2}, Answer: fakes.Reply{Name: "503"}}},
	}
}

func realBinaries(t *testing.T) cluster.Binaries {
	t.Helper()
	if os.Getenv("NARAD_BIN") == "" {
		t.Skip("needs a real broker: NARAD_BIN names none")
	}
	return standins(t)
}

const linkPassword = "a-password-for-the-link-of-this-test"

func replicates(t *testing.T, b cluster.Backend, spec cluster.Spec) {
	ctx := t.Context()
	spec.Dir = t.TempDir()
	rig, err := b.Start(ctx, spec)
	require.NoError(t, err)
	defer func() {
		if t.Failed() {
			log, lerr := rig.Nodes(cluster.Source)[0].Log()
			t.Logf("log of source-1 (%v):\n%s", lerr, log)
		}
		require.NoError(t, rig.Close(ctx))
	}()
	source, target := rig.Nodes(cluster.Source)[0].Client(), rig.Nodes(cluster.Target)[0].Client()
	_, err = source.CreateTopic(ctx, wire.CreateTopic{Name: "orders"})
	require.NoError(t, err)
	remote := rig.Remote()
	if spec.Fake == nil {
		_, err = target.CreateTopic(ctx, wire.CreateTopic{Name: "orders"})
		require.NoError(t, err)
		_, err = target.Users().Create(ctx, wire.CreateUser{Username: "link", Password: linkPassword, Grants: []wire.Grant{
			{Action: wire.ActionProduce, Patterns: []string{"orders"}}, {Action: wire.ActionConsume, Patterns: []string{"orders"}},
		}})
		require.NoError(t, err)
		remote.User, remote.Password = "link", linkPassword
	}
	_, err = source.Remotes().Create(ctx, wire.CreateRemote{Name: "b", URL: remote.URL, CAPEM: remote.CAPEM, Username: remote.User, Password: remote.Password})
	require.NoError(t, err)
	// A cluster that has just started may answer 503 for a while.
	require.Eventually(t, func() bool {
		_, err = source.AttachRemote(ctx, "orders", wire.AttachChild{Child: "orders-to-b", Remote: "b", RemoteTopic: "orders", Lanes: 2})
		var refused *client.Error
		return !errors.As(err, &refused) || refused.Status != 503
	}, 30*time.Second, 500*time.Millisecond)
	require.NoError(t, err)
	const count = 40
	for i := range count {
		require.NoError(t, source.Produce(ctx, "orders", fmt.Appendf(nil, `{"id":%q}`, ledger.NewID(uint64(i))), client.ProduceOptions{}))
	}
	require.Eventually(t, func() bool { return len(landed(t, rig)) == count }, 60*time.Second, 50*time.Millisecond, "every record is in an accepted request")
	for id := range landed(t, rig) {
		require.True(t, strings.HasPrefix(id, ledger.Marker))
	}
	require.Equal(t, count, stored(t, target))
	if s, ok := rig.(cluster.Scripted); ok && spec.Fake != nil {
		steps, serr := s.Steps(ctx)
		require.NoError(t, serr)
		require.Equal(t, 1, steps[0].Used)
	}
	require.Empty(t, rig.(cluster.Watched).Trouble())
}

// landed are the IDs in accepted requests.
func landed(t *testing.T, rig cluster.Rig) map[string]bool {
	list, err := rig.Wire(t.Context())
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, r := range list {
		for _, rec := range r.Records {
			if r.Outcome == ledger.WireAccepted {
				ids[rec.ID] = true
			}
		}
	}
	return ids
}

// stored waits for the target's dispatcher and counts by replay.
func stored(t *testing.T, target *client.Client) int {
	n := 0
	require.Eventually(t, func() bool {
		d, err := target.Topic(t.Context(), "orders", nil)
		require.NoError(t, err)
		n = 0
		for _, p := range d.PartitionStats {
			n += int(p.HighWatermark)
		}
		return n == 40
	}, 30*time.Second, 50*time.Millisecond)
	for p := range 3 {
		_, err := target.Replay(t.Context(), "orders", p, 0)
		require.NoError(t, err)
	}
	return n
}
