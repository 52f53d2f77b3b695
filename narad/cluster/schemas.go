package cluster

import (
	"context"
	"encoding/json"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// created is the entry of a create, with its schema when it has one (BRK-11).
func (t *Topics) created(ctx context.Context, e meta.CreateTopic, raw json.RawMessage) (meta.Entry, error) {
	if raw == nil {
		return e, nil
	}
	doc, err := t.schema(ctx, raw)
	if err != nil {
		return nil, err
	}
	return meta.PutSchema{Create: &e, Schema: meta.Schema{Body: doc.Raw, Sum: doc.Sum}}, nil
}

// altered is the entry of a change, with its schema when it has one; nil when the schema is all of it and the topic has it already.
func (t *Topics) altered(ctx context.Context, old *meta.Topic, e meta.AlterTopic, r wire.AlterTopic) (meta.Entry, error) {
	if r.Schema == nil {
		return e, nil
	}
	doc, err := t.schema(ctx, r.Schema)
	if err != nil {
		return nil, err
	}
	now, version := old.Schema()
	switch same := version > 0 && now.Sum == doc.Sum && old.Parent == ""; {
	case same && changes(&e):
		return e, nil
	case same:
		return nil, nil //nolint:nilnil // nothing to store is no error
	}
	return meta.PutSchema{Alter: &e, Base: *r.SchemaBaseVersion, Schema: meta.Schema{Body: doc.Raw, Sum: doc.Sum}}, nil
}

// Schemas is the history of a topic's schema, the newest version last.
func (t *Topics) Schemas(_ context.Context, name string) (wire.SchemaHistory, error) {
	r, ok := t.meta.Topic(name)
	if !ok {
		return wire.SchemaHistory{}, noTopic()
	}
	h := wire.SchemaHistory{Topic: name, Version: len(r.Schemas), Versions: []wire.SchemaVersion{}}
	for i, s := range r.Schemas {
		h.Versions = append(h.Versions, wire.SchemaVersion{Version: i + 1, Schema: s.Body})
	}
	return h, nil
}
