package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"narad.example/harness/run"
	"narad.example/scenarios"
)

// catalogue is the folder that is meant when no path is given.
const catalogue = "scenarios"

// load reads all scenarios that paths name, matrices expanded, and reports every mistake of every file at once.
func load(paths []string) ([]*scenarios.Scenario, error) {
	list, _, err := loadAll(paths)
	return list, err
}

// loadAll is load with the combinations that matrices leave out.
func loadAll(paths []string) ([]*scenarios.Scenario, []scenarios.Excepted, error) {
	if len(paths) == 0 {
		paths = []string{catalogue}
	}
	files, err := scenarios.Find(paths)
	if err != nil {
		return nil, nil, exit{run.ExitInvalid, err.Error()}
	}
	var list []*scenarios.Scenario
	var excepted []scenarios.Excepted
	var wrong scenarios.Problems
	names := map[string]string{}
	for _, f := range files {
		sheet, err := scenarios.LoadAll(f)
		var problems scenarios.Problems
		switch {
		case errors.As(err, &problems):
			wrong = append(wrong, problems...)
			continue
		case err != nil:
			return nil, nil, exit{run.ExitInvalid, err.Error()}
		}
		excepted = append(excepted, sheet.Excepted...)
		for _, s := range sheet.Scenarios {
			if _, err = run.Script(s); err != nil {
				wrong = append(wrong, scenarios.Problem{File: f, Line: 1, Column: 1, Field: "target.fake", Says: s.Name + ": " + err.Error()})
			}
			if other, taken := names[s.Name]; taken {
				wrong = append(wrong, scenarios.Problem{File: f, Line: 1, Column: 1, Field: "name", Says: fmt.Sprintf("%q is the name of %s already", s.Name, other)})
			}
			names[s.Name] = f
			list = append(list, s)
		}
	}
	if len(wrong) > 0 {
		return nil, nil, wrong
	}
	return list, excepted, nil
}

func lintCommand() *cobra.Command {
	return &cobra.Command{
		Use: "lint [files or folders]", Short: "Check scenario files",
		RunE: func(c *cobra.Command, args []string) error {
			list, err := load(args)
			if err != nil {
				return err
			}
			say(c.OutOrStdout(), "%d scenarios, no mistakes\n", len(list))
			return nil
		},
	}
}

func listCommand() *cobra.Command {
	uncovered := false
	c := &cobra.Command{
		Use: "list [files or folders]", Short: "List scenarios with the requirement rows that they cover",
		RunE: func(c *cobra.Command, args []string) error {
			list, err := load(args)
			if err != nil {
				return err
			}
			covered := map[string]bool{}
			for _, s := range list {
				for _, row := range s.Covers {
					covered[row] = true
				}
				if !uncovered {
					say(c.OutOrStdout(), "%s\n  %s\n  %s\n", s.Name, s.File, strings.Join(s.Covers, " "))
				}
			}
			if uncovered {
				rows := slices.DeleteFunc(scenarios.Rows(), func(row string) bool { return covered[row] })
				say(c.OutOrStdout(), "%d of %d rows are named by no scenario (tests of the packages may prove them):\n%s\n", len(rows), len(scenarios.Rows()), strings.Join(rows, " "))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&uncovered, "uncovered", false, "list the requirement rows that no scenario names instead")
	return c
}
