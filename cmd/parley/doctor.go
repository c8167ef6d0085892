// What is wrong, with or without a running gateway.

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/channels/all"
	"parley/cmd/parley/internal/cli"
	"parley/configs"
	"parley/gateway"
	"parley/gateway/client"
)

func doctorCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "doctor", Short: "Look for what is wrong, with or without a running gateway", Args: cobra.NoArgs,
		Long: "Examine the configuration, the data directory, the token, the store, channels and models, and say who you are. What is " +
			"marked todo is for you to do, and the last line counts that. Exit code 1 says that something is wrong."}
	c.RunE = func(c *cobra.Command, _ []string) error {
		src, conf, err := a.Load()
		if err != nil {
			return err
		}
		where := conf.Path
		if where == "" {
			where = "no file, all is default"
		}
		done := a.Progress("looking")
		list := []gateway.Finding{{OK: true, What: "configuration (" + where + ")"}}
		running, found := askGateway(c.Context(), a, conf)
		list = append(list, found...)
		list = append(list, gateway.Doctor(c.Context(), gateway.Options{Source: src, Channels: all.Factories()}, running)...)
		done()
		return diagnose(a, list)
	}
	return a.JSONFlag(c)
}

// askGateway asks the one that runs, if one does.
func askGateway(ctx context.Context, a *cli.App, conf *configs.Config) (running bool, list []gateway.Finding) {
	cl, err := a.Client()
	if err != nil {
		return false, []gateway.Finding{{What: err.Error()}}
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	st, err := cli.Status(ctx, cl, "")
	switch {
	case errors.Is(err, client.ErrUnreachable):
		return false, []gateway.Finding{{OK: true, Todo: true, What: "no gateway runs at " + conf.Gateway.Listen,
			Hint: "Start it with: parley gateway"}}
	case err != nil:
		return true, []gateway.Finding{{What: "gateway at " + cl.Base() + ": " + err.Error(),
			Hint: "Is it another gateway, or another token?"}}
	}
	list = []gateway.Finding{{OK: true, What: fmt.Sprintf("gateway runs at %s, up %s", cl.Base(), time.Duration(st.Uptime)*time.Second)}}
	list = append(list, gateway.Finding{OK: st.Health == "ok" || st.Health == "degraded", What: "store is " + st.Health, Hint: st.Reason})
	if former := st.Former(); former != "" {
		list = append(list, gateway.Finding{What: "gateway: " + former,
			Hint: "Mend it; the gateway tries again when the file is saved, and on: systemctl reload parley, or kill -HUP"})
	}
	for _, ch := range st.Channels {
		list = append(list, gateway.Finding{OK: slices.Contains([]string{"ready", "connecting", "idle"}, string(ch.State)),
			What: strings.TrimSpace(fmt.Sprintf("channel %s is %s %s", ch.Name, ch.State, ch.Cause)), Hint: ch.Hint})
	}
	return true, list
}

// diagnose prints the findings; a bad one fails the command.
func diagnose(a *cli.App, list []gateway.Finding) error {
	wrong, todo := 0, 0
	for _, f := range list {
		switch {
		case !f.OK:
			wrong++
		case f.Todo:
			todo++
		}
	}
	if a.JSON {
		if err := a.ShowJSON(struct {
			OK       bool              `json:"ok"`
			Findings []gateway.Finding `json:"findings"`
		}{wrong == 0, list}); err != nil {
			return err
		}
	} else {
		for _, f := range list {
			fmt.Fprintf(a.Out, "%s %s\n", mark(a, f), cli.Visible(f.What))
			if f.Hint != "" {
				fmt.Fprintf(a.Out, "      %s\n", cli.Visible(cli.Hinted(f.Hint)))
			}
		}
		fmt.Fprintln(a.Out, things(wrong+todo))
	}
	if wrong > 0 {
		return cli.ErrSaid
	}
	return nil
}

// mark is what a finding begins with.
func mark(a *cli.App, f gateway.Finding) string {
	switch {
	case !f.OK:
		return cli.Paint(a.Out, cli.Red, "WRONG")
	case f.Todo:
		return cli.Paint(a.Out, cli.Yellow, "todo ")
	case f.Warn:
		return cli.Paint(a.Out, cli.Yellow, "warn ")
	}
	return cli.Paint(a.Out, cli.Green, "ok   ")
}

// things are how many are left for whoever asked.
func things(n int) string {
	switch n {
	case 0:
		return "nothing to do"
	case 1:
		return "1 thing to do"
	}
	return fmt.Sprintf("%d things to do", n)
}
