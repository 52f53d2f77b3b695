package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/scenarios"
)

// pastRun is what a run folder says of a run.
type pastRun struct {
	head   ledger.Run
	played []pastScenario // to be played again, in the run's order
}

// pastScenario is one scenario of it, as it was played: the file that it came from may be another one by now.
type pastScenario struct {
	row      ledger.ScenarioRun
	scenario *scenarios.Scenario
}

// readPast reads a run folder, or one scenario's folder below it. Of a run it takes what did not pass, and everything when all passed; only, when not
// empty, chooses by the words of a name.
func readPast(folder, only string) (p pastRun, err error) {
	root, one := folder, ""
	if !has(folder, ledger.RunName) && has(folder, ledger.ScenarioName) {
		if root, err = filepath.Abs(folder); err != nil { // the folder may be "."
			return p, err
		}
		root, one = filepath.Dir(root), filepath.Base(root)
	}
	if p.head, err = readHead(root); err != nil {
		return p, err
	}
	rows := slices.DeleteFunc(slices.Clone(p.head.Scenarios), func(r ledger.ScenarioRun) bool {
		return r.Folder == "" || r.Verdict == ledger.NotRun || one != "" && r.Folder != one || !strings.Contains(r.Name, only)
	})
	passed := func(r ledger.ScenarioRun) bool { return r.Verdict == ledger.Pass }
	if one == "" && only == "" && slices.ContainsFunc(rows, func(r ledger.ScenarioRun) bool { return !passed(r) }) {
		rows = slices.DeleteFunc(rows, passed)
	}
	if len(rows) == 0 {
		return p, exit{run.ExitInvalid, fmt.Sprintf("%s names no scenario of this run that was played", cmp.Or(one, only, filepath.Join(root, ledger.RunName)))}
	}
	for _, row := range rows {
		s, err := scenarios.Load(filepath.Join(root, row.Folder, ledger.ScenarioName))
		if errors.Is(err, fs.ErrNotExist) {
			err = exit{run.ExitInvalid, fmt.Sprintf("%s is not whole: it has no %s of %q", root, ledger.ScenarioName, row.Name)}
		}
		if err != nil {
			return p, err
		}
		s.File, s.Cell = row.File, row.Cell
		p.played = append(p.played, pastScenario{row, s})
	}
	return p, nil
}

func has(folder, name string) bool {
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}

// readHead reads run.json.
func readHead(root string) (ledger.Run, error) {
	head, err := ledger.ReadJSON[ledger.Run](filepath.Join(root, ledger.RunName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return head, exit{run.ExitInvalid, fmt.Sprintf("%s has no %s: replay wants a run folder (reports/out/<time>-seed-<seed>), or a scenario's folder in one",
			root, ledger.RunName)}
	case err != nil:
		return head, exit{run.ExitInvalid, fmt.Sprintf("%s is no whole %s: %v", filepath.Join(root, ledger.RunName), ledger.RunName, err)}
	case head.Backend == "" || len(head.Scenarios) == 0:
		return head, exit{run.ExitInvalid, filepath.Join(root, ledger.RunName) + " names no backend or no scenario: it is not a run's, or the run ended before its first scenario did"}
	}
	return head, nil
}

// changed lists what is of another version now than in a past run, empty when nothing is.
func changed(was, now map[string]string) string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(now)) {
		if was[what] != now[what] {
			list = append(list, fmt.Sprintf("%s was %s and is %s", what, cmp.Or(was[what], "not named"), now[what]))
		}
	}
	return strings.Join(list, ", ")
}
