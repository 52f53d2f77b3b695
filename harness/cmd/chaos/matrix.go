package main

import (
	"fmt"

	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/scenarios"
)

// Values of --matrix.
const (
	matrixSome = "some"
	matrixAll  = "all"
)

// tableOf is the matrix of the sender as the files plan it, nil when none of them is part of it.
func tableOf(list []*scenarios.Scenario, excepted []scenarios.Excepted) *ledger.Matrix {
	m := &ledger.Matrix{}
	for _, a := range scenarios.MatrixAxes() {
		m.Axes = append(m.Axes, ledger.Axis{Name: a.Name, Values: a.Values})
	}
	for _, s := range list {
		if scenarios.IsMatrixCell(s.Cell) {
			m.Planned = append(m.Planned, ledger.MatrixCell{Cell: s.Cell, Scenario: s.Name})
		}
	}
	for _, e := range excepted {
		if scenarios.IsMatrixCell(e.Cell) {
			m.Excepted = append(m.Excepted, ledger.MatrixCell{Cell: e.Cell, Reason: e.Reason})
		}
	}
	if len(m.Planned) == 0 {
		return nil
	}
	return m
}

// chosen leaves of each answer at each place of the matrix one cell, another one from place to place, so that every value of the other
// variables meets every other within a few answers. Whoever names scenarios by --only means these.
func chosen(list []*scenarios.Scenario, matrix, only string) ([]*scenarios.Scenario, error) {
	if matrix != matrixSome && matrix != matrixAll {
		return nil, exit{run.ExitInvalid, fmt.Sprintf("matrix %q; allowed: some, all", matrix)}
	}
	if matrix == matrixAll || only != "" {
		return list, nil
	}
	groups := map[string]int{} // cells of an answer at a place
	for _, s := range list {
		if scenarios.IsMatrixCell(s.Cell) {
			groups[group(s)]++
		}
	}
	turn, seen := map[string]int{}, map[string]int{}
	var out []*scenarios.Scenario
	for _, s := range list {
		if !scenarios.IsMatrixCell(s.Cell) {
			out = append(out, s)
			continue
		}
		g := group(s)
		if _, known := turn[g]; !known {
			turn[g] = len(turn) * 3 // odd, so that all combinations have their turn
		}
		if seen[g] == turn[g]%groups[g] {
			out = append(out, s)
		}
		seen[g]++
	}
	return out, nil
}

func group(s *scenarios.Scenario) string { return s.Cell["answer"] + " " + s.Cell["to"] }
