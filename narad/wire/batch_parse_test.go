package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func parse(t require.TestingT, body string, limit int) ([]NewRecord, *Problem) {
	var out []NewRecord
	err := ParseBatch([]byte(body), limit, func(r NewRecord) { out = append(out, r) })
	if err == nil {
		return out, nil
	}
	var p *Problem
	require.ErrorAs(t, err, &p)
	return nil, p
}

// covers: BRK-12, BRK-14
func TestParseBatchRefusals(t *testing.T) {
	ok := `{"payload":1}`
	cases := []struct{ name, body, text string }{
		{"empty body", ``, "invalid json"},
		{"no object", `[]`, "invalid json"},
		{"none", `{}`, "messages required"},
		{"null", `{"messages":null}`, "messages required"},
		{"empty", ` { "messages" : [ ] } `, "messages required"},
		{"unknown member", `{"messages":[],"more":1}`, "invalid json"},
		{"twice", `{"messages":[` + ok + `],"messages":[` + ok + `]}`, "invalid json"},
		{"text after", `{"messages":[` + ok + `]}x`, "invalid json"},
		{"cut", `{"messages":[` + ok, "invalid json"},
		{"comma", `{"messages":[` + ok + `,]}`, "invalid json"},
		{"comma in a message", `{"messages":[{"payload":1,}]}`, "invalid json"},
		{"unknown in a message", `{"messages":[{"payload":1,"headers":{}}]}`, "invalid json"},
		{"other case", `{"messages":[{"Payload":1}]}`, "invalid json"},
		{"member twice", `{"messages":[{"payload":1,"payload":2}]}`, "invalid json"},
		{"message no object", `{"messages":[1]}`, "invalid json"},
		{"key no string", `{"messages":[{"payload":1,"key":1}]}`, "invalid json"},
		{"fraction", `{"messages":[{"payload":1,"partition":1.5}]}`, "invalid json"},
		{"partition text", `{"messages":[{"payload":1,"partition":"1"}]}`, "invalid json"},
		{"partition huge", `{"messages":[{"payload":1,"partition":99999999999999999999}]}`, "invalid json"},
		{"broken payload", `{"messages":[{"payload":{"a":01}}]}`, "invalid json"},
		{"later syntax before an earlier format", `{"messages":[{},{"payload":tru}]}`, "invalid json"},
		{"absent payload", `{"messages":[` + ok + `,{"key":"k"}]}`, "message 1: payload required"},
		{"null payload", `{"messages":[{"payload":null}]}`, "message 0: payload required"},
		{"empty payload", `{"messages":[{"payload":"","payload_encoding":"base64"}]}`, "message 0: payload required"},
		{"bad base64", `{"messages":[{"payload":"a","payload_encoding":"base64"}]}`, "message 0: payload is not base64"},
		{"base64 no string", `{"messages":[{"payload":1,"payload_encoding":"base64"}]}`, "message 0: payload must be"},
		{"payload encoding", `{"messages":[{"payload":"a","payload_encoding":"hex"}]}`, "message 0: payload_encoding"},
		{"key encoding", `{"messages":[{"payload":1,"key_encoding":"hex"}]}`, "message 0: key_encoding"},
		{"bad key base64", `{"messages":[{"payload":1,"key":"!","key_encoding":"base64"}]}`, "message 0: key is not base64"},
		{"key not UTF-8", "{\"messages\":[{\"payload\":1,\"key\":\"\xff\"}]}", "message 0: key is not UTF-8"},
		{"negative partition", `{"messages":[{"payload":1,"partition":-1}]}`, "message 0: bad partition"},
		{"first of two", `{"messages":[` + ok + `,{},{"payload":1,"partition":-1}]}`, "message 1: payload required"},
		{"key too large", `{"messages":[{"payload":1,"key":"` + strings.Repeat("k", MaxKey+1) + `"}]}`, "message 0: key too large"},
		{"message too large", `{"messages":[{"payload":"` + strings.Repeat("p", MaxPayload-1) + `"}]}`, "message 0: message too large"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, p := parse(t, c.body, MaxMessages)
			require.NotNil(t, p)
			require.Contains(t, p.Text, c.text)
			want := Invalid
			if c.name == "message too large" {
				want = TooLarge
			}
			require.Equal(t, want, p.Kind)
		})
	}
}

// The sender's probe tells a target's batch size from these two texts.
// covers: SND-04, BRK-12
func TestParseBatchProbe(t *testing.T) {
	probe := `{"messages":[{}` + strings.Repeat(`,{}`, 100) + `]}`
	_, p := parse(t, probe, 100)
	require.Equal(t, "too many messages", p.Text)
	_, p = parse(t, probe, 1000)
	require.Equal(t, "message 0: payload required", p.Text)

	one := `{"payload":1}`
	full := `{"messages":[` + one + strings.Repeat(`,`+one, MaxMessages-1)
	recs, p := parse(t, full+`]}`, MaxMessages)
	require.Nil(t, p)
	require.Len(t, recs, MaxMessages)
	_, p = parse(t, full+`,{"payload" and then nothing that could be parsed`, MaxMessages)
	require.Equal(t, "too many messages", p.Text)
}

