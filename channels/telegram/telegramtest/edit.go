package telegramtest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// deletable is how long a message can be deleted for everyone (https://core.telegram.org/bots/api#deletemessage).
const deletable = 48 * time.Hour

// own finds the bot's message that the call wants to change. The caller holds ch.mu.
func (c *call) own(ch *chat) (*Message, *apiError) {
	if ch.gone != nil {
		return nil, ch.gone
	}
	id := c.int("message_id")
	if id == 0 {
		return nil, badRequest("message identifier is not specified")
	}
	m := ch.message(id)
	if m == nil {
		return nil, badRequest("message to edit not found")
	}
	if m.From.ID != c.s.opts.Bot.ID && (ch.info.Kind != Channel || m.From.ID != 0) {
		return nil, badRequest("message can't be edited")
	}
	return m, nil
}

func editMessageText(c *call) *apiError {
	t, fail := c.messageText()
	if fail != nil {
		return fail
	}
	if units(t.plain) > maxText {
		return badRequest("MESSAGE_TOO_LONG")
	}
	return c.edit(func(m *Message) (text, *apiError) {
		if len(m.Files) > 0 {
			return text{}, badRequest("there is no text in the message to edit")
		}
		m.NoPreview = c.noPreview()
		return t, nil
	})
}

func editMessageCaption(c *call) *apiError {
	t, fail := c.caption()
	if fail != nil {
		return fail
	}
	return c.edit(func(m *Message) (text, *apiError) {
		if len(m.Files) == 0 {
			return text{}, badRequest("there is no caption in the message to edit")
		}
		return t, nil
	})
}

func editMessageReplyMarkup(c *call) *apiError {
	return c.edit(func(m *Message) (text, *apiError) {
		return text{raw: m.Raw, mode: m.Mode, plain: m.Text, entities: m.Entities}, nil
	})
}

// edit changes a message to the text that content gives and to the markup of the call; no markup takes it away.
func (c *call) edit(content func(*Message) (text, *apiError)) *apiError {
	markup, buttons, fail := c.markup()
	if fail != nil {
		return fail
	}
	ch, fail := c.chatOf()
	if fail != nil {
		return fail
	}
	edited, fail := c.change(ch, content, markup, buttons)
	if fail == nil && c.s.opts.OnEdited != nil {
		c.s.opts.OnEdited(edited)
	}
	return fail
}

func (c *call) change(ch *chat, content func(*Message) (text, *apiError), markup string, buttons [][]Button) (Message, *apiError) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.edits++
	m, fail := c.own(ch)
	if fail != nil {
		return Message{}, fail
	}
	t, fail := content(m)
	if fail != nil {
		return Message{}, fail
	}
	if t.plain == m.Text && slices.Equal(t.entities, m.Entities) && slices.EqualFunc(buttons, m.Buttons, slices.Equal) {
		return Message{}, errNotModified
	}
	if fail := c.s.flood.edit(ch, m.ID); fail != nil {
		return Message{}, fail
	}
	now := c.s.opts.Now()
	if c.s.opts.Keep == 0 {
		m.Edits = append(m.Edits, Edit{now, m.Text, m.Raw})
	}
	m.set(t)
	m.markup, m.Buttons, m.EditedAt = markup, buttons, now
	c.out = c.s.appendMessage(c.out, ch, m, 1)
	return m.clone(), nil
}

func deleteMessage(c *call) *apiError {
	ch, fail := c.chatOf()
	if fail != nil {
		return fail
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.gone != nil {
		return ch.gone
	}
	m := ch.message(c.int("message_id"))
	if m == nil {
		return badRequest("message to delete not found")
	}
	ours := m.From.ID == c.s.opts.Bot.ID
	if !ours && ch.info.Kind != Private || m.Service != "" {
		return badRequest("message can't be deleted")
	}
	if c.s.opts.Now().Sub(m.At) > deletable {
		return badRequest("message can't be deleted for everyone")
	}
	m.Deleted = true
	return c.yes()
}

// reactions are some of the emoji that may be used; the whole list is at
// https://core.telegram.org/bots/api#reactiontypeemoji.
const reactions = "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡"

func setMessageReaction(c *call) *apiError {
	ch, fail := c.chatOf()
	if fail != nil {
		return fail
	}
	var list []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	if raw := c.get("reaction"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &list); err != nil {
			return badRequest("can't parse reaction types JSON object")
		}
	}
	if len(list) > 1 {
		return badRequest("REACTIONS_TOO_MANY")
	}
	emoji := ""
	if len(list) == 1 {
		emoji = list[0].Emoji
		if list[0].Type != "emoji" || !slices.Contains(strings.Fields(reactions), emoji) {
			return badRequest("REACTION_INVALID")
		}
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.gone != nil {
		return ch.gone
	}
	m := ch.message(c.int("message_id"))
	if m == nil {
		return badRequest("message to react not found")
	}
	m.Reaction = emoji
	return c.yes()
}
