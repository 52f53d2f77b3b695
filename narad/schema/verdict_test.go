package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

const secret = "hunter2"

func formOf(t testing.TB, s string) *form {
	t.Helper()
	v, err := read(parsed(t, s).Raw)
	require.NoError(t, err)
	f, err := compile(v)
	require.NoError(t, err)
	return f
}

// A refusal tells where and what the schema wants, and nothing that the payload alone has.
//
// covers: BRK-11
func TestWhatIsSaidOfAPayload(t *testing.T) {
	const order = `{"type":"object","required":["id","lines"],"additionalProperties":false,"patternProperties":{"^x-":{"type":"string"}},
		"properties":{"id":{"type":"string","pattern":"^[a-z]+$","maxLength":20},"when":{"$ref":"#/$defs/when"},
		"lines":{"type":"array","maxItems":5,"uniqueItems":true,"items":{"oneOf":[{"type":"integer","minimum":10,"multipleOf":5},{"const":"none"}]}},
		"a/b~c":{"enum":[1,2.5,{"x":null}]}},"$defs":{"when":{"type":["integer","null"]}}}`
	f := formOf(t, order)
	for payload, says := range map[string]string{
		`{"id":"a","lines":[]}`: "", `{"id":"a","lines":[10,15.0,"none"],"when":null,"x-y":"z","a/b~c":25e-1}`: "",
		`[]`:                                                `at "": type wants object`,
		`{"id":"a"}`:                                        `at "": required wants "lines"`,
		`{}`:                                                `at "": required wants "id"`,
		`{"id":"HUNTER2","lines":[]}`:                       `at "/id": pattern`,
		`{"id":7,"lines":[]}`:                               `at "/id": type wants string`,
		`{"id":"a","lines":[10,10]}`:                        `at "/lines": uniqueItems`,
		`{"id":"a","lines":[1,"hunter2"]}`:                  `at "/lines/0": const`,
		`{"id":"a","lines":[],"hunter2":1}`:                 `at "": additionalProperties`,
		`{"id":"a","lines":[],"x-hunter2":1}`:               `at "/*": type wants string`,
		`{"id":"a","lines":[],"when":"hunter2"}`:            `at "/when": type wants null or integer`,
		`{"id":"a","lines":[],"a/b~c":"hunter2"}`:           `at "/a~1b~0c": enum`,
		`hunter2`:                                           "not JSON, which the topic's schema wants: it breaks off being so at byte 1",
		`{"id":"a","lines":[]} hunter2`:                     "not JSON",
		`{"id":"hunter2`:                                    "not JSON",
		"\"\xff\"":                                          "not UTF-8",
		`{"id":"a","lines":[1e401]}`:                        "a number that is too large",
		`{"id":"a","lines":[1e999999999]}`:                  "a number that is too large",
		`{"id":"a","lines":[1e99999999999999999999]}`:       "a number that is too large",
		strings.Repeat("[", 130) + strings.Repeat("]", 130): "nested too deep",
		strings.Repeat("[", 1<<20):                          "not JSON",
	} {
		for range 3 { // the library goes through members in any order
			err := f.check(3, []byte(payload))
			if says == "" {
				require.NoError(t, err, payload)
				continue
			}
			require.Equal(t, wire.Invalid, wire.KindOf(err), payload)
			require.ErrorContains(t, err, says, "%.80s", payload)
			require.NotContains(t, strings.ToLower(err.Error()), secret)
			require.Less(t, len(err.Error()), 600)
		}
	}
	require.ErrorContains(t, f.check(3, []byte(`[]`)), "schema (version 3)")
	require.NoError(t, formOf(t, `true`).check(1, []byte(`"x"`)))
	require.ErrorContains(t, formOf(t, `true`).check(1, []byte(`x`)), "not JSON")
	require.ErrorContains(t, formOf(t, `{"properties":{"a":false}}`).check(1, []byte(`{"a":1}`)), `at "/a": nothing is allowed here`)
	many := formOf(t, `{"additionalProperties":{"type":"integer"},"properties":{"7":{"items":{"type":"null"}}}}`)
	require.ErrorContains(t, many.check(1, []byte(`{"4242424242":"x"}`)), `at "/*"`, "a name that is a number is no item")
	require.ErrorContains(t, many.check(1, []byte(`{"7":[null,1]}`)), `at "/7/1": type wants null`)
}

