package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/mdp/qrterminal/v3"
	"github.com/spf13/cobra"

	"parley/gateway/client"
)

// login is an attempt to link a channel, as the gateway tells it.
type login struct {
	Channel string    `json:"channel"`
	State   string    `json:"state"`
	Step    int       `json:"step"`
	QR      string    `json:"qr,omitempty"`
	Code    string    `json:"code,omitempty"`
	Note    string    `json:"note,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// channelLogin shows the codes that the running gateway gets, until one was used.
func (a *app) channelLogin() *cobra.Command {
	var phone string
	c := &cobra.Command{Use: "login NAME", Short: "Link a channel to an account of its network", Args: exactly("NAME"),
		Long: "Link a channel to an account of its network, by a QR code to scan or, with --phone, by a code to type on the phone. The running\n" +
			"gateway does it; interrupting this command gives up.",
		Example: "  parley channel login wa\n  parley channel login wa --phone +4915123456789",
		RunE: func(c *cobra.Command, args []string) error {
			path := "/v1/channels/" + url.PathEscape(args[0]) + "/login"
			cl, err := a.client()
			if err != nil {
				return err
			}
			defer cl.Close()
			var l login
			body := map[string]string{}
			if phone != "" {
				body["phone"] = phone
			}
			if err := cl.Post(c.Context(), path, body, &l); err != nil {
				return hint(err)
			}
			l, err = a.followLogin(c.Context(), cl, path, l)
			if err != nil {
				return err
			}
			if a.json {
				return a.show(l)
			}
			if l.State != "linked" {
				return fmt.Errorf("%s is not linked: %s", args[0], visible(l.Error))
			}
			_, err = fmt.Fprintf(a.out, "%s is linked. %s\nHow it is: parley channel status %s\n", args[0], visible(l.Note), args[0])
			return err
		}}
	c.Flags().StringVar(&phone, "phone", "", "the account's phone `number` with country code: show a code to type instead of one to scan")
	return c
}

// followLogin shows every step until the attempt has ended, and gives it up when this command is interrupted.
func (a *app) followLogin(ctx context.Context, cl *client.Client, path string, l login) (login, error) {
	for {
		a.showStep(l)
		if l.State != "waiting" {
			return l, nil
		}
		var next login
		if err := cl.Get(ctx, path+"?after="+strconv.Itoa(l.Step), &next); err != nil {
			if ctx.Err() == nil {
				return l, hint(err)
			}
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return l, errors.Join(ctx.Err(), cl.Delete(late, path))
		}
		if next.Step == l.Step && next.State == l.State {
			continue
		}
		l = next
	}
}

// showStep prints a code. A QR code is drawn with half blocks: 70 columns and 36 lines.
func (a *app) showStep(l login) {
	if a.json || l.State != "waiting" || l.QR == "" && l.Code == "" {
		return
	}
	fmt.Fprintln(a.out)
	if l.QR != "" {
		qrterminal.GenerateHalfBlock(l.QR, qrterminal.L, a.out)
	} else {
		fmt.Fprintf(a.out, "The code: %s\n", visible(l.Code))
	}
	fmt.Fprintln(a.out, visible(l.Note))
	if l.Code != "" && !l.Expires.IsZero() {
		fmt.Fprintf(a.out, "It holds until %s.\n", l.Expires.Local().Format("15:04:05"))
	}
}
