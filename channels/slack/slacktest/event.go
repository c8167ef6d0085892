package slacktest

import (
	"encoding/json"
	"slices"
	"strings"
)

// Say is a message that a person writes.
type Say struct {
	Channel, User string
	Text          string // with Slack's own marks: <@U…>, &amp;
	Thread        string // ts of the root; a reply's is taken for its root
	Broadcast     bool   // "also send to channel"
	Files         []File
	Blocks        string // JSON; empty: none
}

// Say has a person write, and returns the ts. The app is told what it subscribed to, in rooms where the bot is.
func (s *Server) Say(in Say) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chans[in.Channel]
	m := &Message{Channel: ch.ID, User: in.User, Text: in.Text, clientID: s.id("cmid-"), Broadcast: in.Broadcast}
	if in.Blocks != "" {
		m.Blocks = json.RawMessage(in.Blocks)
	}
	if root := ch.byTS[in.Thread]; root != nil {
		m.ThreadTS = root.TS
		if root.ThreadTS != "" {
			m.ThreadTS = root.ThreadTS
		}
	}
	if in.Broadcast {
		m.Subtype = "thread_broadcast"
	}
	m.TS, m.At = s.ts()
	for _, f := range in.Files {
		f.ID, f.User, f.Team, f.uploaded, f.done = s.id("F"), in.User, ch.Team, true, true
		if f.Title == "" {
			f.Title = f.Name
		}
		f.shares = []share{{ch.ID, m.TS, ch.Kind != Public}}
		s.files[f.ID] = &f
		m.Files = append(m.Files, f)
		m.Subtype = "file_share"
	}
	ch.add(m, s.opts.Keep)
	s.tellMessage(ch, m)
	return m.TS
}

// Edit has a person edit a message.
func (s *Server) Edit(channel, ts, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chans[channel]
	m := ch.byTS[ts]
	before := m.clone()
	m.Edits = append(m.Edits, Edit{s.opts.Now(), before.Shown()})
	m.Text = text
	m.EditedAt, _ = s.ts()
	s.tellChanged(ch, m, before)
}

// Unfurl adds a link preview: a message_changed without an edit.
func (s *Server) Unfurl(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chans[channel]
	m := ch.byTS[ts]
	s.tellChanged(ch, m, m.clone())
}

// Delete has a person delete a message.
func (s *Server) Delete(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chans[channel]
	s.remove(ch, ch.byTS[ts])
}

// React has a person add a reaction, by its name without colons; Unreact takes it.
func (s *Server) React(channel, ts, user, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chans[channel]
	if m := ch.byTS[ts]; m.react(name, user) {
		s.tellReaction(ch, m, "reaction_added", name, user)
	}
}

// Unreact has a person take a reaction back.
func (s *Server) Unreact(channel, ts, user, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chans[channel]
	if m := ch.byTS[ts]; m.unreact(name, user) {
		s.tellReaction(ch, m, "reaction_removed", name, user)
	}
}

// Command has a person use a slash command such as "/parley" with a text, and returns the delivery's id. Slack offers no
// commands inside threads.
func (s *Server) Command(channel, user, command, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chans[channel]
	t := s.team(ch.Team)
	name := ch.Name
	switch ch.Kind {
	case IM:
		name = "directmessage"
	case Private:
		name = "privategroup"
	}
	id := s.id("13345224609.738474920.")
	p := map[string]string{"token": "gIkuvaNzQIHg97ATvDxqgjtO", "team_id": t.ID, "team_domain": t.Domain, "channel_id": ch.ID, "channel_name": name,
		"user_id": user, "user_name": s.name(user), "command": command, "text": text, "api_app_id": s.app.ID, "is_enterprise_install": "false",
		"response_url": s.responseURL("commands", responseURL{team: t.ID, channel: ch.ID, user: user}), "trigger_id": id}
	s.deliver(&Delivery{ID: id, Kind: Slash, Team: t.ID, Event: command, Channel: ch.ID, payload: mustJSON(p)})
	return id
}

func (s *Server) name(user string) string {
	if u := s.users[user]; u != nil {
		return u.Name
	}
	return ""
}

// Press has a person press the button with that value (or, where no value is it, that action_id), and returns the
// delivery's id; empty: there is no such button.
func (s *Server) Press(channel, ts, user, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chans[channel]
	m := ch.byTS[ts]
	if m == nil || m.Deleted {
		return ""
	}
	b, ok := m.button(value)
	if !ok {
		return ""
	}
	t := s.team(ch.Team)
	id := s.id("12466734323.1395872398.")
	at, _ := s.ts()
	p := reply{
		"type": "block_actions", "api_app_id": s.app.ID, "token": "Shh_its_a_seekrit", "trigger_id": id, "enterprise": nil, "is_enterprise_install": false,
		"user":         reply{"id": user, "username": s.name(user), "name": s.name(user), "team_id": ch.Team},
		"team":         reply{"id": t.ID, "domain": t.Domain},
		"channel":      reply{"id": ch.ID, "name": ch.Name},
		"container":    reply{"type": "message", "message_ts": m.TS, "channel_id": ch.ID, "is_ephemeral": m.For != ""},
		"message":      s.wire(ch, m, false),
		"state":        reply{"values": reply{}},
		"response_url": s.responseURL("actions", responseURL{team: t.ID, channel: ch.ID, user: user, message: m.TS, ephemeral: m.For != ""}),
		"actions": []reply{{"type": "button", "action_id": b.ActionID, "block_id": b.BlockID, "value": b.Value, "action_ts": at,
			"text": reply{"type": "plain_text", "text": b.Text, "emoji": true}}},
	}
	if m.ThreadTS != "" {
		p["container"].(reply)["thread_ts"] = m.ThreadTS
	}
	if m.For != "" {
		delete(p, "message")
	}
	s.deliver(&Delivery{ID: id, Kind: Interactive, Team: t.ID, Event: "block_actions", Channel: ch.ID, TS: m.TS, payload: mustJSON(p)})
	return id
}

