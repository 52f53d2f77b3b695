package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limits: a file about 400 lines and never over 500, a function 70, a test function 150.
const (
	maxFile     = 500
	maxFunc     = 70
	maxTestFunc = 150
)

// larger lists what is over a limit today, with its size in lines. An entry may shrink or go, never grow, and no entry may be
// added for new code.
var larger = map[string]int{}

// TestSizes is the ratchet over files and functions.
func TestSizes(t *testing.T) {
	for _, file := range goFiles(t) {
		body, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		within(t, file, bytes.Count(body, []byte("\n")), maxFile)
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, body, 0)
		require.NoError(t, err)
		limit := maxFunc
		if strings.HasSuffix(file, "_test.go") {
			limit = maxTestFunc
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				lines := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
				within(t, file+":"+fn.Name.Name, lines, limit)
			}
		}
	}
}

func within(t *testing.T, name string, lines, limit int) {
	t.Helper()
	if was, ok := larger[name]; ok {
		if lines > was {
			t.Errorf("%s grew from %d to %d lines; it may only shrink", name, was, lines)
		}
		if lines <= limit {
			t.Errorf("%s is within the limit now: take it off the list", name)
		}
		return
	}
	if lines > limit {
		t.Errorf("%s has %d lines, the limit is %d", name, lines, limit)
	}
}
