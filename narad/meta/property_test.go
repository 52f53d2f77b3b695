package meta

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/narad/wire"
)

// dump is the whole state as a snapshot writes it, which is a canonical form.
func dump(t require.TestingT, s *State) string {
	var w bytes.Buffer
	n := s.snapshot()
	n.header.Applied = 0
	require.NoError(t, n.write(&w))
	return w.String()
}

// someEntry draws from few names, so that entries meet each other.
func someEntry(r *rapid.T, s *State, i int) Entry {
	name := func(label string) string { return rapid.SampledFrom([]string{"a", "b", "c", "A", "d"}).Draw(r, label) }
	fresh := fmt.Sprintf("%016x", i)
	t, u := name("topic"), name("other")
	have, _ := s.Topic(t)
	other, _ := s.Topic(u)
	rem, _ := s.Remote(u)
	user, _ := s.User(u)
	offsets := make([]int64, have.Partitions)
	n := Topic{Name: u, ID: fresh, Partitions: 3, Nodes: []string{"x", "y", "z"}, AttachEpoch: fresh}
	switch rapid.IntRange(0, 21).Draw(r, "kind") {
	case 0, 1:
		n.Owner = name("owner")
		return CreateTopic{Topic: n}
	case 2:
		n.Parent, n.AttachOffsets = t, offsets
		return CreateTopic{Topic: n, ParentID: have.ID}
	case 3:
		more := have.Partitions + 1
		return AlterTopic{Name: t, ID: have.ID, Partitions: &more, Nodes: []string{"y"}}
	case 4:
		var links []string
		for _, c := range s.Children(t) {
			links = append(links, c.Name)
		}
		return DeleteTopic{Name: t, ID: have.ID, Links: links, Origin: someOrigin(r, s)}
	case 5:
		return AttachChild{Parent: t, ParentID: have.ID, Child: u, ChildID: other.ID, Epoch: fresh, Offsets: offsets}
	case 6:
		return DetachChild{Parent: other.Parent, Child: u, Epoch: other.AttachEpoch}
	case 7:
		return PutUser{User: User{Name: u, Hash: []byte(fresh), UpdatedAtMS: int64(i)}, Create: user.Name == "", ChangedMS: user.UpdatedAtMS}
	case 8:
		return DeleteUser{Name: u}
	case 9:
		return PutMember{Member: Member{ID: u, RPCAddr: fresh}}
	case 10:
		w := rem
		w.Name, w.Ciphertext = u, []byte(fresh)
		if w.ID == "" {
			w.ID = fresh
		}
		w.CredentialVersion += uint64(rapid.IntRange(0, 1).Draw(r, "sealed"))
		return PutRemote{Remote: w, FromRevision: rem.Revision, Salt: make([]byte, SaltBytes)}
	case 11:
		o := someOrigin(r, s)
		o.Force = rapid.Bool().Draw(r, "force")
		return DeleteRemote{Name: u, ID: rem.ID, Origin: o}
	case 12:
		return Reseal{Name: u, ID: rem.ID, CredentialVersion: rem.CredentialVersion, Ciphertext: []byte(fresh)}
	case 13:
		n.Partitions, n.Parent, n.AttachOffsets, n.Nodes = 0, t, offsets, nil
		n.Remote = &RemoteLink{Remote: name("remote"), Topic: "t", From: wire.FromAttach, Lanes: 1}
		return AttachRemote{Topic: n, ParentID: have.ID, ParentPartitions: have.Partitions}
	case 14:
		p := rapid.IntRange(0, 3).Draw(r, "partition")
		return StartMove{TopicID: have.ID, Partition: p, From: have.NodeOf(p), To: u, MoveID: fresh}
	case 15, 16, 17:
		return someMove(r, have, fresh)
	case 18, 19:
		return PutSchema{Alter: &AlterTopic{Name: t, ID: have.ID}, Base: len(have.Schemas), Schema: someSchema(r)}
	case 20:
		n.Parent, n.AttachOffsets = rapid.SampledFrom([]string{"", t}).Draw(r, "parent"), offsets
		return PutSchema{Create: &CreateTopic{Topic: n, ParentID: have.ID}, Schema: someSchema(r)}
	}
	e := UpdateRemote{Parent: other.Parent, Child: u, Epoch: other.AttachEpoch, Origin: someOrigin(r, s)}
	switch rapid.IntRange(0, 3).Draw(r, "change") {
	case 0:
		e.Pause = &PauseSet{Reason: fresh}
	case 1:
		e.Resume = true
	case 2:
		e.Skip = &SkipOne{Partition: rapid.IntRange(0, 3).Draw(r, "partition"), Offset: int64(i)}
	default:
		e.Detach = true
	}
	return e
}

