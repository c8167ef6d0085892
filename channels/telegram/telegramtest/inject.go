package telegramtest

import (
	"strconv"
	"strings"
	"time"
)

// In is a message that a person writes.
type In struct {
	Chat     int64
	From     User // zero in a channel: the channel itself writes
	Text     string
	Entities []Entity // nil: mentions and commands are found as Telegram finds them
	Thread   int64    // a topic of AddTopic
	ReplyTo  int64
	File     File // with a Type: Text is its caption
	Album    string
	Date     time.Time // zero: now
}

// Message has a person write, and returns the message's id. The update is queued unless privacy mode hides the message.
func (s *Server) Message(in In) int64 {
	_, id := s.Inject(in)
	return id
}

// Inject is Message that tells the update's id too; 0: the bot does not get it.
func (s *Server) Inject(in In) (update, id int64) {
	ch := s.mustChat(in.Chat)
	ch.mu.Lock()
	m := s.incoming(ch, in)
	stored := ch.add(s, m)
	kind := "message"
	if ch.info.Kind == Channel {
		kind = "channel_post"
	}
	hidden := ch.info.Privacy && !s.reaches(ch, stored)
	var body []byte
	if !hidden {
		body = s.appendMessage(make([]byte, 0, 512), ch, stored, 1)
	}
	id = stored.ID
	ch.mu.Unlock()
	if hidden {
		return 0, id
	}
	return s.queue.put(kind, body), id
}

// incoming makes the stored form of in. The caller holds ch.mu.
func (s *Server) incoming(ch *chat, in In) Message {
	m := Message{From: in.From, At: in.Date, Text: in.Text, Raw: in.Text, Entities: in.Entities, ReplyTo: in.ReplyTo, Album: in.Album}
	if m.Entities == nil {
		m.Entities = findEntities(in.Text)
	}
	if in.File.Type != "" {
		m.Files = []File{s.files.keep(in.File)}
	}
	to := ch.message(in.ReplyTo)
	switch {
	case in.Thread != 0:
		m.Thread, m.Topic = in.Thread, true
		if m.ReplyTo == 0 {
			m.ReplyTo = in.Thread // Telegram shows every topic message as an answer to the topic's first
		}
	case to != nil && ch.info.Kind == Supergroup: // a chain of replies has a thread id too, and is not a topic
		m.Thread = to.Thread
		if m.Thread == 0 {
			m.Thread = to.ID
		}
	}
	return m
}

// reaches says whether a message gets through privacy mode: commands, mentions, answers to the bot.
func (s *Server) reaches(ch *chat, m *Message) bool {
	bot := s.opts.Bot
	if bot.ReadsAll {
		return true
	}
	if to := ch.message(m.ReplyTo); to != nil && to.From.ID == bot.ID {
		return true
	}
	for _, e := range m.Entities {
		text := slice16(m.Text, e.Offset, e.Length)
		switch {
		case e.Type == "mention" && strings.EqualFold(text, "@"+bot.Username):
			return true
		case e.Type == "text_mention" && e.User != nil && e.User.ID == bot.ID:
			return true
		case e.Type == "bot_command":
			_, to, named := strings.Cut(text, "@")
			return !named || strings.EqualFold(to, bot.Username)
		}
	}
	return false
}

// Album has a person write one message per file, joined by a media_group_id; text is the caption of the first.
func (s *Server) Album(in In, files ...File) []int64 {
	in.Album = s.album()
	var ids []int64
	for i, f := range files {
		in.File = f
		if i > 0 {
			in.Text = ""
		}
		ids = append(ids, s.Message(in))
	}
	return ids
}

// EditIn has a person edit a message, and returns the update's id.
func (s *Server) EditIn(chatID, id int64, text string) int64 {
	ch := s.mustChat(chatID)
	ch.mu.Lock()
	m := ch.message(id)
	now := s.opts.Now()
	m.Edits = append(m.Edits, Edit{now, m.Text, m.Raw})
	m.Text, m.Raw, m.Entities, m.EditedAt = text, text, findEntities(text), now
	kind := "edited_message"
	if ch.info.Kind == Channel {
		kind = "edited_channel_post"
	}
	body := s.appendMessage(nil, ch, m, 1)
	ch.mu.Unlock()
	return s.queue.put(kind, body)
}

