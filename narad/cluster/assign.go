package cluster

import (
	"hash/fnv"
)

// owners are the nodes that new partitions go to, in ID order: the members that stay, without those that count as dead unless all do.
func (t *Topics) owners() []string {
	members := t.meta.Members()
	if len(members) == 0 {
		return []string{t.node}
	}
	ids, live := make([]string, 0, len(members)), make([]string, 0, len(members))
	for _, m := range members {
		if m.Draining() {
			continue // at least MinMembers stay
		}
		ids = append(ids, m.ID)
		if !t.dead(m.ID) {
			live = append(live, m.ID)
		}
	}
	if len(live) == 0 {
		return ids
	}
	return live
}

// assign gives the partitions from..to-1 their owners, round-robin from a place that the topic's ID chooses, so that many small
// topics spread as well as one large one.
func assign(owners []string, topicID string, from, to int) []string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(topicID)) // a hash never fails
	start := int(h.Sum32() % uint32(len(owners)))
	nodes := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		nodes = append(nodes, owners[(start+i)%len(owners)])
	}
	return nodes
}
