package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"narad.example/harness/ledger"
)

// Matrix is the matrix of the sender as a page shows it: a row for each value of the first axis, a column for each combination of the
// others.
type Matrix struct {
	Columns []string
	Rows    []MatrixRow
	Tally   map[string]int // by class of cell
}

// MatrixRow is one answer.
type MatrixRow struct {
	Name  string
	Cells []MatrixCell
}

// MatrixCell is one combination. Its class is the verdict of its scenario, or one of the three below.
type MatrixCell struct {
	Class string
	Says  string // the scenario, or why there is none
	At    int    // of the scenario on the page
}

// Classes of cells without a verdict.
const (
	cellEmpty  = "empty"  // no scenario plans it
	cellLeft   = "left"   // planned, and left to another run
	cellExcept = "except" // does not apply, with a reason
)

func cellKey(axes []ledger.Axis, cell map[string]string) string {
	var b strings.Builder
	for _, a := range axes {
		b.WriteString(cell[a.Name] + "\x00")
	}
	return b.String()
}

// matrix lays a run's results on the matrix that its files plan, nil when they plan none.
func matrix(run ledger.Run) *Matrix {
	if run.Matrix == nil || len(run.Matrix.Axes) == 0 {
		return nil
	}
	axes := run.Matrix.Axes
	known := map[string]MatrixCell{}
	for _, c := range run.Matrix.Excepted {
		known[cellKey(axes, c.Cell)] = MatrixCell{Class: cellExcept, Says: c.Reason}
	}
	for _, c := range run.Matrix.Planned {
		known[cellKey(axes, c.Cell)] = MatrixCell{Class: cellLeft, Says: c.Scenario}
	}
	for i, s := range run.Scenarios {
		if len(s.Cell) > 0 {
			known[cellKey(axes, s.Cell)] = MatrixCell{Class: s.Verdict, Says: s.Name, At: i}
		}
	}
	m := &Matrix{Tally: map[string]int{}}
	columns := combinations(axes[1:])
	for _, c := range columns {
		var words []string
		for _, a := range axes[1:] {
			words = append(words, c[a.Name])
		}
		m.Columns = append(m.Columns, strings.Join(words, " "))
	}
	for _, value := range axes[0].Values {
		row := MatrixRow{Name: value}
		for _, c := range columns {
			full := maps.Clone(c)
			full[axes[0].Name] = value
			cell, ok := known[cellKey(axes, full)]
			if !ok {
				cell = MatrixCell{Class: cellEmpty, Says: "no scenario"}
			}
			m.Tally[cell.Class]++
			row.Cells = append(row.Cells, cell)
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

func combinations(axes []ledger.Axis) []map[string]string {
	out := []map[string]string{{}}
	for _, a := range axes {
		var next []map[string]string
		for _, c := range out {
			for _, v := range a.Values {
				one := maps.Clone(c)
				one[a.Name] = v
				next = append(next, one)
			}
		}
		out = next
	}
	return out
}

// Empty is how many cells have no scenario.
func (m *Matrix) Empty() int { return m.Tally[cellEmpty] }

// Counts is the tally as one line, empty cells first.
func (m *Matrix) Counts() string {
	parts := []string{fmt.Sprintf("%d empty", m.Tally[cellEmpty])}
	for _, class := range slices.Sorted(maps.Keys(m.Tally)) {
		if class != cellEmpty {
			parts = append(parts, fmt.Sprintf("%d %s", m.Tally[class], classWords(class)))
		}
	}
	return strings.Join(parts, ", ")
}

func classWords(class string) string {
	switch class {
	case cellLeft:
		return "left to another run"
	case cellExcept:
		return "not applicable"
	}
	return words(class)
}

// Mark is what stands in the cell.
func (c MatrixCell) Mark() string {
	switch c.Class {
	case ledger.Pass:
		return "✓"
	case ledger.Fail:
		return "✗"
	case cellEmpty:
		return "EMPTY"
	case cellLeft:
		return "·"
	case cellExcept:
		return "n/a"
	}
	return "?"
}

// Ran tells whether the page holds the cell's scenario.
func (c MatrixCell) Ran() bool {
	return c.Class != cellEmpty && c.Class != cellLeft && c.Class != cellExcept
}

// Title is shown beside the mark: the scenario with its verdict, or the reason.
func (c MatrixCell) Title() string { return classWords(c.Class) + ": " + c.Says }
