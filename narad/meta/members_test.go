package meta

import (
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// A decommission in the state: what each step demands, what a node says of itself does not touch, and that nothing is given to whoever leaves.
//
// covers: BRK-06, BRK-07
func TestTheStepsOfADecommission(t *testing.T) {
	b := newBook(t)
	for _, id := range []string{"a", "b", "c"} {
		b.do(PutMember{Member: Member{ID: id}})
	}
	b.do(CreateTopic{Topic: plain("t")}) // all on a
	begin := DrainMember{ID: "b", Step: DrainBegin, Drain: "d1"}
	b.refuse(wire.Conflict, "at least 3 members", begin)
	b.do(PutMember{Member: Member{ID: "d"}})
	b.refuse(wire.NotFound, "no such member", DrainMember{ID: "z", Step: DrainBegin, Drain: "d1"})
	b.refuse(wire.Invalid, "needs an ID", DrainMember{ID: "b", Step: DrainBegin})
	b.refuse(wire.Invalid, "no step", DrainMember{ID: "b", Step: "hurry"})
	b.refuse(wire.Conflict, "does not drain", DrainMember{ID: "b", Step: DrainLeave})
	b.do(DrainMember{ID: "b", Step: DrainCancel}) // it stays anyway

	b.do(StartMove{TopicID: "id-t", Partition: 0, From: "a", To: "b", MoveID: "m"})
	b.do(begin)
	b.do(DrainMember{ID: "b", Step: DrainBegin, Drain: "d2"}) // once is enough
	b.refuse(wire.Conflict, "at least 3 members", DrainMember{ID: "c", Step: DrainBegin, Drain: "d3"})
	leave := DrainMember{ID: "b", Step: DrainLeave, Drain: "d1"}
	b.refuse(wire.Conflict, "still has partitions", leave) // one is on its way to it
	b.do(EndMove{TopicID: "id-t", Partition: 0, MoveID: "m"})
	b.refuse(wire.Conflict, "takes no partition", StartMove{TopicID: "id-t", Partition: 0, From: "a", To: "b", MoveID: "m"})
	b.refuse(wire.Conflict, "not leaving", RemoveMember{ID: "b"})

	b.do(PutMember{Member: Member{ID: "b", RPCAddr: "new"}})
	m, _ := b.Member("b")
	require.Equal(t, Member{ID: "b", RPCAddr: "new", Drain: "d1"}, m)

	// Cancelled and begun anew: what was found under the first one does not count any more.
	b.do(DrainMember{ID: "b", Step: DrainCancel})
	b.do(DrainMember{ID: "b", Step: DrainBegin, Drain: "d4"})
	b.refuse(wire.Conflict, "since then", leave)
	leave.Drain = "d4"
	b.do(leave)
	b.refuse(wire.Conflict, "being removed", DrainMember{ID: "b", Step: DrainCancel})
	onB := plain("u")
	onB.Nodes = []string{"a", "b", "c"}
	b.refuse(wire.Conflict, Retry, CreateTopic{Topic: onB})
	four := 4
	b.refuse(wire.Conflict, Retry, AlterTopic{Name: "t", ID: "id-t", Partitions: &four, Nodes: []string{"b"}})

	b.do(RemoveMember{ID: "b"})
	b.do(RemoveMember{ID: "b"}) // gone is gone
	_, there := b.Member("b")
	require.False(t, there)
	b.refuse(wire.Conflict, Retry, CreateTopic{Topic: onB})
}
