package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a scenario file.
type Problem struct {
	File         string
	Line, Column int
	Field        string // as in faults[0].toxic.type; "" for the whole file
	Says         string // what is wrong and what is allowed
}

func (p Problem) String() string {
	if p.Field == "" {
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Says)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", p.File, p.Line, p.Column, p.Field, p.Says)
}

// Problems are all mistakes of one file, in the order of its lines. Load returns them as its error.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, 0, len(ps))
	for _, p := range ps {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ps
}

// allowed lists what may stand in a place.
func allowed(names []string) string { return "allowed: " + strings.Join(names, ", ") }
