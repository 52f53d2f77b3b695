package meta

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

func schemaOf(sum string) Schema { return Schema{Sum: sum, Body: []byte(`{"title":"` + sum + `"}`)} }

func putTo(topic string, base int, sum string) PutSchema {
	return PutSchema{Alter: &AlterTopic{Name: topic, ID: "id-" + topic}, Base: base, Schema: schemaOf(sum)}
}

func (b *book) sums(topic string) (out []string) {
	t, ok := b.Topic(topic)
	require.True(b.t, ok)
	for _, s := range t.Schemas {
		out = append(out, s.Sum)
	}
	return out
}

// A version is put on the one that it was made from; the same schema again changes nothing, from whatever version it was made.
//
// covers: BRK-11, BRK-06
func TestSchemaVersions(t *testing.T) {
	b := newBook(t)
	b.do(CreateTopic{Topic: plain("p")})
	b.do(putTo("p", 0, "a"))
	b.do(putTo("p", 1, "b"))
	before := dump(t, b.State)
	b.do(putTo("p", 2, "b"))
	b.do(putTo("p", 1, "b")) // asked again after an unknown outcome
	require.Equal(t, before, dump(t, b.State))
	b.refuse(wire.Conflict, "topic changed since it was read: its schema is at version 2", putTo("p", 1, "c"))
	b.refuse(wire.Conflict, "topic changed since it was read", putTo("p", 3, "c"))
	b.refuse(wire.NotFound, "no such topic", putTo("q", 0, "c"))
	again := putTo("p", 2, "c")
	again.Alter.ID = "another"
	b.refuse(wire.Conflict, Retry, again)
	b.do(putTo("p", 2, "a"))
	require.Equal(t, []string{"a", "b", "a"}, b.sums("p"))
	got, _ := b.Topic("p")
	now, version := got.Schema()
	require.Equal(t, 3, version)
	require.Equal(t, schemaOf("a"), now)
	for i := 3; i < MaxSchemas; i++ {
		b.do(putTo("p", i, fmt.Sprint(i)))
	}
	b.refuse(wire.Conflict, "at most 1000 versions", putTo("p", MaxSchemas, "x"))

	// All of an entry or nothing.
	low := int64(1)
	b.do(CreateTopic{Topic: plain("o")})
	both := putTo("o", 0, "a")
	both.Alter.RetentionMS = &low
	b.do(both)
	got, _ = b.Topic("o")
	require.Equal(t, low, got.RetentionMS)
	high := int64(2)
	both = putTo("o", 0, "b")
	both.Alter.RetentionMS = &high
	b.refuse(wire.Conflict, "schema is at version 1", both)
	for _, bad := range []PutSchema{
		{Schema: schemaOf("a")}, {Create: &CreateTopic{Topic: plain("n")}, Alter: &AlterTopic{Name: "p"}, Schema: schemaOf("a")},
		{Create: &CreateTopic{Topic: plain("n")}}, {Create: &CreateTopic{Topic: plain("n")}, Base: 1, Schema: schemaOf("a")},
	} {
		b.refuse(wire.Invalid, "a schema needs", bad)
	}
}

