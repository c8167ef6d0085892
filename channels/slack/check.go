package slack

import (
	"context"
	"strings"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

// Check asks Slack who the bot is, what the workspace granted, and whether a socket could be opened. It changes nothing.
func (c *Channel) Check(ctx context.Context) []channels.Finding {
	self, err := c.whoami(ctx)
	if err != nil {
		return []channels.Finding{trouble("Slack refuses the bot token", "Slack does not answer", err)}
	}
	found := []channels.Finding{{OK: true, What: "the bot token is that of @" + self.name + " (" + self.user + ") in the workspace " + self.teamName + " (" + self.team + ")"}}
	if len(self.missing) > 0 {
		found = append(found, channels.Finding{What: "the app lacks scopes: " + describe(self.missing), Hint: reinstall})
	} else {
		found = append(found, channels.Finding{OK: true, What: "no scope is known to be missing"})
	}
	if c.opts.Mode == "http" {
		return append(found, channels.Finding{OK: true, What: "Slack posts events to this gateway",
			Hint: "In the app, Event Subscriptions, Interactivity and the slash command must all have the address …/channels/<name>/events."})
	}
	err = c.do(ctx, "apps.connections.open", func(ctx context.Context, api *slackgo.Client) error {
		_, _, err := api.StartSocketModeContext(ctx)
		return err
	})
	if err != nil {
		return append(found, trouble("Slack refuses a socket", "a socket cannot be opened", err))
	}
	return append(found, channels.Finding{OK: true, What: "the app token opens a socket"})
}

func trouble(refusedText, awayText string, err error) channels.Finding {
	if code := codeOf(err); code != "" {
		return channels.Finding{What: refusedText + ": " + code, Hint: advice(code)}
	}
	return channels.Finding{What: awayText + ": " + channels.CauseOf(err), Hint: "Check the network, and api_url if it is set."}
}

// describe says what missing scopes are for.
func describe(missing []string) string {
	var parts []string
	for _, name := range missing {
		for _, s := range scopes() {
			if s[0] == name {
				parts = append(parts, name+" ("+s[1]+")")
			}
		}
	}
	return strings.Join(parts, ", ")
}