// covers: BRK-12
func TestParseBatchKeepsBytes(t *testing.T) {
	body := `{"messages":[
	 {"payload": { "a" : 1.0e5, "b":"\u00e9<&>" } , "key":"k\u00e9\ud83d\ude00\n\/\"" , "partition": 7},
	 {"payload":"text","key":""},{"payload":"QUJD\u0041\/w=","payload_encoding":"base64","key":"/w==","key_encoding":"base64"},
	 {"payload":1,"key":null,"partition":null,"payload_encoding":null,"key_encoding":""},
	 {"payload":"\ud800x","key":"\ud800x"}, {"payload":"` + "\xff" + `"}]}`
	recs, p := parse(t, body, MaxMessages)
	require.Nil(t, p)
	//nolint:testifylint // the payload is kept byte for byte, an equal JSON value is not enough
	require.Equal(t, `{ "a" : 1.0e5, "b":"\u00e9<&>" }`, string(recs[0].Payload))
	require.Equal(t, "ké😀\n/\"", string(recs[0].Key))
	require.Equal(t, 7, recs[0].Partition)
	require.Equal(t, `"text"`, string(recs[1].Payload))
	require.Nil(t, recs[1].Key)
	require.Equal(t, "ABC\x03\xfc", string(recs[2].Payload))
	require.Equal(t, []byte{0xff}, recs[2].Key)
	require.Nil(t, recs[3].Key)
	require.Equal(t, -1, recs[3].Partition)
	require.Equal(t, "\ufffdx", string(recs[4].Key))
	require.Equal(t, "\"\xff\"", string(recs[5].Payload))
	for _, r := range recs {
		require.Equal(t, len(r.Payload), cap(r.Payload), "an append must not reach the neighbour")
	}
}

func TestDecodeInPlaceOfEveryLength(t *testing.T) {
	raw := make([]byte, 0, 300)
	for n := range 300 {
		got, ok := decodeInPlace([]byte(base64.StdEncoding.EncodeToString(raw)))
		require.True(t, ok)
		require.Equal(t, raw, got)
		raw = append(raw, byte(n*37))
	}
}

type strictMessage struct {
	Key             *string         `json:"key,omitempty"`
	KeyEncoding     string          `json:"key_encoding,omitempty"`
	Payload         json.RawMessage `json:"payload"`
	PayloadEncoding string          `json:"payload_encoding,omitempty"`
	Partition       *int            `json:"partition,omitempty"`
}

type strictBatch struct {
	Messages []*strictMessage `json:"messages"`
}

// oracle decodes a batch with encoding/json and the rules spelled out one by one.
func oracle(body []byte) (out []NewRecord, decoded bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var b strictBatch
	if d.Decode(&b) != nil {
		return nil, false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	if len(b.Messages) > MaxMessages {
		return nil, true
	}
	for _, m := range b.Messages {
		if m == nil || len(m.Payload) == 0 || string(m.Payload) == "null" || m.Partition != nil && *m.Partition < 0 {
			return nil, true
		}
		r := NewRecord{Payload: m.Payload, Partition: -1}
		if m.Partition != nil {
			r.Partition = *m.Partition
		}
		if m.Key != nil {
			r.Key = []byte(*m.Key)
		}
		var err error
		switch m.KeyEncoding {
		case "":
		case Base64:
			if r.Key, err = base64.StdEncoding.DecodeString(string(r.Key)); err != nil {
				return nil, true
			}
		default:
			return nil, true
		}
		switch m.PayloadEncoding {
		case "":
		case Base64:
			var s string
			if json.Unmarshal(m.Payload, &s) != nil {
				return nil, true
			}
			if r.Payload, err = base64.StdEncoding.DecodeString(s); err != nil || len(r.Payload) == 0 {
				return nil, true
			}
		default:
			return nil, true
		}
		if len(r.Payload) > MaxPayload || len(r.Key) > MaxKey {
			return nil, true
		}
		if len(r.Key) == 0 {
			r.Key = nil
		}
		out = append(out, r)
	}
	return out, true
}

// crossCheck compares the parser with the oracle on one body.
func crossCheck(t require.TestingT, body []byte) {
	require.Equal(t, json.Valid(body), ValidJSON(body), "%q", body)
	want, decoded := oracle(body)
	got, p := parse(t, string(body), MaxMessages)
	if p == nil {
		require.True(t, decoded, "%q", body)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, string(want[i].Payload), string(got[i].Payload))
			require.Equal(t, string(want[i].Key), string(got[i].Key))
			require.Equal(t, want[i].Partition, got[i].Partition)
		}
		return
	}
	// What the parser alone refuses: names in other case, members that stand twice, keys that are not UTF-8, null messages.
	if len(want) > 0 && utf8.Valid(body) && !twiceOrFolded(body) {
		require.Fail(t, "refused what encoding/json takes", "%q: %s", body, p.Text)
	}
	if !decoded && len(want) == 0 && !json.Valid(body) && p.Text != "too many messages" {
		require.Contains(t, p.Text, "invalid json", "%q", body)
	}
}

