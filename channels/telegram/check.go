package telegram

import (
	"context"
	"fmt"

	"parley/channels"
)

// Check asks Telegram who the bot is, what it may read, and whether a webhook stands in the way. It changes nothing.
func (c *Channel) Check(ctx context.Context) []channels.Finding {
	self, err := c.whoami(ctx)
	if err != nil {
		f := channels.Finding{What: "Telegram does not answer: " + channels.CauseOf(err), Hint: "Check the network, and api_url if it is set."}
		if channels.ClassOf(err) == channels.Fatal {
			f = channels.Finding{What: "Telegram refuses the token", Hint: "Get a valid token from @BotFather and check that it was copied whole."}
		}
		return []channels.Finding{f}
	}
	found := []channels.Finding{{OK: true, What: fmt.Sprintf("the token is that of @%s (id %d)", self.Username, self.ID)}}
	found = append(found, groupFindings(self)...)
	return append(found, c.webhookFinding(ctx))
}

func groupFindings(self *identity) []channels.Finding {
	var found []channels.Finding
	if !self.Joins {
		found = append(found, channels.Finding{OK: true, What: "the bot cannot be added to groups",
			Hint: "To allow it: @BotFather, /setjoingroups, Enable."})
	}
	if self.ReadsAll {
		return append(found, channels.Finding{OK: true, What: "in groups the bot reads every message"})
	}
	return append(found, channels.Finding{OK: true, What: "in groups the bot reads only commands, mentions and replies to it (privacy mode)",
		Hint: "To have it read everything: @BotFather, /setprivacy, Disable; then remove the bot from the group and add it again."})
}

func (c *Channel) webhookFinding(ctx context.Context) channels.Finding {
	info, err := c.webhook(ctx)
	switch {
	case err != nil:
		return channels.Finding{What: "the webhook cannot be asked about: " + channels.CauseOf(err), Hint: "Try again."}
	case info.URL != "":
		return channels.Finding{What: "a webhook is set for this bot",
			Hint: "The gateway removes it when it starts. If it comes back, another program uses this token."}
	}
	return channels.Finding{OK: true, What: fmt.Sprintf("no webhook is set, %d updates wait", info.Pending)}
}
