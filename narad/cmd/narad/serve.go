package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"narad.example/narad/config"
	"narad.example/narad/node"
	"narad.example/narad/vfs"
)

// serveFlags joins each flag of `narad serve` with its setting (api.md: CLI).
var serveFlags = []struct{ flag, setting, help string }{
	{"addr", "http.addr", "address of the API, such as :7942"},
	{"node-id", "cluster.node_id", "name of this node"},
	{"data-dir", "storage.data_dir", "folder of the data"},
	{"log-level", "log.level", "debug, info, warn or error"},
	{"log-format", "log.format", "json or text"},
	{"pprof-addr", "http.pprof_addr", "address of the profiles, empty for none"},
}

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run a node", Args: cobra.NoArgs,
		Long: "Run a node. Settings come from their defaults, the file of --config, NARAD_<BLOCK>_<KEY> and flags, the later over\n" +
			"the earlier. Secrets come from NARAD_ADMIN_PASSWORD and NARAD_CLUSTER_SECRET alone.",
	}
	file := cmd.Flags().String("config", "", "a JSON file of settings")
	port := cmd.Flags().String("port", "", "port of the API, on every address")
	clusterPort := cmd.Flags().String("cluster-port", "", "port of Raft, on every address")
	values := map[string]*string{}
	for _, f := range serveFlags {
		values[f.setting] = cmd.Flags().String(f.flag, "", f.help)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		flags := map[string]string{}
		if *port != "" {
			flags["http.addr"] = net.JoinHostPort("", *port)
		}
		if *clusterPort != "" {
			flags["cluster.addr"] = net.JoinHostPort("", *clusterPort)
		}
		for _, f := range serveFlags {
			if cmd.Flags().Changed(f.flag) {
				flags[f.setting] = *values[f.setting]
			}
		}
		c, err := config.Load(config.Sources{File: *file, Env: os.Environ(), Flags: flags})
		if err != nil {
			return err
		}
		return serve(cmd.Context(), c, config.SecretsFrom(os.Environ()), cmd.OutOrStdout())
	}
	return cmd
}

// devCommand is `narad server start --dev`: loopback, security off, data in the home folder.
func devCommand() *cobra.Command {
	server := &cobra.Command{Use: "server", Short: "Run a node for development"}
	start := &cobra.Command{Use: "start", Short: "Start a node", Args: cobra.NoArgs}
	dev := start.Flags().Bool("dev", false, "loopback, security off")
	start.RunE = func(cmd *cobra.Command, _ []string) error {
		if !*dev {
			return cmd.Help()
		}
		home, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		c := config.Default()
		c.HTTP.Addr, c.Cluster.Addr = "127.0.0.1:7942", "127.0.0.1:7943"
		c.Storage.DataDir = filepath.Join(home, ".narad", "data")
		c.Security.Enabled = false
		c.Log.Format = "text"
		if err := c.Validate(); err != nil {
			return err
		}
		return serve(cmd.Context(), c, config.SecretsFrom(os.Environ()), cmd.OutOrStdout())
	}
	server.AddCommand(start)
	return server
}

// serve runs a node until ctx ends, then stops it gracefully.
func serve(ctx context.Context, c config.Config, secrets config.Secrets, out io.Writer) error {
	n, err := node.Start(ctx, node.Options{
		Config: c, Secrets: secrets, Network: node.OSNetwork{}, FS: vfs.OS(), Logger: logger(c.Log, out), Older: older(),
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	// The grace of the node's own settings bounds each step; twice that bounds the whole.
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Duration(c.HTTP.ShutdownGrace))
	defer cancel()
	return n.Stop(stopping)
}

func logger(l config.Log, out io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // validated with the rest
	o := &slog.HandlerOptions{Level: level}
	if l.Format == "text" {
		return slog.New(slog.NewTextHandler(out, o))
	}
	return slog.New(slog.NewJSONHandler(out, o))
}
