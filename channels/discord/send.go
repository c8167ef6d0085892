package discord

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
	"parley/workspace/clip"
)

// outgoing is what creates or edits a message, https://discord.com/developers/docs/resources/message#create-message. The
// SDK's type has no nonce.
type outgoing struct {
	Content    string                            `json:"content"`
	Nonce      string                            `json:"nonce,omitempty"`
	Enforce    bool                              `json:"enforce_nonce,omitempty"`
	Mentions   *discordgo.MessageAllowedMentions `json:"allowed_mentions"`
	Reference  *reference                        `json:"message_reference,omitempty"`
	Flags      discordgo.MessageFlags            `json:"flags,omitempty"`
	Components []discordgo.MessageComponent      `json:"components"`
}

type reference struct {
	Message string `json:"message_id"`
	Must    bool   `json:"fail_if_not_exists"`
}

// sent is the part of a sent message that is read.
type sent struct {
	ID string `json:"id"`
}

// Send sends one message: through the post's handle while that works, else into its channel or thread. The nonce makes a
// second Send with the same token the same message, for some minutes.
func (c *Channel) Send(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	if p.Handle.Secret != "" {
		if id, ok, err := c.through(ctx, p); ok || err != nil {
			return id, err
		}
		if p.Private { // it was for one person, and a message would be for all
			return "", bad("the command is too old to be answered to its sender alone")
		}
	}
	to, err := place(p.To)
	if err != nil {
		return "", err
	}
	return c.post(ctx, "send a message", http.MethodPost, "channels/"+to+"/messages", p, nil)
}

// post sends one request with a message in it. hook is given when it goes through an interaction's token.
func (c *Channel) post(ctx context.Context, act, method, path string, p channels.Post, hook *identity) (channels.MessageID, error) {
	m, err := compose(p)
	if err != nil {
		return "", err
	}
	switch {
	case hook == nil:
		m.Nonce, m.Enforce = nonce(p.Token), p.Token != ""
		if p.ReplyTo != "" {
			m.Reference = &reference{Message: string(p.ReplyTo)} // a deleted question must not cost the answer
		}
	case p.Private:
		m.Flags |= discordgo.MessageFlagsEphemeral
	}
	var got sent
	if len(p.Files) > 0 {
		err = c.upload(ctx, act, method, path, m, p.Files, &got)
	} else {
		err = c.rest.call(ctx, act, method, path, m, &got)
	}
	if err != nil {
		return "", err
	}
	if got.ID == "" {
		return "", &channels.Error{Class: channels.Unknown, Err: errors.New("discord answered without a message id")}
	}
	return channels.MessageID(got.ID), nil
}

// compose is the part of a message that sending and editing share. It rings nobody but whom it answers, and shows no
// previews: what a model wrote must not fetch addresses.
func compose(p channels.Post) (outgoing, error) {
	m := outgoing{Content: p.Text, Components: []discordgo.MessageComponent{}, Flags: discordgo.MessageFlagsSuppressEmbeds,
		Mentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}, RepliedUser: true}}
	if p.Silent {
		m.Flags |= discordgo.MessageFlagsSuppressNotifications
	}
	if len(p.Actions) > maxRows {
		return m, bad("%d rows of buttons, Discord takes %d", len(p.Actions), maxRows)
	}
	for _, row := range p.Actions {
		if len(row) > inARow {
			return m, bad("%d buttons in a row, Discord takes %d", len(row), inARow)
		}
		var buttons []discordgo.MessageComponent
		for _, a := range row {
			if a.Value == "" || len(a.Value) > maxValue {
				return m, bad("the value of button %q has %d bytes, Discord takes 1 to %d", a.Label, len(a.Value), maxValue)
			}
			buttons = append(buttons, discordgo.Button{Label: clip.Runes(a.Label, maxLabel), Style: discordgo.SecondaryButton, CustomID: a.Value})
		}
		if len(buttons) > 0 {
			m.Components = append(m.Components, discordgo.ActionsRow{Components: buttons})
		}
	}
	return m, nil
}

// nonce is a token as Discord takes one: at most 25 characters.
func nonce(token string) string {
	if token == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(token))
	return base32.StdEncoding.EncodeToString(sum[:15])
}

