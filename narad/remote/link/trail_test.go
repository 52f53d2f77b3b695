package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/audit"
	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// Each kind of write leaves in the trail what its leader's line says, the parent's delete its links too, and confirms the lines before it; a
// dry run and a refusal leave nothing.
//
// covers: WRT-11, CRD-13
func TestEveryWriteOwesItsLine(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 7*24*meta.HourMS)
	r.remote("dr")
	_, err := r.Attach(t.Context(), root, "orders", wire.AttachChild{Child: "c", Remote: "dr"})
	require.NoError(t, err)
	_, err = r.Attach(t.Context(), root, "orders", wire.AttachChild{Child: "d", Remote: "dr", RemoteTopic: "other", DryRun: true})
	require.NoError(t, err)
	_, err = r.Attach(t.Context(), root, "orders", wire.AttachChild{Child: "c", Remote: "dr"})
	r.refused(err, wire.Conflict)
	_, err = r.Pause(t.Context(), root, "orders", "c", "")
	require.NoError(t, err)
	_, err = r.Resume(t.Context(), root, "orders", "c", false)
	require.NoError(t, err)
	_, err = r.Pause(t.Context(), root, "orders", "c", "")
	require.NoError(t, err)
	_, err = r.Resume(t.Context(), root, "orders", "c", true) // of the target that is recorded: a resume, asked for as accept_target
	require.NoError(t, err)
	most := 9
	_, err = r.PatchRemote(t.Context(), root, "dr", wire.PatchRemote{Limits: &wire.PatchLimits{MaxInFlight: &most}})
	require.NoError(t, err)
	require.NoError(t, r.DeleteTopic(t.Context(), root, "orders", true))
	require.NoError(t, r.DeleteRemote(t.Context(), root, "dr", true))

	var owed, committed []string
	trail := r.raft.Trail()
	for i, w := range trail {
		require.Equal(t, root.RequestID, w.RequestID)
		require.Equal(t, "admin", w.Actor)
		require.Equal(t, i < len(trail)-1, w.Written, "the next write confirms a line, and none the last one")
		owed = append(owed, fmt.Sprint(w.Event, " ", w.Target, " committed"))
		for _, link := range w.Ended {
			owed = append(owed, fmt.Sprint("remote_child.delete ", link, " committed"))
		}
	}
	lines, _ := r.lines()
	for _, l := range lines {
		if strings.HasSuffix(l, "committed") {
			committed = append(committed, l)
		}
	}
	require.Equal(t, committed, owed)
	require.True(t, trail[len(trail)-1].Force, "of the remote's delete")
	deleted := trail[len(trail)-2]
	require.Equal(t, "topic.delete", deleted.Event)
	require.True(t, deleted.Force)
	require.Equal(t, &meta.Abandoned{}, deleted.Abandoned, "nothing was unshipped")
	require.Contains(t, owed, "remote_child.accept_target orders/c committed")
	require.Contains(t, owed, "remote_child.delete orders/c committed")
}

// follower is a Service whose trail alone is used, with its log.
type follower struct {
	*Service
	raft *raft
	logs *bytes.Buffer
}

func newFollower() follower {
	f := follower{raft: &raft{State: meta.NewState(), moved: make(chan struct{})}, logs: &bytes.Buffer{}}
	f.Service = New(Options{State: f.raft.State, Raft: f.raft, Audit: audit.New(slog.New(slog.NewJSONHandler(f.logs, nil)))})
	return f
}

// owes applies an entry of a term that owes a line.
func (f follower) owes(t *testing.T, term, index uint64, written ...uint64) {
	t.Helper()
	name := fmt.Sprint("r", index)
	require.NoError(t, f.raft.ApplyIn(term, index, meta.PutRemote{
		Remote: meta.Remote{Name: name, ID: name}, Salt: make([]byte, meta.SaltBytes),
		Origin: meta.Origin{RequestID: fmt.Sprintf("%016x", index), Actor: "ann", Event: "remote.create", Target: name, Written: written},
	}))
}

