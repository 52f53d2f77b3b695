package run

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/harness/cluster"
	"narad.example/scenarios"
)

// claimant is a node that may say that it leads.
type claimant struct {
	cluster.Node
	name  string
	up    bool
	leads *atomic.Bool
}

func (c claimant) Name() string  { return c.name }
func (c claimant) Side() string  { return cluster.Source }
func (c claimant) Running() bool { return c.up }
func (c claimant) Metrics(context.Context) (string, error) {
	if c.leads.Load() {
		return "# HELP\n\nnarad_raft_state{state=\"leader\"} 1\nmore 1\n", nil
	}
	return "# HELP\n\nnarad_raft_state{state=\"follower\"} 1\n", nil
}

// claimants is a source of three of them.
type claimants struct {
	cluster.Rig
	list []claimant
}

func (r claimants) Nodes(string) (out []cluster.Node) {
	for _, c := range r.list {
		out = append(out, c)
	}
	return out
}

func (r claimants) Node(name string) (cluster.Node, error) {
	for _, c := range r.list {
		if c.name == name {
			return c, nil
		}
	}
	return nil, errors.New("no such node")
}

func threeClaimants() claimants {
	var r claimants
	for _, name := range []string{"source-1", "source-2", "source-3"} {
		r.list = append(r.list, claimant{name: name, up: true, leads: &atomic.Bool{}})
	}
	return r
}

// The node that an alias names is looked for at the moment of the fault: an election is waited for, and two that claim it are no leader.
// covers: HAR-04
func TestALeaderIsLookedForAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := threeClaimants()
		p := &play{rig: r}
		name, err := p.whom(t.Context(), "source-3")
		require.NoError(t, err)
		require.Equal(t, "source-3", name)

		began := time.Now()
		_, err = p.whom(t.Context(), "source leader")
		require.ErrorIs(t, err, errNobody)
		require.GreaterOrEqual(t, time.Since(began), whomLimit)

		r.list[0].leads.Store(true)
		r.list[1].leads.Store(true)
		time.AfterFunc(5*time.Second, func() { r.list[0].leads.Store(false) })
		began = time.Now()
		name, err = p.whom(t.Context(), "source leader")
		require.NoError(t, err)
		require.Equal(t, "source-2", name)
		require.GreaterOrEqual(t, time.Since(began), 5*time.Second)

		r.list[1].up = false // what a dead node said last does not count
		r.list[2].leads.Store(true)
		name, err = (&play{rig: r}).whom(t.Context(), "source leader")
		require.NoError(t, err)
		require.Equal(t, "source-3", name)
	})
}

// covers: HAR-04
func TestTheSideOfACutIsItsOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := threeClaimants()
		r.list[1].leads.Store(true)
		p := &play{rig: r}
		c, err := p.parties(t.Context(), scenarios.Fault{Between: []string{"source leader", "source"}, OneWay: true, Carries: "raft"})
		require.NoError(t, err)
		require.Equal(t, cluster.Cut{From: []string{"source-2"}, To: []string{"source-1", "source-3"}, OneWay: true, Carries: "raft"}, c)
		c, err = p.parties(t.Context(), scenarios.Fault{Between: []string{"source-1", "target"}, Silent: true})
		require.NoError(t, err)
		require.Equal(t, cluster.Cut{From: []string{"source-1"}, To: []string{"target"}, Silent: true}, c)
		_, err = p.parties(t.Context(), scenarios.Fault{Between: []string{"source leader", "source-2"}})
		require.ErrorIs(t, err, cluster.ErrTrouble)
	})
}
