package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/harness/cluster"
)

// covers: HAR-02, HAR-03, ANS-21
func TestAFaceOnProcesses(t *testing.T) {
	rig := start(t)
	f, err := New(Spec{Kind: "tls", Face: fakes.FaceExpired})
	require.NoError(t, err)
	require.NoError(t, f.Applies(rig))
	landed, e, err := f.Inject(t.Context(), rig, seeded())
	require.NoError(t, err)
	require.False(t, landed, "only the end can tell")
	require.Contains(t, e["probe"], "expired")
	_, err = rig.Link().Probe(t.Context(), 1)
	require.Error(t, err)
	landed, e, err = f.Heal(t.Context(), rig)
	require.NoError(t, err)
	require.True(t, landed)
	require.Equal(t, 2, e["handshakes_begun"])
	require.Zero(t, e["requests_after_them"])
	kind, on := f.(described).about()
	require.Equal(t, []string{"tls", theLink}, []string{kind, on})

	require.ErrorIs(t, f.Applies(&deaf{Rig: rig}), cluster.ErrUnsupported)
	named, err := New(Spec{Kind: "dns", Answers: []string{"10.0.0.1"}})
	require.NoError(t, err)
	require.ErrorIs(t, named.Applies(rig), cluster.ErrUnsupported)
}

// covers: HAR-02, HAR-03
func TestAnotherConfigurationOnProcesses(t *testing.T) {
	rig := start(t)
	f, err := New(Spec{Kind: "config", Node: "source-1", Set: map[string]any{"remotes": map[string]any{"allowed_ports": []int{1}}}})
	require.NoError(t, err)
	line, err := Do(t.Context(), rig, f, 10*time.Millisecond, time.Now(), seeded())
	require.NoError(t, err)
	require.True(t, line.Landed, "%v", line.Evidence)
	require.NotEmpty(t, line.Evidence["request_between"])

	f, err = New(Spec{Kind: "config", Node: "target-1", Set: map[string]any{"a": 1}})
	require.NoError(t, err)
	require.ErrorIs(t, f.Applies(rig), cluster.ErrUnsupported, "a fake has none")
}
