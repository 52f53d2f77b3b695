package meta

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

func TestAStoppedReplicaStaysStopped(t *testing.T) {
	s := NewState()
	f := newFSM(s, NewestType, slog.New(slog.DiscardHandler))
	log := func(index uint64, e Entry) *raft.Log {
		data, err := Encode(e)
		require.NoError(t, err)
		return &raft.Log{Index: index, Data: data}
	}
	require.Nil(t, f.Apply(log(1, PutMember{Member: Member{ID: "a"}})))
	require.Equal(t, wire.NotFound, wire.KindOf(f.Apply(log(2, DeleteUser{Name: "u"})).(error)))
	require.NoError(t, f.err(), "a refusal is no failure")

	err, _ := f.Apply(&raft.Log{Index: 3, Data: []byte{250}}).(error)
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorIs(t, err, ErrUndecodable)
	err, _ = f.Apply(log(4, PutMember{Member: Member{ID: "b"}})).(error)
	require.ErrorIs(t, err, ErrFailed, "an entry was applied over a gap")
	require.Equal(t, uint64(2), s.Applied())
	require.Len(t, s.Members(), 1)
	_, err = f.Snapshot()
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorIs(t, f.Restore(io.NopCloser(strings.NewReader(`{"format":1}{"end":0}`))), ErrFailed)
}

func TestASnapshotOfANewerReleaseStopsTheReplica(t *testing.T) {
	f := newFSM(NewState(), NewestType, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, f.Restore(io.NopCloser(strings.NewReader(`{"format":9}`))), ErrFailed)
	require.ErrorIs(t, f.err(), errSnapshot)
}
