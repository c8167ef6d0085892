package discordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// AddUser makes a person or another bot known.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = &u
}

// AddGuild puts the bot into a server. Its members must be known users.
func (s *Server) AddGuild(g Guild) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.Members, g.Nick = maps.Clone(g.Members), maps.Clone(g.Nick)
	s.guilds[g.ID] = &g
	s.dispatch(event{name: "GUILD_CREATE", guild: g.ID, intents: IntentGuilds, data: func(int) any { return s.guildJSON(&g, true) }})
	s.watch.Changed()
}

// AddChannel makes a channel or conversation; a conversation is not told of, as Discord tells bots of it with its first message.
func (s *Server) AddChannel(c Channel) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.addChannel(c)
	switch {
	case c.Type == Direct:
	case ch.thread():
		s.channelEvent(ch, "THREAD_CREATE")
	default:
		s.channelEvent(ch, "CHANNEL_CREATE")
	}
	return ch.ID
}

func (s *Server) channelEvent(ch *channel, name string) {
	s.dispatch(event{name: name, guild: ch.Guild, channel: ch.ID, intents: IntentGuilds, data: func(int) any { return s.channelJSON(ch) }})
	s.watch.Changed()
}

// Rename gives a channel another name; RemoveChannel deletes it.
func (s *Server) Rename(id, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[id]
	ch.Name = name
	s.channelEvent(ch, map[bool]string{true: "THREAD_UPDATE", false: "CHANNEL_UPDATE"}[ch.thread()])
}

// RemoveChannel deletes a channel: 10003 from now on.
func (s *Server) RemoveChannel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[id]
	s.channelEvent(ch, map[bool]string{true: "THREAD_DELETE", false: "CHANNEL_DELETE"}[ch.thread()])
	ch.gone = true
}

// Deny takes permissions from the bot in a channel; the zero value gives them back.
func (s *Server) Deny(id string, d Denied) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[id].denied = d
}

// Block: the person of this conversation takes no messages of the bot any more.
func (s *Server) Block(id string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[id].blocked = on
}

// Kick takes the bot out of a server.
func (s *Server) Kick(guild string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch(event{name: "GUILD_DELETE", guild: guild, intents: IntentGuilds, data: func(int) any { return obj{"id": guild} }})
	delete(s.guilds, guild)
	for _, ch := range s.channels {
		if ch.Guild == guild {
			ch.denied.See = true
		}
	}
	s.watch.Changed()
}

// SetRoles changes a member's roles.
func (s *Server) SetRoles(guild, user string, roles ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.guilds[guild]
	g.Members[user] = roles
	s.dispatch(event{name: "GUILD_MEMBER_UPDATE", guild: guild, intents: IntentMembers, data: func(int) any { return withGuild(s.member(g, user, true), guild) }})
	s.watch.Changed()
}

// In is a message of a person or another bot.
type In struct {
	Channel, From string
	Text          string // mentions as <@id>
	ReplyTo       string
	Files         []File
	Type          int    // 0: what fits
	Webhook       string // the id of the webhook that wrote it
}

// Write has somebody write and gives the message's id.
func (s *Server) Write(in In) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[in.Channel]
	m := &Message{Channel: ch.ID, Guild: ch.Guild, From: *s.users[in.From], Type: in.Type, ReplyTo: in.ReplyTo}
	if m.Type == 0 && in.ReplyTo != "" {
		m.Type = 19
	}
	s.fill(m, &payload{Content: &in.Text}, in.Files)
	if r := s.message(ch.ID, in.ReplyTo); r != nil && !slices.Contains(m.Mentions, r.From.ID) {
		m.Mentions = append(m.Mentions, r.From.ID) // a reply mentions whom it answers, as the client's switch has it
	}
	s.post(ch, m)
	return m.ID
}

// EditIn has a person change their message; a link preview (Preview) comes as an update without an edit.
func (s *Server) EditIn(chat, id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.message(chat, id); m != nil {
		_, _ = s.edit(m, &payload{Content: &text}, nil) // people have no limits here
	}
}