// twiceOrFolded tells whether any object of the body names a member twice or in capitals.
func twiceOrFolded(body []byte) bool {
	if !bytes.Equal(bytes.ToLower(body), body) || bytes.Contains(body, []byte(`\`)) || bytes.ContainsRune(body, 'ſ') {
		return true
	}
	for _, name := range []string{"key", "key_encoding", "payload", "payload_encoding", "partition", "messages"} {
		for part := range bytes.SplitSeq(body, []byte("{")) {
			if bytes.Count(part, []byte(`"`+name+`"`)) > 1 {
				return true
			}
		}
	}
	return bytes.Count(body, []byte(`"messages"`)) > 1
}

func FuzzParseBatch(f *testing.F) {
	for _, s := range []string{
		`{"messages":[{"payload":{"a":[1,2,{"b":null}]},"key":"k"}]}`,
		`{"messages":[{"payload":"QUI=","payload_encoding":"base64","key":"QQ==","key_encoding":"base64","partition":3}]}`,
		`{"messages":[{"payload":-0.1e+5},{"payload":true},{"payload":"\u12aF\"\\"}]}`, `{"messages":[]}`, `{}`, `[`, `{"messages":[{}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) { crossCheck(t, body) })
}

// covers: BRK-12
func TestParseBatchAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strictBatch
		var keys, payloads [][]byte
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			m := &strictMessage{}
			key := rapid.SliceOf(rapid.Byte()).Draw(t, "key")
			payload := rapid.SliceOfN(rapid.Byte(), 1, 60).Draw(t, "payload")
			s := string(key)
			if !utf8.ValidString(s) || rapid.Bool().Draw(t, "code the key") {
				s, m.KeyEncoding = base64.StdEncoding.EncodeToString(key), Base64
			}
			m.Key = &s
			if rapid.Bool().Draw(t, "raw") {
				payload, _ = json.Marshal(string(payload))
				m.Payload = payload
			} else {
				m.Payload, m.PayloadEncoding = json.RawMessage(`"`+base64.StdEncoding.EncodeToString(payload)+`"`), Base64
			}
			b.Messages = append(b.Messages, m)
			keys, payloads = append(keys, key), append(payloads, payload)
		}
		var body bytes.Buffer
		e := json.NewEncoder(&body)
		e.SetEscapeHTML(false)
		if rapid.Bool().Draw(t, "indent") {
			e.SetIndent(" ", "\t")
		}
		require.NoError(t, e.Encode(b))
		recs, p := parse(t, body.String(), MaxMessages)
		require.Nil(t, p)
		require.Len(t, recs, len(keys))
		for i := range recs {
			require.Equal(t, string(keys[i]), string(recs[i].Key))
			require.Equal(t, string(payloads[i]), string(recs[i].Payload))
		}
		// And a body with one byte changed is judged alike.
		broken := slices.Clone(body.Bytes())
		broken[rapid.IntRange(0, len(broken)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("\"\\{}[]:,0n\x00\x1f\xff ")).Draw(t, "byte")
		crossCheck(t, broken)
	})
}

func TestNestingLimit(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	require.True(t, ValidJSON([]byte(deep(maxNesting))))
	require.False(t, ValidJSON([]byte(deep(maxNesting+1))))
	body := `{"messages":[{"payload":` + deep(maxNesting) + `}]}`
	require.True(t, json.Valid([]byte(body)), "what is stored raw can be read back by encoding/json")
	recs, p := parse(t, body, 1)
	require.Nil(t, p)
	require.Len(t, recs, 1)
	_, p = parse(t, `{"messages":[{"payload":`+deep(maxNesting+1)+`}]}`, 1)
	require.Contains(t, p.Text, "invalid json: nested too deep")
}

func BenchmarkParseBatch(b *testing.B) {
	for _, kind := range []string{"text", "fields", "base64"} {
		b.Run(kind, func(b *testing.B) {
			payload := `{"text":"` + strings.Repeat("x", 1010) + `"}`
			enc := ""
			switch kind {
			case "fields":
				payload = "[" + strings.TrimSuffix(strings.Repeat(`{"id":12345,"name":"abc"},`, 41), ",") + "]"
			case "base64":
				payload, enc = `"`+base64.StdEncoding.EncodeToString([]byte(payload))+`"`, `,"payload_encoding":"base64"`
			}
			const n = 900
			var sb strings.Builder
			for i := range n {
				fmt.Fprintf(&sb, `,{"key":"customer-%06d","payload":%s%s}`, i, payload, enc)
			}
			body := []byte(`{"messages":[` + sb.String()[1:] + `]}`)
			work := make([]byte, len(body))
			recs := make([]NewRecord, 0, n)
			b.ReportAllocs()
			for b.Loop() {
				copy(work, body)
				recs = recs[:0]
				if err := ParseBatch(work, MaxMessages, func(r NewRecord) { recs = append(recs, r) }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}
