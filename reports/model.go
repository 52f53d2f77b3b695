package reports

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"narad.example/harness/ledger"
	"narad.example/narad/wire"
)

// Page is what the HTML page shows of one run.
type Page struct {
	Run       ledger.Run
	Scenarios []Scenario
	Answers   []AnswerRow
	Rows      []string // requirement rows that passed scenarios cover, in order
	Tally     map[string]int
	Matrix    *Matrix // nil when no file of the run is part of it
}

// Scenario is one scenario's part of the page.
type Scenario struct {
	ledger.ScenarioRun
	Timeline Timeline
	Changes  []Change
	Broken   []Broken
	Script   string // as read, defaults filled in
	Replay   string
	Trouble  []string
}

// Change is one change of a link's state with the faults that were active then.
type Change struct {
	At     int64
	Child  string
	From   string
	To     string
	Faults []string
}

// Broken is a judge that did not pass, with the ids that break it and what tap and audit trail say around them.
type Broken struct {
	Judge  string
	Says   string
	IDs    []string
	Around []string
}

// AnswerRow is one row of the answer table with the scenarios of this run that cover it.
type AnswerRow struct {
	wire.Answer
	Scenarios []string
}

// maxIDs and maxAround bound what a page shows of one violation; the run folder has all of it.
const (
	maxIDs    = 20
	maxAround = 30
)

// Load reads a run folder into a page.
func Load(dir string) (*Page, error) {
	run, err := ledger.ReadJSON[ledger.Run](filepath.Join(dir, ledger.RunName))
	if err != nil {
		return nil, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	p := &Page{Run: run, Tally: map[string]int{}}
	for _, r := range run.Scenarios {
		p.Tally[r.Verdict]++
		p.Scenarios = append(p.Scenarios, scenario(dir, run, r))
	}
	for _, a := range wire.Answers {
		row := AnswerRow{Answer: a}
		for _, r := range run.Scenarios {
			if slices.Contains(r.Covers, a.ID) && r.Verdict == ledger.Pass {
				row.Scenarios = append(row.Scenarios, r.Name)
			}
		}
		p.Answers = append(p.Answers, row)
	}
	p.Rows = covered(run)
	p.Matrix = matrix(run)
	return p, nil
}

// replay is the command that runs a scenario again; of a matrix it takes the one combination.
func replay(run ledger.Run, r ledger.ScenarioRun) string {
	command := fmt.Sprintf("bin/chaos run --backend %s --seed %d", r.Backend, run.Seed)
	if len(r.Cell) > 0 {
		command += " --only '" + strings.ReplaceAll(r.Name, "'", `'\''`) + "'"
	}
	return command + " " + r.File
}

func covered(run ledger.Run) []string {
	var rows []string
	for _, r := range run.Scenarios {
		if r.Verdict == ledger.Pass {
			rows = append(rows, r.Covers...)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

func scenario(dir string, run ledger.Run, r ledger.ScenarioRun) Scenario {
	s := Scenario{ScenarioRun: r, Replay: replay(run, r)}
	folder := filepath.Join(dir, r.Folder)
	data, err := ledger.Load(folder)
	if r.Folder == "" || err != nil {
		return s
	}
	if script, err := os.ReadFile(filepath.Join(folder, ledger.ScenarioName)); err == nil {
		s.Script = string(script)
	}
	s.Trouble = data.Facts.Trouble
	s.Timeline = timeline(data)
	s.Changes = changes(data)
	for _, v := range data.Verdicts {
		if v.Verdict != ledger.Pass && v.Verdict != ledger.NotRun {
			s.Broken = append(s.Broken, broken(data, v))
		}
	}
	return s
}

// changes lists the link states over time; the faults of a change are those in force at it or ended within the second before.
func changes(data *ledger.Scenario) []Change {
	last := map[string]string{}
	var out []Change
	for _, smp := range data.Samples {
		if smp.Child == "" || smp.Silent || smp.State == last[smp.Child] {
			continue
		}
		c := Change{At: smp.At, Child: smp.Child, From: last[smp.Child], To: smp.State}
		for _, f := range data.Faults {
			if f.Start <= smp.At && (f.End == 0 || f.End+1000 >= smp.At) {
				c.Faults = append(c.Faults, f.Name)
			}
		}
		last[smp.Child] = smp.State
		out = append(out, c)
	}
	return out
}

// broken gathers what the tap and the audit trail hold about the ids of a violation.
func broken(data *ledger.Scenario, v ledger.Verdict) Broken {
	b := Broken{Judge: v.Name, Says: v.Says, IDs: v.IDs}
	if len(b.IDs) > maxIDs {
		b.IDs = b.IDs[:maxIDs]
	}
	for _, w := range data.Wire {
		for _, rec := range w.Records {
			if slices.Contains(b.IDs, rec.ID) && len(b.Around) < maxAround {
				b.Around = append(b.Around, fmt.Sprintf("%8d ms  tap    %s  %s  status %d  %s", w.Done, rec.ID, w.Outcome, w.Status, w.RequestID))
			}
		}
	}
	for _, a := range data.Audit {
		if a.RequestID != "" && slices.Contains(b.IDs, a.RequestID) && len(b.Around) < maxAround {
			b.Around = append(b.Around, fmt.Sprintf("%8d ms  audit  %s  %s  %s  %s  %s", a.At, a.RequestID, a.Node, a.Stage, a.Event, a.Outcome))
		}
	}
	return b
}

// Covers is the scenario's rows as one line.
func (s Scenario) Covers() string { return strings.Join(s.ScenarioRun.Covers, " ") }