// A child has its parent's history from the attach on, whether it had the same schema, none, or is made there; another schema is refused.
// A detached child goes on with what it has.
//
// covers: BRK-11, BRK-10
func TestChildrenHaveTheirParentsSchemas(t *testing.T) {
	b := newBook(t)
	attach := func(child string) AttachChild {
		return AttachChild{Parent: "p", ParentID: "id-p", Child: child, ChildID: "id-" + child, Epoch: "e-" + child, Offsets: []int64{0, 0, 0}}
	}
	child := func(name string) *CreateTopic {
		n := plain(name)
		n.Parent, n.AttachEpoch, n.AttachOffsets = "p", "e-"+name, []int64{0, 0, 0}
		return &CreateTopic{Topic: n, ParentID: "id-p"}
	}
	b.do(CreateTopic{Topic: plain("p")})
	b.do(PutSchema{Create: &CreateTopic{Topic: plain("same")}, Schema: schemaOf("x")})
	require.Equal(t, []string{"x"}, b.sums("same"))
	b.refuse(wire.Conflict, "schema differs", attach("same")) // the parent has none
	b.refuse(wire.Conflict, "schema differs", PutSchema{Create: child("made"), Schema: schemaOf("x")})
	b.do(putTo("p", 0, "a"))
	b.refuse(wire.Conflict, "schema differs", attach("same"))
	b.do(putTo("p", 1, "x"))
	b.do(attach("same"))
	b.do(CreateTopic{Topic: plain("none")})
	b.do(attach("none"))
	sneaks := child("made")
	sneaks.Topic.Schemas = []Schema{schemaOf("y")}
	b.do(*sneaks)
	b.refuse(wire.Conflict, "schema differs", PutSchema{Create: child("too"), Schema: schemaOf("a")})
	b.do(PutSchema{Create: child("too"), Schema: schemaOf("x")})
	b.do(remote("r"))
	b.do(stub("far", "p", "r"))
	b.do(putTo("p", 2, "c"))
	for _, name := range []string{"p", "same", "none", "made", "too"} {
		require.Equal(t, []string{"a", "x", "c"}, b.sums(name), name)
	}
	require.Empty(t, b.sums("far"))
	b.refuse(wire.Conflict, "a child has its parent's schema", putTo("same", 3, "d"))
	b.refuse(wire.Conflict, "a child has its parent's schema", putTo("same", 3, "c"))
	b.refuse(wire.Conflict, "no settings of its own", putTo("far", 0, "c"))

	var w bytes.Buffer
	require.NoError(t, b.snapshot().write(&w))
	require.Equal(t, 1, bytes.Count(w.Bytes(), []byte(`"sum":"a"`)), "a history stands in a snapshot once")
	other := newBook(t)
	other.do(CreateTopic{Topic: plain("left over")})
	require.NoError(t, other.restore(bytes.NewReader(w.Bytes()), NewestType))
	require.Equal(t, dump(t, b.State), dump(t, other.State))
	require.Equal(t, []string{"a", "x", "c"}, other.sums("too"))
	for newest, whole := range map[EntryType]bool{NewestType: true, TypeNameCluster: false} {
		f := newFSM(NewState(), newest, slog.New(slog.DiscardHandler))
		require.Equal(t, whole, f.Restore(io.NopCloser(bytes.NewReader(w.Bytes()))) == nil, newest)
	}

	b.do(DetachChild{Parent: "p", Child: "same", Epoch: "e-same"})
	b.do(putTo("p", 3, "d"))
	b.do(putTo("same", 3, "own"))
	require.Equal(t, []string{"a", "x", "c", "own"}, b.sums("same"))
	require.Equal(t, []string{"a", "x", "c", "d"}, b.sums("none"))
	b.do(DeleteTopic{Name: "p", ID: "id-p", Links: []string{"far"}})
	require.Equal(t, []string{"a", "x", "c", "d"}, b.sums("none"), "the parent's end leaves them")
}

// A schema is proposed only once every member applies its entry, and a replica of the release before stops at one.
//
// covers: BRK-11, WRT-02
func TestSchemasWaitForEveryMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone(t, t.TempDir(), &lines{})
		defer func() { require.NoError(t, s.Close()) }()
		old := member("one")
		old.Member.Applies = TypeNameCluster
		_, err := s.Propose(t.Context(), old)
		require.NoError(t, err)
		_, err = s.Propose(t.Context(), CreateTopic{Topic: on("one", "t")})
		require.NoError(t, err)
		put := PutSchema{Alter: &AlterTopic{Name: "t", ID: "id-t"}, Schema: schemaOf("a")}
		topic, _ := s.Topic("t")
		put.Alter.ID = topic.ID
		_, err = s.Propose(t.Context(), put)
		require.Equal(t, wire.Precondition, wire.KindOf(err))
		require.ErrorContains(t, err, "member one is not known to run a release that knows this change")
		require.NoError(t, s.ReleaseGate(), "remotes are known there")
		_, err = s.Propose(t.Context(), member("one"))
		require.NoError(t, err)
		_, err = s.Propose(t.Context(), put)
		require.NoError(t, err)
		topic, _ = s.Topic("t")
		require.Len(t, topic.Schemas, 1)
		data, err := Encode(put)
		require.NoError(t, err)
		f := newFSM(NewState(), TypeNameCluster, slog.New(slog.DiscardHandler))
		_, err = f.decode(data)
		require.ErrorIs(t, err, ErrUndecodable)
	})
}
