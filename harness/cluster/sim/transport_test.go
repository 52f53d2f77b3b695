package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/faults"
	"narad.example/harness/cluster"
	"narad.example/harness/ledger"
)

// during injects a fault for two seconds and does something in the middle of it.
func during(t *testing.T, r cluster.Rig, s faults.Spec, do func()) ledger.Fault {
	t.Helper()
	f, err := faults.New(s)
	require.NoError(t, err)
	done := make(chan struct{})
	var line ledger.Fault
	go func() {
		defer close(done)
		line, err = faults.Do(t.Context(), r, f, 2*time.Second, time.Now(), rand.New(rand.NewPCG(1, 2)))
	}()
	time.Sleep(1500 * time.Millisecond)
	do()
	<-done
	require.NoError(t, err)
	return line
}

// covers: HAR-02, HAR-03, ANS-21
func TestFacesLandOnceTheSourceMeetsThem(t *testing.T) {
	onRig(t, func(t *testing.T, r cluster.Rig) {
		for _, face := range fakes.FaceNames {
			line := during(t, r, faults.Spec{Kind: "tls", Face: face}, func() {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_, err := r.Link().Probe(ctx, 1)
				require.Error(t, err, face)
			})
			require.True(t, line.Landed, "%s: %v", face, line.Evidence)
			require.Zero(t, line.Evidence["requests_after_them"], face)
		}
		line := during(t, r, faults.Spec{Kind: "tls", Face: fakes.FaceAlert}, func() {})
		require.False(t, line.Landed, "nobody but the fault itself met it")
		f, err := faults.New(faults.Spec{Kind: "tls", Face: "sad"})
		require.NoError(t, err)
		_, err = faults.Do(t.Context(), r, f, time.Second, time.Now(), nil)
		require.ErrorContains(t, err, `face "sad" is none of`)
	})
}

// covers: HAR-02, HAR-03, NET-05
func TestChangedNamesAreTheSourcesAlone(t *testing.T) {
	onRig(t, func(t *testing.T, r cluster.Rig) {
		network := r.(*rig).net
		refuse := errors.New("refused")
		dial := func(host string, control func(string, string) error) error {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			c, err := network.Host(host).Dial(ctx, "tcp", "link:"+linkPort, control)
			if err == nil {
				_ = c.Close()
			}
			return err
		}
		bad := func(_, address string) error {
			if address == "[::ffff:127.0.0.1]:"+linkPort {
				return refuse
			}
			return nil
		}
		line := during(t, r, faults.Spec{Kind: "dns", Answers: []string{"::ffff:127.0.0.1", "truth"}}, func() {
			require.NoError(t, dial("source-1", bad), "the good one is tried after the bad one")
			require.NoError(t, dial("harness", bad))
		})
		require.True(t, line.Landed)
		require.Equal(t, []any{1, 1, 0}, []any{line.Evidence["lookups"], line.Evidence["refused_by_the_guard"], line.Evidence[faults.EvidenceDialled]})

		line = during(t, r, faults.Spec{Kind: "dns", Answers: []string{"169.254.169.254"}}, func() { require.Error(t, dial("source-1", nil)) })
		require.Equal(t, 1, line.Evidence[faults.EvidenceDialled], "who asks no guard dials it")
		for _, word := range []string{cluster.AnswerNone, cluster.AnswerFailure, cluster.AnswerSilence} {
			line = during(t, r, faults.Spec{Kind: "dns", Answers: []string{word}}, func() { require.Error(t, dial("source-1", bad), word) })
			require.True(t, line.Landed, word)
		}
		require.NoError(t, dial("source-1", bad))
		line = during(t, r, faults.Spec{Kind: "dns", Answers: []string{"10.9.9.9"}}, func() {})
		require.False(t, line.Landed, "nobody asked")
	})
}

// covers: HAR-02, HAR-03
func TestAnotherConfigurationUntilTheHeal(t *testing.T) {
	onRig(t, func(t *testing.T, r cluster.Rig) {
		n, err := r.Node("source-1")
		require.NoError(t, err)
		ports := func() []int { return n.(*simNode).settings().Remotes.AllowedPorts }
		own := ports()
		var deaths []bool
		line := during(t, r, faults.Spec{
			Kind: "config", Node: "source-1", Set: map[string]any{"remotes": map[string]any{"allowed_ports": []int{1}}},
			Dying: func(_ context.Context, graceful bool) func() {
				return func() { deaths = append(deaths, graceful && !n.Running()) }
			},
		}, func() { require.Equal(t, []int{1}, ports()) })
		require.True(t, line.Landed, "%v", line.Evidence)
		require.Equal(t, own, ports())
		require.Equal(t, []bool{true, true}, deaths)
		require.Error(t, n.(*simNode).Reconfigure(t.Context(), nil), "it runs")
	})
}
