package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

func (g *Global) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Look at the members of the cluster, take one away, see partitions move"}
	cmd.AddCommand(g.membersCommand(), g.decommission(), g.movesCommand())
	return cmd
}

func (g *Global) membersCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "members", Short: "List the members", Args: cobra.NoArgs}
	detail := cmd.Flags().Bool("detail", false, "everything as JSON, with the partitions of each")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		all, err := c.Members(cmd.Context(), *detail)
		if err != nil {
			return err
		}
		if *detail {
			return printJSON(cmd, all)
		}
		return table(cmd, "ID\tSTATUS\tROLE\tPARTITIONS\tMOVES\tHEARTBEAT\tADDRESS\tBLOCKED BY", func(add func(...any)) {
			for _, m := range all.Members {
				add(m.ID, status(m), role(m), m.OwnedPartitions, m.OutboundMoves, age(m), m.Addr, blockedBy(m))
			}
		})
	})
	forget := &cobra.Command{Use: "forget ID", Short: "Forget a node that was let in and never became a member", Args: cobra.ExactArgs(1)}
	forget.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		f, err := c.Forget(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return printJSON(cmd, f)
	})
	cmd.AddCommand(forget)
	return cmd
}

func status(m wire.Member) string {
	if m.Draining {
		return m.Status + ", draining"
	}
	return m.Status
}

func role(m wire.Member) string {
	switch {
	case m.Leader:
		return "leader"
	case m.Voter:
		return "voter"
	}
	return "follower"
}

func age(m wire.Member) string {
	if m.HeartbeatAgeSeconds == nil {
		return "-"
	}
	return fmt.Sprintf("%.0fs", *m.HeartbeatAgeSeconds)
}

func blockedBy(m wire.Member) string {
	var codes []string
	for _, r := range m.DecommissionBlocked {
		codes = append(codes, r.Code)
	}
	if len(codes) == 0 {
		return "-"
	}
	return strings.Join(codes, ",")
}

func (g *Global) decommission() *cobra.Command {
	cmd := &cobra.Command{
		Use: "decommission ID", Short: "Move everything away from a member and let it leave the cluster", Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	dry := f.Bool("dry-run", false, "only say what would be found")
	cancel := f.Bool("cancel", false, "let the member stay")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "cancel")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		switch {
		case *cancel:
			return c.CancelDecommission(cmd.Context(), args[0])
		case *dry:
			plan, err := c.PlanDecommission(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printJSON(cmd, plan)
		}
		return c.Decommission(cmd.Context(), args[0])
	})
	return cmd
}

// errOtherTarget is the cause when the move that is to be ended goes elsewhere by now.
var errOtherTarget = errors.New("the partition does not move to this member")

func (g *Global) movesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "moves", Short: "List the partitions that are on their way to another member", Args: cobra.NoArgs}
	detail := cmd.Flags().Bool("detail", false, "everything as JSON")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		all, err := c.Moves(cmd.Context())
		if err != nil {
			return err
		}
		if *detail {
			return printJSON(cmd, all)
		}
		return table(cmd, "TOPIC\tPARTITION\tFROM\tTO\tBLOCKED BY", func(add func(...any)) {
			for _, m := range all.Moves {
				blocked := m.Blocked
				if blocked == "" {
					blocked = "-"
				}
				add(m.Topic, m.Partition, m.From, m.To, blocked)
			}
		})
	})
	abort := &cobra.Command{Use: "abort TOPIC PARTITION", Short: "End a move; the partition stays where it is", Args: cobra.ExactArgs(2)}
	target := abort.Flags().String("target", "", "only if the partition is on its way to this member")
	abort.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		p, err := strconv.Atoi(args[1])
		if err != nil {
			return fmt.Errorf("the partition %q is no number: %w", args[1], err)
		}
		if err = movesTo(cmd, c, args[0], p, *target); err != nil {
			return err
		}
		a, err := c.AbortMove(cmd.Context(), args[0], p)
		if err != nil {
			return err
		}
		return printJSON(cmd, a)
	})
	cmd.AddCommand(abort)
	return cmd
}

func movesTo(cmd *cobra.Command, c *client.Client, topic string, partition int, target string) error {
	if target == "" {
		return nil
	}
	all, err := c.Moves(cmd.Context())
	if err != nil {
		return err
	}
	for _, m := range all.Moves {
		if m.Topic == topic && m.Partition == partition && m.To == target {
			return nil
		}
	}
	return fmt.Errorf("%s/%d, %s: %w", topic, partition, target, errOtherTarget)
}
