// What commands ask the gateway for, and how they print it.

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"github.com/spf13/cobra"

	"parley/gateway/client"
)

// List is a page of what the API lists.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// Fetch reads path and prints it: as JSON, or by render.
func Fetch[T any](ctx context.Context, a *App, path string, render func(T) error) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	var v T
	if err := cl.Get(ctx, path, &v); err != nil {
		return Hint(err)
	}
	if a.JSON {
		return a.ShowJSON(v)
	}
	return render(v)
}

// Post sends body to path and reads the answer.
func Post[T any](ctx context.Context, a *App, path string, body any) (v T, err error) {
	cl, err := a.Client()
	if err != nil {
		return v, err
	}
	defer cl.Close()
	return v, Hint(cl.Post(ctx, path, body, &v))
}

// With asks the gateway, and prints as JSON or by render.
func With[T any](c *cobra.Command, a *App, ask func(context.Context, *client.Client) (T, error), render func(T) error) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	v, err := ask(c.Context(), cl)
	if err != nil {
		return Hint(err)
	}
	if a.JSON {
		return a.ShowJSON(v)
	}
	return render(v)
}

// Pages adds the flags of a list that comes in pages.
func Pages(c *cobra.Command, limit *int, after *string, most int) *cobra.Command {
	c.Flags().IntVar(limit, "limit", most, "at most this `many`, 1 to 500")
	c.Flags().StringVar(after, "after", "", "go on after `what` the page before named")
	return c
}

// More says how to go on, on standard error: a table stays a table.
func (a *App) More(next *string, err error) error {
	if err != nil || next == nil || a.JSON {
		return err
	}
	_, err = fmt.Fprintf(a.Errs, "more: --after %s\n", *next)
	return err
}

// Hint adds what to do to what a gateway, or the lack of one, says.
func Hint(err error) error {
	var p *client.Problem
	switch {
	case errors.Is(err, client.ErrUnreachable):
		return fmt.Errorf("%w; start it with: parley gateway", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: another program listens there already, perhaps a gateway of yours. Stop it, or have this one listen "+
			"elsewhere: gateway.listen, or PARLEY_GATEWAY_LISTEN=127.0.0.1:8421", err)
	case errors.As(err, &p) && p.Status == http.StatusUnauthorized:
		return errors.New("the gateway that answers there does not take this token, so it is probably another one, with another " +
			"data directory: name yours with --data-dir or --config, or have yours listen elsewhere (gateway.listen, or " +
			"PARLEY_GATEWAY_LISTEN)")
	}
	return err
}
