package scenarios

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Load reads one scenario file, fills its defaults and checks it. Mistakes come as Problems, all at once (HAR-04).
func Load(path string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return Parse(path, data)
}

// Parse is Load for a file that was read already; path only names it.
func Parse(path string, data []byte) (*Scenario, error) {
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, Problems{syntax(path, err)}
	}
	d := &decoder{file: path, places: map[string]*token.Position{}}
	s := &Scenario{File: path}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		d.fail(nil, "", "wants exactly one document")
		return nil, d.problems
	}
	d.value(file.Docs[0].Body, "", "", reflect.ValueOf(s).Elem())
	fill(s)
	check(d, s)
	repeat(s)
	if s.Matrix != nil {
		d.fail(d.places[matrixField], matrixField, "stands for several scenarios; here one is wanted")
	}
	if len(d.problems) > 0 {
		return nil, d.problems.sorted()
	}
	return s, nil
}

func syntax(path string, err error) Problem {
	p := Problem{File: path, Line: 1, Column: 1, Says: "is not YAML"}
	var broken *yaml.SyntaxError
	if errors.As(err, &broken) {
		p.Says = "is not YAML: " + broken.Message
		if broken.Token != nil && broken.Token.Position != nil {
			p.Line, p.Column = broken.Token.Position.Line, broken.Token.Position.Column
		}
	}
	return p
}

// Marshal writes a scenario with its defaults filled, in a form that Load reads again.
func Marshal(s *Scenario) ([]byte, error) {
	out, err := yaml.MarshalWithOptions(s, yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return out, nil
}

// Find lists the scenario files that paths name: a file is itself, a folder every *.yaml below it. Each stands once, folders
// in the order of their names. A path that is neither, or a folder without a scenario, is an error.
func Find(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("scenario: %w", err)
		}
		if !info.IsDir() {
			out = append(out, filepath.Clean(p))
			continue
		}
		found := len(out)
		err = filepath.WalkDir(p, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && filepath.Ext(path) == ".yaml" {
				out = append(out, filepath.Clean(path))
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("scenario: %w", err)
		}
		if len(out) == found {
			return nil, fmt.Errorf("scenario: no *.yaml below %s", p)
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(p string) bool {
		was := seen[p]
		seen[p] = true
		return was
	}), nil
}
