package cluster

import (
	"time"

	"narad.example/narad/meta"
)

// SetBack is for how long a partition is left where it is whose move ended and changed no owner: the target gave it up since it made no progress, as
// with a log that does not open, or somebody aborted it. Other partitions of the node go meanwhile.
const SetBack = 5 * time.Minute

// spot is one partition of one topic incarnation.
type spot struct {
	topicID   string
	partition int
}

// attempt is a move that stood in the metadata at the last look, or was begun by it.
type attempt struct{ id, owner string }

// attempts remembers the moves of the last look, to tell how they ended, and the partitions that are set back. The zero value knows of none; what it
// knows is one leader's, and the next one begins without it.
type attempts struct {
	underway map[spot]attempt
	back     map[spot]time.Time // until when
}

// watch takes the state of a look.
func (a *attempts) watch(topics []meta.Topic, now time.Time) {
	underway, back := map[spot]attempt{}, map[spot]time.Time{}
	for i := range topics {
		t := &topics[i]
		for p, owner := range t.Nodes {
			at := spot{t.ID, p}
			mv, moves := t.Move(p)
			if moves {
				underway[at] = attempt{mv.ID, owner}
			}
			was, did := a.underway[at]
			switch until := a.back[at]; {
			case did && was.owner == owner && was.id != mv.ID:
				back[at] = now.Add(SetBack)
			case now.Before(until):
				back[at] = until
			}
		}
	}
	a.underway, a.back = underway, back
}

// begun takes a move that this node has begun since the look.
func (a *attempts) begun(e meta.StartMove) {
	a.underway[spot{e.TopicID, e.Partition}] = attempt{e.MoveID, e.From}
}

// excuse forgets a move that this node ends itself, for what is no fault of the partition.
func (a *attempts) excuse(e meta.EndMove) { delete(a.underway, spot{e.TopicID, e.Partition}) }

// waits tells whether a partition is set back.
func (a *attempts) waits(topicID string, partition int) bool {
	_, waits := a.back[spot{topicID, partition}]
	return waits
}

// held counts the partitions of a node that are set back.
func (a *attempts) held(topics []meta.Topic, node string) (n int) {
	for i := range topics {
		for p, owner := range topics[i].Nodes {
			if owner == node && a.waits(topics[i].ID, p) {
				n++
			}
		}
	}
	return n
}
