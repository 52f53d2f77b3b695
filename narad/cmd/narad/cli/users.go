package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

func (g *Global) userCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Make users and give them grants"}
	cmd.AddCommand(g.userAdd(), g.userGrant(), &cobra.Command{
		Use: "ls", Short: "List users", Args: cobra.NoArgs,
		RunE: g.run(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			users, err := c.Users().List(cmd.Context())
			if err != nil {
				return err
			}
			return table(cmd, "NAME\tGRANTS", func(add func(...any)) {
				for _, u := range users {
					add(u.Username, spell(u))
				}
			})
		}),
	}, &cobra.Command{
		Use: "rm NAME", Short: "Delete a user", Args: cobra.ExactArgs(1),
		RunE: g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			return c.Users().Delete(cmd.Context(), args[0])
		}),
	})
	return cmd
}

func (g *Global) userAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make a user whose password is the next line of standard input", Args: cobra.ExactArgs(1),
	}
	grants := cmd.Flags().StringArray("grant", nil, "admin, or produce:PATTERN,..., consume:..., create:...")
	cmd.RunE = g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
		gs, err := parseGrants(*grants)
		if err != nil {
			return err
		}
		password, err := g.line(cmd, "the new user's password")
		if err != nil {
			return err
		}
		u, err := c.Users().Create(cmd.Context(), wire.CreateUser{Username: args[0], Password: password, Grants: gs})
		if err != nil {
			return err
		}
		return printJSON(cmd, u)
	})
	return cmd
}

func (g *Global) userGrant() *cobra.Command {
	return &cobra.Command{
		Use: "grant NAME [GRANT...]", Short: "Replace all grants of a user", Args: cobra.MinimumNArgs(1),
		RunE: g.run(func(cmd *cobra.Command, c *client.Client, args []string) error {
			gs, err := parseGrants(args[1:])
			if err != nil {
				return err
			}
			u, err := c.Users().ReplaceGrants(cmd.Context(), args[0], gs)
			if err != nil {
				return err
			}
			return printJSON(cmd, u)
		}),
	}
}

// parseGrants reads `admin` and `action:pattern,pattern`.
func parseGrants(args []string) ([]wire.Grant, error) {
	var out []wire.Grant
	for _, a := range args {
		action, patterns, found := strings.Cut(a, ":")
		switch {
		case a == wire.ActionAdmin:
			out = append(out, wire.Grant{Action: a})
		case found && action != "" && patterns != "":
			out = append(out, wire.Grant{Action: action, Patterns: strings.Split(patterns, ",")})
		default:
			return nil, errors.New("a grant is admin, or an action and patterns such as produce:orders*")
		}
	}
	return out, nil
}

func spell(u wire.User) string {
	var out []string
	if u.Root {
		out = append(out, "root")
	}
	for _, gr := range u.Grants {
		s := gr.Action
		if len(gr.Patterns) > 0 {
			s += ":" + strings.Join(gr.Patterns, ",")
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}
