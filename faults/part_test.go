package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/fakes"
	"narad.example/harness/cluster"
)

// threeNodes is a rig of processes with a source of three stand-ins, which ask each other for their names all the time.
func threeNodes(t *testing.T) cluster.Rig {
	t.Helper()
	rig, err := cluster.Processes().Start(t.Context(), cluster.Spec{
		Source: cluster.Side{Nodes: 3}, Fake: &fakes.Script{}, Binaries: cluster.Binaries{Narad: standin},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rig.Close(context.Background())) })
	return rig
}

// unparted is a rig that says it parted its nodes, and did nothing.
type unparted struct {
	cluster.Rig
	cluster.Parted
}

type nothing struct{}

func (unparted) Part(context.Context, cluster.Cut) (cluster.Parting, error) { return nothing{}, nil }

func (nothing) Met() cluster.CutMet { return cluster.CutMet{Ended: 1000} }

func (nothing) Mend(context.Context) error { return nil }

// Every cut between processes lands by what its own probes and the nodes meet, on connections that are there and on new ones, and heals; one that
// did nothing has not landed.
//
// covers: HAR-02
func TestCutsBetweenProcessesLandAndHeal(t *testing.T) {
	rig := threeNodes(t)
	alone, rest := []string{"source-1"}, []string{"source-2", "source-3"}
	for i, c := range []cluster.Cut{
		{From: alone, To: rest}, {From: alone, To: rest, OneWay: true}, {From: rest, To: alone, Silent: true},
		{From: rest[:1], To: alone, Silent: true, OneWay: true}, {From: alone, To: rest, Carries: cluster.CarriesRaft},
		{From: alone, To: rest, Carries: cluster.CarriesRPC, Silent: true},
	} {
		what := fmt.Sprintf("%+v", c)
		do := func(rig cluster.Rig) bool {
			f, err := New(Spec{Kind: Part, Parted: c})
			require.NoError(t, err, what)
			line, err := Do(t.Context(), rig, f, time.Second, time.Now(), seeded()) // some heartbeats long, on a busy machine too
			require.NoError(t, err, "%s: %v", what, line.Evidence)
			t.Log(what, line.Evidence)
			return line.Landed
		}
		require.True(t, do(rig), what)
		require.Zero(t, rig.(cluster.Parted).Partings())
		if i == 0 {
			require.False(t, do(unparted{rig, rig.(cluster.Parted)}), what)
		}
	}
}

// A connection that ends by itself was cut, in order or not; one that stays open was not.
//
// covers: HAR-02
func TestHowAConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		require.NoError(t, ended(near, time.Now().Add(within)))
		time.AfterFunc(within/2, func() { _ = far.Close() })
		require.ErrorIs(t, ended(near, time.Now().Add(within)), errEnded)
		require.NoError(t, near.Close())
		require.ErrorIs(t, ended(near, time.Now().Add(within)), io.ErrClosedPipe)
	})
}

// A toxic between processes lands by what its own probes and the nodes meet, and heals.
//
// covers: HAR-02
func TestToxicsBetweenProcessesLandAndHeal(t *testing.T) {
	rig := threeNodes(t)
	for _, toxic := range []cluster.Toxic{
		cluster.Latency("x", cluster.Upstream, 300*time.Millisecond), cluster.Bandwidth("x", cluster.Upstream, 4<<10),
		cluster.Slicer("x", cluster.Upstream, 64, 300*time.Millisecond),
	} {
		f, err := New(Spec{Kind: toxic.Type, Toxic: toxic, Parted: cluster.Cut{
			From: []string{"source-1"}, To: []string{"source-2", "source-3"}, Carries: cluster.CarriesRPC,
		}})
		require.NoError(t, err)
		line, err := Do(t.Context(), rig, f, time.Second, time.Now(), seeded())
		require.NoError(t, err, "%v", line.Evidence)
		t.Log(toxic.Type, line.Evidence)
		require.True(t, line.Landed, "%v", line.Evidence)
		require.Zero(t, rig.(cluster.Paced).Pacings())
	}
}
