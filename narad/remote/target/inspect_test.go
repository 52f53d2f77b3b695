package target

import (
	"bytes"
	"context"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// classOf is the class of an error, empty for none.
func classOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *Error
	require.ErrorAs(t, err, &e)
	require.NotContains(t, err.Error(), "hunter2")
	return e.Class
}

// A target asks who one is when it answers 401 to nobody in particular. Anything else that is Narad's word says that it does not; what
// is not Narad's says nothing of it.
//
// covers: TGT-04
func TestATargetAsksWhoOneIs(t *testing.T) {
	for name, tc := range map[string]struct {
		answer *outbound.Answer
		closed bool
		class  string
	}{
		"401":             {ours(401, `{"error":"unauthorized"}`), true, ""},
		"a bare 401":      {says(401, "text/html", "hunter2"), true, ""},
		"the topic":       {ours(200, `{"name":"t"}`), false, ""},
		"no such topic":   {ours(404, `{"error":"topic not found"}`), false, ""},
		"another refusal": {ours(400, `{"error":"hunter2"}`), false, ""},
		"403":             {says(403, "text/html", "hunter2"), false, "forbidden"},
		"a page":          {says(404, "text/html", "hunter2"), false, EdgeClass},
		"no route":        {says(404, "text/plain", "404 page not found\n"), false, EdgeClass},
		"elsewhere":       {says(302, "text/html", ""), false, "redirect_refused"},
		"down":            {ours(503, `{"error":"x"}`), false, "unavailable"},
		"busy":            {ours(429, `{"error":"x"}`), false, "throttled"},
	} {
		c := &one{answer: tc.answer}
		closed, err := AsksWho(t.Context(), c, "a/b")
		require.Equal(t, tc.closed, closed, name)
		require.Equal(t, tc.class, classOf(t, err), name)
		require.True(t, c.last.Anonymous)
		require.Equal(t, "GET /v1/topics/a%2Fb", c.last.Method+" "+c.last.Path)
	}
}

// A batch without messages writes nothing and tells whether the credential may produce and whether there is a route.
//
// covers: TGT-07
func TestAnEmptyBatchTellsWhoMayProduce(t *testing.T) {
	for name, tc := range map[string]struct {
		answer *outbound.Answer
		class  string
	}{
		"none":           {ours(400, `{"error":"messages required"}`), ""},
		"no grant":       {ours(403, `{"error":"hunter2"}`), "forbidden"},
		"no such topic":  {ours(404, `{"error":"topic not found"}`), "target_missing"},
		"no route":       {says(404, "text/plain", "404 page not found\n"), "no_batch_produce"},
		"taken":          {ours(202, `{"accepted":0}`), EdgeClass},
		"another 400":    {ours(400, `{"error":"hunter2"}`), EdgeClass},
		"wrong password": {ours(401, `{"error":"x"}`), "auth_failed"},
		"a page":         {says(400, "text/html", "messages required"), EdgeClass},
	} {
		c := &one{answer: tc.answer}
		require.Equal(t, tc.class, classOf(t, MayProduce(t.Context(), c, "t")), name)
		require.Equal(t, "POST /v1/topics/t/produce/batch", c.last.Method+" "+c.last.Path)
		require.JSONEq(t, `{"messages":[]}`, string(c.last.Body))
	}
}

// Only an admin's credential lists the users.
//
// covers: TGT-08
func TestACredentialThatListsUsers(t *testing.T) {
	for name, tc := range map[string]struct {
		answer *outbound.Answer
		lists  bool
		class  string
	}{
		"an admin's":     {ours(200, `[]`), true, ""},
		"a page of them": {says(200, "text/html", "hunter2"), true, ""},
		"another's":      {ours(403, `{"error":"admin required"}`), false, ""},
		"wrong password": {ours(401, `{"error":"x"}`), false, "auth_failed"},
		"no route":       {says(404, "text/plain", "404 page not found\n"), false, EdgeClass},
		"down":           {ours(500, `{"error":"x"}`), false, "unavailable"},
	} {
		c := &one{answer: tc.answer}
		lists, err := ListsUsers(t.Context(), c)
		require.Equal(t, tc.lists, lists, name)
		require.Equal(t, tc.class, classOf(t, err), name)
		require.Equal(t, "GET /v1/users", c.last.Method+" "+c.last.Path)
	}
}

// taker answers the packed and the plain question apart.
type taker struct {
	packed, plain *outbound.Answer
	bodies        [][]byte
}

func (k *taker) Do(_ context.Context, r *outbound.Request) (*outbound.Answer, error) {
	k.bodies = append(k.bodies, r.Body)
	if r.ContentEncoding == "zstd" {
		return k.packed, nil
	}
	return k.plain, nil
}

// What a target takes is read from how it refuses 101 messages without a payload: packed first, plain when it cannot unpack.
//
// covers: TGT-12
func TestWhatATargetTakes(t *testing.T) {
	first, many := ours(400, `{"error":"message 0: payload required"}`), ours(400, `{"error":"too many messages"}`)
	for name, tc := range map[string]struct {
		packed, plain *outbound.Answer
		want          wire.Capabilities
		class         string
		requests      int
	}{
		"a thousand, zstd":   {first, nil, wire.Capabilities{MaxMessages: 1000, Zstd: true}, "", 1},
		"a hundred, zstd":    {many, nil, wire.Capabilities{MaxMessages: 100, Zstd: true}, "", 1},
		"a thousand, no 415": {ours(400, `{"error":"invalid json"}`), first, wire.Capabilities{MaxMessages: 1000}, "", 2},
		"a hundred, 415":     {ours(415, `{"error":"unsupported"}`), many, wire.Capabilities{MaxMessages: 100}, "", 2},
		"it takes them all":  {ours(415, `{"error":"unsupported"}`), ours(202, `{"accepted":101}`), wire.Capabilities{}, EdgeClass, 2},
		"down":               {ours(503, `{"error":"x"}`), nil, wire.Capabilities{}, "unavailable", 1},
		"wrong password":     {ours(415, `{"error":"x"}`), ours(401, `{"error":"x"}`), wire.Capabilities{}, "auth_failed", 2},
	} {
		k := &taker{packed: tc.packed, plain: tc.plain}
		got, err := Takes(t.Context(), k, "t")
		require.Equal(t, tc.class, classOf(t, err), name)
		require.Equal(t, tc.want, got, name)
		require.Len(t, k.bodies, tc.requests, name)
		r, err := zstd.NewReader(bytes.NewReader(k.bodies[0]))
		require.NoError(t, err)
		var plain bytes.Buffer
		_, err = plain.ReadFrom(r)
		r.Close()
		require.NoError(t, err)
		require.Equal(t, 101, bytes.Count(plain.Bytes(), []byte("{}")), name)
	}
}
