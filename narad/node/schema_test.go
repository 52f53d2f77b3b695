package node_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

const orderSchema = `{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}`

// declined asserts a client's error by status and text.
func declined(t *testing.T, err error, status int, text string) {
	t.Helper()
	e, ok := errors.AsType[*client.Error](err)
	require.True(t, ok, err)
	require.Equal(t, status, e.Status, e.Text)
	require.Contains(t, e.Text, text)
}

func (m *machine) schema(topic, schema string, base int) (wire.TopicDetail, error) {
	m.b.t.Helper()
	return m.client().AlterTopic(m.b.t.Context(), topic, wire.AlterTopic{Schema: json.RawMessage(schema), SchemaBaseVersion: &base})
}

func batch(payloads ...string) (out []wire.NewRecord) {
	for _, p := range payloads {
		out = append(out, wire.NewRecord{Payload: []byte(p), Partition: -1})
	}
	return out
}

// A payload that its topic's schema does not want is refused and stored nowhere, a batch as a whole; the refusal names the message, the place
// and nothing of the payload. Versions, history and verdicts outlive the node; a topic made anew has none of them.
//
// covers: BRK-11, BRK-12, BRK-13, BRK-06
func TestATopicWithASchema(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		_, err := m.client().CreateTopic(t.Context(), wire.CreateTopic{Name: "orders", Schema: json.RawMessage(orderSchema)})
		require.NoError(t, err)
		m.create("copy")
		_, err = m.client().AttachChild(t.Context(), "orders", wire.AttachChild{Child: "copy"})
		require.NoError(t, err)
		c := m.client()
		bad := func(topic, payload, text string) {
			t.Helper()
			declined(t, c.Produce(t.Context(), topic, []byte(payload), client.ProduceOptions{}), 400, text)
		}
		for _, topic := range []string{"orders", "copy"} {
			bad(topic, `{"id":"c4n4ry"}`, `at "/id": type wants integer`)
			bad(topic, `c4n4ry`, "not JSON")
			bad(topic, `{"c4n4ry":1}`, `at "": required wants "id"`)
		}
		err = c.ProduceBatch(t.Context(), "orders", "", batch(`{"id":1}`, `{"id":2}`, `{"id":"c4n4ry"}`, `[]`))
		declined(t, err, 400, `message 2: the payload does not match the schema (version 1): at "/id": type wants integer`)
		require.InDelta(t, 4, m.value(`narad_produce_rejections_total{reason="schema",topic="orders"}`), 0)
		require.InDelta(t, 3, m.value(`narad_produce_rejections_total{reason="schema",topic="copy"}`), 0)
		require.NotContains(t, m.log.String(), "c4n4ry")
		require.Zero(t, m.count("orders"))
		require.NoError(t, c.ProduceBatch(t.Context(), "orders", "", batch(`{"id":1}`, `{"id":2,"more":[]}`)))
		b.eventually("the copy has both", func() bool { return m.count("copy") == 2 })

		d, err := m.schema("orders", `{"type":"array"}`, 1)
		require.NoError(t, err)
		require.Equal(t, 2, d.SchemaVersion)
		_, err = m.schema("orders", `true`, 1)
		declined(t, err, 409, "topic changed since it was read")
		_, err = m.schema("copy", `true`, 2)
		declined(t, err, 409, "a child has its parent's schema")
		_, err = m.schema("orders", `{"$ref":"file:///etc/passwd"}`, 2)
		declined(t, err, 400, "refers to another document")
		for range 2 {
			bad("orders", `{"id":1}`, "(version 2)")
			bad("copy", `{"id":1}`, "(version 2)")
			require.NoError(t, c.Produce(t.Context(), "copy", []byte(`[]`), client.ProduceOptions{}))
			h, err := c.Schemas(t.Context(), "copy")
			require.NoError(t, err)
			require.Equal(t, 2, h.Version)
			require.JSONEq(t, orderSchema, string(h.Versions[0].Schema))
			m.stop()
			m.start()
		}
		require.NoError(t, c.DeleteTopic(t.Context(), "orders", false))
		m.create("orders")
		require.NoError(t, c.Produce(t.Context(), "orders", []byte(`free`), client.ProduceOptions{}))
		bad("copy", `{"id":1}`, "(version 2)")
		var events []string
		for _, line := range m.log.with("audit") {
			if line["event"] == "topic.schema" {
				events = append(events, fmt.Sprint(line["target"], " ", line["outcome"]))
			}
		}
		require.Equal(t, []string{"orders ok", "orders rejected", "copy rejected", "orders rejected"}, events)
		m.stop()
	})
}

