package meta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

func owes(event, target string, written ...uint64) Origin {
	return Origin{RequestID: fmt.Sprintf("%016x", len(target)), Actor: "ann", Event: event, Target: target, Written: written}
}

// covers: WRT-11
func TestTheTrailKeepsWhatEachRemoteEntryOwes(t *testing.T) {
	b := newBook(t)
	b.do(CreateTopic{Topic: plain("p")})
	require.Empty(t, b.Trail(), "a topic is no write of the remote plane")
	put := remote("r")
	put.Origin = owes("remote.create", "r")
	require.NoError(t, b.ApplyIn(4, 7, put))
	require.Equal(t, []Trace{{Index: 7, Term: 4, RequestID: put.RequestID, Event: "remote.create", Actor: "ann", Target: "r"}}, b.Trail())

	link := stub("c", "p", "r")
	link.Origin = owes("remote_child.create", "p/c", 7)
	require.NoError(t, b.ApplyIn(5, 9, link))
	require.True(t, b.Trail()[0].Written, "the second entry confirms the first one")
	require.False(t, b.Trail()[1].Written)

	again := stub("c", "p", "r")
	again.Origin = owes("remote_child.create", "p/c", 9)
	b.refuse(wire.Conflict, "", again) // which the trail does not change by
	require.Len(t, b.Trail(), 2)

	gone := DeleteTopic{Name: "p", ID: "id-p", Links: []string{"c"}, Origin: owes("topic.delete", "p", 9, 1000)}
	gone.Ended = []string{"p/c"}
	require.NoError(t, b.ApplyIn(5, 12, gone))
	require.True(t, b.Trail()[1].Written)
	require.Equal(t, []string{"p/c"}, b.Trail()[2].Ended)
	require.NotContains(t, dumpTrail(t, b.State), "c4n4ry")
}

func dumpTrail(t *testing.T, s *State) string {
	t.Helper()
	raw, err := json.Marshal(s.Trail())
	require.NoError(t, err)
	return string(raw)
}

// covers: WRT-11
func TestTheTrailIsBounded(t *testing.T) {
	b := newBook(t)
	b.do(CreateTopic{Topic: plain("p")})
	b.do(remote("r"))
	b.do(stub("c", "p", "r"))
	require.Empty(t, b.Trail(), "entries of a release without a trail owe nothing")
	for i := range TrailLength + 44 {
		e := UpdateRemote{Parent: "p", Child: "c", Epoch: "epoch-c", Resume: true, Origin: owes("remote_child.resume", "p/c")}
		require.NoError(t, b.ApplyIn(1, uint64(100+i), e))
		require.LessOrEqual(t, len(b.Trail()), TrailLength)
	}
	trail := b.Trail()
	require.Len(t, trail, TrailLength)
	require.Equal(t, uint64(144), trail[0].Index, "the oldest go")
	require.Equal(t, uint64(100+TrailLength+43), trail[TrailLength-1].Index)
}

// A snapshot carries the trail as it is; one of a release without a trail empties it; one that this release cannot read changes nothing.
//
// covers: WRT-11, BRK-06
func TestASnapshotCarriesTheTrail(t *testing.T) {
	b := newBook(t)
	put := remote("r")
	put.Origin = owes("remote.create", "r")
	require.NoError(t, b.ApplyIn(2, 3, put))
	gone := DeleteRemote{Name: "r", ID: put.Remote.ID, Origin: owes("remote.delete", "r", 3)}
	require.NoError(t, b.ApplyIn(3, 4, gone))
	var w bytes.Buffer
	require.NoError(t, b.snapshot().write(&w))

	other := NewState()
	left := remote("left")
	left.Origin = owes("remote.create", "left")
	require.NoError(t, other.ApplyIn(9, 1, left))
	require.NoError(t, other.restore(bytes.NewReader(w.Bytes()), NewestType))
	require.Equal(t, b.Trail(), other.Trail(), "the trail is replaced, not merged")
	require.Len(t, other.Trail(), 2)
	require.True(t, other.Trail()[0].Written)

	require.ErrorIs(t, other.restore(strings.NewReader(`{"format":1}{"trace":{"index":0,"event":"remote.create"}}{"end":1}`), NewestType), errSnapshot)
	require.Len(t, other.Trail(), 2)
	require.NoError(t, other.restore(strings.NewReader(`{"format":1,"applied":9}{"end":0}`), NewestType))
	require.Empty(t, other.Trail())
}

// What a release without a trail wrote into the log is applied as before, and an entry that owes nothing looks as it did.
//
// covers: WRT-11
func TestEntriesWithoutATrailStayReadable(t *testing.T) {
	e, err := Decode(append([]byte{byte(TypeDeleteRemote)}, `{"name":"r","id":"1","request_id":"00000000000000aa","actor":"ann"}`...))
	require.NoError(t, err)
	require.Equal(t, DeleteRemote{Name: "r", ID: "1", Origin: Origin{RequestID: "00000000000000aa", Actor: "ann"}}, e)
	raw, err := Encode(DeleteTopic{Name: "p", ID: "1"})
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"p","id":"1"}`, string(raw[1:]))
}
