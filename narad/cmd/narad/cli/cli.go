// Package cli is the client side of the command line (api.md, CLI): topics, records, users, remotes. Each command is one or a
// few calls of narad/client and prints what came back.
//
// It promises: the exit is an error whenever an answer refuses; records are printed and sent byte for byte, one to a line;
// a remote's password is read from standard input alone and never sent over plain http to another host (CRD-16). It runs no
// loop beyond the command itself.
//
// Refused: a password of a remote as a flag or in the environment, where other processes can read it.
package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"narad.example/narad/client"
)

// defaultServer is a node on this machine.
const defaultServer = "http://127.0.0.1:7942"

// Global is what every client command needs: the server, who asks, and standard input.
type Global struct {
	HTTP *http.Client // nil is Go's default

	server        string
	user          string
	password      string
	passwordStdin bool
	lines         *bufio.Reader
}

// Flags adds the global flags, whose defaults come from the environment.
func (g *Global) Flags(f *pflag.FlagSet, getenv func(string) string) {
	def := func(name, fallback string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return fallback
	}
	f.StringVarP(&g.server, "server", "s", def("NARAD_ADDR", defaultServer), "URL or host:port of a node (NARAD_ADDR)")
	f.StringVarP(&g.user, "user", "u", getenv("NARAD_USER"), "user (NARAD_USER)")
	// The default is not given to the flag, since the help text would show it.
	f.StringVarP(&g.password, "password", "p", "", "password (NARAD_PASS)")
	f.BoolVar(&g.passwordStdin, "password-stdin", false, "read the password from the first line of standard input")
	if g.password == "" {
		g.password = getenv("NARAD_PASS")
	}
}

// Commands are the client commands.
func Commands(g *Global) []*cobra.Command {
	return []*cobra.Command{g.topicCommand(), g.pubCommand(), g.subCommand(), g.replayCommand(), g.userCommand(), g.remoteCommand(), g.clusterCommand()}
}

// base is the server as a URL.
func (g *Global) base() string {
	if strings.Contains(g.server, "://") {
		return g.server
	}
	return "http://" + g.server
}

// line reads the next line of standard input, without its end.
func (g *Global) line(cmd *cobra.Command, what string) (string, error) {
	if g.lines == nil {
		g.lines = bufio.NewReader(cmd.InOrStdin())
	}
	s, err := g.lines.ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || s == "") {
		return "", fmt.Errorf("%s is expected on standard input", what)
	}
	return strings.TrimRight(s, "\r\n"), nil
}

// connect makes the client of a command.
func (g *Global) connect(cmd *cobra.Command) (*client.Client, error) {
	if g.passwordStdin {
		var err error
		if g.password, err = g.line(cmd, "the password"); err != nil {
			return nil, err
		}
		g.passwordStdin = false
	}
	return client.New(client.Options{BaseURL: g.base(), User: g.user, Password: g.password, HTTP: g.HTTP, Name: "narad-cli"}), nil
}

// safeForSecrets refuses plain http to another host (CRD-16).
func (g *Global) safeForSecrets() error {
	u, err := url.Parse(g.base())
	if err != nil {
		return errors.New("the server is no URL")
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	if u.Scheme == "https" || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return errors.New("a remote's password is not sent over plain http to another host; use https or a tunnel to this one")
}

// printJSON shows a value as indented JSON.
func printJSON(cmd *cobra.Command, v any) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints rows in columns.
func table(cmd *cobra.Command, head string, rows func(add func(cells ...any))) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(w, head)
	rows(func(cells ...any) {
		for i, c := range cells {
			if err == nil && i > 0 {
				_, err = fmt.Fprint(w, "\t")
			}
			if err == nil {
				_, err = fmt.Fprint(w, c)
			}
		}
		if err == nil {
			_, err = fmt.Fprintln(w)
		}
	})
	return errors.Join(err, w.Flush())
}

// run wraps what a command does with its client.
func (g *Global) run(do func(cmd *cobra.Command, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := g.connect(cmd)
		if err != nil {
			return err
		}
		return do(cmd, c, args)
	}
}