// Each draft means what it says: format is checked up to draft 7, and siblings of $ref count from 2019-09 on.
//
// covers: BRK-11
func TestDrafts(t *testing.T) {
	for draft, format := range map[string]bool{
		"http://json-schema.org/draft-04/schema#": true, "http://json-schema.org/draft-06/schema#": true, "http://json-schema.org/draft-07/schema#": true,
		"https://json-schema.org/draft/2019-09/schema": false, "https://json-schema.org/draft/2020-12/schema": false,
	} {
		f := formOf(t, fmt.Sprintf(`{"$schema":%q,"format":"ipv4"}`, draft))
		if err := f.check(1, []byte(`"x"`)); format {
			require.ErrorContains(t, err, `format wants ipv4`, draft)
		} else {
			require.NoError(t, err, draft)
		}
		f = formOf(t, fmt.Sprintf(`{"$schema":%q,"properties":{"a":{"$ref":"#/definitions/a","minimum":5}},"definitions":{"a":{"type":"integer"}}}`, draft))
		require.Equal(t, format, f.check(1, []byte(`{"a":1}`)) == nil, draft)
		require.Error(t, f.check(1, []byte(`{"a":"x"}`)), draft)
	}
	require.NoError(t, formOf(t, `{"format":"ipv4"}`).check(1, []byte(`"x"`)), "2020-12 without $schema")
	f := formOf(t, `{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`)
	require.NoError(t, f.check(1, []byte(`"a+"`)))
	require.ErrorContains(t, f.check(1, []byte(`"(a"`)), "format wants regex")
	require.ErrorContains(t, f.check(1, []byte(`"`+strings.Repeat("a", 500)+`"`)), "format wants regex")
	tree := formOf(t, `{"$id":"http://example.com/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,"$defs":{"tree":{"$id":"http://example.com/tree",
		"$dynamicAnchor":"node","properties":{"data":true,"children":{"items":{"$dynamicRef":"#node"}}}}}}`)
	require.NoError(t, tree.check(1, []byte(`{"children":[{"data":1}]}`)))
	require.ErrorContains(t, tree.check(1, []byte(`{"children":[{"hunter2":1}]}`)), `at "/children`)
}

// hostile are schemas that want more work than a payload can pay for, with such payloads.
func hostile() map[string][2]string {
	doubled := func(keyword string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
		for i := range 30 {
			fmt.Fprintf(&b, `"d%d":{%q:[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, keyword, i+1, i+1)
		}
		b.WriteString(`"d30":{"type":"null"}}}`)
		return b.String()
	}
	nested := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	numbers := "[" + strings.Repeat("1,", 60_000) + "1]"
	enum := `{"enum":[` + strings.Repeat("0.5,", 9000) + `7]}`
	return map[string][2]string{
		"allOf 2^30":         {doubled("allOf"), `null`},
		"anyOf 2^30":         {doubled("anyOf"), `1`},
		"oneOf 2^30":         {doubled("oneOf"), `null`},
		"items twice":        {`{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, nested},
		"contains in not":    {`{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"minItems":5,"prefixItems":[{"$ref":"#/$defs/a"}],"contains":{"$ref":"#/$defs/a"}}}}`, nested},
		"names and patterns": {`{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`, strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)},
		"enum of each":       {`{"items":` + enum + `}`, numbers},
		"all items often":    {`{"allOf":[` + strings.Repeat(`{"items":{"type":"number"}},`, 100) + `true]}`, numbers},
		"pattern":            {`{"allOf":[` + strings.Repeat(`{"pattern":"^(x+x+)+$"},`, 100) + `true]}`, `"` + strings.Repeat("x", 1<<17) + `"`},
		"pattern of names":   {`{"allOf":[` + strings.Repeat(`{"patternProperties":{"(x+x+)+y([a-z]{1,500}){1,2}$":false}},`, 100) + `true]}`, `{"` + strings.Repeat("x", 1<<17) + `":1}`},
		"length":             {`{"allOf":[` + strings.Repeat(`{"minLength":1},`, 700) + `true]}`, `"` + strings.Repeat("x", 1<<17) + `"`},
		"unique":             {`{"allOf":[` + strings.Repeat(`{"uniqueItems":true},`, 100) + `true]}`, `[` + nested + `,` + numbers[:1<<16] + `1]]`},
		"unevaluated":        {`{"unevaluatedItems":false,"allOf":[` + strings.Repeat(`{"anyOf":[{"minItems":1},true]},`, 100) + `true]}`, numbers},
	}
}

