package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
)

// shownMoves is the metadata of one topic.
type shownMoves struct {
	MovesMeta
	topic meta.Topic
}

func (s shownMoves) Topics() []meta.Topic { return []meta.Topic{s.topic} }

// A move is blocked by a dead member at either end of it, by the one that has the data if by both; every reason is one of BlockedReasons.
//
// covers: BRK-07
func TestWhatBlocksAMove(t *testing.T) {
	m := shownMoves{topic: meta.Topic{Name: "t", Partitions: 1, Nodes: []string{"from"}, Moves: []meta.Move{{Partition: 0, To: "to"}}}}
	for _, c := range []struct {
		dead string
		want string
	}{{"", ""}, {"other", ""}, {"from", "source_dead"}, {"to", "target_dead"}, {"both", "source_dead"}} {
		moves := &Moves{Meta: m, Dead: func(member string) bool { return member == c.dead || c.dead == "both" }}
		got, err := moves.Moves(context.Background())
		require.NoError(t, err)
		require.Equal(t, c.want, got.Moves[0].Blocked, c.dead)
		if c.want != "" {
			require.Contains(t, BlockedReasons(), c.want)
		}
	}
}
