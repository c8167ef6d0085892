package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley/gateway/client"
)

func (a *app) peopleCommand() *cobra.Command {
	group := &cobra.Command{Use: "people", Short: "See who is known, with which role and accounts", Args: cobra.NoArgs, RunE: needsVerb,
		Long: "See who is known. People are named in the configuration, or made by pairing approve."}
	var limit int
	var after string
	ls := &cobra.Command{Use: "list", Short: "List people", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return with(c, a, func(ctx context.Context, cl *client.Client) (client.List[client.Person], error) {
			return cl.People(ctx, client.Query{}.Page(limit, after))
		}, func(l client.List[client.Person]) error {
			var rows [][]string
			for _, p := range l.Items {
				rows = append(rows, []string{p.ID, p.Name, p.Role, p.TZ, accounts(p)})
			}
			return a.more(l.Next, a.table([]string{"ID", "NAME", "ROLE", "ZONE", "ACCOUNTS"}, rows))
		})
	}}
	show := &cobra.Command{Use: "show ID", Short: "Show one of them", Args: exactly("ID"), RunE: func(c *cobra.Command, args []string) error {
		return with(c, a, func(ctx context.Context, cl *client.Client) (client.Person, error) { return cl.Person(ctx, args[0]) }, func(p client.Person) error {
			for _, line := range [][2]string{{"id", p.ID}, {"name", p.Name}, {"role", p.Role}, {"zone", p.TZ}} {
				if line[1] != "" {
					fmt.Fprintf(a.out, "%-8s %s\n", line[0], visible(line[1]))
				}
			}
			for _, x := range p.Accounts {
				fmt.Fprintln(a.out, strings.TrimSpace(fmt.Sprintf("%-8s %s user %s %s", "account", x.Network, visible(x.User), visible(x.Name))))
			}
			return nil
		})
	}}
	group.AddCommand(a.jsonFlag(pages(ls, &limit, &after, 100)), a.jsonFlag(show))
	return group
}

func accounts(p client.Person) string {
	var list []string
	for _, x := range p.Accounts {
		list = append(list, x.Network+":"+x.User)
	}
	return strings.Join(list, " ")
}
