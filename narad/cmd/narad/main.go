// Command narad is the broker and its command line.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"narad.example/narad/cmd/narad/cli"
)

// version is set by the build.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := &cobra.Command{
		Use: "narad", Short: "A message broker whose topics are copied to other clusters",
		SilenceUsage: true, SilenceErrors: true, Version: version,
	}
	root.AddCommand(serveCommand(), devCommand(), versionCommand())
	var global cli.Global
	global.Flags(root.PersistentFlags(), os.Getenv)
	root.AddCommand(cli.Commands(&global)...)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "narad:", err)
		stop()
		os.Exit(cli.ExitCode(err))
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version)
			return err
		},
	}
}
