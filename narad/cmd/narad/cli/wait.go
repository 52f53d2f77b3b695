package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// Exits of `topic wait` (api.md, CLI).
const (
	exitTimedOut = 1
	exitStalled  = 2
)

// ExitError is an error that says with which status the process ends.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is the process's exit status for what a command returned.
func ExitCode(err error) int {
	var e *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	}
	return 1
}

// waiting is one `topic wait`.
type waiting struct {
	parent, child             string
	lagZero, drained          bool
	stable, timeout, interval time.Duration
}

func (g *Global) topicWait() *cobra.Command {
	var w waiting
	cmd := &cobra.Command{
		Use: "wait PARENT CHILD", Short: "Wait until a child has everything: exit 0 reached, 1 timed out, 2 stalled or paused", Args: cobra.ExactArgs(2),
	}
	f := cmd.Flags()
	f.BoolVar(&w.lagZero, "lag-zero", false, "until every committed record is at the child")
	f.BoolVar(&w.drained, "source-drained", false, "until that, and the parent's consumers have acked everything")
	f.DurationVar(&w.stable, "stable", 0, "how long it must stay so")
	f.DurationVar(&w.timeout, "timeout", 30*time.Minute, "when to give up")
	f.DurationVar(&w.interval, "interval", 2*time.Second, "time between two looks")
	cmd.MarkFlagsOneRequired("lag-zero", "source-drained")
	cmd.MarkFlagsMutuallyExclusive("lag-zero", "source-drained")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if w.interval <= 0 {
			return errors.New("--interval must be above 0")
		}
		w.parent, w.child = args[0], args[1]
		return w.run(cmd.Context(), c)
	})
	return cmd
}

// passing are the states that end by themselves.
var passing = []wire.LinkState{wire.Running, wire.UnknownState, wire.TargetThrottled, wire.TargetUnavailable}

func (w *waiting) run(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	last := "no answer came"
	var since time.Time // of the state that is waited for; zero while it does not hold
	for {
		reached, says, err := w.look(ctx, c)
		if err != nil {
			return err
		}
		if ctx.Err() == nil {
			last = says
		}
		switch {
		case !reached:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
			fallthrough
		default:
			if time.Since(since) >= w.stable {
				return nil
			}
		}
		pause := w.interval
		if reached {
			pause = min(pause, w.stable-time.Since(since))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return &ExitError{exitTimedOut, fmt.Errorf("not reached in time: %s", last)}
		}
	}
}

// askAgain turns what may pass, no answer among it, into words, and leaves a refusal of the request itself an error.
func askAgain(err error) (says string, final error) {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests {
		return "", err
	}
	return err.Error(), nil
}

// look reads the child once. A node that does not answer, or not now, is asked again; says is what was seen.
func (w *waiting) look(ctx context.Context, c *client.Client) (reached bool, says string, err error) {
	l, err := c.Children(ctx, w.parent, false)
	if err != nil {
		says, err = askAgain(err)
		return false, says, err
	}
	i := slices.IndexFunc(l.Children, func(e wire.ChildEntry) bool { return e.Name == w.child })
	if i < 0 {
		return false, "", fmt.Errorf("%s has no child %s", w.parent, w.child)
	}
	e := l.Children[i]
	says = fmt.Sprintf("%d records are not at the child", e.LagMessages)
	if !e.LagComplete {
		says += " as far as its cursors have reported"
	}
	if e.RemoteEntry == nil {
		if w.drained {
			return false, "", errors.New("--source-drained is for remote children")
		}
		return e.LagComplete && e.LagMessages == 0, says, nil
	}
	if !slices.Contains(passing, e.State) {
		return false, "", &ExitError{exitStalled, fmt.Errorf("the link is %s", e.State)}
	}
	if w.drained {
		return e.SourceDrained, says, nil
	}
	return e.LagComplete && e.LagMessages == 0, says, nil
}
