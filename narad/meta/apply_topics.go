package meta

import (
	"slices"

	"narad.example/narad/wire"
)

func createTopic(t tx, e CreateTopic) *wire.Problem {
	n := e.Topic
	n.Schemas = nil // a schema comes with PutSchema, or from the parent
	if n.IsStub() || n.Partitions < 1 || n.ID == "" || len(n.Nodes) != n.Partitions {
		return wire.Refuse(wire.Invalid, "a topic needs an ID, partitions and an owner for each")
	}
	if p := nameFree(t, n.Name, n.ID); p != nil {
		return p
	}
	if p := t.take(n.Nodes); p != nil {
		return p
	}
	if n.Parent == "" {
		n.AttachEpoch, n.AttachOffsets, n.FanoutDelayMS = "", nil, 0
		t.put(tableTopics, &n)
		return nil
	}
	parent, p := parentFor(t, n.Parent, e.ParentID, n.FanoutDelayMS)
	if p != nil {
		return p
	}
	if n.AttachEpoch == "" || len(n.AttachOffsets) != parent.Partitions {
		return wire.Refuse(wire.Conflict, Retry)
	}
	n.Schemas = parent.Schemas
	t.put(tableTopics, &n)
	return nil
}

// nameFree refuses a name that a topic has already, letter case aside, and an ID that was ever so unlikely drawn twice.
func nameFree(t tx, name, id string) *wire.Problem {
	if name == "" {
		return wire.Refuse(wire.Invalid, "a topic needs a name")
	}
	if old := t.folded(name); old != nil {
		if old.Name == name {
			return wire.Refuse(wire.Conflict, "topic already exists")
		}
		return wire.Refuse(wire.Conflict, "the name is taken: topic %q differs only in letter case", old.Name)
	}
	if t.topicID(id) != nil {
		return wire.Refuse(wire.Conflict, Retry)
	}
	return nil
}

// parentFor returns the topic that a new child with this delay may hang on.
func parentFor(t tx, name, id string, delayMS int64) (*Topic, *wire.Problem) {
	parent := t.topic(name)
	switch {
	case parent == nil:
		return nil, wire.Refuse(wire.NotFound, "no such parent topic")
	case parent.ID != id:
		return nil, wire.Refuse(wire.Conflict, Retry)
	}
	if p := parentProblem(parent, delayMS); p != nil {
		return nil, p
	}
	if len(t.children(name)) >= MaxChildren {
		return nil, wire.Refuse(wire.Conflict, "a topic has at most %d children", MaxChildren)
	}
	return parent, nil
}

func parentProblem(parent *Topic, delayMS int64) *wire.Problem {
	switch {
	case parent.IsStub():
		return wire.Refuse(wire.Conflict, "the parent is a remote child and has no records of its own")
	case parent.Parent != "":
		return wire.Refuse(wire.Conflict, "the parent is itself a child; a child has no children")
	case delayMS > 0 && !keeps(parent.RetentionMS, delayMS+HourMS):
		return wire.Refuse(wire.Conflict, "the parent's retention_ms must be at least the delay and one hour")
	}
	return nil
}

// keeps tells whether a retention reaches a floor; 0 keeps forever.
func keeps(retentionMS, floorMS int64) bool { return retentionMS == 0 || retentionMS >= floorMS }

func alterTopic(t tx, e AlterTopic) *wire.Problem {
	old, p := current(t, e.Name, e.ID)
	if p != nil {
		return p
	}
	if old.IsStub() {
		return wire.Refuse(wire.Conflict, "a remote child has no settings of its own; change the topic on its remote")
	}
	n := *old
	if e.RetentionMS != nil {
		if p := retentionProblem(t.children(old.Name), old.RetentionMS, *e.RetentionMS); p != nil {
			return p
		}
		n.RetentionMS = *e.RetentionMS
	}
	if e.MaxInFlight != nil {
		n.MaxInFlight = *e.MaxInFlight
	}
	if e.MaxAckedAhead != nil {
		n.MaxAckedAhead = *e.MaxAckedAhead
	}
	if e.Partitions != nil {
		switch {
		case *e.Partitions <= old.Partitions:
			return wire.Refuse(wire.Invalid, "partitions can only grow")
		case len(e.Nodes) != *e.Partitions-old.Partitions:
			return wire.Refuse(wire.Conflict, Retry)
		}
		if p := t.take(e.Nodes); p != nil {
			return p
		}
		n.Partitions = *e.Partitions
		n.Nodes = slices.Concat(old.Nodes, e.Nodes)
	}
	t.put(tableTopics, &n)
	return nil
}

