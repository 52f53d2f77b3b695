package cluster

import (
	"slices"

	"narad.example/narad/meta"
)

// spread is where the partitions are, a partition on its way counting where it goes, and which nodes have one on its way out: one at a
// time from each node.
type spread struct {
	topics []meta.Topic
	live   []string                                 // that may take partitions, in ID order
	waits  func(topicID string, partition int) bool // it is set back, and begins no move
	load   map[string]int
	busy   map[string]bool
	where  [][]string // of each topic's partitions
}

func newSpread(topics []meta.Topic, live []string, waits func(topicID string, partition int) bool) *spread {
	s := &spread{topics: topics, live: live, waits: waits, load: map[string]int{}, busy: map[string]bool{}, where: make([][]string, len(topics))}
	for i := range topics {
		t := &topics[i]
		s.where[i] = slices.Clone(t.Nodes)
		for _, mv := range t.Moves {
			s.busy[t.NodeOf(mv.Partition)] = true
			s.where[i][mv.Partition] = mv.To
		}
		for _, node := range s.where[i] {
			s.load[node]++
		}
	}
	return s
}

// least is the live node with the fewest partitions, empty when none is live.
func (s *spread) least() string {
	to := ""
	for _, id := range s.live {
		if to == "" || s.load[id] < s.load[to] {
			to = id
		}
	}
	return to
}

// evacuate lists the moves that may begin now from nodes that are to own nothing.
func (s *spread) evacuate(from []string) (starts []meta.StartMove) {
	for _, id := range from {
		to := s.least()
		if to == "" || s.busy[id] || s.load[id] == 0 {
			continue
		}
		if e, ok := s.move(id, to); ok {
			starts = append(starts, e)
		}
	}
	return starts
}

// even lists the moves that make the live members' numbers of partitions differ by one at most, as far as they may begin now.
func (s *spread) even() (starts []meta.StartMove) {
	for {
		from := ""
		for _, id := range s.live {
			if !s.busy[id] && (from == "" || s.load[id] > s.load[from]) {
				from = id
			}
		}
		to := s.least()
		if from == "" || s.load[from]-s.load[to] < 2 {
			return starts
		}
		e, ok := s.move(from, to)
		if !ok {
			return starts
		}
		starts = append(starts, e)
	}
}

// move chooses a partition and counts it as gone; false when all that the node has is still on its way to it, or set back.
func (s *spread) move(from, to string) (meta.StartMove, bool) {
	i, p := s.candidate(from, to)
	if p < 0 {
		return meta.StartMove{}, false
	}
	s.where[i][p], s.busy[from] = to, true
	s.load[from]--
	s.load[to]++
	return meta.StartMove{TopicID: s.topics[i].ID, Partition: p, From: from, To: to, MoveID: meta.NewID()}, true
}

// candidate is a partition of the topic of which one node has most and the other least, so that topics stay spread; below 0 when all that
// the one has is still on its way to it, or set back.
func (s *spread) candidate(from, to string) (topic, partition int) {
	partition = -1
	most := 0
	for i := range s.topics {
		surplus, last := 0, -1
		for p, node := range s.where[i] {
			switch node {
			case from:
				surplus++
				if s.topics[i].NodeOf(p) == from && !s.waits(s.topics[i].ID, p) {
					last = p
				}
			case to:
				surplus--
			}
		}
		if last >= 0 && (partition < 0 || surplus > most) {
			topic, partition, most = i, last, surplus
		}
	}
	return topic, partition
}
