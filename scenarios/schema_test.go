package scenarios

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

//go:embed schema.json
var published []byte

func compiled(t *testing.T) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(published))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	require.NoError(t, err)
	return s
}

// covers: HAR-04
func TestEveryFileValidatesAgainstTheSchema(t *testing.T) {
	schema := compiled(t)
	files, err := Find([]string{"."})
	require.NoError(t, err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		all, err := LoadAll(f)
		require.NoError(t, err)
		if len(all.Scenarios) == 1 { // where a matrix's variable stands, the schema wants the value
			require.NoError(t, schema.Validate(asJSON(t, data)), f)
		}
		for i, s := range all.Scenarios {
			if i%50 > 0 {
				continue // a matrix's cells are much alike
			}
			full, err := Marshal(s)
			require.NoError(t, err)
			require.NoError(t, schema.Validate(asJSON(t, full)), "%s of %s with its defaults", s.Name, f)
		}
	}
	for _, wrong := range []string{
		strings.Replace(good, "name: x", "name: x\ncolour: red", 1),
		strings.Replace(good, "for: 10s", "for: 10", 1),
		strings.Replace(good, "HAR-05", "HAR-5", 1),
		good + "faults: [{at: 1s, for: 1s, toxic: {type: resets}}]\n",
	} {
		require.Error(t, schema.Validate(asJSON(t, []byte(wrong))), wrong)
	}
}

func asJSON(t *testing.T, data []byte) any {
	j, err := yaml.YAMLToJSON(data)
	require.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
	require.NoError(t, err)
	return v
}

// The struct and the schema name the same fields with the same choices, so that neither can be changed alone.
// covers: HAR-04
func TestSchemaNamesTheFieldsOfTheLanguage(t *testing.T) {
	var root map[string]any
	require.NoError(t, json.Unmarshal(published, &root))
	seen := map[string]bool{}
	compare(t, root, root, reflect.TypeFor[Scenario](), "", seen)
	require.True(t, seen["FakeWith"])
	for name := range root["$defs"].(map[string]any) {
		require.True(t, seen[name], "nothing of the language uses %s", name)
	}
}

func compare(t *testing.T, root, schema map[string]any, typ reflect.Type, path string, seen map[string]bool) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		require.Equal(t, typ.Name(), name, path)
		if seen[name] {
			return
		}
		seen[name] = true
		schema = root["$defs"].(map[string]any)[name].(map[string]any)
	}
	if either, ok := schema["anyOf"].([]any); ok {
		compare(t, root, either[0].(map[string]any), typ, path, seen)
		return
	}
	if _, isUnit := reflect.New(typ).Interface().(unit); isUnit {
		require.Contains(t, schema, "pattern", path)
		return
	}
	switch typ.Kind() {
	case reflect.Slice:
		compare(t, root, schema["items"].(map[string]any), typ.Elem(), path+"[]", seen)
	case reflect.Map:
		if typ.Elem().Kind() != reflect.Interface {
			compare(t, root, schema["additionalProperties"].(map[string]any), typ.Elem(), path+".*", seen)
		}
	case reflect.Struct:
		fields, names := fieldsOf(typ)
		props := schema["properties"].(map[string]any)
		require.ElementsMatch(t, names, slices.Collect(maps.Keys(props)), "fields of %s", path)
		require.Equal(t, false, schema["additionalProperties"], path)
		for name, f := range fields {
			sub := props[name].(map[string]any)
			if enum := f.Tag.Get("enum"); enum != "" {
				if items, ok := sub["items"].(map[string]any); ok {
					sub = items
					require.ElementsMatch(t, strings.Split(enum, ","), sub["enum"], path+"."+name)
					continue
				}
				require.ElementsMatch(t, strings.Split(enum, ","), sub["enum"], path+"."+name)
				continue
			}
			compare(t, root, sub, f.Type, path+"."+name, seen)
		}
	}
}
