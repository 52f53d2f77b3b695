package scenarios

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Sheet is what one file holds: one scenario, or one for each combination of its matrix that it does not except.
type Sheet struct {
	Scenarios []*Scenario
	Excepted  []Excepted
}

// Excepted is a combination that a file leaves out on purpose.
type Excepted struct {
	Cell   map[string]string // the value's name by variable
	Reason string
}

// variable is one entry of a matrix: scalars in a list, or names with what stands for them.
type variable struct {
	name    string
	choices []choice
	at      *token.Position
}

type choice struct {
	name    string
	node    ast.Node // of a list the scalar itself
	members bool     // node is a mapping, whose members are named as in $(links.load)
}

type except struct {
	when   map[string][]string
	reason string
}

const (
	matrixField = "matrix"
	exceptField = "except"
	maxNesting  = 8
	maxCells    = 2000
)

var (
	reference    = regexp.MustCompile(`\$\(([A-Za-z0-9_.-]*)\)`)
	variableName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// LoadAll reads one file with its matrix expanded. Mistakes come as Problems, each once (HAR-04).
func LoadAll(path string) (*Sheet, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return ParseAll(path, data)
}

// ParseAll is LoadAll for a file that was read already; path only names it.
func ParseAll(path string, data []byte) (*Sheet, error) {
	x := &expansion{decoder: &decoder{file: path, places: map[string]*token.Position{}}, used: map[string]bool{}}
	body, problems := x.open(data)
	if problems != nil {
		return nil, problems
	}
	if body == nil || x.matrix(body) == nil {
		s, err := Parse(path, data)
		if err != nil {
			return nil, err
		}
		return &Sheet{Scenarios: []*Scenario{s}}, nil
	}
	x.read(x.matrix(body).Value)
	if len(x.problems) > 0 {
		return nil, x.problems.sorted()
	}
	sheet := &Sheet{}
	for _, cell := range x.cells() {
		if reason, out := x.excepted(cell); out {
			sheet.Excepted = append(sheet.Excepted, Excepted{Cell: cell, Reason: reason})
			continue
		}
		if s := x.expand(data, cell); s != nil {
			sheet.Scenarios = append(sheet.Scenarios, s)
		}
	}
	for _, v := range x.variables {
		if !x.used[v.name] && len(sheet.Scenarios) > 0 {
			x.fail(v.at, matrixField+"."+v.name, "nothing names it; it is named as in $(%s)", v.name)
		}
	}
	if len(sheet.Scenarios) == 0 && len(x.problems) == 0 {
		x.fail(nil, matrixField, "every combination is excepted")
	}
	if len(x.problems) > 0 {
		return nil, x.problems.sorted().once()
	}
	return sheet, nil
}

// once leaves each mistake once: most stand in many combinations.
func (ps Problems) once() Problems {
	seen := map[Problem]bool{}
	return slices.DeleteFunc(ps, func(p Problem) bool {
		was := seen[p]
		seen[p] = true
		return was
	})
}

// expansion is a file whose matrix is being expanded.
type expansion struct {
	*decoder
	variables []variable
	excepts   []except
	used      map[string]bool
}

func (x *expansion) open(data []byte) (ast.Node, Problems) {
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Problems{syntax(x.file, err)}
	}
	if len(file.Docs) != 1 {
		return nil, nil // Parse says what is wrong
	}
	return file.Docs[0].Body, nil
}

// matrix finds the file's matrix, nil when it has none.
func (x *expansion) matrix(body ast.Node) *ast.MappingValueNode {
	m, ok := body.(*ast.MappingNode)
	if !ok {
		return nil
	}
	for _, pair := range m.Values {
		if pair.Key.GetToken().Value == matrixField {
			return pair
		}
	}
	return nil
}

