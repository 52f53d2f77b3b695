package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"narad.example/harness/bench"
)

// benchCommand measures the broker against the floor of the same run.
func benchCommand() *cobra.Command {
	var o bench.Options
	c := &cobra.Command{
		Use: "bench", Args: cobra.NoArgs, Short: "Measure throughput and size as ratios to the floor of the same run",
		Long: "Measures each row in rounds that take turns with the floor, the least work that can copy a record, and prints ratios of\n" +
			"medians. Nothing fails because a machine is slow. Rows: " + strings.Join(bench.Rows(), ", ") + ".",
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("the harness's own binary: %w", err)
			}
			o.Chaos, o.Out = self, cmd.OutOrStdout()
			if o.Narad == "" {
				o.Narad = filepath.Join(filepath.Dir(self), "narad")
			}
			return bench.Run(cmd.Context(), o)
		},
	}
	c.Flags().IntVar(&o.Rounds, "rounds", 3, "rounds of every row")
	c.Flags().IntVar(&o.Records, "records", 200_000, "records of the backlog")
	c.Flags().StringVar(&o.Narad, "narad", "", "the narad binary (default: beside this one)")
	c.Flags().StringVar(&o.JSON, "json", "", "write the figures to this file too")
	c.Flags().StringVar(&o.Profile, "profile", "", "an existing folder for CPU profiles of the nodes")
	c.Flags().BoolVar(&o.Curves, "curves", false, "measure how a drain's cost grows with partitions, links, record size and backlog, too")
	c.Flags().DurationVar(&o.Outage, "outage", 0, "how long the target of PRF-12 is dead (default 2m)")
	c.Flags().StringSliceVar(&o.Only, "only", nil, "only these rows")
	return c
}

// floorCommands are the two processes of the floor. Nobody types them.
func floorCommands() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: bench.FloorTargetName, Hidden: true, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				return bench.FloorTargetCommand(cmd.Context(), args, cmd.OutOrStdout())
			},
		},
		{
			Use: bench.FloorSourceName, Hidden: true, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				return bench.FloorSourceCommand(cmd.Context(), args, cmd.OutOrStdout())
			},
		},
	}
}
