// One message and its answer.

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
)

const (
	waitTurn = 15 * 60 // seconds that send waits: longer than a turn may take by default, so that its end is heard of
	waitMost = 24 * 60 * 60
	waitOnce = 60 // seconds of one request; the same key makes the next one harmless
)

func sendCommand(a *cli.App) *cobra.Command {
	var m client.Message
	var wait int
	c := &cobra.Command{Use: "send TEXT", Short: "Say one thing and print the answer",
		Example: "  parley send \"what is on today?\"\n  git diff | parley send -",
		Long: "Say one thing to a running gateway and print the answer. TEXT - is read from standard input. " +
			"Leaving early cancels nothing."}
	c.Flags().StringVar(&m.Session, "session", "", "`name` of the session, or a whole session key (default: main)")
	c.Flags().StringVar(&m.Agent, "agent", "", "`id` of the agent (default: the default agent)")
	c.Flags().IntVar(&wait, "wait", waitTurn, "`seconds` to wait for the answer; 0: print the input's id and go")
	c.Flags().StringVar(&m.Key, "key", "", "idempotency `key`: the same one again gives the first answer again")
	c.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return errors.New("send takes TEXT, or - to read it from standard input")
		case wait < 0 || wait > waitMost:
			return fmt.Errorf("--wait is a number of seconds from 0 to %d", waitMost)
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		m.Text = strings.Join(args, " ")
		if m.Text == "-" {
			data, err := io.ReadAll(io.LimitReader(a.In, cli.MaxTyped+1))
			if err != nil {
				return fmt.Errorf("read standard input: %w", err)
			}
			m.Text = string(data)
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		defer cl.Close()
		if m.Key == "" {
			m.Key = rand.Text()
		}
		done := a.Progress("waiting for the answer (Ctrl-C leaves it running)")
		got, err := await(c.Context(), cl, m, time.Duration(wait)*time.Second)
		done()
		if err != nil {
			return cli.Hint(err)
		}
		return answer(a, got, wait)
	}
	return a.JSONFlag(c)
}

// await sends a message and asks for its answer until it is there or the time is over, over a gateway that is started again
// in between.
func await(ctx context.Context, cl *client.Client, m client.Message, most time.Duration) (got client.Answer, err error) {
	end := time.Now().Add(most)
	for sent := false; ; sent = true {
		m.Wait = int(min(max(0, time.Until(end)).Round(time.Second).Seconds(), waitOnce))
		now, err := cl.Send(ctx, m)
		switch {
		case err == nil:
			if got = now; got.State != "" || !time.Now().Before(end) || m.Wait == 0 {
				return got, nil
			}
		case ctx.Err() != nil || errors.As(err, new(*client.Problem)) || !sent && errors.Is(err, client.ErrUnreachable):
			return got, err
		default: // it was cut: the message may have arrived
			if err := cl.Wait(ctx, cli.ComeBack); err != nil {
				return got, err
			}
		}
	}
}

// answer prints what came of a message.
func answer(a *cli.App, got client.Answer, wait int) error {
	failed := got.State == "failed" || got.State == "timeout" || got.State == "dropped"
	switch {
	case a.JSON:
		if err := a.ShowJSON(got); err != nil {
			return err
		}
	case got.State == "" && wait > 0:
		fmt.Fprintf(a.Errs, "no answer yet; it goes on as %s (%s run show %s)\n", cli.Short(got.InputID), cli.Program(), got.InputID)
	case got.State == "":
		fmt.Fprintln(a.Out, got.InputID)
	case failed:
		fmt.Fprintln(a.Errs, cli.Visible(got.Text))
	default:
		fmt.Fprintln(a.Out, cli.Visible(got.Text))
	}
	if failed {
		return cli.ErrSaid
	}
	return nil
}