func someSchema(r *rapid.T) Schema {
	sum := rapid.SampledFrom([]string{"s1", "s2", "s3"}).Draw(r, "schema")
	return Schema{Sum: sum, Body: []byte(`{"const":"` + sum + `"}`)}
}

// someOrigin owes a line or none, and confirms some of the trail.
func someOrigin(r *rapid.T, s *State) Origin {
	o := Origin{Actor: "x"}
	if rapid.Bool().Draw(r, "owes") {
		o.Event, o.Target, o.RequestID = "remote.update", "a", "00000000000000aa"
	}
	for _, w := range s.Trail() {
		if rapid.Bool().Draw(r, "written") {
			o.Written = append(o.Written, w.Index)
		}
	}
	return o
}

// someMove goes on with the first move of a topic, or with none.
func someMove(r *rapid.T, t Topic, fresh string) Entry {
	mv := Move{Partition: 1, ID: "none"}
	if len(t.Moves) > 0 {
		mv = t.Moves[0]
	}
	switch rapid.IntRange(0, 2).Draw(r, "of the move") {
	case 0:
		return ClaimMove{TopicID: t.ID, Partition: mv.Partition, MoveID: mv.ID, Was: mv.Attempt, Attempt: fresh}
	case 1:
		return FlipMove{TopicID: t.ID, Partition: mv.Partition, MoveID: mv.ID, Attempt: mv.Attempt, From: t.NodeOf(mv.Partition)}
	}
	return EndMove{TopicID: t.ID, Partition: mv.Partition, MoveID: mv.ID}
}

// Two replicas that apply the same entries hold the same state, whatever was refused, however often one of them went through a
// snapshot and although its entries went through the log's encoding.
// covers: BRK-06
func TestReplicasAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := NewState(), NewState()
		for i := range rapid.IntRange(1, 60).Draw(r, "entries") {
			if rapid.IntRange(0, 9).Draw(r, "restart") == 0 {
				var w bytes.Buffer
				require.NoError(r, b.snapshot().write(&w))
				b = NewState()
				b.advance(99, false)
				require.NoError(r, b.Apply(100, PutMember{Member: Member{ID: "left over"}}))
				require.NoError(r, b.restore(&w, NewestType), "restore")
			}
			e := someEntry(r, a, i+1)
			data, err := Encode(e)
			require.NoError(r, err)
			decoded, err := Decode(data)
			require.NoError(r, err)
			errA, errB := a.Apply(uint64(i+1), e), b.Apply(uint64(i+1), decoded)
			require.Equal(r, errA, errB)
			require.Equal(r, a.Applied(), b.Applied())
			require.Equal(r, dump(r, a), dump(r, b))
			sound(r, a)
		}
	})
}

// sound checks what no sequence of entries may break.
func sound(r *rapid.T, s *State) {
	folded := map[string]bool{}
	for _, t := range s.Topics() {
		low := string(bytes.ToLower([]byte(t.Name)))
		require.False(r, folded[low], "two names differ only in case")
		folded[low] = true
		require.Len(r, t.Nodes, t.Partitions)
		for _, mv := range t.Moves {
			require.NotEmpty(r, t.NodeOf(mv.Partition))
			require.NotEqual(r, mv.To, t.NodeOf(mv.Partition))
		}
		if t.Parent == "" {
			require.False(r, t.IsStub())
			require.Empty(r, t.AttachOffsets)
			continue
		}
		p, ok := s.Topic(t.Parent)
		require.True(r, ok, "a child without a parent")
		require.Empty(r, p.Parent, "a child has children")
		require.NotEmpty(r, t.AttachEpoch)
		if !t.IsStub() {
			require.Equal(r, p.Schemas, t.Schemas, "a child has its parent's schemas")
		}
		require.LessOrEqual(r, len(t.AttachOffsets), p.Partitions)
	}
}

func TestRestoreRefusesWhatItDoesNotKnow(t *testing.T) {
	s := NewState()
	require.NoError(t, s.Apply(1, PutMember{Member: Member{ID: "a"}}))
	before, version := dump(t, s), s.RemotesVersion()
	for _, bad := range []string{
		``, `{"format":2}`, `{"format":1}`, `{"format":1}` + "\n" + `{"end":3}`, `{"format":1}` + "\n" + `{"schema":{}}`,
		`{"format":1}` + "\n" + `{}`,
	} {
		require.ErrorIs(t, s.restore(bytes.NewReader([]byte(bad)), NewestType), errSnapshot, bad)
		require.Equal(t, before, dump(t, s))
	}
	require.NoError(t, s.restore(bytes.NewReader([]byte(`{"format":1,"applied":9}{"end":0}`)), NewestType))
	require.Empty(t, s.Members())
	require.Equal(t, uint64(9), s.Applied())
	require.Greater(t, s.RemotesVersion(), version)
}
