package sim

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/faults"
	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// leaderOf waits until a node of the source leads, and returns it with another one.
func leaderOf(t *testing.T, r cluster.Rig) (leader, other cluster.Node) {
	t.Helper()
	for range 600 {
		leader, other = nil, nil
		for _, n := range r.Nodes(cluster.Source) {
			if page, err := n.Metrics(t.Context()); err == nil && strings.Contains(page, "narad_raft_state{state=\"leader\"} 1\n") {
				leader = n
			} else if n.Running() {
				other = n
			}
		}
		if leader != nil {
			return leader, other
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Fail(t, "nobody leads")
	return nil, nil
}

// linesOf counts a node's leader lines of a request, and those of them that are replayed.
func linesOf(t *testing.T, n cluster.Node, request string) (all, replayed int) {
	t.Helper()
	log, err := n.Log()
	require.NoError(t, err)
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte(`"component":"audit"`)) && bytes.Contains(line, []byte(request)) && !bytes.Contains(line, []byte(`"status"`)) {
			all++
			if bytes.Contains(line, []byte(`"replayed":true`)) {
				replayed++
			}
		}
	}
	return all, replayed
}

// A leader that is killed between commit and line leaves no line and no answer; the evidence names the change. Without a write the node
// lives, and that is trouble of the harness.
//
// covers: HAR-02, HAR-08, WRT-11
func TestALeaderIsKilledBetweenCommitAndLine(t *testing.T) {
	onThree(t, func(t *testing.T, r cluster.Rig) {
		leader, other := leaderOf(t, r)
		do := func() (ledger.Fault, error) {
			f, err := faults.New(faults.Spec{Kind: faults.Kill, Node: leader.Name(), Unaudited: true})
			require.NoError(t, err)
			return faults.Do(t.Context(), r, f, 8*time.Second, time.Now(), rand.New(rand.NewPCG(1, 2)))
		}
		line, err := do()
		require.ErrorIs(t, err, cluster.ErrTrouble)
		require.False(t, line.Landed)
		require.True(t, leader.Running())

		const request = "00000000000000f1"
		answer := make(chan error, 1)
		go func() {
			time.Sleep(time.Second)
			far := r.Remote()
			_, failed := other.Client().Remotes().Create(client.WithRequestID(t.Context(), request), wire.CreateRemote{
				Name: "b", URL: far.URL, CAPEM: far.CAPEM, Username: "somebody", Password: "c4n4ry-p4ssw0rd-of-24-and-more",
			})
			answer <- failed
		}()
		line, err = do()
		require.NoError(t, err)
		require.True(t, line.Landed, "%v", line.Evidence)
		require.Equal(t, request, line.Evidence[ledger.CommittedRequest])
		require.Positive(t, line.Evidence[ledger.CommittedIndex])
		var refused *client.Error
		require.ErrorAs(t, <-answer, &refused)
		require.Equal(t, 503, refused.Status)
		require.True(t, leader.Running(), "healed")
		all, _ := linesOf(t, leader, request)
		require.Zero(t, all)
		second, _ := leaderOf(t, r)
		all, replayed := linesOf(t, second, request)
		require.Equal(t, []int{1, 1}, []int{all, replayed})
		_, err = second.Client().Remotes().Get(t.Context(), "b", false)
		require.NoError(t, err, "the change was committed")
	})
}
