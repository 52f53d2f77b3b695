package fakes

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"narad.example/harness/ledger"
)

func TestDecodeKeepsTheVeryBytes(t *testing.T) {
	body := `{"messages":[ {"key":"k","payload": {"b" : 1.0,"a":"<é\u00e9>"} },` +
		`{"payload":"` + base64.StdEncoding.EncodeToString([]byte{0, 255, 1}) + `","payload_encoding":"base64"},` +
		`{"payload":"words","key":"` + base64.StdEncoding.EncodeToString([]byte{0xff}) + `","key_encoding":"base64"}]}`
	records, err := decodeBatch([]byte(body), "")
	require.NoError(t, err)
	require.Equal(t, []record{
		{Key: []byte("k"), Payload: []byte(`{"b" : 1.0,"a":"<é\u00e9>"}`), partition: -1},
		{Payload: []byte{0, 255, 1}, Base64: true, partition: -1},
		{Key: []byte{0xff}, Payload: []byte(`"words"`), partition: -1},
	}, records)

	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	packed := enc.EncodeAll([]byte(body), nil)
	require.NoError(t, enc.Close())
	again, err := decodeBatch(packed, "zstd")
	require.NoError(t, err)
	require.Equal(t, records, again)
}

func TestDecodeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		var want []record
		for range rapid.IntRange(1, 20).Draw(t, "records") {
			payload := rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "payload")
			part := fmt.Sprintf(`{"payload":%q,"payload_encoding":"base64"}`, base64.StdEncoding.EncodeToString(payload))
			rec := record{Payload: payload, Base64: true, partition: -1}
			if rapid.Bool().Draw(t, "raw") {
				words, err := json.Marshal(rapid.String().Draw(t, "words"))
				require.NoError(t, err)
				part, rec = fmt.Sprintf(`{"payload":%s}`, words), record{Payload: words, partition: -1}
			}
			parts, want = append(parts, part), append(want, rec)
		}
		records, err := decodeBatch([]byte(`{"messages":[`+strings.Join(parts, ",")+`]}`), "")
		require.NoError(t, err)
		require.Equal(t, want, records)
	})
}

func TestDecodeRefuses(t *testing.T) {
	many := strings.Repeat(`{"payload":1},`, maxMessages+1)
	cases := map[string]struct {
		body, encoding string
		status         int
		text           string
	}{
		"none":          {`{"messages":[]}`, "", 400, "messages required"},
		"no member":     {`{}`, "", 400, "messages required"},
		"empty payload": {`{"messages":[{"payload":1},{}]}`, "", 400, "message 1: payload required"},
		"null":          {`{"messages":[{"payload":null}]}`, "", 400, "message 0: payload required"},
		"too many":      {`{"messages":[` + strings.TrimSuffix(many, ",") + `]}`, "", 400, "too many messages"},
		"torn":          {`{"messages":[{"payload":1`, "", 400, "invalid json"},
		"after the end": {`{"messages":[{"payload":1}]} x`, "", 400, "invalid json"},
		"unknown":       {`{"messages":[{"payload":1,"x":1}]}`, "", 400, "invalid json"},
		"encoding":      {`{"messages":[{"payload":"x","payload_encoding":"hex"}]}`, "", 400, "message 0: payload_encoding"},
		"not zstd":      {`{}`, "zstd", 400, "invalid json"},
		"brotli":        {`{}`, "br", 415, "encoding"},
		"large":         {`{"messages":[{"payload":"` + strings.Repeat("x", maxPayload) + `"}]}`, "", 413, "message 0: message too large"},
		"partition":     {`{"messages":[{"payload":1,"partition":-1}]}`, "", 400, "message 0: partition"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := decodeBatch([]byte(c.body), c.encoding)
			var bad *refusal
			require.ErrorAs(t, err, &bad)
			require.Equal(t, c.status, bad.status)
			require.Contains(t, bad.text, c.text)
		})
	}
}

func TestWireRecords(t *testing.T) {
	id := ledger.NewID(7)
	got := wireRecords([]record{{Key: []byte(id), Payload: []byte("x"), Base64: true}})
	require.Equal(t, []ledger.WireRecord{{ID: id, Key: ledger.KeyText([]byte(id)), Payload: ledger.Hash([]byte("x")), Base64: true}}, got)
}
