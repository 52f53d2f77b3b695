package main

import (
	"errors"

	"github.com/spf13/cobra"

	"narad.example/harness/mutants"
)

// mutantsCommand plants one bug at a time. A bug that no scenario catches is a violation: the proof does not prove.
func mutantsCommand() *cobra.Command {
	o := mutants.Options{Root: ".", Dir: "harness/mutants"}
	c := &cobra.Command{
		Use: "mutants", Args: cobra.NoArgs, Short: "Plant one bug at a time and fail unless a scenario catches it",
		Long: "Plants each patch of harness/mutants into a copy of the broker, builds it and runs the scenario that must notice.\n" +
			"Run it in the project's root; it needs Go and git.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			err := mutants.Run(cmd.Context(), o)
			if errors.Is(err, mutants.ErrSurvived) {
				return exit{code: 1, text: err.Error()}
			}
			return err
		},
	}
	c.Flags().StringVar(&o.Only, "only", "", "one planted bug, by the name of its patch")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "the seed of the scenarios")
	c.Flags().IntVar(&o.Tries, "tries", 3, "how often a scenario that missed its bug is played at most, each time under the next seed")
	return c
}
