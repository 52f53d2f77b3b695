// Package rigtest is the conformance test of backends: what every Rig must do, run against any of them. It needs no broker
// beyond readiness, a metrics page and a clean end, so it also runs with a stand-in.
//
// It promises to test through the interfaces of package cluster alone, and leaves nothing when it ends. It runs no goroutine.
// It refused to know a backend: what one alone can show is in that backend's own tests.
package rigtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require" //nolint:depguard // this package is a test that others call

	"narad.example/harness/cluster"
)

// startLimit bounds the start of a rig; an image may have to be built.
const startLimit = 5 * time.Minute

// Run starts a rig of spec on backend and plays through its life. Spec names one source node at least and a real target.
func Run(t *testing.T, backend cluster.Backend, spec cluster.Spec) {
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	rig, err := backend.Start(ctx, spec)
	require.NoError(t, err)
	closed := false
	defer func() {
		if !closed {
			require.NoError(t, rig.Close(context.WithoutCancel(ctx)))
		}
	}()

	step(t, "names", func() { names(t, rig, spec) })
	step(t, "secrets", func() { secrets(t, rig) })
	step(t, "cut", func() { cut(t, rig.Link()) })
	step(t, "toxics", func() { toxics(t, rig.Link()) })
	step(t, "kill and start", func() { killAndStart(t, rig, "source-1") })
	step(t, "kill and start of the target", func() { killAndStart(t, rig, "target-1") })
	step(t, "stop and start", func() { stopAndStart(t, rig, "source-1") })
	step(t, "pause and resume", func() { pauseAndResume(t, rig, "source-1") })
	if w, ok := rig.(cluster.Watched); ok {
		require.Empty(t, w.Trouble(), "everything that ended was asked to")
	}
	_, err = rig.Wire(ctx)
	require.NoError(t, err)

	closed = true
	require.NoError(t, rig.Close(ctx))
	for _, n := range append(rig.Nodes(cluster.Source), rig.Nodes(cluster.Target)...) {
		silent(t, n, "a closed rig")
	}
	_, err = rig.Link().Probe(short(t), 1)
	require.Error(t, err, "a closed rig has no link")
}

// step names what follows in the log. It is no subtest, which a bubble of virtual time does not allow.
func step(t *testing.T, name string, f func()) {
	t.Helper()
	t.Log(name)
	f()
}

// short is a context for something that should fail soon.
func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func names(t *testing.T, rig cluster.Rig, spec cluster.Spec) {
	require.Len(t, rig.Nodes(cluster.Source), max(spec.Source.Nodes, 1))
	require.Len(t, rig.Nodes(cluster.Target), max(spec.Target.Nodes, 1))
	n, err := rig.Node("source-1")
	require.NoError(t, err)
	require.Equal(t, "source-1", n.Name())
	require.Equal(t, cluster.Source, n.Side())
	require.NotNil(t, n.Client())
	_, err = rig.Node("source-99")
	require.Error(t, err)
	require.True(t, strings.HasPrefix(rig.Remote().URL, "https://"))
	require.Contains(t, rig.Remote().CAPEM, "BEGIN CERTIFICATE")
}

func secrets(t *testing.T, rig cluster.Rig) {
	user, password := rig.Admin()
	require.Equal(t, "admin", user)
	require.Contains(t, rig.Secrets(), password)
	for _, s := range rig.Secrets() {
		require.GreaterOrEqual(t, len(s), 24)
		require.NotContains(t, rig.Remote().URL, s)
	}
}

func cut(t *testing.T, link cluster.Link) {
	ctx := t.Context()
	_, err := link.Probe(ctx, 1000)
	require.NoError(t, err, "a link starts open")
	held, err := link.Hold(ctx)
	require.NoError(t, err)
	_, err = held.Ping(ctx, 10)
	require.NoError(t, err)
	require.NoError(t, link.Disable(ctx))
	enabled, _, err := link.State(ctx)
	require.NoError(t, err)
	require.False(t, enabled)
	_, err = held.Ping(short(t), 10)
	require.Error(t, err, "a connection that was open is cut too")
	require.NoError(t, held.Close())
	_, err = link.Probe(short(t), 10)
	require.Error(t, err)
	require.NoError(t, link.Enable(ctx))
	_, err = link.Probe(ctx, 10)
	require.NoError(t, err)
}

func toxics(t *testing.T, link cluster.Link) {
	ctx := t.Context()
	base, err := link.Probe(ctx, 10)
	require.NoError(t, err)
	slow := cluster.Latency("slow", cluster.Downstream, 300*time.Millisecond)
	require.NoError(t, link.Add(ctx, slow))
	require.Error(t, link.Add(ctx, slow), "names are unique")
	_, set, err := link.State(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"slow"}, set)
	rtt, err := link.Probe(ctx, 10)
	require.NoError(t, err)
	require.GreaterOrEqual(t, rtt, base+200*time.Millisecond)
	require.NoError(t, link.Remove(ctx, "slow"))
	require.Error(t, link.Remove(ctx, "slow"))
	require.Error(t, link.Add(ctx, cluster.Toxic{Name: "x", Type: "latency", Attributes: map[string]int64{"latency": 1}}), "a stream is compulsory")
	require.NoError(t, link.Add(ctx, cluster.ResetPeer("reset", cluster.Upstream, 0)))
	_, err = link.Probe(short(t), 10)
	require.Error(t, err)
	require.NoError(t, link.Disable(ctx))
	require.NoError(t, link.Reset(ctx))
	enabled, set, err := link.State(ctx)
	require.NoError(t, err)
	require.True(t, enabled)
	require.Empty(t, set)
	_, err = link.Probe(ctx, 10)
	require.NoError(t, err)
}

func silent(t *testing.T, n cluster.Node, when string) {
	t.Helper()
	_, err := n.Metrics(short(t))
	require.Error(t, err, "%s of %s answers", n.Name(), when)
}

func node(t *testing.T, rig cluster.Rig, name string) cluster.Node {
	t.Helper()
	n, err := rig.Node(name)
	require.NoError(t, err)
	_, err = n.Metrics(t.Context())
	require.NoError(t, err)
	require.True(t, n.Running())
	return n
}

func killAndStart(t *testing.T, rig cluster.Rig, name string) {
	n := node(t, rig, name)
	before, err := n.Log()
	require.NoError(t, err)
	require.Error(t, n.Start(t.Context()), "it runs")
	require.NoError(t, n.Kill(t.Context()))
	require.False(t, n.Running())
	silent(t, n, "a killed node")
	require.Error(t, n.Kill(t.Context()), "it is gone")
	require.NoError(t, n.Start(t.Context()))
	node(t, rig, name)
	after, err := n.Log()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(after), string(before)), "the log goes on over a restart")
	_, err = rig.Link().Probe(t.Context(), 10)
	require.NoError(t, err)
}

func stopAndStart(t *testing.T, rig cluster.Rig, name string) {
	n := node(t, rig, name)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, n.Stop(ctx))
	require.False(t, n.Running())
	silent(t, n, "a stopped node")
	require.NoError(t, n.Start(ctx))
	node(t, rig, name)
}

func pauseAndResume(t *testing.T, rig cluster.Rig, name string) {
	n := node(t, rig, name)
	require.NoError(t, n.Pause(t.Context()))
	silent(t, n, "a paused node")
	require.True(t, n.Running(), "a paused node is there")
	require.NoError(t, n.Resume(t.Context()))
	node(t, rig, name)
}
