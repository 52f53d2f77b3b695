package mutants

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one planted bug as its patch describes it.
type Mutant struct {
	Name     string // of the file, without bug- and .patch
	Bug      string
	Promise  string
	Scenario string
	Backend  string
	Patch    string   // path of the patch
	Files    []string // what it changes, from the module's folder
}

// Load reads every patch of a folder, in name order. An error names the file and the header line that is missing or unknown.
func Load(dir string) ([]Mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "bug-*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s holds no bug-*.patch", dir)
	}
	out := make([]Mutant, 0, len(paths))
	for _, p := range paths {
		body, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		m, err := parse(p, body)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func parse(path string, body []byte) (Mutant, error) {
	m := Mutant{Patch: path, Name: strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "bug-"), ".patch")}
	fields := map[string]*string{"Bug": &m.Bug, "Promise": &m.Promise, "Scenario": &m.Scenario, "Backend": &m.Backend}
	lines := bufio.NewScanner(bytes.NewReader(body))
	header := true
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			header = false
			m.Files = append(m.Files, name)
			continue
		}
		if strings.HasPrefix(line, "diff ") || strings.HasPrefix(line, "--- ") {
			header = false
		}
		if !header || strings.TrimSpace(line) == "" {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if field := fields[key]; ok && field != nil {
			*field = strings.TrimSpace(value)
			continue
		}
		return m, fmt.Errorf("%s:%d: %q is no header line; allowed are Bug, Promise, Scenario, Backend", path, n, line)
	}
	for key, field := range fields {
		if *field == "" {
			return m, fmt.Errorf("%s: the header lacks %s", path, key)
		}
	}
	if m.Backend != "sim" && m.Backend != "process" {
		return m, fmt.Errorf("%s: Backend is %q; allowed are sim and process", path, m.Backend)
	}
	if len(m.Files) == 0 {
		return m, fmt.Errorf("%s: the diff names no file", path)
	}
	return m, lines.Err()
}
