// A run, followed to its end.

package printer

import (
	"context"
	"errors"
	"net/url"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
)

// Follow prints a run to its end, over a gateway that is started again in between.
func (p *Printer) Follow(ctx context.Context, cl *client.Client, input string) error {
	for {
		err := cl.Events(ctx, "/v1/runs/"+url.PathEscape(input)+"/events", p.after, p.See)
		if p.ended || ctx.Err() != nil || errors.As(err, new(*client.Problem)) {
			return err
		}
		if err := cl.Wait(ctx, cli.ComeBack); err != nil {
			return err
		}
		var run struct{ State string }
		if err := cl.Get(ctx, "/v1/runs/"+url.PathEscape(input), &run); err != nil {
			return err
		}
		if Over(run.State) {
			return nil
		}
	}
}

// Over says whether a state is a run's or input's last.
func Over(state string) bool {
	switch state {
	case "queued", "taken", "running", "waiting", "paused", "pending", "starting", "stale":
		return false
	}
	return true
}
