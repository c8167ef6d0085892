package discordtest

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

type obj = map[string]any

// User is a person or bot.
type User struct {
	ID     string
	Name   string // unique, small letters
	Global string // the name that is shown
	Bot    bool
}

func (u *User) json() obj {
	o := obj{"id": u.ID, "username": u.Name, "discriminator": "0", "global_name": nil, "avatar": nil, "public_flags": 0}
	if u.Global != "" {
		o["global_name"] = u.Global
	}
	if u.Bot {
		o["bot"] = true
	}
	return o
}

// Role is a role of a server.
type Role struct{ ID, Name string }

// Guild is a server. Members maps a user's id to the ids of their roles; the bot is always a member.
type Guild struct {
	ID, Name string
	Roles    []Role
	Members  map[string][]string
	Nick     map[string]string // by user id
}

// Types of channels, https://discord.com/developers/docs/resources/channel#channel-object-channel-types.
const (
	Text          = 0
	Direct        = 1
	Category      = 4
	Announcement  = 5
	PublicThread  = 11
	PrivateThread = 12
	Forum         = 15
)

// Channel is a channel, thread or conversation with one person.
type Channel struct {
	ID     string
	Type   int
	Guild  string // empty: Direct
	Name   string
	Parent string // of a thread: its channel; of a channel: its category
	With   string // of Direct: the person
	Topic  string
}

func (c Channel) thread() bool { return c.Type >= 10 && c.Type <= 12 }

// Denied is what a test takes from the bot in a channel.
type Denied struct {
	See     bool // VIEW_CHANNEL: 50001 everywhere
	Send    bool // SEND_MESSAGES: 50013
	History bool // READ_MESSAGE_HISTORY: the list is empty, replies and reactions are refused
	React   bool // ADD_REACTIONS: 50013
	Attach  bool // ATTACH_FILES: 50013
}

type channel struct {
	Channel
	denied  Denied
	blocked bool // the person does not take messages of the bot: 50007
	gone    bool
	msgs    []*Message
	typing  []Typing
	nonces  map[string]*Message
}

// Typing is one sign that the bot types.
type Typing struct{ At time.Time }

// Button is a button of a message.
type Button struct {
	Label, ID string
	Style     int
	Off       bool
}

// File is an attachment.
type File struct {
	ID, Name, MIME string
	Data           []byte
}

// Message is one message, also a deleted one.
type Message struct {
	ID, Channel, Guild string
	From               User
	Type               int // 0 default, 18 thread created, 19 reply, 20 chat input command
	Text               string
	At, Edited         time.Time // Edited is zero until then
	ReplyTo            string
	Thread             string // the thread that was started from it
	Files              []File
	Buttons            [][]Button
	Embeds             []json.RawMessage
	Nonce              string
	Flags              int
	Mentions           []string            // ids of mentioned users
	Pings              bool                // @everyone or @here rang
	Reactions          map[string][]string // users by emoji
	For                string              // ephemeral: only this person sees it
	Deferred           bool                // "… is thinking"
	Interaction        string              // the interaction that it answers
	Edits              []string            // texts that it had before
	Deleted            bool
	components         []json.RawMessage
	edits              []time.Time
}

const (
	flagSuppressEmbeds = 1 << 2
	flagEphemeral      = 1 << 6
	flagLoading        = 1 << 7
	flagSilent         = 1 << 12
	flagComponentsV2   = 1 << 15
)

func (m *Message) clone() Message {
	c := *m
	c.Edits = slices.Clone(m.Edits)
	c.Files = slices.Clone(m.Files)
	c.Buttons = slices.Clone(m.Buttons)
	c.Reactions = map[string][]string{}
	for e, who := range m.Reactions {
		c.Reactions[e] = slices.Clone(who)
	}
	return c
}

const stamp = "2006-01-02T15:04:05.000000-07:00"

// json is the message as the API gives it. hidden empties what needs the intent MESSAGE_CONTENT. The caller holds s.mu.
func (s *Server) json(m *Message, hidden bool) obj {
	mentions := []obj{}
	for _, id := range m.Mentions {
		if u := s.users[id]; u != nil {
			mentions = append(mentions, u.json())
		}
	}
	o := obj{"id": m.ID, "type": m.Type, "channel_id": m.Channel, "author": m.From.json(), "content": m.Text, "timestamp": m.At.UTC().Format(stamp),
		"edited_timestamp": nil, "tts": false, "mention_everyone": m.Pings, "mentions": mentions, "mention_roles": roleMentions(m.Text), "pinned": false,
		"flags": m.Flags, "attachments": s.attachments(m), "embeds": raws(m.Embeds), "components": raws(m.components)}
	if !m.Edited.IsZero() {
		o["edited_timestamp"] = m.Edited.UTC().Format(stamp)
	}
	if m.Nonce != "" {
		o["nonce"] = m.Nonce
	}
	if m.From.Bot && m.From.ID == s.opts.Bot.ID {
		o["application_id"] = s.opts.App
	}
	if m.ReplyTo != "" {
		ref := obj{"type": 0, "message_id": m.ReplyTo, "channel_id": m.Channel}
		if m.Guild != "" {
			ref["guild_id"] = m.Guild
		}
		o["message_reference"] = ref
		o["referenced_message"] = nil
		if r := s.message(m.Channel, m.ReplyTo); r != nil {
			inner := s.json(r, hidden && !s.shown(r))
			delete(inner, "referenced_message")
			o["referenced_message"] = inner
		}
	}
	if m.Thread != "" {
		if t := s.channels[m.Thread]; t != nil {
			o["thread"] = s.channelJSON(t)
		}
	}
	if m.Interaction != "" {
		if i := s.acts[m.Interaction]; i != nil {
			o["interaction_metadata"] = obj{"id": i.id, "type": i.kind, "user": i.user.json()}
		}
	}
	if len(m.Reactions) > 0 {
		o["reactions"] = s.reactions(m)
	}
	if hidden && !s.shown(m) {
		o["content"], o["embeds"], o["attachments"], o["components"] = "", []obj{}, []obj{}, []obj{}
	}
	return o
}

