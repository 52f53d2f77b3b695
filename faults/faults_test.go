package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/cluster"
)

// What each toxic of BR-37 shows on the wire while it is there and once it is gone.
// covers: HAR-02
func TestEveryToxicLandsAndHeals(t *testing.T) {
	rig := start(t)
	var kinds []string
	for _, toxic := range []cluster.Toxic{
		cluster.Latency("", cluster.Upstream, 200*time.Millisecond), cluster.Latency("", cluster.Downstream, 200*time.Millisecond),
		cluster.Bandwidth("", cluster.Upstream, 64<<10), cluster.Bandwidth("", cluster.Downstream, 64<<10),
		cluster.SlowClose("", cluster.Downstream, 400*time.Millisecond),
		cluster.Stall("", cluster.Upstream, 50*time.Millisecond), cluster.Stall("", cluster.Downstream, 50*time.Millisecond),
		cluster.ResetPeer("", cluster.Upstream, 0), cluster.ResetPeer("", cluster.Downstream, 50*time.Millisecond),
		cluster.Slicer("", cluster.Upstream, 64, 2*time.Millisecond), cluster.Slicer("", cluster.Downstream, 64, 2*time.Millisecond),
		cluster.LimitData("", cluster.Upstream, 4000), cluster.LimitData("", cluster.Downstream, 4000),
	} {
		kinds = append(kinds, toxic.Type)
		t.Run(toxic.Type+" "+toxic.Stream, func(t *testing.T) {
			f, err := New(Spec{Kind: toxic.Type, Toxic: toxic})
			require.NoError(t, err)
			line, err := Do(t.Context(), rig, f, short, time.Now(), seeded())
			require.NoError(t, err)
			require.True(t, line.Landed, "%v", line.Evidence)
			require.Equal(t, toxic.Type, line.Kind)
			require.Equal(t, "source>target", line.On)
			require.GreaterOrEqual(t, line.End, line.Start+ms(short))
			_, set, err := rig.Link().State(t.Context())
			require.NoError(t, err)
			require.Empty(t, set)
			_, err = json.Marshal(line)
			require.NoError(t, err)
		})
		t.Run(toxic.Type+" "+toxic.Stream+" that does nothing", func(t *testing.T) {
			line, err := Do(t.Context(), &deaf{Rig: rig}, &Toxic{Toxic: toxic}, short, time.Now(), seeded())
			require.NoError(t, err)
			require.False(t, line.Landed, "%v", line.Evidence)
		})
	}
	for _, row := range cluster.Toxics {
		require.Contains(t, kinds, row.Type)
		require.True(t, slices.ContainsFunc(Table, func(r Row) bool { return r.Kind == row.Type }))
	}
}

// A cut resets the connection that was open and refuses a new one: its evidence tells it from silence (BR-34).
// covers: HAR-02
func TestCut(t *testing.T) {
	rig := start(t)
	line, err := Do(t.Context(), rig, &Cut{}, short, time.Now(), seeded())
	require.NoError(t, err)
	require.True(t, line.Landed)
	require.NotEmpty(t, line.Evidence["open_connection"])
	require.NotEmpty(t, line.Evidence["new_connection"])

	line, err = Do(t.Context(), &deaf{Rig: rig}, &Cut{}, short, time.Now(), seeded())
	require.NoError(t, err)
	require.False(t, line.Landed, "a cut that cuts nothing")

	_, err = Do(t.Context(), &stuck{rig}, &Cut{}, short, time.Now(), seeded())
	require.ErrorContains(t, err, "heal", "a heal that does not heal")
	_, err = Do(t.Context(), rig, &Cut{}, short, time.Now(), seeded())
	require.Error(t, err, "a link that is down cannot be cut")
	require.NoError(t, rig.Link().Enable(t.Context()))
}

