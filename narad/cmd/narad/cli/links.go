package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"narad.example/narad/client"
)

func (g *Global) topicPause() *cobra.Command {
	cmd := &cobra.Command{Use: "pause PARENT CHILD", Short: "Stop a remote child until it is resumed", Args: cobra.ExactArgs(2)}
	reason := cmd.Flags().String("reason", "", "why, at most 256 printable bytes")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		t, err := c.Pause(cmd.Context(), args[0], args[1], *reason)
		if err != nil {
			return err
		}
		return printJSON(cmd, t)
	})
	return cmd
}

func (g *Global) topicResume() *cobra.Command {
	cmd := &cobra.Command{Use: "resume PARENT CHILD", Short: "Check a remote child's target and let it go on", Args: cobra.ExactArgs(2)}
	accept := cmd.Flags().Bool("accept-target", false, "record the target topic that is there now, though it is another than before")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		t, err := c.Resume(cmd.Context(), args[0], args[1], *accept)
		if err != nil {
			return err
		}
		return printJSON(cmd, t)
	})
	return cmd
}

func (g *Global) topicSkip() *cobra.Command {
	return &cobra.Command{
		Use: "skip PARENT CHILD PARTITION OFFSET", Short: "Let a remote child pass the record that it is blocked on", Args: cobra.ExactArgs(4),
		RunE: g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			partition, perr := strconv.Atoi(args[2])
			offset, oerr := strconv.ParseInt(args[3], 10, 64)
			if errors.Join(perr, oerr) != nil {
				return fmt.Errorf("PARTITION and OFFSET are numbers, as in blocked_at of `narad topic children %s`", args[0])
			}
			t, err := c.Skip(cmd.Context(), args[0], args[1], partition, offset)
			if err != nil {
				return err
			}
			return printJSON(cmd, t)
		}),
	}
}
