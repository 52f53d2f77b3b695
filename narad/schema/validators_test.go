package schema

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

func subject(t testing.TB, id string, version int, s string) Subject {
	t.Helper()
	d := parsed(t, s)
	return Subject{TopicID: id, Version: version, Sum: d.Sum, Raw: d.Raw}
}

// A topic's payloads take turns and all topics share the slots: who waits for 2 s, or whose request ended, is told so and takes nothing.
//
// covers: BRK-11
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := NewValidators()
		v.slots = make(chan struct{}, 2)
		a, b := subject(t, "a", 1, `{"type":"string"}`), subject(t, "b", 1, `{"type":"string"}`)
		ok := []byte(`"x"`)
		require.NoError(t, v.Validate(t.Context(), a, ok))
		require.Empty(t, v.slots)

		v.topic(a).turn <- struct{}{} // a payload that takes its time
		v.slots <- struct{}{}
		start := time.Now()
		err := v.Validate(t.Context(), a, ok)
		require.Equal(t, wire.Unavailable, wire.KindOf(err))
		require.ErrorContains(t, err, "schema validation slot")
		require.Equal(t, patience, time.Since(start))
		require.NoError(t, v.Validate(t.Context(), b, ok), "another topic goes on")

		v.slots <- struct{}{}
		require.ErrorContains(t, v.Validate(t.Context(), b, ok), "schema validation slot")
		require.Empty(t, v.topic(b).turn, "who got no slot gives the turn back")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start = time.Now()
		require.Equal(t, wire.Unavailable, wire.KindOf(v.Validate(ctx, b, ok)))
		require.Equal(t, wire.Unavailable, wire.KindOf(v.Validate(ctx, a, ok)))
		require.Zero(t, time.Since(start))

		_, err = v.Parse(ctx, []byte(`true`))
		require.ErrorContains(t, err, "schema validation slot")

		var waited sync.WaitGroup
		for _, s := range []Subject{a, b} {
			waited.Go(func() { require.NoError(t, v.Validate(t.Context(), s, ok)) })
		}
		time.Sleep(time.Second)
		<-v.slots
		<-v.slots
		<-v.topic(a).turn
		waited.Wait()
		_, err = v.Parse(t.Context(), []byte(`true`))
		require.NoError(t, err)
		require.Empty(t, v.slots)
	})
}

// Many payloads of many topics at once, each by its own schema.
//
// covers: BRK-11
func TestManyAtOnce(t *testing.T) {
	v := NewValidators()
	var all sync.WaitGroup
	for topic := range 8 {
		s := subject(t, fmt.Sprint(topic), 1, fmt.Sprintf(`{"const":%d}`, topic))
		for n := range 8 {
			all.Go(func() {
				for range 20 {
					err := v.Validate(t.Context(), s, fmt.Append(nil, n))
					if n == topic {
						require.NoError(t, err)
						continue
					}
					require.Equal(t, wire.Invalid, wire.KindOf(err))
				}
			})
		}
	}
	all.Wait()
	require.Len(t, v.topics, 8)
}

// What is compiled is kept by topic and sum, whatever the version, is bounded in topics and in size, and goes with its topic.
//
// covers: BRK-11
func TestWhatIsKept(t *testing.T) {
	v := NewValidators()
	strings1, numbers := subject(t, "a", 1, `{"type":"string"}`), subject(t, "a", 1, `{"type":"number"}`)
	require.NoError(t, v.Validate(t.Context(), strings1, []byte(`"x"`)))
	first := v.topics["a"].form
	require.NoError(t, v.Validate(t.Context(), strings1, []byte(`"x"`)))
	require.Same(t, first, v.topics["a"].form)
	require.NoError(t, v.Validate(t.Context(), numbers, []byte(`1`)), "another schema under the same number")
	require.ErrorContains(t, v.Validate(t.Context(), numbers, []byte(`"x"`)), "type wants number")
	require.Len(t, v.topics, 1)
	require.Equal(t, v.topics["a"].form.size, v.parts)

	v.Keep(func(id string) bool { return id != "a" })
	require.Empty(t, v.topics)
	require.Zero(t, v.parts)
	require.Zero(t, v.recent.Len())
	for i := range maxTopics + 3 {
		s := strings1
		s.TopicID = fmt.Sprint(i)
		v.topic(s)
		if i == 3 {
			v.topic(Subject{TopicID: "0", Sum: s.Sum})
		}
	}
	require.Len(t, v.topics, maxTopics)
	require.NotNil(t, v.topics["0"], "it was used")
	require.Nil(t, v.topics["1"])

	large := subject(t, "large", 1, `{"allOf":[`+strings.Repeat(`{"minimum":1},`, 300)+`true]}`)
	require.NoError(t, v.Validate(t.Context(), large, []byte(`1`)))
	v.parts = maxParts - 10
	large.TopicID = "larger"
	require.NoError(t, v.Validate(t.Context(), large, []byte(`1`)))
	require.Nil(t, v.topics["large"])
	require.NotNil(t, v.topics["larger"], "the latest stays")
}

// What does not compile on this node refuses a payload each time, and says which version it is.
//
// covers: BRK-11
func TestAStoredSchemaThatDoesNotCompile(t *testing.T) {
	v := NewValidators()
	for _, raw := range []string{`{"$ref":"http://example.com/secret"}`, `{`} {
		for range 2 {
			err := v.Validate(t.Context(), Subject{TopicID: raw, Version: 7, Sum: "x", Raw: []byte(raw)}, []byte(`1`))
			require.Equal(t, wire.Internal, wire.KindOf(err))
			require.EqualError(t, err, "the topic's schema, version 7, does not compile on this node")
		}
	}
	require.Empty(t, v.slots)
}