func TestFlap(t *testing.T) {
	rig := start(t)
	flap := &Flap{On: 40 * time.Millisecond, Off: 20 * time.Millisecond}
	for _, f := range []Fault{
		&Toxic{Toxic: cluster.ResetPeer("", cluster.Upstream, 0), Flap: flap},
		&Cut{Label: "down and up", Flap: flap},
	} {
		line, err := Do(t.Context(), rig, f, 400*time.Millisecond, time.Now(), seeded())
		require.NoError(t, err)
		require.True(t, line.Landed, "%v", line.Evidence)
		require.Greater(t, line.Evidence["times_on"], 1)
		enabled, set, err := rig.Link().State(t.Context())
		require.NoError(t, err)
		require.True(t, enabled)
		require.Empty(t, set)
	}
	line, err := Do(t.Context(), &deaf{Rig: rig}, &Cut{Flap: flap}, 100*time.Millisecond, time.Now(), seeded())
	require.NoError(t, err)
	require.False(t, line.Landed)

	one, other := seeded(), seeded()
	for range 5 {
		require.Equal(t, roll(one, time.Second), roll(other, time.Second), "a seed rolls the same schedule")
	}
}

func TestAnEarlyEndHeals(t *testing.T) {
	rig := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := Do(ctx, rig, &Cut{}, time.Hour, time.Now(), seeded())
	require.NoError(t, err)
	require.Less(t, time.Since(begin), time.Minute)
	_, err = rig.Link().Probe(t.Context(), 1)
	require.NoError(t, err)
}

func TestProcessFaults(t *testing.T) {
	rig := start(t)
	n, err := rig.Node("source-1")
	require.NoError(t, err)
	var ends []string
	dying := func(_ context.Context, graceful bool) func() {
		ends = append(ends, fmt.Sprintf("graceful: %t, running: %t", graceful, n.Running()))
		return func() { ends = append(ends, fmt.Sprintf("running: %t", n.Running())) }
	}
	do := func(kind string, stay bool, dies ...string) {
		t.Helper()
		ends = nil
		f, failed := New(Spec{Kind: kind, Node: "source-1", Stay: stay, Dying: dying})
		require.NoError(t, failed)
		line, failed := Do(t.Context(), rig, f, short, time.Now(), seeded())
		require.NoError(t, failed)
		require.True(t, line.Landed, "%s: %v", kind, line.Evidence)
		require.Equal(t, kind, line.Kind)
		require.Equal(t, "source-1", line.On)
		require.Equal(t, dies, ends, kind)
	}
	killed, stopped := []string{"graceful: false, running: true", "running: false"}, []string{"graceful: true, running: true", "running: false"}
	do(Kill, false, killed...)
	do(Stop, false, stopped...)
	do(Pause, false)
	do(Restart, false, stopped...)
	require.True(t, n.Running())
	do(Kill, true, killed...)
	require.False(t, n.Running())
	line, err := Do(t.Context(), rig, &Process{Kind: Pause, Node: "source-1"}, short, time.Now(), seeded())
	require.ErrorContains(t, err, "does not run")
	require.False(t, line.Landed)
	do(Start, false)
	require.True(t, n.Running())
	require.Empty(t, rig.(cluster.Watched).Trouble())
}

func TestApplies(t *testing.T) {
	rig := start(t)
	for name, f := range map[string]Fault{
		"unknown node":   &Process{Kind: Kill, Node: "source-9"},
		"unknown kind":   &Process{Kind: "maim", Node: "source-1"},
		"start of one":   &Process{Kind: Start, Node: "source-1"},
		"flap":           &Cut{Flap: &Flap{On: time.Second}},
		"no stream":      &Toxic{Toxic: cluster.Latency("", "", time.Second)},
		"slow close up":  &Toxic{Toxic: cluster.SlowClose("", cluster.Upstream, time.Second)},
		"idle slicer":    &Toxic{Toxic: cluster.Slicer("", cluster.Upstream, 10, 0)},
		"unaudited":      &Process{Kind: Kill, Node: "source-1", Unaudited: true}, // a process has no hook
		"part of a flow": &Toxic{Toxic: cluster.Toxic{Type: "reset_peer", Stream: cluster.Upstream, Toxicity: 0.5}},
	} {
		require.Error(t, f.Applies(rig), name)
		line, err := Do(t.Context(), rig, f, time.Hour, time.Now(), seeded())
		require.Error(t, err, name)
		require.False(t, line.Landed, name)
	}
	_, err := New(Spec{Kind: "meteor"})
	require.ErrorContains(t, err, "meteor")
	for _, row := range Table {
		f, err := New(Spec{Kind: row.Kind, Node: "source-1"})
		require.NoError(t, err)
		require.Contains(t, f.Name(), row.Kind)
		require.Equal(t, row.Kind, kind(f))
		require.NotEmpty(t, row.Does)
	}
}