func (m *Message) button(value string) (Button, bool) {
	for _, by := range []func(Button) string{func(b Button) string { return b.Value }, func(b Button) string { return b.ActionID }} {
		for _, row := range m.Buttons() {
			for _, b := range row {
				if by(b) == value {
					return b, true
				}
			}
		}
	}
	return Button{}, false
}

// Event delivers any inner event of a workspace, such as app_home_opened or one that nobody can read, and returns its id.
func (s *Server) Event(team int, inner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tell(s.teams[team], json.RawMessage(inner), "", "", "")
}

// tell wraps an inner event (https://docs.slack.dev/apis/events-api/#event-payload).
func (s *Server) tell(t *Team, inner json.RawMessage, kind, channel, ts string) string {
	id := s.id("Ev")
	p := reply{"token": "z26uFbvR1xHJEdHE1OQiO6t8", "team_id": t.ID, "context_team_id": t.ID, "context_enterprise_id": nil, "api_app_id": s.app.ID,
		"type": "event_callback", "event_id": id, "event_time": s.opts.Now().Unix(), "event": inner, "is_ext_shared_channel": false,
		"event_context":  "4-" + id,
		"authorizations": []reply{{"enterprise_id": nil, "team_id": t.ID, "user_id": t.Bot.ID, "is_bot": true, "is_enterprise_install": false}}}
	s.deliver(&Delivery{ID: id, Kind: EventsAPI, Team: t.ID, Event: kind, Channel: channel, TS: ts, payload: mustJSON(p)})
	return id
}

// hears says whether the app gets an event of a room: subscribed, the scope granted, the bot inside.
func (s *Server) hears(ch *Channel, event, scope string) bool {
	t := s.team(ch.Team)
	return (s.opts.Events == nil || slices.Contains(s.opts.Events, event)) && slices.Contains(t.Scopes, scope) && ch.isMember(t.Bot.ID)
}

// messageEvents names the event and the scope by which messages of a kind of room come.
func messageEvents(k ChannelKind) (event, scope string) {
	switch k {
	case Public:
		return "message.channels", "channels:history"
	case Private:
		return "message.groups", "groups:history"
	case MPIM:
		return "message.mpim", "mpim:history"
	}
	return "message.im", "im:history"
}

// tellMessage tells of a new message, also of the bot's own; a mention of the bot outside of direct messages is a second
// event, and either may come first.
func (s *Server) tellMessage(ch *Channel, m *Message) {
	var tells []func()
	t := s.team(ch.Team)
	if event, scope := messageEvents(ch.Kind); s.hears(ch, event, scope) {
		tells = append(tells, func() {
			e := s.wire(ch, m, m.BotID != "")
			e["channel"], e["channel_type"], e["event_ts"] = ch.ID, ch.Kind, m.TS
			s.tell(t, mustJSON(e), "message", ch.ID, m.TS)
		})
	}
	if ch.Kind != IM && m.User != t.Bot.ID && strings.Contains(m.Text, "<@"+t.Bot.ID) && s.hears(ch, "app_mention", "app_mentions:read") {
		tells = append(tells, func() {
			e := s.wire(ch, m, false)
			delete(e, "subtype")
			e["type"], e["channel"], e["event_ts"] = "app_mention", ch.ID, m.TS
			s.tell(t, mustJSON(e), "app_mention", ch.ID, m.TS)
		})
	}
	s.rng.Shuffle(len(tells), func(i, j int) { tells[i], tells[j] = tells[j], tells[i] })
	for _, tell := range tells {
		tell()
	}
}

// tellChanged tells of an edit or a preview: message_changed with both states.
func (s *Server) tellChanged(ch *Channel, m *Message, before Message) {
	event, scope := messageEvents(ch.Kind)
	if !s.hears(ch, event, scope) {
		return
	}
	at, _ := s.ts()
	e := reply{"type": "message", "subtype": "message_changed", "hidden": true, "channel": ch.ID, "channel_type": ch.Kind, "ts": at, "event_ts": at,
		"message": s.wire(ch, m, false), "previous_message": s.wire(ch, &before, false)}
	s.tell(s.team(ch.Team), mustJSON(e), "message_changed", ch.ID, m.TS)
}

// remove deletes a message; the root of a thread with replies stays as a tombstone.
func (s *Server) remove(ch *Channel, m *Message) {
	if m == nil || m.Deleted {
		return
	}
	before := s.wire(ch, m, false)
	m.Deleted = true
	event, scope := messageEvents(ch.Kind)
	if m.For != "" || !s.hears(ch, event, scope) {
		return
	}
	at, _ := s.ts()
	e := reply{"type": "message", "subtype": "message_deleted", "hidden": true, "channel": ch.ID, "channel_type": ch.Kind, "ts": at, "event_ts": at,
		"deleted_ts": m.TS, "previous_message": before}
	s.tell(s.team(ch.Team), mustJSON(e), "message_deleted", ch.ID, m.TS)
}

func (s *Server) tellReaction(ch *Channel, m *Message, kind, name, user string) {
	if !s.hears(ch, kind, "reactions:read") {
		return
	}
	at, _ := s.ts()
	e := reply{"type": kind, "user": user, "reaction": name, "item_user": m.User, "event_ts": at,
		"item": reply{"type": "message", "channel": ch.ID, "ts": m.TS}}
	s.tell(s.team(ch.Team), mustJSON(e), kind, ch.ID, m.TS)
}