// Payloads that want more work than they can pay for are refused, and topics beside them go on.
//
// covers: BRK-11, BRK-12
func TestAHostileSchemaHoldsNobodyUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		var doubled strings.Builder
		for i := range 30 {
			fmt.Fprintf(&doubled, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
		}
		hostile := `{"$ref":"#/$defs/d0","$defs":{` + doubled.String() + `"d30":{"type":"null"}}}`
		_, err := m.client().CreateTopic(t.Context(), wire.CreateTopic{Name: "hostile", Schema: json.RawMessage(hostile)})
		require.NoError(t, err)
		_, err = m.client().CreateTopic(t.Context(), wire.CreateTopic{Name: "orders", Schema: json.RawMessage(orderSchema)})
		require.NoError(t, err)
		declined(t, m.client().Produce(t.Context(), "hostile", []byte(`1`), client.ProduceOptions{}), 400, "more work to check")
		require.NoError(t, m.client().Produce(t.Context(), "orders", []byte(`{"id":1}`), client.ProduceOptions{}))
		m.stop()
	})
}

// While a member runs an older release no schema is put and none stops; afterwards each node checks by it.
//
// covers: BRK-11, WRT-02
func TestASchemaWaitsForTheLastMember(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all := b.three("n", 2)
		time.Sleep(time.Second)
		all[0].create("orders")
		b.everywhere(all, "orders")
		_, err := all[0].schema("orders", orderSchema, 0)
		declined(t, err, 412, "upgrade it first") // of n3, or of the leader when that is n3
		for _, m := range all {
			require.NoError(t, m.node.Failure())
			m.produce("orders", "", "anything")
		}
		all[2].stop()
		all[2].older = false
		all[2].start()
		b.ready(all[2])
		time.Sleep(time.Second)
		_, err = all[2].schema("orders", orderSchema, 0)
		require.NoError(t, err)
		for _, m := range all {
			b.eventually("the schema is on "+m.name, func() bool {
				d, err := m.client().Topic(t.Context(), "orders", nil)
				return err == nil && d.SchemaVersion == 1
			})
			declined(t, m.client().Produce(t.Context(), "orders", []byte("anything"), client.ProduceOptions{}), 400, "not JSON")
			require.NoError(t, m.client().Produce(t.Context(), "orders", []byte(`{"id":1}`), client.ProduceOptions{}))
			m.stop()
		}
	})
}

// A remote's test says whether the target's schema is its source's, and a link copies what both want.
//
// covers: TGT-05, BRK-11
func TestALinkBetweenTopicsWithSchemas(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		class := func() string {
			time.Sleep(6 * time.Second) // one check every 5 s
			got, err := p.source.client().Remotes().Test(t.Context(), "dr", wire.TestRemote{Topic: "orders", Source: "orders"})
			require.NoError(t, err)
			return got.Class
		}
		require.Empty(t, class())
		_, err := p.source.schema("orders", orderSchema, 0)
		require.NoError(t, err)
		require.Equal(t, "schema_mismatch", class())
		_, err = p.target.schema("orders", ` {"required":["id"], "properties":{"id":{"type":"integer"}}, "type":"object"}`, 0)
		require.NoError(t, err)
		require.Empty(t, class())
		for i := range 20 {
			p.source.produce("orders", fmt.Sprint(i%5), fmt.Sprintf(`{"id":%d}`, i))
		}
		b.eventually("all are there", func() bool { return p.target.count("orders") == 20 })
		p.source.stop()
		p.target.stop()
	})
}
