package meta

import (
	"slices"

	"narad.example/narad/wire"
)

func putSchema(t tx, e PutSchema) *wire.Problem {
	if e.Schema.Sum == "" || len(e.Schema.Body) == 0 || (e.Create == nil) == (e.Alter == nil) || e.Create != nil && e.Base != 0 {
		return wire.Refuse(wire.Invalid, "a schema needs a body, a sum and one topic")
	}
	if e.Create != nil {
		return createWithSchema(t, e)
	}
	if p := alterTopic(t, *e.Alter); p != nil {
		return p
	}
	old := t.topic(e.Alter.Name)
	if old.Parent != "" {
		return wire.Refuse(wire.Conflict, "a child has its parent's schema; change it there")
	}
	now, version := old.Schema()
	switch {
	case version > 0 && now.Sum == e.Schema.Sum:
		return nil
	case version != e.Base:
		return wire.Refuse(wire.Conflict, "topic changed since it was read: its schema is at version %d, not at schema_base_version", version)
	case version >= MaxSchemas:
		return wire.Refuse(wire.Conflict, "a topic has at most %d versions of its schema", MaxSchemas)
	}
	history := slices.Concat(old.Schemas, []Schema{e.Schema})
	t.putSchemas(old, history)
	for _, c := range t.children(old.Name) {
		if !c.IsStub() {
			t.putSchemas(c, history)
		}
	}
	return nil
}

func createWithSchema(t tx, e PutSchema) *wire.Problem {
	if p := createTopic(t, *e.Create); p != nil {
		return p
	}
	n := t.topic(e.Create.Topic.Name)
	if n.Parent == "" {
		t.putSchemas(n, []Schema{e.Schema})
		return nil
	}
	return differs(&Topic{Schemas: []Schema{e.Schema}}, n) // which has its parent's
}

func (t tx) putSchemas(old *Topic, history []Schema) {
	n := *old
	n.Schemas = history
	t.put(tableTopics, &n)
}

// differs refuses a child that has another schema than its parent. One without any takes the parent's, one with the same takes its history.
func differs(child, parent *Topic) *wire.Problem {
	has, version := child.Schema()
	if wants, _ := parent.Schema(); version > 0 && has.Sum != wants.Sum {
		return wire.Refuse(wire.Conflict, "the child's schema differs from the parent's; they must match, or the child must have none")
	}
	return nil
}
