package cluster

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/schema"
	"narad.example/narad/wire"
)

// A topic's schema from its create through its versions: what is refused stores nothing, and neither does the schema that it has.
//
// covers: BRK-11, BRK-12
func TestSchemasOfATopic(t *testing.T) {
	d := newDesk(t)
	d.create(wire.CreateTopic{Name: "t", Schema: json.RawMessage(` { "type" : "object" } `)})
	got, err := d.Get(t.Context(), "t", nil)
	require.NoError(t, err)
	require.Equal(t, 1, got.SchemaVersion)
	require.Len(t, got.Schema, len(`{"type":"object"}`), "without white space")
	d.create(wire.CreateTopic{Name: "none"})
	h, err := d.Schemas(t.Context(), "none")
	require.NoError(t, err)
	require.Equal(t, wire.SchemaHistory{Topic: "none", Versions: []wire.SchemaVersion{}}, h)
	_, err = d.Schemas(t.Context(), "nowhere")
	d.refused(wire.NotFound, err)

	alter := func(name, schema string, base *int) (wire.TopicDetail, error) {
		return d.Alter(t.Context(), name, wire.AlterTopic{Schema: json.RawMessage(schema), SchemaBaseVersion: base})
	}
	for _, bad := range []string{`null`, `false`, `{"type":1}`, `{"$ref":"file:///etc/passwd"}`, `{`, `{"title":"` + strings.Repeat("x", schema.MaxBytes) + `"}`} {
		_, err = alter("t", bad, ptr(1))
		d.refused(wire.Invalid, err)
		_, err = d.Create(t.Context(), "ann", wire.CreateTopic{Name: "bad", Schema: json.RawMessage(bad)})
		d.refused(wire.Invalid, err)
	}
	_, err = alter("t", `true`, nil)
	d.refused(wire.Invalid, err)
	require.Contains(t, err.Error(), "schema_base_version")
	before := d.meta.Applied()
	got, err = alter("t", `{"type": "object"}`, ptr(0))
	require.NoError(t, err)
	require.Equal(t, 1, got.SchemaVersion)
	require.Equal(t, before, d.meta.Applied(), "nothing is stored")
	for _, base := range []int{0, 2, -1} {
		_, err = alter("t", `true`, &base)
		d.refused(wire.Conflict, err)
	}
	got, err = alter("t", `true`, ptr(1))
	require.NoError(t, err)
	require.Equal(t, 2, got.SchemaVersion)
	_, err = d.Alter(t.Context(), "t", wire.AlterTopic{Schema: json.RawMessage(`true`), SchemaBaseVersion: ptr(2), Partitions: ptr(5)})
	require.NoError(t, err)
	_, err = d.Alter(t.Context(), "t", wire.AlterTopic{Schema: json.RawMessage(`{}`), SchemaBaseVersion: ptr(1), Partitions: ptr(6)})
	d.refused(wire.Conflict, err)
	got, err = d.Alter(t.Context(), "t", wire.AlterTopic{Schema: json.RawMessage(`{}`), SchemaBaseVersion: ptr(2), Partitions: ptr(7), RetentionMS: ptr(meta.HourMS)})
	require.NoError(t, err)
	require.Equal(t, []int64{3, 7, meta.HourMS}, []int64{int64(got.SchemaVersion), int64(got.Partitions), got.RetentionMS})
	h, err = d.Schemas(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, wire.SchemaHistory{Topic: "t", Version: 3, Versions: []wire.SchemaVersion{
		{Version: 1, Schema: json.RawMessage(`{"type":"object"}`)}, {Version: 2, Schema: json.RawMessage(`true`)}, {Version: 3, Schema: json.RawMessage(`{}`)},
	}}, h)
}

// Local children have their parent's history; a schema of their own is a conflict, on a stub too.
//
// covers: BRK-11, BRK-10
func TestSchemasOfChildren(t *testing.T) {
	d := newDesk(t)
	one, two := json.RawMessage(`{"type":"object"}`), json.RawMessage(`{"type":"array"}`)
	d.create(wire.CreateTopic{Name: "p", Schema: one})
	d.create(wire.CreateTopic{Name: "same", Schema: json.RawMessage(`{ "type":"object"}`)})
	d.create(wire.CreateTopic{Name: "none"})
	d.create(wire.CreateTopic{Name: "other", Schema: two})
	d.create(wire.CreateTopic{Name: "made", Parent: "p"})
	_, err := d.Create(t.Context(), "ann", wire.CreateTopic{Name: "made2", Parent: "p", Schema: two})
	d.refused(wire.Conflict, err)
	d.create(wire.CreateTopic{Name: "made3", Parent: "p", Schema: one})
	for _, child := range []string{"same", "none"} {
		_, err = d.AttachLocal(t.Context(), "p", wire.AttachChild{Child: child})
		require.NoError(t, err)
	}
	_, err = d.AttachLocal(t.Context(), "p", wire.AttachChild{Child: "other"})
	d.refused(wire.Conflict, err)
	require.Contains(t, err.Error(), "schema differs")
	d.link("p", "far")
	_, err = d.Alter(t.Context(), "p", wire.AlterTopic{Schema: two, SchemaBaseVersion: ptr(1)})
	require.NoError(t, err)
	for _, child := range []string{"same", "none", "made", "made3"} {
		got, gerr := d.Get(t.Context(), child, nil)
		require.NoError(t, gerr)
		require.Equal(t, 2, got.SchemaVersion, child)
		require.JSONEq(t, string(two), string(got.Schema))
		_, err = d.Alter(t.Context(), child, wire.AlterTopic{Schema: two, SchemaBaseVersion: ptr(2)})
		d.refused(wire.Conflict, err)
	}
	_, err = d.Alter(t.Context(), "far", wire.AlterTopic{Schema: two, SchemaBaseVersion: ptr(0)})
	d.refused(wire.Conflict, err)
}

// Whoever checks schemas for the node is asked, and its refusal stores nothing.
//
// covers: BRK-11
func TestNoSlotForASchema(t *testing.T) {
	d := newDesk(t)
	d.create(wire.CreateTopic{Name: "t"})
	busy := wire.Refuse(wire.Unavailable, "no schema validation slot")
	d.schema = func(context.Context, []byte) (schema.Document, error) { return schema.Document{}, busy }
	before := d.meta.Applied()
	_, err := d.Create(t.Context(), "ann", wire.CreateTopic{Name: "u", Schema: json.RawMessage(`true`)})
	require.Equal(t, busy, err)
	_, err = d.Alter(t.Context(), "t", wire.AlterTopic{Schema: json.RawMessage(`true`), SchemaBaseVersion: ptr(0)})
	require.Equal(t, busy, err)
	require.Equal(t, before, d.meta.Applied())
}
