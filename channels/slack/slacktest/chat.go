package slacktest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Limits of texts in characters: chat.postMessage cuts at the first (https://docs.slack.dev/changelog/2018-truncating-really-long-messages),
// chat.update refuses beyond the second.
const (
	cutText    = 40000
	updateText = 4000
)

// place finds the channel and refuses whom Slack refuses there.
func (c *call) place(key string, write bool) (*Channel, *failure) {
	id := c.get(key)
	ch := c.s.chans[id]
	if ch == nil && write {
		if u := c.s.users[id]; u != nil && u.Team == c.team.ID {
			ch = c.s.im(c.team, u.ID) // a user id is taken as the direct message with them
		}
	}
	if ch == nil || ch.Team != c.team.ID {
		return nil, fail("channel_not_found")
	}
	if !ch.isMember(c.team.Bot.ID) {
		if ch.Kind == Public {
			return nil, fail("not_in_channel")
		}
		return nil, fail("channel_not_found")
	}
	if !write {
		return ch, nil
	}
	if ch.denied != "" {
		return nil, fail(ch.denied)
	}
	if ch.Archived {
		return nil, fail("is_archived")
	}
	return ch, nil
}

// im is the direct message with a person, made when there is none.
func (s *Server) im(t *Team, user string) *Channel {
	for _, ch := range s.chans {
		if ch.Kind == IM && ch.Team == t.ID && ch.isMember(user) && len(ch.Members) == 2 {
			return ch
		}
	}
	ch := &Channel{ID: s.id("D"), Team: t.ID, Kind: IM, Members: []string{user, t.Bot.ID}, byTS: map[string]*Message{}}
	s.chans[ch.ID] = ch
	return ch
}

// content fills text, Markdown, blocks and metadata of a message from the arguments.
func (c *call) content(m *Message) *failure {
	if c.s.opts.NoMarkdown {
		delete(c.args, "markdown_text")
		if strings.Contains(c.get("blocks"), `"type":"markdown"`) {
			return fail("invalid_blocks")
		}
	}
	if c.get("markdown_text") != "" && (c.get("text") != "" || c.get("blocks") != "") {
		return fail("markdown_text_conflict")
	}
	if runes(c.get("markdown_text")) > maxMarkdown {
		return fail("msg_too_long")
	}
	if raw := c.get("blocks"); raw != "" {
		blocks, bad := checkBlocks(raw)
		if bad != nil {
			return bad
		}
		m.Blocks = blocks
	}
	if raw := c.get("attachments"); raw != "" && !json.Valid([]byte(raw)) {
		return fail("invalid_attachments")
	}
	if raw := c.get("metadata"); raw != "" {
		var meta struct {
			EventType    string         `json:"event_type"`
			EventPayload map[string]any `json:"event_payload"`
		}
		if json.Unmarshal([]byte(raw), &meta) != nil || meta.EventType == "" || meta.EventPayload == nil {
			return fail("invalid_metadata_format")
		}
		m.Metadata = json.RawMessage(raw)
	}
	if c.has("text") {
		m.Text = c.get("text")
	}
	if c.has("markdown_text") {
		m.Markdown = c.get("markdown_text")
		m.Text = m.Markdown
	}
	return nil
}

func (m *Message) empty() bool {
	return m.Text == "" && m.Markdown == "" && len(m.Blocks) == 0 && len(m.Files) == 0
}

// inThread checks thread_ts: it must be a message of the channel; a reply's ts is taken for its root.
func (c *call) inThread(ch *Channel, m *Message) *failure {
	ts := c.get("thread_ts")
	if ts == "" {
		return nil
	}
	root := ch.byTS[ts]
	if root == nil {
		return fail("thread_not_found")
	}
	if root.ThreadTS != "" {
		ts = root.ThreadTS
	}
	m.ThreadTS, m.Broadcast = ts, c.bool("reply_broadcast")
	return nil
}

func postMessage(c *call) (reply, *failure) {
	ch, bad := c.place("channel", true)
	if bad != nil {
		return nil, bad
	}
	m := c.own(ch)
	if bad := c.content(m); bad != nil {
		return nil, bad
	}
	if m.empty() && c.get("attachments") == "" {
		return nil, fail("no_text")
	}
	if bad := c.inThread(ch, m); bad != nil {
		return nil, bad
	}
	if id := c.get("client_msg_id"); id != "" {
		if slices.ContainsFunc(ch.msgs, func(o *Message) bool { return o.clientID == id && !o.Deleted }) {
			return nil, fail("duplicate_message_not_found") // the error list names it; what it promises is not documented
		}
		m.clientID = id
	}
	if wait := c.s.limits.posted(ch.ID); wait > 0 {
		return nil, limited(wait)
	}
	if r := []rune(m.Text); len(r) > cutText {
		m.Text = string(r[:cutText])
	}
	m.NoUnfurl = c.get("unfurl_links") == "false" && c.get("unfurl_media") == "false"
	c.put(ch, m)
	return reply{"channel": ch.ID, "ts": m.TS, "message": c.s.wire(ch, m, true)}, nil
}

// own is a new message of the bot.
func (c *call) own(ch *Channel) *Message {
	return &Message{Channel: ch.ID, User: c.team.Bot.ID, BotID: c.team.Bot.BotID}
}

// put gives a message its ts, keeps it and tells the app and the hook.
func (c *call) put(ch *Channel, m *Message) {
	m.TS, m.At = c.s.ts()
	ch.add(m, c.s.opts.Keep)
	c.s.clearStatus(ch.ID, m.ThreadTS)
	c.s.tellMessage(ch, m)
	if hook := c.s.opts.OnPosted; hook != nil {
		said := m.clone()
		c.sent = append(c.sent, func() { hook(said) })
	}
}

// changed keeps the earlier text and tells the app and the hook.
func (c *call) changed(ch *Channel, m *Message, before Message) {
	m.Edits = append(m.Edits, Edit{c.s.opts.Now(), before.Shown()})
	m.EditedAt, _ = c.s.ts()
	c.s.tellChanged(ch, m, before)
	if hook := c.s.opts.OnEdited; hook != nil {
		said := m.clone()
		c.sent = append(c.sent, func() { hook(said) })
	}
}

func postEphemeral(c *call) (reply, *failure) {
	ch, bad := c.place("channel", true)
	if bad != nil {
		return nil, bad
	}
	user := c.get("user")
	if !ch.isMember(user) {
		return nil, fail("user_not_in_channel")
	}
	m := c.own(ch)
	m.For = user
	if bad := c.content(m); bad != nil {
		return nil, bad
	}
	if m.empty() {
		return nil, fail("no_text")
	}
	if bad := c.inThread(ch, m); bad != nil {
		return nil, bad
	}
	m.TS, m.At = c.s.ts()
	c.s.ephemeral(ch, m)
	if hook := c.s.opts.OnPosted; hook != nil {
		said := m.clone()
		c.sent = append(c.sent, func() { hook(said) })
	}
	return reply{"message_ts": m.TS}, nil
}

// mine is the bot's message that an update or deletion names.
func (c *call) mine(ch *Channel, refused string) (*Message, *failure) {
	m := ch.find(c.get("ts"))
	if m == nil || m.For != "" {
		return nil, fail("message_not_found")
	}
	if m.User != c.team.Bot.ID {
		return nil, fail(refused)
	}
	return m, nil
}

func updateMessage(c *call) (reply, *failure) {
	ch, bad := c.place("channel", true)
	if bad != nil {
		return nil, bad
	}
	m, bad := c.mine(ch, "cant_update_message")
	if bad != nil {
		return nil, bad
	}
	if m.Streaming {
		return nil, fail("streaming_state_conflict")
	}
	if w := c.s.opts.EditWindow; w > 0 && c.s.opts.Now().Sub(m.At) > w {
		return nil, fail("edit_window_closed")
	}
	if runes(c.get("text")) > updateText {
		return nil, fail("msg_too_long")
	}
	next, before := m.clone(), m.clone()
	if c.has("markdown_text") {
		next.Blocks = nil
	} else if c.has("text") {
		next.Markdown = ""
	}
	if c.get("blocks") == "[]" {
		next.Blocks = nil // left out, they stay (https://docs.slack.dev/reference/methods/chat.update)
		delete(c.args, "blocks")
	}
	if bad := c.content(&next); bad != nil {
		return nil, bad
	}
	if next.empty() {
		return nil, fail("no_text")
	}
	m.Text, m.Markdown, m.Blocks, m.Metadata = next.Text, next.Markdown, next.Blocks, next.Metadata
	c.changed(ch, m, before)
	return reply{"channel": ch.ID, "ts": m.TS, "text": m.Text, "message": c.s.wire(ch, m, true)}, nil
}

func deleteMessage(c *call) (reply, *failure) {
	ch, bad := c.place("channel", true)
	if bad != nil {
		return nil, bad
	}
	m, bad := c.mine(ch, "cant_delete_message")
	if bad != nil {
		return nil, bad
	}
	c.s.remove(ch, m)
	return reply{"channel": ch.ID, "ts": m.TS}, nil
}

func permalink(c *call) (reply, *failure) {
	ch, bad := c.place("channel", false)
	if bad != nil {
		return nil, bad
	}
	ts := c.get("message_ts")
	if ch.find(ts) == nil {
		return nil, fail("message_not_found")
	}
	return reply{"channel": ch.ID, "permalink": "https://" + c.team.Domain + ".slack.com/archives/" + ch.ID + "/p" + ts}, nil
}

// streamLife is after how long a stream ends by itself: appends are then refused with message_not_in_streaming_state.
const streamLife = 5 * time.Minute

// startStream: https://docs.slack.dev/reference/methods/chat.startStream. Outside of direct messages a recipient must be
// named; in them the message must be a reply.
func startStream(c *call) (reply, *failure) {
	ch, bad := c.place("channel", true)
	if bad != nil {
		return nil, bad
	}
	switch {
	case ch.Kind == IM && c.get("thread_ts") == "":
		return nil, fail("invalid_arguments", "missing required field: thread_ts")
	case ch.Kind != IM && c.get("recipient_team_id") == "":
		return nil, fail("missing_recipient_team_id")
	case ch.Kind != IM && c.get("recipient_user_id") == "":
		return nil, fail("missing_recipient_user_id")
	case c.get("recipient_user_id") != "" && c.s.users[c.get("recipient_user_id")] == nil:
		return nil, fail("user_not_found")
	}
	text, bad := c.chunk()
	if bad != nil {
		return nil, bad
	}
	m := c.own(ch)
	m.Markdown, m.Text, m.Streaming = text, text, true
	if bad := c.inThread(ch, m); bad != nil {
		return nil, bad
	}
	if wait := c.s.limits.posted(ch.ID); wait > 0 {
		return nil, limited(wait)
	}
	c.put(ch, m)
	return reply{"channel": ch.ID, "ts": m.TS}, nil
}

// chunk is the text of markdown_text, or of the markdown_text chunks.
func (c *call) chunk() (string, *failure) {
	text := c.get("markdown_text")
	if raw := c.get("chunks"); raw != "" {
		var list []struct{ Type, Text string }
		if json.Unmarshal([]byte(raw), &list) != nil {
			return "", fail("invalid_chunks")
		}
		for _, ch := range list {
			if ch.Type == "markdown_text" {
				text += ch.Text
			}
		}
	}
	if runes(text) > maxMarkdown {
		return "", fail("msg_too_long")
	}
	return text, nil
}

func (c *call) stream() (*Channel, *Message, *failure) {
	ch, bad := c.place("channel", true)
	if bad != nil {
		return nil, nil, bad
	}
	m := ch.find(c.get("ts"))
	switch {
	case m == nil:
		return nil, nil, fail("message_not_found")
	case m.User != c.team.Bot.ID:
		return nil, nil, fail("message_not_owned_by_app")
	case m.Streaming && c.s.opts.Now().Sub(m.At) > streamLife:
		m.Streaming = false
	}
	if !m.Streaming {
		return nil, nil, fail("message_not_in_streaming_state")
	}
	return ch, m, nil
}

func appendStream(c *call) (reply, *failure) {
	ch, m, bad := c.stream()
	if bad != nil {
		return nil, bad
	}
	text, bad := c.chunk()
	if bad != nil {
		return nil, bad
	}
	if text == "" && c.get("chunks") == "" {
		return nil, fail("no_text")
	}
	before := m.clone()
	m.Markdown += text
	m.Text = m.Markdown
	c.changed(ch, m, before)
	return reply{"channel": ch.ID, "ts": m.TS}, nil
}

func stopStream(c *call) (reply, *failure) {
	ch, m, bad := c.stream()
	if bad != nil {
		return nil, bad
	}
	text, bad := c.chunk()
	if bad != nil {
		return nil, bad
	}
	delete(c.args, "markdown_text")
	before, next := m.clone(), m.clone()
	if bad := c.content(&next); bad != nil {
		return nil, bad
	}
	m.Markdown += text
	m.Text, m.Streaming, m.Metadata = m.Markdown, false, next.Metadata
	m.Blocks = next.Blocks // they stand below the streamed text
	c.changed(ch, m, before)
	return reply{"channel": ch.ID, "ts": m.TS, "message": c.s.wire(ch, m, true)}, nil
}

func setStatus(c *call) (reply, *failure) {
	ch, bad := c.place("channel_id", true)
	if bad != nil {
		return nil, bad
	}
	ts := c.get("thread_ts")
	if ts == "" {
		return nil, fail("invalid_arguments", "missing required field: thread_ts")
	}
	if ch.byTS[ts] == nil {
		return nil, fail("invalid_thread_ts")
	}
	c.s.statuses = append(c.s.statuses, Status{ch.ID, ts, c.get("status")})
	return nil, nil
}

// clearStatus ends the status of a thread, as an answer in it does.
func (s *Server) clearStatus(channel, thread string) {
	for i := len(s.statuses) - 1; i >= 0; i-- {
		if st := s.statuses[i]; st.Channel == channel && st.ThreadTS == thread {
			if st.Text != "" {
				s.statuses = append(s.statuses, Status{channel, thread, ""})
			}
			return
		}
	}
}
