package meta

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// What stands in front of a flip: the attempt alone that was claimed last may do it, once, and from the owner that it names.
//
// covers: BRK-06, BRK-07
func TestMovesCompareAndSet(t *testing.T) {
	b := newBook(t)
	for _, id := range []string{"a", "b", "c"} {
		b.do(PutMember{Member: Member{ID: id}})
	}
	b.do(CreateTopic{Topic: plain("t")})
	b.do(CreateTopic{Topic: plain("u")})
	start := StartMove{TopicID: "id-t", Partition: 1, From: "a", To: "b", MoveID: "m1"}
	for kind, bad := range map[wire.Kind][]StartMove{
		wire.NotFound: {{TopicID: "id-x", From: "a", To: "b", MoveID: "m"}},
		wire.Conflict: {{TopicID: "id-t", From: "b", To: "a", MoveID: "m"}, {TopicID: "id-t", Partition: 3, From: "a", To: "b", MoveID: "m"}, {TopicID: "id-t", Partition: -1, To: "b", MoveID: "m"}},
		wire.Invalid:  {{TopicID: "id-t", From: "a", To: "a", MoveID: "m"}, {TopicID: "id-t", From: "a", To: "z", MoveID: "m"}, {TopicID: "id-t", From: "a", To: "b"}},
	} {
		for _, e := range bad {
			b.refuse(kind, "", e)
		}
	}
	b.do(start)
	b.refuse(wire.Conflict, "already", StartMove{TopicID: "id-t", Partition: 1, From: "a", To: "c", MoveID: "m2"})
	b.refuse(wire.Conflict, "on its way out", StartMove{TopicID: "id-u", Partition: 0, From: "a", To: "c", MoveID: "m2"})

	claim := ClaimMove{TopicID: "id-t", Partition: 1, MoveID: "m1", Attempt: "x"}
	flip := FlipMove{TopicID: "id-t", Partition: 1, MoveID: "m1", Attempt: "x", From: "a"}
	b.refuse(wire.Conflict, "", flip)
	b.refuse(wire.Conflict, "", FlipMove{TopicID: "id-t", Partition: 1, MoveID: "m1", From: "a"})
	b.do(claim)
	b.refuse(wire.Conflict, "another attempt", claim)
	b.do(ClaimMove{TopicID: "id-t", Partition: 1, MoveID: "m1", Was: "x"}) // the source withdraws
	b.refuse(wire.Conflict, "another attempt", flip)
	b.do(ClaimMove{TopicID: "id-t", Partition: 1, MoveID: "m1", Attempt: "y"})
	b.refuse(wire.Conflict, "another attempt", flip)
	flip.Attempt = "y"
	wrong := flip
	wrong.From = "c"
	b.refuse(wire.Conflict, "", wrong)
	wrong = flip
	wrong.MoveID = "m2"
	b.refuse(wire.NotFound, "no such move", wrong)

	before, _ := b.Topic("t")
	b.do(flip)
	require.Equal(t, []string{"a", "a", "a"}, before.Nodes, "a value in use never changes")
	require.Len(t, before.Moves, 1)
	after, _ := b.Topic("t")
	require.Equal(t, []string{"a", "b", "a"}, after.Nodes)
	require.Nil(t, after.Moves)
	b.refuse(wire.NotFound, "no such move", flip)
	b.refuse(wire.NotFound, "no such move", EndMove{TopicID: "id-t", Partition: 1, MoveID: "m1"})

	b.do(StartMove{TopicID: "id-t", Partition: 2, From: "a", To: "c", MoveID: "m3"})
	b.do(StartMove{TopicID: "id-t", Partition: 1, From: "b", To: "c", MoveID: "m4"})
	two, _ := b.Topic("t")
	require.Equal(t, []int{1, 2}, []int{two.Moves[0].Partition, two.Moves[1].Partition})
	b.do(EndMove{TopicID: "id-t", Partition: 1, MoveID: "m4"})
	b.do(EndMove{TopicID: "id-t", Partition: 2, MoveID: "m3"})
	after, _ = b.Topic("t")
	require.Equal(t, []string{"a", "b", "a"}, after.Nodes)
	require.Nil(t, after.Moves)
}
