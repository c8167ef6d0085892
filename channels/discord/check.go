package discord

import (
	"context"
	"fmt"
	"time"

	"parley/channels"
)

// permissions are what the bot needs in a server: View Channels, Send Messages (also in threads), Embed Links, Attach
// Files, Read Message History, Add Reactions.
const permissions = 1<<10 | 1<<11 | 1<<38 | 1<<14 | 1<<15 | 1<<16 | 1<<6

// Check asks Discord who the bot is, what it was granted, in how many servers it is, and whether it may connect today. It
// changes nothing.
func (c *Channel) Check(ctx context.Context) []channels.Finding {
	self, err := c.whoami(ctx)
	if err != nil {
		f := channels.Finding{What: "Discord does not answer: " + channels.CauseOf(err),
			Hint: "Check the network, and api_url if it is set."}
		if channels.ClassOf(err) == channels.Fatal {
			f = channels.Finding{What: "Discord refuses the token", Hint: "Make a new one in the developer portal (Bot, Reset Token) and check that it was copied whole."}
		}
		return []channels.Finding{f}
	}
	found := []channels.Finding{{OK: true, What: fmt.Sprintf("the token is that of %s (id %s)", self.name, self.id)}}
	if self.content.Load() {
		found = append(found, channels.Finding{OK: true, What: "in servers the bot reads every message of its channels"})
	} else {
		found = append(found, channels.Finding{What: "in servers the bot reads only messages that mention it (MESSAGE_CONTENT is not granted)", Hint: contentHint})
	}
	found = append(found, c.serversFinding(ctx, self))
	return append(found, c.startsFinding(ctx))
}

func (c *Channel) serversFinding(ctx context.Context, self *identity) channels.Finding {
	var list []struct {
		Name string `json:"name"`
	}
	if err := c.rest.get(ctx, "ask for the bot's servers", "users/@me/guilds?limit=200", &list); err != nil {
		return channels.Finding{What: "the bot's servers cannot be asked for: " + channels.CauseOf(err), Hint: "Try again."}
	}
	f := channels.Finding{OK: true, What: fmt.Sprintf("the bot is in %d servers", len(list))}
	if len(list) == 0 {
		f.Hint = Invite(self.app)
		f.Hint = "To add it to one, open " + f.Hint
	}
	return f
}

// Invite is the address where a person adds the bot to a server, with the permissions that it needs.
func Invite(app string) string {
	return fmt.Sprintf("https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands&permissions=%d", app, permissions)
}

func (c *Channel) startsFinding(ctx context.Context) channels.Finding {
	var bot struct {
		Start struct {
			Total     int     `json:"total"`
			Remaining int     `json:"remaining"`
			After     float64 `json:"reset_after"` // ms
		} `json:"session_start_limit"`
	}
	err := c.rest.get(ctx, "ask for the gateway", "gateway/bot", &bot)
	switch s := bot.Start; {
	case err != nil:
		return channels.Finding{What: "the gateway's address cannot be asked for: " + channels.CauseOf(err), Hint: "Try again."}
	case s.Remaining < 1:
		return channels.Finding{What: "the bot may start no more sessions today", Hint: fmt.Sprintf("Wait %s. It has been restarted too often, or another program uses its token.",
			time.Duration(s.After*float64(time.Millisecond)).Round(time.Minute))}
	default:
		return channels.Finding{OK: true, What: fmt.Sprintf("the bot may start %d of %d sessions today", s.Remaining, s.Total)}
	}
}
