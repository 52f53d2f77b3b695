package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// errNotJSON is said here because a document that is none would break the request around it.
var errNotJSON = errors.New("is not JSON")

// maxSchema is what is read of a schema's file: more than any server takes.
const maxSchema = 1 << 20

// readSchema reads a schema's file, or standard input for "-".
func readSchema(cmd *cobra.Command, file string) (json.RawMessage, error) {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file) //nolint:gosec // a file that the caller names
		if err != nil {
			return nil, fmt.Errorf("--schema: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, maxSchema))
	if err != nil {
		return nil, fmt.Errorf("--schema: %w", err)
	}
	if !json.Valid(body) {
		return nil, fmt.Errorf("--schema: %s %w", file, errNotJSON)
	}
	return body, nil
}

// editSchema puts a schema's file and the version that it was made from into a change: the version given, else the topic's present one.
func editSchema(cmd *cobra.Command, c *client.Client, topic, file string, base int, req *wire.AlterTopic) error {
	body, err := readSchema(cmd, file)
	if err != nil {
		return err
	}
	if base < 0 {
		h, err := c.Schemas(cmd.Context(), topic)
		if err != nil {
			return err
		}
		base = h.Version
	}
	req.Schema, req.SchemaBaseVersion = body, &base
	return nil
}

func (g *Global) topicSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema NAME", Short: "Show a topic's JSON Schema, all versions", Args: cobra.ExactArgs(1),
		RunE: g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			h, err := c.Schemas(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printJSON(cmd, h)
		}),
	}
}
