package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// remoteFlags are the fields that `remote set` can change.
type remoteFlags struct {
	url, username, caFile   string
	noCA, password          bool
	inFlight                int
	compression             string
	request, idle, age, gap time.Duration
}

func (r *remoteFlags) add(f *pflag.FlagSet) {
	f.StringVar(&r.url, "url", "", "https URL of the cluster")
	f.StringVar(&r.username, "username", "", "user there")
	f.StringVar(&r.caFile, "ca", "", "file of the certificates to trust")
	f.BoolVar(&r.noCA, "no-ca", false, "trust the system's certificates again")
	f.BoolVar(&r.password, "new-password", false, "change the password too")
	f.IntVar(&r.inFlight, "max-in-flight", 0, "requests at once per node")
	f.StringVar(&r.compression, "compression", "", "none or zstd")
	f.DurationVar(&r.request, "request-timeout", 0, "time for one request")
	f.DurationVar(&r.idle, "idle-conn-timeout", 0, "how long an idle connection is kept")
	f.DurationVar(&r.age, "conn-max-age", 0, "how long a connection is used")
	f.DurationVar(&r.gap, "check-interval", 0, "time between two checks of a target")
}

// patch names what the flags that were given change, and whether that needs the password: a new one, or a field that it was sealed
// with (CRD-04).
func (r *remoteFlags) patch(f *pflag.FlagSet) (p wire.PatchRemote, password bool, err error) {
	text := func(flag string, to **string, value string) {
		if f.Changed(flag) {
			*to = &value
		}
	}
	text("url", &p.URL, r.url)
	text("username", &p.Username, r.username)
	if r.noCA {
		p.CAPEM = new(string)
	}
	if r.caFile != "" {
		pem, readErr := readCA(r.caFile)
		if readErr != nil {
			return p, false, readErr
		}
		p.CAPEM = &pem
	}
	var l wire.PatchLimits
	text("compression", &l.Compression, r.compression)
	if f.Changed("max-in-flight") {
		l.MaxInFlight = &r.inFlight
	}
	span := func(flag string, to **int64, d time.Duration) {
		if f.Changed(flag) {
			*to = ms(d)
		}
	}
	span("request-timeout", &l.RequestTimeoutMS, r.request)
	span("idle-conn-timeout", &l.IdleConnTimeoutMS, r.idle)
	span("conn-max-age", &l.ConnMaxAgeMS, r.age)
	span("check-interval", &l.CheckIntervalMS, r.gap)
	if l != (wire.PatchLimits{}) {
		p.Limits = &l
	}
	password = r.password || p.URL != nil || p.Username != nil || p.CAPEM != nil
	if !password && p.Limits == nil {
		return p, false, errors.New("nothing to change: give a flag at least")
	}
	return p, password, nil
}

func (g *Global) remoteSet() *cobra.Command {
	var flags remoteFlags
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change a remote; only the flags given count. The password, where one is needed, is the next line of standard input",
		Args: cobra.ExactArgs(1),
	}
	flags.add(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("ca", "no-ca")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		req, password, err := flags.patch(cmd.Flags())
		if err != nil {
			return err
		}
		if password {
			if err = g.safeForSecrets(); err != nil { // before a password is asked for
				return err
			}
		}
		c, err := g.connect(cmd)
		if err != nil {
			return err
		}
		if password {
			secret, lineErr := g.line(cmd, "the remote's password")
			if lineErr != nil {
				return lineErr
			}
			req.Password = &secret
		}
		r, err := c.Remotes().Patch(cmd.Context(), args[0], req)
		if err != nil {
			return err
		}
		return printJSON(cmd, r)
	}
	return cmd
}

func (g *Global) remoteTest() *cobra.Command {
	var req wire.TestRemote
	cmd := &cobra.Command{Use: "test NAME", Short: "Check a remote as an attach would; exits non-zero unless it passes", Args: cobra.ExactArgs(1)}
	cmd.Flags().StringVar(&req.Topic, "topic", "", "topic there")
	cmd.Flags().StringVar(&req.Source, "source", "", "topic here that would be copied to it")
	if err := cmd.MarkFlagRequired("topic"); err != nil {
		panic(err) // the flag is added above
	}
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		t, err := c.Remotes().Test(cmd.Context(), args[0], req)
		if err != nil {
			return err
		}
		if err = printJSON(cmd, t); err != nil {
			return err
		}
		if t.Result != wire.CheckPass {
			return errors.New("the check failed: " + t.Class)
		}
		return nil
	})
	return cmd
}
