package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"narad.example/harness/demo"
)

// demoCommand has the two halves of `make demo` that are more than shell.
func demoCommand() *cobra.Command {
	c := &cobra.Command{Use: "demo", Short: "Prepare and connect the two clusters of docker-compose.yml"}
	dir := c.PersistentFlags().String("dir", "reports/out/demo", "where settings, certificates and secrets are")
	c.AddCommand(
		&cobra.Command{
			Use: "prepare", Args: cobra.NoArgs, Short: "Write settings, certificates and secrets",
			RunE: func(*cobra.Command, []string) error { return demo.Prepare(*dir) },
		},
		&cobra.Command{
			Use: "connect", Args: cobra.NoArgs, Short: "Make topic, remote and link, and send records over it",
			RunE: func(cmd *cobra.Command, _ []string) error {
				ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
				defer cancel()
				return demo.Connect(ctx, *dir, cmd.OutOrStdout())
			},
		},
	)
	return c
}
