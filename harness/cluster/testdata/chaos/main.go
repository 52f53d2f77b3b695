// Command chaos stands in for the harness's binary in the container backend's tests.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"narad.example/harness/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := cluster.RunRole(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
