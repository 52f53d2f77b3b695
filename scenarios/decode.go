package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder fills Go values from the syntax tree. It goes on after a mistake, so that a reader sees all of them at once, and
// remembers where each field stands for the checks that follow.
type decoder struct {
	file     string
	problems Problems
	places   map[string]*token.Position // by field path; also tells whether a field was given
}

func (d *decoder) fail(at *token.Position, path, format string, args ...any) {
	p := Problem{File: d.file, Line: 1, Column: 1, Field: path, Says: fmt.Sprintf(format, args...)}
	if at != nil {
		p.Line, p.Column = at.Line, at.Column
	}
	d.problems = append(d.problems, p)
}

func at(n ast.Node) *token.Position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key // the node's own token is the first colon
	}
	if v, ok := n.(*ast.MappingValueNode); ok {
		n = v.Key
	}
	if tk := n.GetToken(); tk != nil {
		return tk.Position
	}
	return nil
}

func (d *decoder) value(n ast.Node, path, enum string, into reflect.Value) {
	if n == nil {
		d.fail(d.places[path], path, "has no value")
		return
	}
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.fail(at(n), path, "anchors, aliases and tags are not part of the language")
		return
	case *ast.NullNode:
		d.fail(at(n), path, "has no value")
		return
	}
	if into.CanAddr() {
		if u, ok := into.Addr().Interface().(unit); ok {
			d.unit(n, path, u)
			return
		}
	}
	switch into.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(into.Type().Elem())
		d.value(n, path, enum, fresh.Elem())
		into.Set(fresh)
	case reflect.Struct:
		d.structure(n, path, into)
	case reflect.Map:
		d.mapping(n, path, enum, into)
	case reflect.Slice:
		d.list(n, path, enum, into)
	case reflect.Interface:
		if v, ok := d.anything(n, path); ok {
			into.Set(reflect.ValueOf(v))
		}
	default:
		d.scalar(n, path, enum, into)
	}
}

// pairs are the entries of a mapping, whatever its style.
func (d *decoder) pairs(n ast.Node, path string) ([]*ast.MappingValueNode, bool) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, true
	}
	d.fail(at(n), path, "wants fields, as in {name: value}")
	return nil, false
}

// entries walks a mapping, refusing merges and repeated keys.
func (d *decoder) entries(n ast.Node, path string, each func(name, inner string, pair *ast.MappingValueNode)) {
	pairs, ok := d.pairs(n, path)
	if !ok {
		return
	}
	seen := map[string]bool{}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		inner := name
		if path != "" {
			inner = path + "." + name
		}
		switch {
		case pair.Key.IsMergeKey():
			d.fail(at(pair.Key), path, "merges are not part of the language")
		case seen[name]:
			d.fail(at(pair.Key), inner, "is given twice")
		default:
			seen[name] = true
			d.places[inner] = at(pair.Key)
			each(name, inner, pair)
		}
	}
}

func (d *decoder) structure(n ast.Node, path string, into reflect.Value) {
	fields, names := fieldsOf(into.Type())
	d.entries(n, path, func(name, inner string, pair *ast.MappingValueNode) {
		f, ok := fields[name]
		if !ok {
			d.fail(at(pair.Key), inner, "unknown field; %s", allowed(names))
			return
		}
		d.value(pair.Value, inner, f.Tag.Get("enum"), into.FieldByIndex(f.Index))
	})
}

func (d *decoder) mapping(n ast.Node, path, enum string, into reflect.Value) {
	into.Set(reflect.MakeMap(into.Type()))
	d.entries(n, path, func(name, inner string, pair *ast.MappingValueNode) {
		v := reflect.New(into.Type().Elem()).Elem()
		if _, null := pair.Value.(*ast.NullNode); (null || pair.Value == nil) && v.Kind() == reflect.Struct {
			into.SetMapIndex(reflect.ValueOf(name), v) // `orders:` alone is orders with all defaults
			return
		}
		d.value(pair.Value, inner, enum, v)
		into.SetMapIndex(reflect.ValueOf(name), v)
	})
}

func (d *decoder) list(n ast.Node, path, enum string, into reflect.Value) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(at(n), path, "wants a list, as in [a, b]")
		return
	}
	out := reflect.MakeSlice(into.Type(), len(s.Values), len(s.Values))
	for i, v := range s.Values {
		inner := fmt.Sprintf("%s[%d]", path, i)
		d.places[inner] = at(v)
		d.value(v, inner, enum, out.Index(i))
	}
	into.Set(out)
}

func (d *decoder) unit(n ast.Node, path string, u unit) {
	text, ok := scalarText(n)
	if !ok {
		d.fail(at(n), path, "wants one value")
		return
	}
	if err := u.set(text); err != nil {
		d.fail(at(n), path, "%q: %v", text, err)
	}
}

func (d *decoder) scalar(n ast.Node, path, enum string, into reflect.Value) {
	switch into.Kind() {
	case reflect.String:
		text, ok := scalarText(n)
		if !ok {
			d.fail(at(n), path, "wants a text")
			return
		}
		if names := strings.Split(enum, ","); enum != "" && !slices.Contains(names, text) {
			d.fail(at(n), path, "%q is unknown; %s", text, allowed(names))
			return
		}
		into.SetString(text)
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			d.fail(at(n), path, "wants true or false")
			return
		}
		into.SetBool(b.Value)
	case reflect.Int:
		i, ok := n.(*ast.IntegerNode)
		v, small := uint64(0), false
		if ok {
			v, small = i.Value.(uint64)
		}
		if !ok || !small || v > 1<<40 {
			d.fail(at(n), path, "wants a whole number, not negative, without a unit")
			return
		}
		into.SetInt(int64(v))
	default:
		d.fail(at(n), path, "cannot hold a %s", n.Type())
	}
}

// anything reads free-form values: the overrides of a node's configuration.
func (d *decoder) anything(n ast.Node, path string) (any, bool) {
	switch v := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		out := map[string]any{}
		d.entries(n, path, func(name, inner string, pair *ast.MappingValueNode) {
			if e, ok := d.anything(pair.Value, inner); ok {
				out[name] = e
			}
		})
		return out, true
	case *ast.SequenceNode:
		out := make([]any, 0, len(v.Values))
		for i, e := range v.Values {
			if one, ok := d.anything(e, fmt.Sprintf("%s[%d]", path, i)); ok {
				out = append(out, one)
			}
		}
		return out, true
	case *ast.BoolNode:
		return v.Value, true
	case *ast.IntegerNode:
		return v.Value, true
	case *ast.FloatNode:
		return v.Value, true
	}
	text, ok := scalarText(n)
	if !ok {
		d.fail(d.places[path], path, "wants a value")
	}
	return text, ok
}

func scalarText(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return strings.TrimSpace(v.Value.Value), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// fieldsOf are the fields of a struct of the language by the name they have in a file, and these names in order.
func fieldsOf(t reflect.Type) (map[string]reflect.StructField, []string) {
	fields := map[string]reflect.StructField{}
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" || name == "" {
			continue
		}
		fields[name] = f
		names = append(names, name)
	}
	return fields, names
}
