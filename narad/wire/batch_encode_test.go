package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// byHand decodes a batch body with encoding/json alone, so that no mistake of the encoder can hide in a decoder of ours.
func byHand(t require.TestingT, body []byte) (keys, payloads [][]byte, raw []bool) {
	var b struct {
		Messages []map[string]json.RawMessage `json:"messages"`
	}
	require.NoError(t, json.Unmarshal(body, &b))
	for _, m := range b.Messages {
		require.NotContains(t, m, "partition") // SND-08
		keys = append(keys, text64(t, m["key"], m["key_encoding"]))
		if _, encoded := m["payload_encoding"]; encoded {
			payloads, raw = append(payloads, text64(t, m["payload"], m["payload_encoding"])), append(raw, false)
			continue
		}
		payloads, raw = append(payloads, m["payload"]), append(raw, true)
	}
	return keys, payloads, raw
}

func text64(t require.TestingT, value, encoding json.RawMessage) []byte {
	if value == nil {
		return nil
	}
	var s string
	require.NoError(t, json.Unmarshal(value, &s))
	if encoding == nil {
		return []byte(s)
	}
	require.Equal(t, `"base64"`, string(encoding))
	out, err := base64.StdEncoding.DecodeString(s)
	require.NoError(t, err)
	return out
}

// payloadGen draws JSON, nearly JSON and bytes.
func payloadGen() *rapid.Generator[[]byte] {
	text := rapid.StringMatching(`[\[\]{}:,"\\ \n0-9.eE+\-truefalsn\x{80}-\x{10ffff}]{1,24}`)
	return rapid.Custom(func(t *rapid.T) []byte {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "bytes")
		case 1:
			return []byte(text.Draw(t, "text"))
		case 2:
			out, err := json.Marshal(rapid.String().Draw(t, "string"))
			require.NoError(t, err)
			return out
		case 3:
			out, err := json.Marshal(map[string]any{
				rapid.String().Draw(t, "name"): rapid.Float64().Draw(t, "number"), "l": rapid.SliceOf(rapid.String()).Draw(t, "list"),
			})
			require.NoError(t, err)
			return out
		}
		out := []byte(fmt.Sprintf(`{"a":[1,%d],"b":"%s"}`, rapid.Int().Draw(t, "n"), text.Draw(t, "inner")))
		out[rapid.IntRange(0, len(out)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		return out
	})
}

// covers: SND-07, SND-08
func TestBatchBodyDecodesToTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "records")
		body := AppendBatchOpen(nil)
		var keys, payloads [][]byte
		var raws []bool
		for i := range n {
			key := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Custom(func(t *rapid.T) []byte {
				return []byte(rapid.String().Draw(t, "text"))
			})).Draw(t, "key")
			payload := payloadGen().Draw(t, "payload")
			force := rapid.Bool().Draw(t, "force")
			var raw bool
			body, raw = AppendMessage(body, i == 0, key, payload, force)
			require.Equal(t, !force && RawPayload(payload), raw)
			keys, payloads, raws = append(keys, key), append(payloads, payload), append(raws, raw)
		}
		body = AppendBatchClose(body)
		require.True(t, utf8.Valid(body))
		gotKeys, gotPayloads, gotRaws := byHand(t, body)
		require.Len(t, gotPayloads, n)
		for i := range n {
			require.True(t, bytes.Equal(keys[i], gotKeys[i]))
			require.True(t, bytes.Equal(payloads[i], gotPayloads[i]))
		}
		require.Equal(t, raws, gotRaws)
	})
}

// covers: SND-07
func TestRawPayloadAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := payloadGen().Draw(t, "payload")
		want := json.Valid(p) && utf8.Valid(p) && len(bytes.TrimSpace(p)) == len(p) && string(p) != "null"
		require.Equal(t, want, RawPayload(p), "%q", p)
	})
}

// covers: SND-07
func TestPayloadsOfTheByteForByteReport(t *testing.T) {
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	for _, c := range []struct {
		payload string
		raw     bool
	}{
		{`"<a>&</a>"`, true}, {"\"\u2028\u2029\"", true}, {"{ \"a\" :\t[ 1 ] }", true}, {`1.0`, true}, {`1e400`, true},
		{`123456789012345678901234567890`, true}, {`{"a":1,"a":2}`, true}, {`"\ud800"`, true}, {`null`, false}, {`""`, true},
		{strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), false}, {strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), true},
		{"\n1", false}, {"1\n", false}, {"\xef\xbb\xbf{}", false}, {"\"\xff\"", false}, {"", false}, {big, true}, {`01`, false},
		{`true`, true}, {`{}{}`, false}, {`nul`, false}, {`[null]`, true}, {"\"a\x00b\"", false}, {"\x00", false}, {`-`, false},
	} {
		require.Equal(t, c.raw, RawPayload([]byte(c.payload)), "%.40q", c.payload)
		for _, key := range []string{"", "k", "\x00", "\xff\xfe", strings.Repeat("k", 64<<10), `a"b\c`, "\u2028<&>"} {
			body, raw := AppendMessage(AppendBatchOpen(nil), true, []byte(key), []byte(c.payload), false)
			require.Equal(t, c.raw, raw)
			keys, payloads, _ := byHand(t, AppendBatchClose(body))
			require.Equal(t, c.payload, string(payloads[0]), "%.40q", c.payload)
			require.Equal(t, key, string(keys[0]))
		}
	}
}

func BenchmarkAppendMessage(b *testing.B) {
	payload := []byte(`{"id":123456,"name":"` + strings.Repeat("abcdefgh ", 110) + `"}`)
	for _, c := range []struct {
		name  string
		force bool
	}{{"raw", false}, {"base64", true}} {
		b.Run(c.name, func(b *testing.B) {
			key := []byte("customer-000123")
			buf := make([]byte, 0, 4096)
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = AppendMessage(buf[:0], true, key, payload, c.force)
			}
		})
	}
}