// Press has a person press a button, and returns the callback's id.
func (s *Server) Press(chatID, id int64, from User, data string) string {
	ch := s.mustChat(chatID)
	ch.mu.Lock()
	s.callbacks.mu.Lock()
	if s.callbacks.m == nil {
		s.callbacks.m = map[string]Answer{}
	}
	key := strconv.Itoa(4382000000000000000 + len(s.callbacks.m))
	s.callbacks.m[key] = Answer{}
	s.callbacks.mu.Unlock()
	b := appendString([]byte(`{"id":`), key)
	b = appendUser(append(b, `,"from":`...), from)
	if m := ch.message(id); m != nil {
		b = s.appendMessage(append(b, `,"message":`...), ch, m, 1)
	}
	b = appendString(append(b, `,"chat_instance":"-1","data":`...), data)
	ch.mu.Unlock()
	s.queue.put("callback_query", append(b, '}'))
	return key
}

// React has a person change a reaction from old to emoji (either may be empty), and returns the update's id; 0 unless
// the bot asked for message_reaction.
func (s *Server) React(chatID, id int64, from User, old, emoji string) int64 {
	ch := s.mustChat(chatID)
	list := func(b []byte, e string) []byte {
		if e == "" {
			return append(b, "[]"...)
		}
		return append(appendString(append(b, `[{"type":"emoji","emoji":`...), e), "}]"...)
	}
	ch.mu.Lock()
	b := appendChat([]byte(`{"chat":`), ch.info)
	ch.mu.Unlock()
	b = appendNumber(b, "message_id", id)
	b = appendUser(append(b, `,"user":`...), from)
	b = appendNumber(b, "date", s.opts.Now().Unix())
	b = list(append(b, `,"old_reaction":`...), old)
	b = list(append(b, `,"new_reaction":`...), emoji)
	return s.queue.put("message_reaction", append(b, '}'))
}

// Member tells the bot that its own membership changed, for example from member to kicked.
func (s *Server) Member(chatID int64, by User, before, after string) int64 {
	ch := s.mustChat(chatID)
	ch.mu.Lock()
	b := appendChat([]byte(`{"chat":`), ch.info)
	ch.mu.Unlock()
	b = appendUser(append(b, `,"from":`...), by)
	b = appendNumber(b, "date", s.opts.Now().Unix())
	for _, m := range [][2]string{{"old_chat_member", before}, {"new_chat_member", after}} {
		b = appendUser(append(append(append(b, `,"`...), m[0]...), `":{"user":`...), s.opts.Bot)
		b = append(appendField(b, "status", m[1]), '}')
	}
	return s.queue.put("my_chat_member", append(b, '}'))
}

// Migrate turns a group into a supergroup with another id: both chats get the service message, and sends to the old one
// are refused with migrate_to_chat_id.
func (s *Server) Migrate(from, to int64) {
	old := s.mustChat(from)
	old.mu.Lock()
	info := old.info
	old.gone = badRequest("group chat was upgraded to a supergroup chat")
	old.gone.migrate = to
	old.mu.Unlock()
	info.ID, info.Kind = to, Supergroup
	s.AddChat(info)
	s.service(from, `"migrate_to_chat_id":`+strconv.FormatInt(to, 10))
	s.service(to, `"migrate_from_chat_id":`+strconv.FormatInt(from, 10))
}

func (s *Server) service(chatID int64, member string) {
	ch := s.mustChat(chatID)
	ch.mu.Lock()
	m := ch.add(s, Message{From: User{ID: 1087968824, First: "Group", Username: "GroupAnonymousBot", Bot: true}, Service: member})
	body := s.appendMessage(nil, ch, m, 0)
	ch.mu.Unlock()
	s.queue.put("message", body)
}

// findEntities finds @names and /commands in what a person wrote.
func findEntities(text string) []Entity {
	if !strings.ContainsAny(text, "@/") {
		return nil
	}
	var all []Entity
	word := func(c byte) bool { return isAlpha(c) || (c >= '0' && c <= '9') || c == '_' }
	for i := 0; i < len(text); i++ {
		free := i == 0 || !word(text[i-1]) && text[i-1] != '/' && text[i-1] != '@' && text[i-1] != '.'
		if !free || (text[i] != '@' && text[i] != '/') {
			continue
		}
		end := i + 1
		for end < len(text) && word(text[end]) {
			end++
		}
		kind, least := "bot_command", 2
		if text[i] == '@' {
			kind, least = "mention", 4
		} else if end < len(text) && text[end] == '@' {
			for end++; end < len(text) && word(text[end]); {
				end++
			}
		} else if end < len(text) && text[end] == '/' {
			continue // a path
		}
		if end-i >= least {
			all = append(all, Entity{Type: kind, Offset: units(text[:i]), Length: units(text[i:end])})
		}
		i = end - 1
	}
	return all
}

// slice16 cuts s by UTF-16 units.
func slice16(s string, offset, length int) string {
	var from, n int
	from = len(s)
	for i, r := range s {
		if n == offset {
			from = i
		}
		if n == offset+length {
			return s[min(from, i):i]
		}
		n++
		if r > 0xffff {
			n++
		}
	}
	return s[from:]
}
