package ledger

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names of the files of a scenario's folder; RunName stands in the run folder itself.
const (
	RunName        = "run.json"
	ScenarioName   = "scenario.yaml"
	FactsName      = "facts.json"
	OperationsName = "operations.jsonl"
	FaultsName     = "faults.jsonl"
	WireName       = "wire.jsonl"
	ParentName     = "parent.jsonl"
	TargetName     = "target.jsonl"
	LinksName      = "links.jsonl"
	AuditName      = "audit.jsonl"
	VerdictsName   = "verdicts.json"
	NodesName      = "nodes"
)

// Scenario is a scenario's folder, loaded. Problems says which files were absent or broken: a judge that needs one of them
// has no data.
type Scenario struct {
	Dir        string
	Facts      Facts
	Operations []Operation
	Faults     []Fault
	Wire       []WireRequest
	Parent     []Stored
	Target     []Stored
	Samples    []Sample
	Audit      []AuditLine
	Verdicts   []Verdict
	Problems   map[string]string // by file name
}

// Load reads a scenario's folder. It returns an error only when the folder itself cannot be read; what is missing in it
// stands in Problems.
func Load(dir string) (*Scenario, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, err
	}
	s := &Scenario{Dir: dir, Problems: map[string]string{}}
	var err error
	s.Facts, err = ReadJSON[Facts](filepath.Join(dir, FactsName))
	s.note(FactsName, err)
	s.Verdicts, err = ReadJSON[[]Verdict](filepath.Join(dir, VerdictsName))
	s.note(VerdictsName, err)
	load(s, OperationsName, &s.Operations)
	load(s, FaultsName, &s.Faults)
	load(s, WireName, &s.Wire)
	load(s, ParentName, &s.Parent)
	load(s, TargetName, &s.Target)
	load(s, LinksName, &s.Samples)
	load(s, AuditName, &s.Audit)
	s.resolve()
	return s, nil
}

// resolve gives records without an ID of their own the one of the produce whose key and payload they have, where exactly one has: payloads
// too small for an ID are unique by their bytes.
func (s *Scenario) resolve() {
	exact, visible := map[string]string{}, map[string]string{}
	note := func(in map[string]string, key, payload, id string) {
		name := key + " " + payload
		if _, taken := in[name]; taken {
			id = ""
		}
		in[name] = id
	}
	for i := range s.Operations {
		o := &s.Operations[i]
		if o.Kind != KindProduce || o.ID == "" {
			continue
		}
		note(exact, o.Key, o.Payload, o.ID)
		note(visible, o.Key, cmp.Or(o.Seen, o.Payload), o.ID)
	}
	for i := range s.Wire {
		for j := range s.Wire[i].Records {
			if r := &s.Wire[i].Records[j]; r.ID == "" {
				r.ID = exact[r.Key+" "+r.Payload]
			}
		}
	}
	for _, log := range [][]Stored{s.Parent, s.Target} {
		for i := range log {
			if r := &log[i]; r.ID == "" {
				r.ID = visible[r.Key+" "+r.Payload]
			}
		}
	}
}

func load[T any](s *Scenario, name string, into *[]T) {
	var err error
	*into, err = Read[T](filepath.Join(s.Dir, name))
	s.note(name, err)
}

func (s *Scenario) note(name string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		s.Problems[name] = "absent"
	default:
		s.Problems[name] = err.Error()
	}
}

// Lacks is the first of the named files that is absent or broken, with what is wrong, or "".
func (s *Scenario) Lacks(names ...string) string {
	for _, n := range names {
		if p, ok := s.Problems[n]; ok {
			return n + ": " + p
		}
	}
	return ""
}

// Slug is the folder name of a scenario: lower case letters, digits and single dashes.
func Slug(name string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(name) {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
			continue
		}
		dash = true
	}
	return b.String()
}
