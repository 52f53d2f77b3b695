package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

func (g *Global) remoteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "remote", Short: "Administer the clusters that links may send to"}
	cmd.AddCommand(g.remoteAdd(), g.remoteSet(), g.remoteTest(), g.remoteReencrypt(), g.remoteList(), g.remoteRemove())
	return cmd
}

func (g *Global) remoteAdd() *cobra.Command {
	var req wire.CreateRemote
	var limits wire.Limits
	var caFile string
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make a remote whose password is the next line of standard input", Args: cobra.ExactArgs(1),
	}
	f := cmd.Flags()
	f.StringVar(&req.URL, "url", "", "https URL of the cluster")
	f.StringVar(&req.Username, "username", "", "user there")
	f.StringVar(&caFile, "ca", "", "file of the certificates to trust; absent trusts the system's")
	f.IntVar(&limits.MaxInFlight, "max-in-flight", 0, "requests at once per node")
	f.StringVar(&limits.Compression, "compression", "", "none or zstd")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := g.safeForSecrets(); err != nil { // before a password is asked for
			return err
		}
		c, err := g.connect(cmd)
		if err != nil {
			return err
		}
		req.Name = args[0]
		if caFile != "" {
			if req.CAPEM, err = readCA(caFile); err != nil {
				return err
			}
		}
		if limits != (wire.Limits{}) {
			req.Limits = &limits
		}
		if req.Password, err = g.line(cmd, "the remote's password"); err != nil {
			return err
		}
		r, err := c.Remotes().Create(cmd.Context(), req)
		if err != nil {
			return err
		}
		return printJSON(cmd, r)
	}
	return cmd
}

func readCA(file string) (string, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the certificates: %w", err)
	}
	return string(pem), nil
}

func (g *Global) remoteList() *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List remotes", Args: cobra.NoArgs}
	noNodes := cmd.Flags().Bool("no-nodes", false, "without every node's view")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		l, err := c.Remotes().List(cmd.Context(), !*noNodes)
		if err != nil {
			return err
		}
		return printJSON(cmd, l)
	})
	return cmd
}

func (g *Global) remoteReencrypt() *cobra.Command {
	return &cobra.Command{
		Use: "reencrypt", Args: cobra.NoArgs,
		Short: "Seal every remote's password under the present cluster secret; exits non-zero when one could not be opened",
		RunE: g.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			r, err := c.Remotes().Reencrypt(cmd.Context())
			if err != nil {
				return err
			}
			if err = printJSON(cmd, r); err != nil {
				return err
			}
			if len(r.Failed) > 0 {
				return fmt.Errorf("%d remotes could not be opened; give them their password again with `narad remote set`", len(r.Failed))
			}
			return nil
		}),
	}
}

func (g *Global) remoteRemove() *cobra.Command {
	cmd := &cobra.Command{Use: "rm NAME", Short: "Delete a remote", Args: cobra.ExactArgs(1)}
	force := cmd.Flags().Bool("force", false, "also while links use it")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		return c.Remotes().Delete(cmd.Context(), args[0], *force)
	})
	return cmd
}
