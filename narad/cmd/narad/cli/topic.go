package cli

import (
	"time"

	"github.com/spf13/cobra"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

func (g *Global) topicCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "topic", Aliases: []string{"topics"}, Short: "Make, show, change and connect topics"}
	cmd.AddCommand(g.topicAdd(), g.topicList(), g.topicInfo(), g.topicEdit(), g.topicRemove(), g.topicAttach(), g.topicDetach(), g.topicChildren(),
		g.topicPause(), g.topicResume(), g.topicSkip(), g.topicWait(), g.topicSchema())
	return cmd
}

func (g *Global) topicAdd() *cobra.Command {
	var req wire.CreateTopic
	var retention, visibility, delay time.Duration
	cmd := &cobra.Command{Use: "add NAME", Short: "Make a topic", Args: cobra.ExactArgs(1)}
	f := cmd.Flags()
	f.IntVar(&req.Partitions, "partitions", 0, "number of partitions; 0 is the server's default")
	f.DurationVar(&retention, "retention", 0, "how long records are kept, 0s forever; absent is the server's default")
	f.DurationVar(&visibility, "visibility-timeout", 0, "how long a lease lasts; 0 is the server's default")
	f.IntVar(&req.MaxInFlightPerPartition, "max-in-flight", 0, "leases per partition; 0 is the server's default")
	f.IntVar(&req.MaxAckedAheadPerPartition, "max-acked-ahead", 0, "acks ahead of the frontier; 0 is the server's default")
	f.StringVar(&req.Parent, "parent", "", "make it a child of this topic")
	f.DurationVar(&delay, "delay", 0, "delay of the child")
	schema := f.String("schema", "", "file with the JSON Schema of its records, - for standard input")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		req.Name = args[0]
		if f.Changed("retention") {
			req.RetentionMS = ms(retention)
		}
		req.VisibilityTimeoutMS, req.FanoutDelayMS = visibility.Milliseconds(), delay.Milliseconds()
		if *schema != "" {
			body, err := readSchema(cmd, *schema)
			if err != nil {
				return err
			}
			req.Schema = body
		}
		t, err := c.CreateTopic(cmd.Context(), req)
		if err != nil {
			return err
		}
		return printJSON(cmd, t)
	})
	return cmd
}

func ms(d time.Duration) *int64 {
	n := d.Milliseconds()
	return &n
}

func (g *Global) topicList() *cobra.Command {
	return &cobra.Command{Use: "ls", Short: "List topics", Args: cobra.NoArgs, RunE: g.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		var topics []wire.Topic
		for token, more := "", true; more; more = token != "" {
			page, err := c.Topics(cmd.Context(), 0, token)
			if err != nil {
				return err
			}
			topics, token = append(topics, page.Topics...), page.NextPageToken
		}
		return table(cmd, "NAME\tPARTITIONS\tROLE\tPARENT\tREMOTE", func(add func(...any)) {
			for _, t := range topics {
				remote := ""
				if t.Remote != nil {
					remote = t.Remote.Name
				}
				add(t.Name, t.Partitions, t.Role, t.Parent, remote)
			}
		})
	})}
}

func (g *Global) topicInfo() *cobra.Command {
	return &cobra.Command{Use: "info NAME", Short: "Describe a topic", Args: cobra.ExactArgs(1), RunE: g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		d, err := c.Topic(cmd.Context(), args[0], nil)
		if err != nil {
			return err
		}
		return printJSON(cmd, d)
	})}
}

func (g *Global) topicEdit() *cobra.Command {
	var retention time.Duration
	var partitions, inFlight, ahead int
	cmd := &cobra.Command{Use: "edit NAME", Short: "Change a topic; only the flags given count", Args: cobra.ExactArgs(1)}
	f := cmd.Flags()
	f.DurationVar(&retention, "retention", 0, "how long records are kept, 0s forever")
	f.IntVar(&partitions, "partitions", 0, "number of partitions, which only grows")
	f.IntVar(&inFlight, "max-in-flight", 0, "leases per partition")
	f.IntVar(&ahead, "max-acked-ahead", 0, "acks ahead of the frontier")
	schema := f.String("schema", "", "file with the next JSON Schema of its records, - for standard input")
	base := f.Int("schema-base-version", -1, "version that the schema was made from, 0 for none; absent is the present one")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		var req wire.AlterTopic
		if f.Changed("retention") {
			req.RetentionMS = ms(retention)
		}
		for name, to := range map[string]struct {
			field **int
			value *int
		}{
			"partitions":      {&req.Partitions, &partitions},
			"max-in-flight":   {&req.MaxInFlightPerPartition, &inFlight},
			"max-acked-ahead": {&req.MaxAckedAheadPerPartition, &ahead},
		} {
			if f.Changed(name) {
				*to.field = to.value
			}
		}
		if *schema != "" {
			if err := editSchema(cmd, c, args[0], *schema, *base, &req); err != nil {
				return err
			}
		}
		d, err := c.AlterTopic(cmd.Context(), args[0], req)
		if err != nil {
			return err
		}
		return printJSON(cmd, d)
	})
	return cmd
}

func (g *Global) topicRemove() *cobra.Command {
	cmd := &cobra.Command{Use: "rm NAME", Short: "Delete a topic and its records", Args: cobra.ExactArgs(1)}
	force := cmd.Flags().Bool("force", false, "also with records that remote children have not sent")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		return c.DeleteTopic(cmd.Context(), args[0], *force)
	})
	return cmd
}

func (g *Global) topicAttach() *cobra.Command {
	var req wire.AttachChild
	var delay time.Duration
	cmd := &cobra.Command{
		Use: "attach PARENT CHILD", Short: "Copy a topic's records into another, or with --remote to another cluster", Args: cobra.ExactArgs(2),
	}
	f := cmd.Flags()
	f.DurationVar(&delay, "delay", 0, "how long a record waits before it is copied")
	f.StringVar(&req.Remote, "remote", "", "name of the remote")
	f.StringVar(&req.RemoteTopic, "remote-topic", "", "topic there; the parent's name when absent")
	f.StringVar(&req.From, "from", "", "attach, unconsumed or earliest")
	f.IntVar(&req.Lanes, "lanes", 0, "1 to 8")
	f.BoolVar(&req.DryRun, "dry-run", false, "only check")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		req.Child, req.DelayMS = args[1], delay.Milliseconds()
		var out any
		var err error
		switch {
		case req.DryRun:
			out, err = c.DryRunAttach(cmd.Context(), args[0], req)
		case req.Remote != "":
			out, err = c.AttachRemote(cmd.Context(), args[0], req)
		default:
			out, err = c.AttachChild(cmd.Context(), args[0], req)
		}
		if err != nil {
			return err
		}
		return printJSON(cmd, out)
	})
	return cmd
}

func (g *Global) topicDetach() *cobra.Command {
	cmd := &cobra.Command{Use: "detach PARENT CHILD", Short: "End a child", Args: cobra.ExactArgs(2)}
	force := cmd.Flags().Bool("force", false, "also with records that a remote child has not sent")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		return c.Detach(cmd.Context(), args[0], args[1], *force)
	})
	return cmd
}

func (g *Global) topicChildren() *cobra.Command {
	cmd := &cobra.Command{Use: "children PARENT", Short: "List the children of a topic and how far they are", Args: cobra.ExactArgs(1)}
	partitions := cmd.Flags().Bool("partitions", false, "with a row for each partition")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		l, err := c.Children(cmd.Context(), args[0], *partitions)
		if err != nil {
			return err
		}
		return printJSON(cmd, l)
	})
	return cmd
}