// retentionProblem holds the floors of api.md: with remote children 24 h or the longest delay and an hour, where a retention that
// is below already may grow; with a delay child its delay and an hour.
func retentionProblem(children []*Topic, oldMS, newMS int64) *wire.Problem {
	var remote bool
	var longest int64
	for _, c := range children {
		remote = remote || c.IsStub()
		longest = max(longest, c.FanoutDelayMS)
	}
	switch {
	case remote:
		floor := max(RemoteFloorMS, longest+HourMS)
		grows := oldMS != 0 && newMS > oldMS
		if !keeps(newMS, floor) && !grows {
			return wire.Refuse(wire.Conflict, "with remote children retention_ms must be at least %d", floor)
		}
	case longest > 0 && !keeps(newMS, longest+HourMS):
		return wire.Refuse(wire.Conflict, "with a delay child retention_ms must be at least %d", longest+HourMS)
	}
	return nil
}

// current returns the topic that a change was made from.
func current(t tx, name, id string) (*Topic, *wire.Problem) {
	old := t.topic(name)
	switch {
	case old == nil:
		return nil, wire.Refuse(wire.NotFound, "no such topic")
	case old.ID != id:
		return nil, wire.Refuse(wire.Conflict, Retry)
	}
	return old, nil
}

func deleteTopic(t tx, e DeleteTopic) *wire.Problem {
	old, p := current(t, e.Name, e.ID)
	if p != nil {
		return p
	}
	if old.IsStub() {
		return wire.Refuse(wire.Conflict, Retry)
	}
	children := t.children(old.Name)
	for _, c := range children {
		if c.IsStub() && !slices.Contains(e.Links, c.Name) {
			return wire.Refuse(wire.Conflict, "the topic has remote children; try again")
		}
	}
	for _, c := range children {
		if c.IsStub() {
			t.drop(tableTopics, c)
			continue
		}
		t.put(tableTopics, detached(c))
	}
	t.drop(tableTopics, old)
	return nil
}

// detached is the child as it goes on alone.
func detached(c *Topic) *Topic {
	n := *c
	n.Parent, n.AttachEpoch, n.FanoutDelayMS, n.AttachOffsets = "", "", 0, nil
	return &n
}

func attachChild(t tx, e AttachChild) *wire.Problem {
	parent, p := parentFor(t, e.Parent, e.ParentID, e.DelayMS)
	if p != nil {
		return p
	}
	child, p := current(t, e.Child, e.ChildID)
	if p != nil {
		return p
	}
	if p := childProblem(child, parent.Name, len(t.children(child.Name)) > 0); p != nil {
		return p
	}
	if e.Epoch == "" || len(e.Offsets) != parent.Partitions {
		return wire.Refuse(wire.Conflict, Retry)
	}
	if p := differs(child, parent); p != nil {
		return p
	}
	n := *child
	n.Schemas = parent.Schemas
	n.Parent, n.AttachEpoch, n.FanoutDelayMS, n.AttachOffsets = parent.Name, e.Epoch, e.DelayMS, e.Offsets
	t.put(tableTopics, &n)
	return nil
}

func childProblem(child *Topic, parent string, hasChildren bool) *wire.Problem {
	switch {
	case child.Name == parent:
		return wire.Refuse(wire.Conflict, "a topic cannot be its own child")
	case child.IsStub():
		return wire.Refuse(wire.Conflict, "the child is a remote child already")
	case child.Parent != "":
		return wire.Refuse(wire.Conflict, "the child has a parent already; a child has one parent")
	case hasChildren:
		return wire.Refuse(wire.Conflict, "the child has children of its own; a child has no children")
	}
	return nil
}

func detachChild(t tx, e DetachChild) *wire.Problem {
	child, p := attached(t, e.Parent, e.Child, e.Epoch)
	if p != nil {
		return p
	}
	if child.IsStub() {
		return wire.Refuse(wire.Conflict, Retry)
	}
	t.put(tableTopics, detached(child))
	return nil
}

// attached returns the child of this attach epoch (WRT-14).
func attached(t tx, parent, child, epoch string) (*Topic, *wire.Problem) {
	if t.topic(parent) == nil {
		return nil, wire.Refuse(wire.NotFound, "no such topic")
	}
	c := t.topic(child)
	switch {
	case c == nil || c.Parent != parent:
		return nil, wire.Refuse(wire.NotFound, "no such child")
	case c.AttachEpoch != epoch:
		return nil, wire.Refuse(wire.Conflict, Retry)
	}
	return c, nil
}
