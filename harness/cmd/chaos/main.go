// Command chaos is the harness's binary: it runs scenarios against two clusters with a broken network between them, checks scenario
// files, and makes the pages of a run. In containers the same binary plays toxiproxy, the tap and the scripted target.
//
// Exit codes: 0 pass, 1 a violated invariant, 2 inconclusive or harness trouble, 3 an invalid scenario.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"narad.example/harness/run"
	"narad.example/scenarios"
)

// version is set by the build.
var version = "unknown"

// exit is an error that carries its exit code. Its text was printed already when it is empty.
type exit struct {
	code int
	text string
}

func (e exit) Error() string { return e.text }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	os.Exit(code(err))
}

// code prints an error and maps it to the exit code.
func code(err error) int {
	var e exit
	var invalid scenarios.Problems
	switch {
	case err == nil:
		return run.ExitPass
	case errors.As(err, &e):
		if e.text != "" {
			fmt.Fprintln(os.Stderr, "chaos:", e.text)
		}
		return e.code
	case errors.As(err, &invalid):
		fmt.Fprintln(os.Stderr, invalid.Error())
		return run.ExitInvalid
	}
	fmt.Fprintln(os.Stderr, "chaos:", err)
	return run.ExitInconclusive
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use: "chaos", Short: "Break the way between two Narad clusters and check what is promised", Version: version,
		SilenceUsage: true, SilenceErrors: true,
	}
	c.AddCommand(runCommand(), replayCommand(), lintCommand(), listCommand(), reportCommand(), mutantsCommand(), benchCommand(), demoCommand())
	c.AddCommand(exploreCommand(), soakCommand(), exploreWorkerCommand(), workerCommand())
	c.AddCommand(roleCommands()...)
	c.AddCommand(floorCommands()...)
	return c
}
