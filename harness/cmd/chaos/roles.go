package main

import (
	"github.com/spf13/cobra"

	"narad.example/harness/cluster"
)

// roleCommands are what this binary plays inside a container of a rig. Nobody types them.
func roleCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, role := range cluster.Roles {
		out = append(out, &cobra.Command{
			Use: role, Hidden: true, Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error { return cluster.RunRole(c.Context(), role) },
		})
	}
	return out
}
