package scenarios

import (
	"maps"
	"slices"
)

// Axis is a variable of the matrix of the sender with all values that it must have.
type Axis struct {
	Name   string
	Values []string
}

// MatrixAxes are the five variables that make a cell of the matrix of the sender: every answer of the catalogue, what it is given to,
// and on what link.
func MatrixAxes() []Axis {
	return []Axis{
		{"answer", slices.Sorted(maps.Keys(Answers))},
		{"to", []string{"chunk", "check", "probe", "probe-check"}},
		{"lanes", []string{"1", "4"}},
		{"compression", []string{"none", "zstd"}},
		{"links", []string{"alone", "shared"}},
	}
}

// IsMatrixCell tells whether a combination names all of these variables with values that they have.
func IsMatrixCell(cell map[string]string) bool {
	for _, a := range MatrixAxes() {
		if !slices.Contains(a.Values, cell[a.Name]) {
			return false
		}
	}
	return true
}