// replayed lists the indexes of the lines since the last call, each of which must be a replayed one.
func (f follower) replayed(t *testing.T) (indexes []uint64) {
	t.Helper()
	synctest.Wait()
	for text := range strings.Lines(f.logs.String()) {
		var line struct {
			Event, Actor, Target, Outcome string
			RequestID                     string `json:"request_id"`
			Index                         uint64
			Replayed                      bool
			Status                        *int
		}
		require.NoError(t, json.Unmarshal([]byte(text), &line))
		require.Equal(t, "remote.create ann committed", fmt.Sprint(line.Event, " ", line.Actor, " ", line.Outcome))
		require.Equal(t, fmt.Sprint("r", line.Index), line.Target)
		require.Equal(t, fmt.Sprintf("%016x", line.Index), line.RequestID)
		require.True(t, line.Replayed)
		require.Nil(t, line.Status)
		indexes = append(indexes, line.Index)
	}
	f.logs.Reset()
	return indexes
}

// A node that comes to lead writes what earlier terms owe, once a barrier has passed: nothing that was confirmed, nothing of its own term,
// and nothing twice in one process.
//
// covers: WRT-11
func TestANewLeaderWritesWhatEarlierOnesOwe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollower()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.FollowTrail(ctx) }()
		f.owes(t, 1, 10)
		f.owes(t, 1, 11, 10)
		f.owes(t, 2, 12)
		require.Empty(t, f.replayed(t), "this node does not lead")

		f.raft.leads(3, errors.New("the lead is not confirmed"))
		time.Sleep(10 * replayAgain)
		require.Empty(t, f.replayed(t))
		f.owes(t, 3, 13)
		f.raft.mu.Lock()
		f.raft.barrier = nil // and nobody is told
		f.raft.mu.Unlock()
		time.Sleep(2 * replayAgain)
		require.Equal(t, []uint64{11, 12}, f.replayed(t))
		f.raft.leads(3, nil)
		require.Empty(t, f.replayed(t), "once in a process")
		require.Equal(t, []uint64{11, 12}, f.seat.origin(&write{}).Written, "its next write confirms what it has written for others")

		f.raft.leads(0, nil)
		f.raft.leads(5, nil)
		require.Equal(t, []uint64{13}, f.replayed(t), "of its own earlier term, whose line was never written; the others stand in this log")
		f.owes(t, 5, 14, f.seat.origin(&write{}).Written...)
		require.Empty(t, f.seat.origin(&write{}).Written)
		require.Empty(t, f.seat.trail.wrote, "what is confirmed is forgotten")
		cancel()
		require.NoError(t, <-ended)
	})
}

// A line that the next leader writes tells of a forced delete what the lost one would have told.
//
// covers: WRT-11
func TestAReplayedLineTellsWhatWasAbandoned(t *testing.T) {
	f := newFollower()
	require.True(t, f.seat.writeTrace(t.Context(), &meta.Trace{
		Index: 7, Event: "remote_child.delete", Force: true, Abandoned: &meta.Abandoned{LagMessages: 12, DispatchBacklog: 3},
	}))
	var line map[string]any
	require.NoError(t, json.Unmarshal(f.logs.Bytes(), &line))
	require.Equal(t, []any{true, 12.0, 3.0, 7.0}, []any{line["force"], line["abandoned_lag_messages"], line["abandoned_dispatch_backlog"], line["index"]})
}

// full is a log whose disk is full.
type full struct{}

func (full) Write(context.Context, audit.Line) bool { return false }

// covers: WRT-11
func TestALineThatWasLostIsNotConfirmed(t *testing.T) {
	f := newFollower()
	f.o.Audit = full{}
	f.owes(t, 1, 10)
	f.raft.term = 2
	require.True(t, f.seat.replay(t.Context()))
	require.Empty(t, f.seat.origin(&write{}).Written)
	f.seat.auditLeader(t.Context(), &write{Kind: kindDeleteRemote, Name: "r10"}, 10, nil, nil)
	require.Empty(t, f.seat.origin(&write{}).Written)
}