// Find looks for a post among the bot's messages since a time: by its nonce, and by its text where Discord does not tell
// the nonce any more. That none was found is sure when all messages since then were seen.
func (c *Channel) Find(ctx context.Context, p channels.Post, since time.Time) (id channels.MessageID, found, sure bool, err error) {
	to, err := place(p.To)
	if err != nil {
		return "", false, false, err
	}
	self, err := c.known(ctx)
	if err != nil {
		return "", false, false, err
	}
	after := at(since.Add(-5 * time.Second)) // two clocks
	for range maxPages {
		var page []json.RawMessage
		if err := c.rest.get(ctx, "look for a message", "channels/"+to+"/messages?limit=100&after="+after, &page); err != nil {
			return "", false, false, err
		}
		for _, raw := range page {
			m, err := decode[message](raw)
			if err != nil {
				continue // not ours: we send nothing that cannot be read
			}
			if older(after, m.ID) {
				after = m.ID
			}
			if m.Author == nil || m.Author.ID != self.id {
				continue
			}
			if said, ok := m.Nonce.(string); ok && said == nonce(p.Token) || m.Nonce == nil && p.Text != "" && m.Content == p.Text {
				return channels.MessageID(m.ID), true, true, nil
			}
		}
		if len(page) < pageSize {
			return "", false, true, nil
		}
	}
	return "", false, false, nil
}

// Edit replaces the text and the buttons of a message; a post without Actions takes the buttons away. More than a few edits
// of a message older than an hour are held up by Discord: Retry.
func (c *Channel) Edit(ctx context.Context, id channels.MessageID, p channels.Post) error {
	path, err := c.existing(p.To, id)
	if err != nil {
		return err
	}
	m, err := compose(p)
	if err != nil {
		return err
	}
	return c.rest.call(ctx, "edit a message", http.MethodPatch, path, m, nil)
}

// Delete removes a message.
func (c *Channel) Delete(ctx context.Context, to channels.Address, id channels.MessageID) error {
	path, err := c.existing(to, id)
	if err != nil {
		return err
	}
	err = c.rest.call(ctx, "delete a message", http.MethodDelete, path, nil, nil)
	if says(err, unknownMessage) {
		return nil
	}
	return err
}

// ShowTyping shows "… is typing" for ten seconds or until the next message.
func (c *Channel) ShowTyping(ctx context.Context, to channels.Address) error {
	id, err := place(to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // later it would be a lie
	defer cancel()
	return c.rest.call(ctx, "show typing", http.MethodPost, "channels/"+id+"/typing", nil, nil)
}

// React puts a reaction on a message; the empty emoji takes all of Parley's away.
func (c *Channel) React(ctx context.Context, to channels.Address, id channels.MessageID, emoji string) error {
	path, err := c.existing(to, id)
	if err != nil {
		return err
	}
	if emoji != "" {
		return c.rest.call(ctx, "react", http.MethodPut, path+"/reactions/"+escape(emoji)+"/@me", nil, nil)
	}
	var m message
	if err := c.rest.get(ctx, "look at reactions", path, &m); err != nil {
		return err
	}
	for _, re := range m.Reactions {
		if !re.Me {
			continue
		}
		name := re.Emoji.Name
		if re.Emoji.ID != "" {
			name += ":" + re.Emoji.ID
		}
		if err := c.rest.call(ctx, "take a reaction back", http.MethodDelete, path+"/reactions/"+escape(name)+"/@me", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// existing is the path of a message that exists.
func (c *Channel) existing(to channels.Address, id channels.MessageID) (string, error) {
	ch, err := place(to)
	if err != nil {
		return "", err
	}
	if !idFormat().MatchString(string(id)) {
		return "", bad("message id %q is not Discord's", id)
	}
	return "channels/" + ch + "/messages/" + string(id), nil
}

// maxCommands and the lengths are Discord's.
const (
	maxCommands    = 100
	maxName        = 32
	maxDescription = 100
)

// PublishMenu registers the commands, each with one optional text. Names that Discord would refuse are left out, since one
// of them would cost the whole menu.
func (c *Channel) PublishMenu(ctx context.Context, items []channels.MenuItem) error {
	self, err := c.known(ctx)
	if err != nil {
		return err
	}
	menu := []*discordgo.ApplicationCommand{}
	for _, it := range items {
		name := strings.ToLower(strings.TrimPrefix(it.Name, "/"))
		if !commandName(name) || len(menu) == maxCommands {
			c.log.Warn("a command does not fit discord's menu", "command", it.Name)
			continue
		}
		menu = append(menu, &discordgo.ApplicationCommand{Name: name, Description: clip.First(cmp.Or(it.Help, name), maxDescription),
			Options: []*discordgo.ApplicationCommandOption{{Type: discordgo.ApplicationCommandOptionString, Name: "text", Description: "What to add to the command"}}})
	}
	return c.rest.call(ctx, "register the commands", http.MethodPut, "applications/"+self.app+"/commands", menu, nil)
}

func commandName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}
