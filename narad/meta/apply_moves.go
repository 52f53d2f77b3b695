package meta

import (
	"cmp"
	"slices"

	"narad.example/narad/wire"
)

// StartMove begins to move a partition (BRK-07). Refused with Conflict when From is not the owner, the partition moves already,
// or From has another partition on its way out: one at a time.
type StartMove struct {
	TopicID   string `json:"topic_id"`
	Partition int    `json:"partition"`
	From      string `json:"from"`
	To        string `json:"to"`
	MoveID    string `json:"move_id"`
}

// ClaimMove replaces the attempt of a move, as a compare-and-set: by a fresh one, which alone may flip then, or by none. A flip of an
// earlier attempt is refused from then on, however late it comes.
type ClaimMove struct {
	TopicID   string `json:"topic_id"`
	Partition int    `json:"partition"`
	MoveID    string `json:"move_id"`
	Was       string `json:"was,omitempty"`
	Attempt   string `json:"attempt,omitempty"`
}

// FlipMove makes the target of a move the owner, as a compare-and-set on owner, move and attempt.
type FlipMove struct {
	TopicID   string `json:"topic_id"`
	Partition int    `json:"partition"`
	MoveID    string `json:"move_id"`
	Attempt   string `json:"attempt"`
	From      string `json:"from"`
}

// EndMove ends a move without a change of the owner.
type EndMove struct {
	TopicID   string `json:"topic_id"`
	Partition int    `json:"partition"`
	MoveID    string `json:"move_id"`
}

// Type returns TypeStartMove.
func (StartMove) Type() EntryType { return TypeStartMove }

// Type returns TypeClaimMove.
func (ClaimMove) Type() EntryType { return TypeClaimMove }

// Type returns TypeFlipMove.
func (FlipMove) Type() EntryType { return TypeFlipMove }

// Type returns TypeEndMove.
func (EndMove) Type() EntryType { return TypeEndMove }

func startMove(t tx, e StartMove) *wire.Problem {
	topic := t.topicID(e.TopicID)
	switch {
	case topic == nil:
		return wire.Refuse(wire.NotFound, "no such topic")
	case e.From == "" || topic.NodeOf(e.Partition) != e.From:
		return wire.Refuse(wire.Conflict, Retry)
	case e.MoveID == "" || e.To == e.From || t.member(e.To) == nil:
		return wire.Refuse(wire.Invalid, "a move needs an ID and another member to go to")
	case t.member(e.To).Draining():
		return wire.Refuse(wire.Conflict, "member %s is being decommissioned and takes no partition", e.To)
	}
	if _, moves := topic.Move(e.Partition); moves {
		return wire.Refuse(wire.Conflict, "the partition is being moved already")
	}
	for _, other := range rows[Topic](t.txn, tableTopics, indexKey) {
		for _, m := range other.Moves {
			if other.NodeOf(m.Partition) == e.From {
				return wire.Refuse(wire.Conflict, "node %s has a partition on its way out already", e.From)
			}
		}
	}
	n := *topic
	n.Moves = append(slices.Clone(topic.Moves), Move{Partition: e.Partition, To: e.To, ID: e.MoveID})
	slices.SortFunc(n.Moves, func(a, b Move) int { return cmp.Compare(a.Partition, b.Partition) })
	t.put(tableTopics, &n)
	return nil
}

// moving returns a copy of the topic and the place of a move in it.
func moving(t tx, topicID string, partition int, moveID string) (n Topic, at int, p *wire.Problem) {
	topic := t.topicID(topicID)
	if topic == nil {
		return n, 0, wire.Refuse(wire.NotFound, "no such topic")
	}
	at = slices.IndexFunc(topic.Moves, func(m Move) bool { return m.Partition == partition && m.ID == moveID })
	if at < 0 {
		return n, 0, wire.Refuse(wire.NotFound, "no such move")
	}
	n = *topic
	n.Moves = slices.Clone(topic.Moves)
	return n, at, nil
}

func claimMove(t tx, e ClaimMove) *wire.Problem {
	n, at, p := moving(t, e.TopicID, e.Partition, e.MoveID)
	if p != nil {
		return p
	}
	if n.Moves[at].Attempt != e.Was {
		return wire.Refuse(wire.Conflict, "another attempt of the move began; try again")
	}
	n.Moves[at].Attempt = e.Attempt
	t.put(tableTopics, &n)
	return nil
}

func flipMove(t tx, e FlipMove) *wire.Problem {
	n, at, p := moving(t, e.TopicID, e.Partition, e.MoveID)
	if p != nil {
		return p
	}
	m := n.Moves[at]
	if e.Attempt == "" || m.Attempt != e.Attempt || n.NodeOf(e.Partition) != e.From {
		return wire.Refuse(wire.Conflict, "another attempt of the move began; try again")
	}
	n.Nodes = slices.Clone(n.Nodes)
	n.Nodes[e.Partition] = m.To
	n.Moves = slices.Delete(n.Moves, at, at+1)
	t.put(tableTopics, withoutEmpty(&n))
	return nil
}

func endMove(t tx, e EndMove) *wire.Problem {
	n, at, p := moving(t, e.TopicID, e.Partition, e.MoveID)
	if p != nil {
		return p
	}
	n.Moves = slices.Delete(n.Moves, at, at+1)
	t.put(tableTopics, withoutEmpty(&n))
	return nil
}

// withoutEmpty keeps a topic without moves the same as one that never had any, also behind a snapshot.
func withoutEmpty(n *Topic) *Topic {
	if len(n.Moves) == 0 {
		n.Moves = nil
	}
	return n
}
