package telegramtest

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
)

// Limits of texts, in UTF-16 units after the markup is parsed (https://core.telegram.org/bots/api#sendmessage).
const (
	maxText     = 4096
	maxCaption  = 1024
	maxEntities = 100
	maxCallback = 64 // bytes of callback_data
)

// text is a text or caption as it will be shown.
type text struct {
	raw, mode, plain string
	entities         []Entity
}

// parseText reads text and parse_mode (or caption and …).
func (c *call) parseText(key, entitiesKey string) (text, *apiError) {
	t := text{raw: c.get(key), mode: c.get("parse_mode")}
	t.plain = t.raw
	switch strings.ToLower(t.mode) {
	case "html":
		plain, ents, err := ParseHTML(t.raw, c.s.opts.LooseAmp)
		if err != nil {
			return t, badRequest("can't parse entities: %v", err)
		}
		t.plain, t.entities = plain, ents
	case "", "none", "markdown", "markdownv2":
		if list := c.get(entitiesKey); list != "" {
			if err := json.Unmarshal([]byte(list), &t.entities); err != nil {
				return t, badRequest("can't parse entities JSON object")
			}
		}
	default:
		return t, badRequest("unsupported parse_mode")
	}
	t.plain = strings.TrimRightFunc(t.plain, unicode.IsSpace)
	t.clip()
	return t, nil
}

// clip ends the entities where the trimmed text ends.
func (t *text) clip() {
	end := units(t.plain)
	kept := t.entities[:0]
	for _, e := range t.entities {
		e.Length = min(e.Length, end-e.Offset)
		if e.Length > 0 && len(kept) < maxEntities {
			kept = append(kept, e)
		}
	}
	t.entities = kept
}

func (c *call) messageText() (text, *apiError) {
	t, fail := c.parseText("text", "entities")
	if fail != nil {
		return t, fail
	}
	if strings.TrimSpace(t.plain) == "" {
		return t, badRequest("message text is empty")
	}
	return t, nil
}

func (c *call) caption() (text, *apiError) {
	t, fail := c.parseText("caption", "caption_entities")
	if fail == nil && units(t.plain) > maxCaption {
		fail = badRequest("message caption is too long")
	}
	return t, fail
}

// markup checks an inline keyboard. Other keyboards are taken unread.
func (c *call) markup() (string, [][]Button, *apiError) {
	raw := c.get("reply_markup")
	if raw == "" {
		return "", nil, nil
	}
	var m struct {
		Inline [][]Button `json:"inline_keyboard"`
	}
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		return "", nil, badRequest("can't parse reply keyboard markup JSON object")
	}
	for _, row := range m.Inline {
		for _, b := range row {
			switch {
			case strings.TrimSpace(b.Text) == "":
				return "", nil, badRequest("can't parse inline keyboard button: Field \"text\" must be non-empty")
			case b.Data == "" && b.URL == "":
				return "", nil, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
			case len(b.Data) > maxCallback:
				return "", nil, badRequest("BUTTON_DATA_INVALID")
			}
		}
	}
	if len(m.Inline) == 0 {
		return "", nil, nil
	}
	return raw, m.Inline, nil
}

// chatOf finds the chat that the call names.
func (c *call) chatOf() (*chat, *apiError) {
	raw := c.get("chat_id")
	if raw == "" {
		return nil, badRequest("chat_id is empty")
	}
	id, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return nil, badRequest("chat not found")
	}
	ch := c.s.chat(id)
	if ch == nil {
		return nil, badRequest("chat not found")
	}
	return ch, nil
}

// draft reads what all sends have in common. The caller holds ch.mu.
func (c *call) draft(ch *chat) (Message, *apiError) {
	m := Message{From: c.s.opts.Bot, Silent: c.bool("disable_notification"), NoPreview: c.noPreview()}
	if ch.info.Kind == Channel {
		m.From = User{}
	}
	if ch.gone != nil {
		return m, ch.gone
	}
	if thread := c.int("message_thread_id"); thread != 0 {
		if _, known := ch.topics[thread]; !known {
			return m, badRequest("message thread not found")
		}
		m.Thread, m.Topic = thread, true
	}
	to, lenient := c.int("reply_to_message_id"), c.bool("allow_sending_without_reply")
	if raw := c.get("reply_parameters"); raw != "" {
		var p struct {
			ID      int64 `json:"message_id"`
			Lenient bool  `json:"allow_sending_without_reply"`
		}
		if err := json.Unmarshal([]byte(raw), &p); err != nil {
			return m, badRequest("can't parse reply parameters JSON object")
		}
		to, lenient = p.ID, p.Lenient
	}
	if to == 0 {
		return m, nil
	}
	old := ch.message(to)
	if old == nil && !lenient {
		return m, badRequest("message to be replied not found")
	}
	if old != nil {
		m.ReplyTo = to
		if m.Thread == 0 { // an answer goes where the question is
			m.Thread, m.Topic = old.Thread, old.Topic
		}
	}
	return m, nil
}

func sendMessage(c *call) *apiError {
	t, fail := c.messageText()
	if fail != nil {
		return fail
	}
	markup, buttons, fail := c.markup()
	if fail != nil {
		return fail
	}
	ch, fail := c.chatOf()
	if fail != nil {
		return fail
	}
	if units(t.plain) > maxText {
		return badRequest("message is too long")
	}
	return c.post(ch, func(m *Message) {
		m.set(t)
		m.markup, m.Buttons = markup, buttons
	})
}

// post sends one message, finished by fill, and answers with it.
func (c *call) post(ch *chat, fill func(*Message)) *apiError {
	ch.mu.Lock()
	m, fail := c.draft(ch)
	if fail == nil {
		fail = c.s.flood.send(ch, 1)
	}
	if fail != nil {
		ch.mu.Unlock()
		return fail
	}
	fill(&m)
	stored := ch.add(c.s, m)
	from := len(c.out)
	c.out = c.s.appendMessage(c.out, ch, stored, 1)
	m = stored.clone()
	echo := ch.info.Kind == Channel
	ch.mu.Unlock()
	if echo { // a bot hears its own posts in channels, and there only
		c.s.queue.put("channel_post", c.out[from:])
	}
	if c.s.opts.OnSent != nil {
		c.s.opts.OnSent(m)
	}
	return nil
}

func (m *Message) set(t text) {
	m.Text, m.Raw, m.Mode, m.Entities = t.plain, t.raw, t.mode, t.entities
}

func sendChatAction(c *call) *apiError {
	ch, fail := c.chatOf()
	if fail != nil {
		return fail
	}
	name := c.get("action")
	switch name {
	case "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
		"choose_sticker", "find_location", "record_video_note", "upload_video_note":
	default:
		return badRequest("wrong parameter action in request")
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.gone != nil {
		return ch.gone
	}
	thread := c.int("message_thread_id")
	if _, known := ch.topics[thread]; thread != 0 && !known {
		return badRequest("message thread not found")
	}
	ch.actions = append(ch.actions, Action{name, thread, c.s.opts.Now()})
	if keep := c.s.opts.Keep; keep > 0 && len(ch.actions) > 2*keep {
		ch.actions = append(ch.actions[:0], ch.actions[len(ch.actions)-keep:]...)
	}
	return c.yes()
}

// noPreview reads link_preview_options, or what it has replaced.
func (c *call) noPreview() bool {
	var o struct {
		Off bool `json:"is_disabled"`
	}
	if raw := c.get("link_preview_options"); raw != "" && json.Unmarshal([]byte(raw), &o) == nil {
		return o.Off
	}
	return c.bool("disable_web_page_preview")
}
