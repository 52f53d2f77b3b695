package schema

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

func parsed(t testing.TB, s string) Document {
	t.Helper()
	d, err := Parse([]byte(s))
	require.NoError(t, err)
	return d
}

// covers: BRK-11
func TestWhatIsASchema(t *testing.T) {
	for _, good := range []string{
		`true`, `{}`, ` { "type" : "object" } `, `{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","definitions":{"a":{"type":"string"}}}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`,
		`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"$ref":"http://json-schema.org/draft-07/schema#"}`,
		`{"$id":"http://example.com/a","$ref":"b","$defs":{"b":{"$id":"http://example.com/b","type":"string"}}}`,
		`{"type":"array","items":{"$ref":"#"}}`,
	} {
		_, err := Parse([]byte(good))
		require.NoError(t, err, good)
	}
	for bad, says := range map[string]string{
		``: "not JSON", `{`: "not JSON", `{} {}`: "not JSON", "{\"a\":\"\xff\"}": "not JSON",
		`null`: "an object or true", `false`: "an object or true", `1`: "an object or true", `[]`: "an object or true", `"x"`: "an object or true",
		`{"type":"nothing"}`:        `at "/type"`,
		`{"minLength":"secret"}`:    `at "/minLength": type wants integer`,
		`{"title":5}`:               `at "/title": type wants string`,
		`{"properties":{"a":1}}`:    `at "/properties/a"`,
		`{"pattern":"(secret"}`:     `at "/pattern": format wants regex`,
		`{"pattern":"(?=secret)"}`:  `at "/pattern": format wants regex`,
		`{"$ref":"#/$defs/secret"}`: "a place that it does not have", `{"$ref":"#secret"}`: "an anchor that it does not have",
		`{"$ref":"#"}`: "in a ring",
		`{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#"}}}}`: "in a ring",
		`{"$schema":"secret:x"}`:                              "another document",
		`{"multipleOf":1e999999999}`:                          "a number that is too large",
		`{"const":` + strings.Repeat("1", 401) + `}`:          "a number that is too large",
		`{"title":"` + strings.Repeat("x", MaxBytes) + `"}`:   "too large: at most 65536 bytes",
		`{"enum":[` + strings.Repeat("1,", 10_000) + `2]}`:    "too many values",
		`{"allOf":[` + strings.Repeat("true,", 2000) + `{}]}`: "too many parts",
		`{"allOf":[{"pattern":"([a-y]{1,900}){1,1}"},` + strings.Repeat(`{"pattern":"([a-x]{1,900}){1,1}z"},`, 3) + many(30) + `true]}`: "patterns are too large together",
		`{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`:                                                               "too deep",
		`{"` + strings.Repeat("x", 30_000) + `":[` + strings.Repeat("1,", 1000) + `2]}`:                                                 "too long for its depth",
	} {
		_, err := Parse([]byte(bad))
		require.Equal(t, wire.Invalid, wire.KindOf(err), "%.80s: %v", bad, err)
		require.ErrorContains(t, err, says, "%.80s", bad)
		require.NotContains(t, err.Error(), "secret")
		require.Less(t, len(err.Error()), 600)
	}
	require.Len(t, parsed(t, " { \"type\" :\n \"object\" } ").Raw, len(`{"type":"object"}`), "without white space")
}

// many are patterns of about a thousand instructions.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"pattern":"([a-%c]{1,500}){1,1}%d"},`, 'b'+i%20, i)
	}
	return b.String()
}

// A chain of 64 steps on one value is taken, one more is not.
//
// covers: BRK-11
func TestHowManyReferencesFollowEachOther(t *testing.T) {
	chain := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/d1","$defs":{`)
		for i := 1; i < n; i++ {
			fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
		}
		fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
		return b.String()
	}
	parsed(t, chain(63))
	_, err := Parse([]byte(chain(64)))
	require.ErrorContains(t, err, "too many references")
}

// No reference opens a file or dials, whether the schema is checked, compiled or used.
//
// covers: BRK-11
func TestNothingIsLoaded(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte(`{"type":"string"}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "s.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"type":"string"}`), 0o600))
	for _, to := range []string{"file://" + file, file, server.URL + "/s.json", "s.json", "ftp://x/y", "narad://topic/not", "data:,{}"} {
		for _, s := range []string{
			`{"$ref":%q}`, `{"$ref":"%s#/a"}`, `{"$schema":%q}`, `{"properties":{"a":{"$schema":%q}}}`, `{"$dynamicRef":%q}`,
			`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"$ref":%q}}`, `{"not":{"allOf":[{"$ref":%q}]}}`,
			`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveRef":%q}`,
			`{"$id":%[1]q,"$ref":"other"}`,
		} {
			s = fmt.Sprintf(s, to)
			_, err := Parse([]byte(s))
			require.Equal(t, wire.Invalid, wire.KindOf(err), s)
			require.NotContains(t, err.Error(), to, s)
			v, err := read([]byte(s))
			require.NoError(t, err)
			if to != "narad://topic/not" { // which is known there, and leads back
				_, err = compile(v)
				require.Error(t, err, s)
			}
		}
	}
	require.Zero(t, asked)
}

// covers: BRK-11
func TestSumsAreOfTheValue(t *testing.T) {
	same := []string{
		`{"a":[1,"x"],"b":{"c":-0.50}}`, `{ "b":{"c":-5e-1},"a":[1.0,"\u0078"]}`, `{"a":[10e-1,"x"],"b":{"c":-0.05E+1}}`,
		`{"a":[0.001e3,"x"],"b":{"c":-500e-3}}`,
	}
	want, ok := Sum([]byte(same[0]))
	require.True(t, ok)
	for _, s := range same {
		got, ok := Sum([]byte(s))
		require.True(t, ok)
		require.Equal(t, want, got, s)
		require.Equal(t, want, parsed(t, s).Sum)
	}
	// Sums stand in Raft: these may never change.
	require.Equal(t, "f60120ca989cbfcd14e5547f67b7dd51", parsed(t, `true`).Sum[:32])
	require.Equal(t, "cdb979a966e454f9", parsed(t, same[0]).Sum[:16])
	seen := map[string]string{}
	for _, s := range []string{
		`true`, `{}`, `{"a":1}`, `{"a":"1"}`, `{"a":10}`, `{"a":-1}`, `{"a":0.1}`, `{"a":0}`, `{"a":null}`, `{"a":[]}`, `{"a":{}}`, `{"a":[1]}`, `{"a":[[1]]}`,
		`{"a":[1,2]}`, `{"a":[2,1]}`, `{"a":["12"]}`, `{"a":["1","2"]}`, `{"b":1}`, `{"a":{"b":1}}`, `{"a":{},"b":1}`, `{"a":true}`, `{"a":"true"}`, `{"a":1e400}`,
	} {
		sum := parsed(t, s).Sum
		require.Empty(t, seen[sum], s)
		seen[sum] = s
	}
	require.Equal(t, parsed(t, `{"a":0}`).Sum, parsed(t, `{"a":-0.0e7}`).Sum)
	for _, bad := range []string{``, `{`, `1 2`, `{"a":1e401}`, strings.Repeat("[", 100)} {
		_, ok := Sum([]byte(bad))
		require.False(t, ok, bad)
	}
}