func (x *expansion) read(n ast.Node) {
	cells := 1
	x.entries(n, matrixField, func(name, inner string, pair *ast.MappingValueNode) {
		if name == exceptField {
			return
		}
		v := variable{name: name, at: at(pair.Key)}
		if !variableName.MatchString(name) {
			x.fail(v.at, inner, "a variable's name is a-z, 0-9 and underscores, a letter first")
		}
		v.choices = x.choices(pair.Value, inner)
		cells *= max(1, len(v.choices))
		x.variables = append(x.variables, v)
	})
	if cells > maxCells {
		x.fail(at(n), matrixField, "has %d combinations; allowed: %d", cells, maxCells)
	}
	if len(x.variables) == 0 && len(x.problems) == 0 {
		x.fail(at(n), matrixField, "wants a variable at least, as in {lanes: [1, 4]}")
	}
	x.entries(n, matrixField, func(name, inner string, pair *ast.MappingValueNode) {
		if name == exceptField {
			x.readExcepts(pair.Value, inner)
		}
	})
}

func (x *expansion) choices(n ast.Node, path string) []choice {
	var out []choice
	add := func(c choice, at *token.Position) {
		if slices.ContainsFunc(out, func(o choice) bool { return o.name == c.name }) {
			x.fail(at, path, "%q stands there twice", c.name)
		}
		out = append(out, c)
	}
	if list, ok := n.(*ast.SequenceNode); ok {
		for i, v := range list.Values {
			text, scalar := scalarText(v)
			if !scalar {
				x.fail(at(v), fmt.Sprintf("%s[%d]", path, i), "wants one value; what stands for a name is given as in {alone: {...}, shared: {...}}")
			}
			add(choice{name: text, node: v}, at(v))
		}
	} else if _, null := n.(*ast.NullNode); n != nil && !null {
		x.entries(n, path, func(name, inner string, pair *ast.MappingValueNode) {
			if _, ok := x.pairs(pair.Value, inner); ok {
				add(choice{name: name, node: pair.Value, members: true}, at(pair.Key))
			}
		})
	}
	if len(out) == 0 && len(x.problems) == 0 {
		x.fail(x.places[path], path, "wants values, as in [1, 4]")
	}
	return out
}

func (x *expansion) readExcepts(n ast.Node, path string) {
	var list []struct {
		When   map[string][]string `yaml:"when"`
		Reason string              `yaml:"reason"`
	}
	x.value(n, path, "", reflect.ValueOf(&list).Elem())
	for i, e := range list {
		inner := fmt.Sprintf("%s[%d]", path, i)
		if len(e.When) == 0 || strings.TrimSpace(e.Reason) == "" {
			x.fail(x.places[inner], inner, "wants when and reason: a combination is left out with a reason")
		}
		for name, values := range e.When {
			field := inner + ".when." + name
			k := slices.IndexFunc(x.variables, func(v variable) bool { return v.name == name })
			if k < 0 {
				x.fail(x.places[field], field, "is no variable of this matrix")
				continue
			}
			for _, value := range values {
				if !slices.ContainsFunc(x.variables[k].choices, func(c choice) bool { return c.name == value }) {
					x.fail(x.places[field], field, "%q is no value of %s", value, name)
				}
			}
		}
		x.excepts = append(x.excepts, except{e.When, e.Reason})
	}
}

// cells are all combinations, the last variable the quickest.
func (x *expansion) cells() []map[string]string {
	out := []map[string]string{{}}
	for _, v := range x.variables {
		var next []map[string]string
		for _, c := range out {
			for _, one := range v.choices {
				cell := maps.Clone(c)
				cell[v.name] = one.name
				next = append(next, cell)
			}
		}
		out = next
	}
	return out
}

func (x *expansion) excepted(cell map[string]string) (string, bool) {
	for _, e := range x.excepts {
		all := true
		for name, values := range e.when {
			all = all && slices.Contains(values, cell[name])
		}
		if all {
			return e.reason, true
		}
	}
	return "", false
}