// A hostile schema is taken, it is one of its draft; what it wants of a payload ends with the payload's budget.
//
// covers: BRK-11, BRK-12
func TestAPayloadCostsWhatItCanPay(t *testing.T) {
	for name, c := range hostile() {
		t.Run(name, func(t *testing.T) {
			f := formOf(t, c[0])
			err := f.check(1, []byte(c[1]))
			require.Equal(t, wire.Invalid, wire.KindOf(err))
			require.ErrorContains(t, err, "more work to check")
			require.True(t, f.spent)
		})
	}
}

// Honest schemas of any size of payload are within the budget.
//
// covers: BRK-11
func TestAnHonestPayloadCanPay(t *testing.T) {
	row := `{"id":12345,"name":"somebody","tags":["a","b"],"price":12.5},`
	rows := "[" + strings.Repeat(row, (1<<17)/len(row)) + strings.TrimSuffix(row, ",") + "]"
	f := formOf(t, `{"items":{"type":"object","required":["id"],"additionalProperties":false,"properties":{"id":{"type":"integer","minimum":1},
		"name":{"type":"string","pattern":"^[a-z]+$","maxLength":50},"tags":{"items":{"enum":["a","b","c"]},"uniqueItems":true},
		"price":{"anyOf":[{"type":"number"},{"type":"null"}]}}}}`)
	require.NoError(t, f.check(1, []byte(rows)))
	require.Positive(t, f.left)
	numbers := "[" + strings.Repeat("1,", 60_000) + "1]"
	require.NoError(t, formOf(t, `{"type":"array","items":{"type":"number","minimum":0}}`).check(1, []byte(numbers)))
	require.NoError(t, formOf(t, `{"pattern":"^[x-z]+$"}`).check(1, []byte(`"`+strings.Repeat("x", 1<<17)+`"`)))
	// The second look has less: then the place is not told.
	err := formOf(t, `{"items":{"type":"string"}}`).check(1, []byte(numbers))
	require.EqualError(t, err, "the payload does not match the schema (version 1)")
}

// No schema and no payload ends the process, costs more than its budget or is quoted.
//
// covers: BRK-11, BRK-12
func FuzzSchemaAndPayload(f *testing.F) {
	for _, c := range hostile() {
		if len(c[1]) < 1000 {
			f.Add([]byte(c[0]), []byte(c[1]))
		}
	}
	for _, s := range []string{
		`{"$ref":"file:///etc/passwd"}`, `{"$ref":"http://127.0.0.1/x"}`, `{"$ref":"#"}`, `{"$id":"http://json-schema.org/draft-07/schema#"}`, `{"$id":"#a","$anchor":"b"}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveRef":"#"}`, `{"$dynamicRef":"#a","$dynamicAnchor":"a"}`, `{"dependencies":{"a":["b"],"c":{}}}`,
		`{"if":{},"then":{"pattern":"a{1000}{1000}"}}`, `{"propertyNames":{"maxLength":1},"unevaluatedProperties":false}`, `{"$schema":"narad://topic/schema"}`, `{"items":[{}],"additionalItems":false}`,
		strings.Repeat(`{"not":`, 60) + "{}" + strings.Repeat("}", 60),
	} {
		f.Add([]byte(s), []byte(`{"a":[1,"x",{"b":null}]}`))
	}
	f.Fuzz(func(t *testing.T, schema, payload []byte) {
		d, err := Parse(schema)
		if err != nil {
			require.Equal(t, wire.Invalid, wire.KindOf(err))
			return
		}
		again, err := Parse(d.Raw)
		require.NoError(t, err)
		require.Equal(t, d.Sum, again.Sum)
		v, err := read(d.Raw)
		require.NoError(t, err)
		form, err := compile(v)
		require.NoError(t, err)
		if err = form.check(1, payload); err != nil {
			require.Equal(t, wire.Invalid, wire.KindOf(err))
			require.Less(t, len(err.Error()), 1000)
		}
		require.GreaterOrEqual(t, form.left, int64(0))
	})
}