// Preview puts the preview of a link under a message: MESSAGE_UPDATE with the old edited_timestamp.
func (s *Server) Preview(chat, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.message(chat, id); m != nil {
		m.Embeds = append(m.Embeds, json.RawMessage(`{"type":"link","url":"https://example.org/","title":"Example"}`))
		s.tell(m, "MESSAGE_UPDATE")
		s.watch.Changed()
	}
}

// DeleteIn has a person or moderator delete messages, more than one as MESSAGE_DELETE_BULK.
func (s *Server) DeleteIn(chat string, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(ids) > 1 {
		s.removeAll(s.channels[chat], ids)
		return
	}
	for _, id := range ids {
		if m := s.message(chat, id); m != nil {
			s.remove(m)
		}
	}
}

// React has a person put or take a reaction.
func (s *Server) React(chat, id, who, emoji string, on bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.message(chat, id)
	if m != nil {
		s.react(m, who, emoji, on)
	}
	return m != nil
}

// Thread has a person start a thread from a message, or from nothing.
func (s *Server) Thread(chat, message, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newThread(s.channels[chat], s.message(chat, message), name, PublicThread).ID
}

// Raw dispatches an event as it stands, to every session whatever its intents.
func (s *Server) Raw(name, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch(event{name: name, data: func(int) any { return json.RawMessage(data) }})
	s.watch.Changed()
}

// Messages are all messages of a channel, from people and the bot, oldest first, deleted and ephemeral ones included.
func (s *Server) Messages(chat string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Message
	if ch := s.channels[chat]; ch != nil {
		for _, m := range ch.msgs {
			all = append(all, m.clone())
		}
	}
	return all
}

// Sent are the bot's messages among Messages that everybody sees, without the deleted ones.
func (s *Server) Sent(chat string) []Message { return s.Sees(chat, "") }

// Sees are the bot's messages that a person sees: those of everybody and those for them alone.
func (s *Server) Sees(chat, who string) []Message {
	return slices.DeleteFunc(s.Messages(chat), func(m Message) bool {
		return m.Deleted || m.From.ID != s.opts.Bot.ID || m.For != "" && m.For != who
	})
}

// Message is one message, also a deleted one.
func (s *Server) Message(chat, id string) (Message, bool) {
	for _, m := range s.Messages(chat) {
		if m.ID == id {
			return m, true
		}
	}
	return Message{}, false
}

// Typed are the bot's signs of typing in a channel.
func (s *Server) Typed(chat string) []Typing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[chat]; ch != nil {
		return slices.Clone(ch.typing)
	}
	return nil
}

// Menu are the registered commands, name and help; guild "" is the global list.
func (s *Server) Menu(guild string) [][2]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all [][2]string
	for _, o := range s.commands[guild] {
		all = append(all, [2]string{fmt.Sprint(o["name"]), fmt.Sprint(o["description"])})
	}
	return all
}

// Calls is how often a route was called, whatever came of it: "POST /channels/{channel}/messages". "token at the CDN" counts
// downloads that carried the bot's token.
func (s *Server) Calls(route string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[route]
}

// Line is the state of the gateway.
type Line struct {
	Open       int // connections
	Ready      int // … with a session
	Sessions   int // also those that wait to be resumed
	Identifies int
	Resumed    int
	ResumeURL  int // connections to resume_gateway_url
	Behind     int // dispatches that no connection has had
}

// Line looks at the gateway now.
func (s *Server) Line() Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := Line{Open: len(s.gate.conns), Sessions: len(s.gate.sessions), Identifies: s.gate.identifies, Resumed: s.gate.resumed, ResumeURL: s.gate.resumePath}
	for c := range s.gate.conns {
		if c.session != nil {
			l.Ready++
			l.Behind += len(c.session.log) - c.next
		}
	}
	return l
}

// WaitFor blocks until cond, which may call every method, holds. It is asked again after every change.
func (s *Server) WaitFor(ctx context.Context, cond func() bool) error { return s.watch.Wait(ctx, cond) }

// WaitSent waits until the bot has n messages in a channel, and returns them.
func (s *Server) WaitSent(ctx context.Context, chat string, n int) ([]Message, error) {
	var got []Message
	err := s.WaitFor(ctx, func() bool {
		got = s.Sent(chat)
		return len(got) >= n
	})
	return got, err
}
