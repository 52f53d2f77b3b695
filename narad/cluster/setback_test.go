package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// giveUp ends every move, as its target or an admin does.
func (s *stage) giveUp() {
	for _, t := range s.meta.Topics() {
		for _, mv := range t.Moves {
			s.do(meta.EndMove{TopicID: t.ID, Partition: mv.Partition, MoveID: mv.ID})
		}
	}
}

// A partition whose move was given up holds nobody back: the others leave a member that is being decommissioned, then its listing says what is
// left, and after a while it is tried again.
//
// covers: BRK-07
func TestAPartitionThatDoesNotGetAway(t *testing.T) {
	s := newStage(t, "a", "b", "c", "d")
	s.topic("t", "d", "d", "a")
	s.do(meta.DrainMember{ID: "d", Step: meta.DrainBegin, Drain: "x"})
	s.look(0)
	require.Equal(t, []string{"t/1 d>b"}, s.moves())
	s.giveUp()
	s.look(time.Second)
	require.Equal(t, []string{"t/0 d>b"}, s.moves(), "another one has its turn")
	require.Empty(t, s.c.Blocked("d"))
	s.arrive()
	s.look(time.Second)
	require.Empty(t, s.moves())
	require.Len(t, s.c.Blocked("d"), 1)
	require.Equal(t, wire.MovesFailed, s.c.Blocked("d")[0].Code)
	s.look(SetBack - 2*time.Second)
	require.Empty(t, s.moves())
	s.look(time.Second)
	require.Equal(t, []string{"t/1 d>c"}, s.moves())
	require.Empty(t, s.c.Blocked("d"))
	s.arrive()
	require.Zero(t, s.loads()["d"])
}

// A move that ends for its target's death is no fault of the partition: it goes elsewhere at once.
//
// covers: BRK-07
func TestADeadTargetSetsNothingBack(t *testing.T) {
	s := newStage(t, "a", "b", "c", "d")
	s.topic("t", "d", "a")
	s.do(meta.DrainMember{ID: "d", Step: meta.DrainBegin, Drain: "x"})
	s.look(0)
	require.Equal(t, []string{"t/0 d>b"}, s.moves())
	s.dead["b"] = true
	s.look(time.Second)
	s.look(time.Second)
	require.Equal(t, []string{"t/0 d>c"}, s.moves())
}
