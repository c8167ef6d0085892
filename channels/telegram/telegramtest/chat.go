package telegramtest

import (
	"strconv"
	"sync"
	"time"
)

// Kind of a chat, as in Chat.type.
type Kind string

const (
	Private    Kind = "private"
	Group      Kind = "group"
	Supergroup Kind = "supergroup"
	Channel    Kind = "channel"
)

// User is a person or bot.
type User struct {
	ID                    int64
	First, Last, Username string
	Bot                   bool
	// ReadsAll is can_read_all_group_messages of getMe: privacy mode is off.
	ReadsAll bool
}

// Chat is a conversation. In a private chat ID is the person's user id; ids of the others are negative.
type Chat struct {
	ID       int64
	Kind     Kind
	Title    string
	Username string
	Forum    bool // a supergroup with topics
	// Privacy: the bot is not an admin and its privacy mode is on, so only commands, mentions and replies reach it.
	Privacy bool
}

// Entity is a MessageEntity; offset and length are UTF-16 units.
type Entity struct {
	Type                 string
	Offset, Length       int
	URL, Language, Emoji string
	User                 *User
}

// Button is one inline button.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
	URL  string `json:"url"`
}

// Edit is an earlier state of a message.
type Edit struct {
	At   time.Time // when it was replaced
	Text string
	Raw  string
}

// Message is what a chat holds, from people and from the bot.
type Message struct {
	ID       int64
	Chat     int64
	Thread   int64
	Topic    bool // Thread is a forum topic and not a chain of replies
	From     User // zero in channel posts
	At       time.Time
	EditedAt time.Time
	Text     string // after parsing; the caption of a message with a file
	Raw      string // as it was sent
	Mode     string // parse_mode
	Entities []Entity
	Files    []File
	Album    string
	Buttons  [][]Button
	ReplyTo  int64
	Silent   bool
	// NoPreview says that links in it are not fetched and shown.
	NoPreview bool
	Deleted   bool
	Edits     []Edit
	Reaction  string // the bot's own
	Service   string // JSON members of a service message, such as `"migrate_to_chat_id":-100`
	markup    string
}

// Action is a sendChatAction.
type Action struct {
	Name   string
	Thread int64
	At     time.Time
}

type shard struct {
	mu sync.RWMutex
	m  map[int64]*chat
}

// chat is the state of one conversation. Its mutex guards everything but info's ID.
type chat struct {
	mu      sync.Mutex
	info    Chat
	next    int64      // id of the newest message
	base    int64      // id of msgs[0]
	msgs    []*Message // dense by id
	topics  map[int64]string
	actions []Action
	edits   int64     // calls that edit, whatever came of them
	gone    *apiError // what every send is refused with
	lim     *chatFlood
}

func (s *Server) shard(id int64) *shard { return &s.chats[uint64(id)%shards] }

func (s *Server) chat(id int64) *chat {
	sh := s.shard(id)
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.m[id]
}