// shown: the content is given without the intent in direct messages, of the app's own messages, and where it is mentioned
// (https://discord.com/developers/docs/events/gateway#message-content-intent).
func (s *Server) shown(m *Message) bool {
	return m.Guild == "" || m.From.ID == s.opts.Bot.ID || slices.Contains(m.Mentions, s.opts.Bot.ID)
}

func raws(all []json.RawMessage) []json.RawMessage {
	if all == nil {
		return []json.RawMessage{}
	}
	return all
}

func (s *Server) attachments(m *Message) []obj {
	all := []obj{}
	for _, f := range m.Files {
		base := s.opts.CDN
		if base == "" {
			base = "http://" + s.Addr()
		}
		expires := s.opts.Now().Add(24 * time.Hour).Unix()
		url := base + "/attachments/" + m.Channel + "/" + f.ID + "/" + f.Name + signature(f.ID, expires)
		o := obj{"id": f.ID, "filename": f.Name, "size": len(f.Data), "url": url, "proxy_url": url}
		if f.MIME != "" {
			o["content_type"] = f.MIME
		}
		all = append(all, o)
	}
	return all
}

func (s *Server) reactions(m *Message) []obj {
	all := []obj{}
	for e, who := range m.Reactions {
		all = append(all, obj{"emoji": obj{"id": nil, "name": e}, "count": len(who), "me": slices.Contains(who, s.opts.Bot.ID)})
	}
	slices.SortFunc(all, func(a, b obj) int {
		return cmp.Compare(a["emoji"].(obj)["name"].(string), b["emoji"].(obj)["name"].(string))
	})
	return all
}

func (s *Server) channelJSON(c *channel) obj {
	o := obj{"id": c.ID, "type": c.Type, "flags": 0, "last_message_id": nil}
	if n := len(c.msgs); n > 0 {
		o["last_message_id"] = c.msgs[n-1].ID
	}
	if c.Type == Direct {
		o["recipients"] = []obj{s.users[c.With].json()}
		return o
	}
	o["guild_id"], o["name"], o["position"], o["nsfw"] = c.Guild, c.Name, 0, false
	o["parent_id"], o["topic"], o["permission_overwrites"], o["rate_limit_per_user"] = nil, nil, []obj{}, 0
	if c.Parent != "" {
		o["parent_id"] = c.Parent
	}
	if c.Topic != "" {
		o["topic"] = c.Topic
	}
	if c.thread() {
		delete(o, "position")
		o["owner_id"], o["message_count"], o["member_count"], o["total_message_sent"] = s.opts.Bot.ID, len(c.msgs), 2, len(c.msgs)
		o["thread_metadata"] = obj{"archived": false, "auto_archive_duration": 1440, "locked": false, "archive_timestamp": s.opts.Now().UTC().Format(stamp)}
	}
	return o
}

// member is a guild's member; user says whether the user object is in it, which it is not inside messages.
func (s *Server) member(g *Guild, id string, user bool) obj {
	roles := g.Members[id]
	if roles == nil {
		roles = []string{}
	}
	o := obj{"roles": roles, "nick": nil, "joined_at": "2024-01-02T03:04:05.000000+00:00", "deaf": false, "mute": false, "flags": 0, "avatar": nil}
	if n := g.Nick[id]; n != "" {
		o["nick"] = n
	}
	if user {
		o["user"] = s.users[id].json()
	}
	return o
}

func (s *Server) guildJSON(g *Guild, full bool) obj {
	roles := []obj{{"id": g.ID, "name": "@everyone", "permissions": "2248473465835073", "position": 0}}
	for i, r := range g.Roles {
		roles = append(roles, obj{"id": r.ID, "name": r.Name, "permissions": "0", "position": i + 1})
	}
	o := obj{"id": g.ID, "name": g.Name, "owner_id": "1", "roles": roles, "emojis": []obj{}, "features": []string{}, "preferred_locale": "en-US"}
	if !full {
		return o
	}
	chans, threads := []obj{}, []obj{}
	for _, c := range s.ofGuild(g.ID) {
		if c.thread() {
			threads = append(threads, s.channelJSON(c))
		} else {
			chans = append(chans, s.channelJSON(c))
		}
	}
	o["channels"], o["threads"], o["members"] = chans, threads, []obj{s.member(g, s.opts.Bot.ID, true)}
	o["large"], o["unavailable"], o["member_count"], o["joined_at"] = false, false, len(g.Members)+1, "2024-01-02T03:04:05.000000+00:00"
	return o
}

// ofGuild are the channels that the bot sees, by id.
func (s *Server) ofGuild(id string) []*channel {
	var all []*channel
	for _, c := range s.channels {
		if c.Guild == id && !c.gone && !c.denied.See {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *channel) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// message is a message that is still there; nil: none.
func (s *Server) message(chat, id string) *Message {
	c := s.channels[chat]
	if c == nil {
		return nil
	}
	for _, m := range c.msgs {
		if m.ID == id && !m.Deleted {
			return m
		}
	}
	return nil
}
