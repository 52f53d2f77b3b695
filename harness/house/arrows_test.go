package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "narad.example/"

// arrows is the table of the architecture: what each package may import of this module. "*" is everything below the
// package's own top. A package that is not listed may not exist.
var arrows = map[string][]string{
	// Leaves of narad: anyone inside may import wire and metrics, they import nothing.
	"narad/wire":    {},
	"narad/metrics": {},
	"narad/config":  {},
	"narad/vfs":     {},
	"narad/audit":   {},
	"narad/schema":  {},

	"narad/slots":           {"narad/vfs"},
	"narad/seglog/cycle":    {},
	"narad/seglog":          {"narad/vfs", "narad/seglog/cycle"},
	"narad/partition":       {"narad/seglog", "narad/seglog/cycle", "narad/vfs"},
	"narad/queue":           {"narad/partition", "narad/vfs"},
	"narad/meta":            {},
	"narad/peer":            {},
	"narad/move":            {"narad/meta", "narad/partition", "narad/queue", "narad/vfs"},
	"narad/cluster":         {"narad/meta", "narad/peer", "narad/partition", "narad/schema"},
	"narad/ingress":         {"narad/seglog", "narad/slots", "narad/vfs", "narad/meta", "narad/peer", "narad/partition"},
	"narad/fanout":          {"narad/partition", "narad/slots", "narad/meta", "narad/vfs"},
	"narad/remote/outbound": {},
	"narad/remote/sender":   {"narad/remote/outbound", "narad/remote/target"},
	"narad/remote/target":   {"narad/remote/outbound"},
	"narad/remote/vault":    {"narad/meta", "narad/remote/outbound"},
	"narad/remote/link":     {"narad/meta", "narad/peer", "narad/audit", "narad/schema", "narad/remote/target", "narad/remote/vault", "narad/remote/outbound"},
	"narad/access":          {"narad/meta", "narad/vfs"},
	"narad/api":             {"narad/access", "narad/audit"},
	"narad/client":          {},
	"narad/node":            {"narad/*"},
	"narad/cmd/narad":       {"narad/node", "narad/config", "narad/vfs", "narad/cmd/narad/cli"},
	"narad/cmd/narad/cli":   {"narad/client"},

	"scenarios":               {"narad/wire"},
	"harness/ledger":          {"narad/vfs", "narad/wire"},
	"harness/invariant":       {"harness/ledger"},
	"harness/workload":        {"harness/ledger", "narad/client"},
	"harness/cluster/rigtest": {"harness/cluster"},
	"harness/cluster/sim":     {"narad/node", "narad/client", "narad/config", "narad/vfs", "fakes", "harness/ledger", "harness/cluster"},
	"harness/bench":           {"harness/spawn", "fakes", "harness/cluster", "harness/ledger", "narad/client", "narad/wire", "scenarios"},
	"harness/spawn":           {},
	"harness/mutants":         {},
	"harness/demo":            {"narad/client", "narad/wire", "fakes"},
	"harness/explore":         {"harness/cluster/sim", "harness/ledger", "harness/run", "harness/spawn", "harness/workload", "scenarios"},
	"harness/soak":            {"harness/explore", "harness/ledger", "harness/run", "narad/wire", "reports", "scenarios"},
	"harness/run":             {"*"},
	"harness/house":           {},
	"harness/cmd/chaos":       {"*"},
	"fakes":                   {"narad/wire", "harness/ledger"},
	"faults":                  {"harness/cluster", "harness/ledger", "fakes"}, // the names of a TLS edge's faces
	"reports":                 {"harness/ledger", "narad/wire"},

	"harness/cluster": {
		"harness/spawn", "narad/node", "narad/client", "narad/config", "narad/vfs", "fakes", "harness/ledger",
		"narad/wire", "narad/meta", "narad/peer", "narad/cluster", // it puts a move to the leader as a member does
	},
}

// everywhere may be imported by every package inside narad.
var everywhere = []string{"narad/wire", "narad/metrics"}

// TestArrows fails on an import that the table does not have, and on a package that it does not know.
func TestArrows(t *testing.T) {
	for pkg, imports := range packages(t) {
		allowed, known := arrows[pkg]
		if !known {
			t.Errorf("package %s stands in no row of the architecture's table", pkg)
		}
		for _, imp := range imports {
			if strings.HasPrefix(pkg, "narad/") && slices.Contains(everywhere, imp) {
				continue
			}
			if !matches(allowed, imp) {
				t.Errorf("%s may not import %s", pkg, imp)
			}
		}
	}
}

// TestNaradKnowsNothingOfTheHarness holds the one arrow that matters most, whatever the table says.
func TestNaradKnowsNothingOfTheHarness(t *testing.T) {
	for pkg, imports := range packages(t) {
		if !strings.HasPrefix(pkg, "narad/") {
			continue
		}
		for _, imp := range imports {
			require.True(t, strings.HasPrefix(imp, "narad/"), "%s imports %s", pkg, imp)
		}
	}
}

func matches(allowed []string, imp string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		prefix, star := strings.CutSuffix(a, "*")
		return a == imp || star && strings.HasPrefix(imp, prefix)
	})
}

// packages maps each package's folder to the folders of this module that its non-test files import.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
		require.NoError(t, err)
		pkg := filepath.ToSlash(filepath.Dir(file))
		if found[pkg] == nil {
			found[pkg] = map[string]bool{}
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if own, ok := strings.CutPrefix(path, module); ok {
				found[pkg][own] = true
			}
		}
	}
	out := map[string][]string{}
	for pkg, imports := range found {
		out[pkg] = slices.Sorted(maps.Keys(imports))
	}
	return out
}

// root is the module's folder, seen from this package.
const root = "../.."

// top lists the folders that hold the project (architecture: six, fixed).
var top = []string{"narad", "harness", "scenarios", "faults", "fakes", "reports"}

func goFiles(t *testing.T) []string {
	t.Helper()
	return files(t, func(name string) bool { return strings.HasSuffix(name, ".go") })
}

func files(t *testing.T, want func(string) bool) []string {
	t.Helper()
	var out []string
	for _, dir := range top {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if d.IsDir() && path == filepath.Join(root, "reports", "out") {
				return fs.SkipDir
			}
			if rel, rerr := filepath.Rel(root, path); rerr == nil && !d.IsDir() && want(path) {
				out = append(out, rel)
			}
			return nil
		})
		require.NoError(t, err)
	}
	return out
}
