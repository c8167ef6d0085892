package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"parley/gateway/client"
)

func (a *app) sendCommand() *cobra.Command {
	var m client.Message
	c := &cobra.Command{Use: "send TEXT", Short: "Say one thing and print the answer", Example: "  parley send \"what is on today?\"\n  git diff | parley send -",
		Long: "Say one thing to a running gateway and print the answer. TEXT - is read from standard input. Leaving early cancels nothing."}
	c.Flags().StringVar(&m.Session, "session", "", "`name` of the session, or a whole session key (default: main)")
	c.Flags().StringVar(&m.Agent, "agent", "", "`id` of the agent (default: the default agent)")
	c.Flags().IntVar(&m.Wait, "wait", 600, "`seconds` to wait for the answer, 0 to 600; 0: print the input's id and go")
	c.Flags().StringVar(&m.Key, "key", "", "idempotency `key`: the same one again gives the first answer again")
	c.Args = cobra.MinimumNArgs(1)
	c.RunE = func(c *cobra.Command, args []string) error {
		m.Text = strings.Join(args, " ")
		if m.Text == "-" {
			data, err := io.ReadAll(io.LimitReader(a.in, maxTyped+1))
			if err != nil {
				return fmt.Errorf("read standard input: %w", err)
			}
			m.Text = string(data)
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		defer cl.Close()
		got, err := cl.Send(c.Context(), m)
		if err != nil {
			return hint(err)
		}
		return a.answer(got, m.Wait)
	}
	return a.jsonFlag(c)
}

// answer prints what came of a message.
func (a *app) answer(got client.Answer, wait int) error {
	failed := got.State == "failed" || got.State == "timeout" || got.State == "dropped"
	switch {
	case a.json:
		if err := a.show(got); err != nil {
			return err
		}
	case got.State == "" && wait > 0:
		fmt.Fprintf(a.errs, "no answer yet; it goes on as %s (parley run show %s)\n", short(got.InputID), got.InputID)
	case got.State == "":
		fmt.Fprintln(a.out, got.InputID)
	case failed:
		fmt.Fprintln(a.errs, visible(got.Text))
	default:
		fmt.Fprintln(a.out, visible(got.Text))
	}
	if failed {
		return errSaid
	}
	return nil
}