// expand reads the file anew for one cell, since the nodes are changed in place. It returns nil after a mistake.
func (x *expansion) expand(data []byte, cell map[string]string) *Scenario {
	body, _ := x.open(data)
	own := &expansion{decoder: &decoder{file: x.file, places: map[string]*token.Position{}}, used: x.used}
	own.read(x.matrix(body).Value)
	top := body.(*ast.MappingNode)
	top.Values = slices.DeleteFunc(top.Values, func(p *ast.MappingValueNode) bool { return p.Key.GetToken().Value == matrixField })
	f := &filling{x: own, cell: cell}
	f.node(top, "", 0)
	s := &Scenario{File: x.file}
	own.value(top, "", "", reflect.ValueOf(s).Elem())
	s.Cell = cell
	var suffix []string
	for _, v := range own.variables {
		suffix = append(suffix, v.name+"="+cell[v.name])
	}
	s.Name += " [" + strings.Join(suffix, " ") + "]"
	fill(s)
	check(own.decoder, s)
	repeat(s)
	x.problems = append(x.problems, own.problems...)
	if len(own.problems) > 0 {
		return nil
	}
	return s
}

// filling puts the values of one cell into the places that name them.
type filling struct {
	x    *expansion
	cell map[string]string
}

func (f *filling) node(n ast.Node, path string, depth int) ast.Node {
	switch v := n.(type) {
	case *ast.MappingNode:
		for _, p := range v.Values {
			f.node(p, path, depth)
		}
	case *ast.MappingValueNode:
		v.Value = f.node(v.Value, strings.TrimPrefix(path+"."+v.Key.GetToken().Value, "."), depth)
	case *ast.SequenceNode:
		for i := range v.Values {
			v.Values[i] = f.node(v.Values[i], fmt.Sprintf("%s[%d]", path, i), depth)
		}
	case *ast.StringNode:
		return f.text(v, path, depth)
	}
	return n
}

func (f *filling) text(n *ast.StringNode, path string, depth int) ast.Node {
	whole := reference.FindString(n.Value) == n.Value && n.Value != ""
	if whole {
		return f.look(n, n.Value[2:len(n.Value)-1], path, depth)
	}
	n.Value = reference.ReplaceAllStringFunc(n.Value, func(ref string) string {
		text, ok := scalarText(f.look(n, ref[2:len(ref)-1], path, depth))
		if !ok {
			f.x.fail(at(n), path, "%s stands within a text, so it wants one value", ref)
		}
		return text
	})
	return n
}

// look finds what a reference means in this cell.
func (f *filling) look(n *ast.StringNode, ref, path string, depth int) ast.Node {
	name, member, _ := strings.Cut(ref, ".")
	k := slices.IndexFunc(f.x.variables, func(v variable) bool { return v.name == name })
	if k < 0 || depth > maxNesting {
		var names []string
		for _, v := range f.x.variables {
			names = append(names, v.name)
		}
		f.x.fail(at(n), path, "$(%s) is no variable of the matrix, or one that names itself; %s", ref, allowed(names))
		return &ast.StringNode{BaseNode: n.BaseNode, Token: n.Token}
	}
	v := &f.x.variables[k]
	f.x.used[name] = true
	c := v.choices[slices.IndexFunc(v.choices, func(c choice) bool { return c.name == f.cell[name] })]
	switch {
	case member == "" && c.members:
		return &ast.StringNode{BaseNode: n.BaseNode, Token: n.Token, Value: c.name}
	case member == "":
		return c.node
	case c.members:
		pairs, _ := f.x.pairs(c.node, matrixField)
		for _, p := range pairs {
			if p.Key.GetToken().Value == member {
				return f.node(p.Value, path, depth+1)
			}
		}
	}
	f.x.fail(at(n), path, "%s %s has no %s", name, c.name, member)
	return &ast.StringNode{BaseNode: n.BaseNode, Token: n.Token}
}
