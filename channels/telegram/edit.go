package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/channels"
	"parley/workspace/clip"
	"parley/workspace/lazy"
)

// anything is a result that is not read: a message or true.
type anything struct{}

// UnmarshalJSON takes anything.
func (*anything) UnmarshalJSON([]byte) error { return nil }

// Edit replaces the text and the buttons of a message; a post without Actions takes the buttons away.
func (c *Channel) Edit(ctx context.Context, m channels.MessageID, p channels.Post) error {
	base, err := target(p.To, m)
	if err != nil {
		return err
	}
	if base, err = withButtons(base, p.Actions); err != nil {
		return err
	}
	_, err = c.asMarkup(p, func(text string, markup bool) (sent, error) {
		_, err := call[anything](ctx, c.api, "editMessageText", base.text("text", text, markup).add("link_preview_options", noPreview))
		return sent{}, err
	})
	if says(err, "message is not modified") {
		return nil
	}
	return err
}

// Delete removes a message. Telegram refuses after 48 hours: BadMessage.
func (c *Channel) Delete(ctx context.Context, to channels.Address, m channels.MessageID) error {
	base, err := target(to, m)
	if err != nil {
		return err
	}
	err = c.api.request(ctx, "deleteMessage", base.sdk(), nil)
	if says(err, "message to delete not found") {
		return nil
	}
	return err
}

// React replaces our reaction; Telegram takes only the emoji on its list.
func (c *Channel) React(ctx context.Context, to channels.Address, m channels.MessageID, emoji string) error {
	base, err := target(to, m)
	if err != nil {
		return err
	}
	list := []reactionType{}
	if emoji != "" {
		list = append(list, reactionType{"emoji", emoji})
	}
	reaction, err := json.Marshal(list)
	if err != nil {
		return bad("encode the reaction: %v", err)
	}
	return c.api.request(ctx, "setMessageReaction", base.add("reaction", string(reaction)).sdk(), nil)
}

// reactionType is https://core.telegram.org/bots/api#reactiontypeemoji.
type reactionType struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji"`
}

// ShowTyping shows "typing…" for five seconds or until the next message.
func (c *Channel) ShowTyping(ctx context.Context, to channels.Address) error {
	base, err := place(to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // later it would be a lie
	defer cancel()
	_, err = call[anything](ctx, c.api, "sendChatAction", base.add("action", tgbotapi.ChatTyping))
	return err
}

// commandName is what https://core.telegram.org/bots/api#botcommand allows.
var commandName = lazy.Regexp(`^[a-z0-9_]{1,32}$`)

// PublishMenu sets the bot's command menu: at most 100 commands. Names that Telegram would refuse are left out,
// since one of them would cost the whole menu.
func (c *Channel) PublishMenu(ctx context.Context, items []channels.MenuItem) error {
	commands := []tgbotapi.BotCommand{}
	for _, it := range items {
		name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(it.Name, "/")), "-", "_")
		if !commandName().MatchString(name) || len(commands) == 100 {
			c.log.Warn("a command does not fit telegram's menu", "command", it.Name)
			continue
		}
		commands = append(commands, tgbotapi.BotCommand{Command: name, Description: clip.First(cmp.Or(it.Help, name), 256)})
	}
	list, err := json.Marshal(commands)
	if err != nil {
		return bad("encode the menu: %v", err)
	}
	return c.api.request(ctx, "setMyCommands", tgbotapi.Params{"commands": string(list)}, nil)
}

// target names a message that exists.
func target(to channels.Address, m channels.MessageID) (params, error) {
	if _, err := number("chat id", string(to.Peer)); err != nil {
		return nil, err
	}
	if _, err := number("message id", string(m)); err != nil {
		return nil, err
	}
	return params{{"chat_id", string(to.Peer)}, {"message_id", string(m)}}, nil
}