// AddChat makes a chat known, or changes what is known of it, and returns it.
func (s *Server) AddChat(info Chat) Chat {
	sh := s.shard(info.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.m == nil {
		sh.m = map[int64]*chat{}
	}
	if old := sh.m[info.ID]; old != nil {
		old.mu.Lock()
		defer old.mu.Unlock()
		old.info = info
		return info
	}
	sh.m[info.ID] = &chat{info: info, topics: map[int64]string{}, base: 1}
	return info
}

// AddPrivate makes the private chat of a person known, as after /start.
func (s *Server) AddPrivate(u User) Chat {
	return s.AddChat(Chat{ID: u.ID, Kind: Private, Title: u.First, Username: u.Username})
}

// AddTopic makes a forum topic and returns its message_thread_id.
func (s *Server) AddTopic(chatID int64, name string) int64 {
	ch := s.mustChat(chatID)
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.next == 0 { // id 1 is the chat's creation, and as a thread the General topic, which cannot be named in sends
		ch.add(s, Message{From: User{ID: 1, First: "Admin"}, Service: `"supergroup_chat_created":true`})
	}
	m := ch.add(s, Message{From: User{ID: 1, First: "Admin"}, Service: `"forum_topic_created":` +
		string(appendString([]byte(`{"name":`), name)) + `,"icon_color":7322096}`})
	m.Thread, m.Topic = m.ID, true
	ch.topics[m.ID] = name
	return m.ID
}

// mustChat panics on a chat that the test never added: a mistake of the test, not of the bot.
func (s *Server) mustChat(id int64) *chat {
	ch := s.chat(id)
	if ch == nil {
		panic("telegramtest: unknown chat " + strconv.FormatInt(id, 10))
	}
	return ch
}

// Block has the person of a private chat block the bot; in a group the bot is kicked.
func (s *Server) Block(chatID int64) {
	ch := s.mustChat(chatID)
	ch.mu.Lock()
	defer ch.mu.Unlock()
	switch ch.info.Kind {
	case Private:
		ch.gone = forbidden("bot was blocked by the user")
	case Supergroup:
		ch.gone = forbidden("bot was kicked from the supergroup chat")
	case Channel:
		ch.gone = forbidden("bot was kicked from the channel chat")
	default:
		ch.gone = forbidden("bot was kicked from the group chat")
	}
}

// Unblock lets the bot in again.
func (s *Server) Unblock(chatID int64) {
	ch := s.mustChat(chatID)
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.gone = nil
}

// add stores a message under the next id. The caller holds ch.mu.
func (ch *chat) add(s *Server, m Message) *Message {
	ch.next++
	m.ID, m.Chat = ch.next, ch.info.ID
	if m.At.IsZero() {
		m.At = s.opts.Now()
	}
	stored := &m
	ch.msgs = append(ch.msgs, stored)
	if keep := s.opts.Keep; keep > 0 && len(ch.msgs) > 2*keep {
		drop := len(ch.msgs) - keep
		ch.base += int64(drop)
		n := copy(ch.msgs, ch.msgs[drop:])
		clear(ch.msgs[n:])
		ch.msgs = ch.msgs[:n]
	}
	return stored
}

// message finds a message that is not deleted. The caller holds ch.mu.
func (ch *chat) message(id int64) *Message {
	i := id - ch.base
	if i < 0 || i >= int64(len(ch.msgs)) || ch.msgs[i].Deleted {
		return nil
	}
	return ch.msgs[i]
}

// appendMessage renders a Message object; depth is how many levels of reply_to_message to include. The caller holds
// ch.mu.
func (s *Server) appendMessage(b []byte, ch *chat, m *Message, depth int) []byte {
	b = strconv.AppendInt(append(b, `{"message_id":`...), m.ID, 10)
	if m.From.ID != 0 {
		b = appendUser(append(b, `,"from":`...), m.From)
	} else {
		b = appendChat(append(b, `,"sender_chat":`...), ch.info)
	}
	b = appendChat(append(b, `,"chat":`...), ch.info)
	b = strconv.AppendInt(append(b, `,"date":`...), m.At.Unix(), 10)
	if !m.EditedAt.IsZero() {
		b = strconv.AppendInt(append(b, `,"edit_date":`...), m.EditedAt.Unix(), 10)
	}
	b = appendNumber(b, "message_thread_id", m.Thread)
	if m.Topic {
		b = append(b, `,"is_topic_message":true`...)
	}
	b = appendField(b, "media_group_id", m.Album)
	if depth > 0 && m.ReplyTo != 0 {
		if to := ch.message(m.ReplyTo); to != nil {
			b = s.appendMessage(append(b, `,"reply_to_message":`...), ch, to, depth-1)
		}
	}
	if len(m.Files) > 0 {
		for _, f := range m.Files {
			b = f.append(b)
		}
		b = appendField(b, "caption", m.Text)
		b = appendEntities(b, "caption_entities", m.Entities)
	} else {
		b = appendField(b, "text", m.Text)
		b = appendEntities(b, "entities", m.Entities)
	}
	if m.markup != "" {
		b = append(append(b, `,"reply_markup":`...), m.markup...)
	}
	if m.Service != "" {
		b = append(append(b, ','), m.Service...)
	}
	return append(b, '}')
}
