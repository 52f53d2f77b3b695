package cli

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// batch is how many lines `pub --lines` sends at once.
const batch = 500

func (g *Global) pubCommand() *cobra.Command {
	var key string
	var partition int
	var lines bool
	cmd := &cobra.Command{
		Use: "pub TOPIC [PAYLOAD]", Short: "Store a record, from the argument or standard input", Args: cobra.RangeArgs(1, 2),
	}
	f := cmd.Flags()
	f.StringVarP(&key, "key", "k", "", "key of the record")
	f.IntVar(&partition, "partition", -1, "partition of the record")
	f.BoolVar(&lines, "lines", false, "each line of standard input is a record")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if g.lines == nil {
			g.lines = bufio.NewReader(cmd.InOrStdin())
		}
		rec := wire.NewRecord{Key: []byte(key), Partition: partition}
		switch {
		case lines && len(args) == 2:
			return errors.New("--lines and a payload exclude each other")
		case lines:
			return pubLines(cmd, g.lines, c, args[0], rec)
		case len(args) == 2:
			rec.Payload = []byte(args[1])
		default:
			var err error
			if rec.Payload, err = io.ReadAll(g.lines); err != nil {
				return err
			}
		}
		o := client.ProduceOptions{Key: key}
		if partition >= 0 {
			o.Partition = &partition
		}
		return c.Produce(cmd.Context(), args[0], rec.Payload, o)
	})
	return cmd
}

// pubLines sends each line that is not empty, in batches of at most 500 records or 1 MiB.
func pubLines(cmd *cobra.Command, in *bufio.Reader, c *client.Client, topic string, rec wire.NewRecord) error {
	var recs []wire.NewRecord
	size := 0
	flush := func() error {
		if len(recs) == 0 {
			return nil
		}
		err := c.ProduceBatch(cmd.Context(), topic, "", recs)
		recs, size = recs[:0], 0
		return err
	}
	for {
		line, err := in.ReadBytes('\n')
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if len(line) > 0 {
			rec.Payload = line
			recs, size = append(recs, rec), size+len(line)
		}
		if end || len(recs) == batch || size > wire.MaxPayload {
			if err = flush(); err != nil || end {
				return err
			}
		}
	}
}

func (g *Global) subCommand() *cobra.Command {
	var partition, count int
	var wait time.Duration
	var noAck, quoted bool
	cmd := &cobra.Command{Use: "sub TOPIC", Short: "Consume records, one to a line, and ack each once it is printed", Args: cobra.ExactArgs(1)}
	f := cmd.Flags()
	f.IntVar(&partition, "partition", -1, "only this partition")
	f.IntVarP(&count, "count", "n", 0, "stop after so many records; 0 goes on")
	f.DurationVar(&wait, "wait", 5*time.Second, "how long to wait for a record; with --count 0 it waits again and again")
	f.BoolVar(&noAck, "no-ack", false, "leave the leases to run out")
	f.BoolVar(&quoted, "quoted", false, "print text as JSON strings")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		o := client.ConsumeOptions{Wait: wait}
		if partition >= 0 {
			o.Partition = &partition
		}
		for n := 0; count == 0 || n < count; {
			m, err := c.Consume(cmd.Context(), args[0], o)
			if err != nil {
				return err
			}
			if m == nil && count > 0 {
				return errors.New("no record came in time")
			}
			if m == nil && wait <= 0 {
				return nil // without a wait, empty is the end
			}
			if m == nil {
				continue
			}
			if err = show(cmd, m, quoted); err != nil {
				return err
			}
			n++
			if noAck {
				continue
			}
			if err = c.Settle(cmd.Context(), args[0], m.ReceiptHandle, client.Ack); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

func (g *Global) replayCommand() *cobra.Command {
	var count int
	var quoted bool
	cmd := &cobra.Command{Use: "replay TOPIC PARTITION OFFSET", Short: "Print records again, without leases", Args: cobra.ExactArgs(3)}
	cmd.Flags().IntVarP(&count, "count", "n", 1, "how many records; 0 goes to the end")
	cmd.Flags().BoolVar(&quoted, "quoted", false, "print text as JSON strings")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		partition, err := strconv.Atoi(args[1])
		if err != nil {
			return errors.New("PARTITION must be a number")
		}
		offset, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return errors.New("OFFSET must be a number")
		}
		for n := 0; count == 0 || n < count; n++ {
			m, err := c.Replay(cmd.Context(), args[0], partition, offset)
			if err != nil || m == nil {
				return err
			}
			if err = show(cmd, m, quoted); err != nil {
				return err
			}
			offset = m.Offset + 1
		}
		return nil
	})
	return cmd
}

// show prints a record's payload and a newline.
func show(cmd *cobra.Command, m *wire.Message, quoted bool) error {
	p, err := client.Payload(m, quoted)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(append(p, '\n'))
	return err
}
