package slacktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// App is the Slack app; it has one app-level token and one signing secret for all workspaces.
type App struct {
	ID            string
	Token         string // xapp-…
	SigningSecret string
	Scopes        []string // of the app-level token

	refused string
}

// Team is a workspace where the app is installed.
type Team struct {
	ID, Name, Domain string
	Token            string // xoxb-…
	Bot              User   // the bot's own user; its BotID is the id in message.bot_id
	Scopes           []string
	NoScopesHeader   bool // answers carry no X-OAuth-Scopes, as behind some proxies

	refused string
}

// User is a person or a bot's user.
type User struct {
	ID, Name, Real string
	Team           string
	BotID          string // of a bot
	Bot            bool
	Deleted        bool // deactivated
	TZ             string
}

// ChannelKind is the channel_type of events.
type ChannelKind string

const (
	Public  ChannelKind = "channel"
	Private ChannelKind = "group"
	IM      ChannelKind = "im"
	MPIM    ChannelKind = "mpim"
)

// Channel is a conversation of a workspace.
type Channel struct {
	ID, Team, Name string
	Kind           ChannelKind
	Members        []string // user ids, the bot's among them if it is a member
	Archived       bool

	denied string // an error for every message
	msgs   []*Message
	byTS   map[string]*Message
}

// Message is what a channel holds. Copies of it are given out.
type Message struct {
	Channel, TS, ThreadTS string
	User, BotID           string
	Subtype               string
	Text                  string          // as it was given, with Slack's escapes
	Markdown              string          // of markdown_text and streams
	Blocks                json.RawMessage // nil: none
	Metadata              json.RawMessage
	Files                 []File
	Reactions             []Reaction
	Edits                 []Edit // earlier texts, oldest first
	EditedAt              string // ts; empty: never
	Deleted               bool
	Streaming             bool
	Broadcast             bool
	NoUnfurl              bool   // links are not previewed
	For                   string // of an ephemeral message: the one who sees it
	At                    time.Time

	clientID string // client_msg_id
}

// Edit is an earlier state of a message.
type Edit struct {
	At   time.Time
	Text string
}

// Reaction is an emoji with those who gave it.
type Reaction struct {
	Name  string
	Users []string
}

// File is a file that was shared or uploaded.
type File struct {
	ID, Name, Title, MIME string
	User, Team            string
	Data                  []byte
	Size                  int // as Slack says; 0: of Data

	shares   []share
	looked   int
	uploaded bool
	done     bool
}

type share struct {
	channel, ts string
	private     bool
}

// Status is what assistant.threads.setStatus showed.
type Status struct {
	Channel, ThreadTS, Text string
}

func defaultApp() App {
	return App{
		ID: "A0PARLEY001", Token: "xapp-1-A0PARLEY001-5555555555555-0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
		SigningSecret: "8f742231b10e8888abcd99yyyzzz85a5", Scopes: []string{"connections:write"},
	}
}

// AllScopes are the bot scopes that the fake's methods and events ask for.
func AllScopes() []string {
	return []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "files:read",
		"files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history", "mpim:read",
		"mpim:write", "reactions:read", "reactions:write", "team:read", "users:read",
	}
}

// install fills a team's empty fields and takes it in.
func (s *Server) install(t Team) {
	n := len(s.teams) + 1
	set := func(v *string, def string) {
		if *v == "" {
			*v = def
		}
	}
	set(&t.ID, fmt.Sprintf("T0PARLEY%03d", n))
	set(&t.Name, fmt.Sprintf("Workspace %d", n))
	set(&t.Domain, fmt.Sprintf("workspace%d", n))
	set(&t.Token, fmt.Sprintf("xoxb-1111111111%03d-2222222222%03d-AbCdEfGhIjKlMnOpQrStUv%02d", n, n, n))
	set(&t.Bot.ID, fmt.Sprintf("U0PARLEY%03d", n))
	set(&t.Bot.BotID, fmt.Sprintf("B0PARLEY%03d", n))
	set(&t.Bot.Name, "parley")
	t.Bot.Bot, t.Bot.Team = true, t.ID
	if t.Scopes == nil {
		t.Scopes = AllScopes()
	}
	s.teams = append(s.teams, &t)
	bot := t.Bot
	s.users[bot.ID] = &bot
}

// App is the app with its secrets.
func (s *Server) App() App {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.app
}

// Team is the n-th workspace, from 0.
func (s *Server) Team(n int) Team {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.teams[n]
}

// SetScopes changes what a workspace granted; the app sees it in its next call.
func (s *Server) SetScopes(team int, scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.teams[team].Scopes = scopes
}

// Revoke makes a workspace's bot token answer with code: token_revoked, invalid_auth, account_inactive, token_expired …;
// the empty code takes it again.
func (s *Server) Revoke(team int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.teams[team].refused = code
}

// Rotate has the app sign with another secret from now on.
func (s *Server) Rotate(signingSecret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app.SigningSecret = signingSecret
}

// RevokeApp is Revoke for the app-level token. The sockets are told link_disabled and closed.
func (s *Server) RevokeApp(code string) {
	s.mu.Lock()
	s.app.refused = code
	s.mu.Unlock()
	if code != "" {
		s.Disconnect("link_disabled")
	}
}

// AddUser adds a person; an empty Team is the first workspace.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Team == "" {
		u.Team = s.teams[0].ID
	}
	s.users[u.ID] = &u
}

// AddChannel adds a conversation; an empty Team is the first workspace. The bot is added to the members of an IM.
func (s *Server) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Team == "" {
		c.Team = s.teams[0].ID
	}
	c.Members = slices.Clone(c.Members)
	if bot := s.team(c.Team).Bot.ID; c.Kind == IM && !slices.Contains(c.Members, bot) {
		c.Members = append(c.Members, bot)
	}
	c.byTS = map[string]*Message{}
	s.chans[c.ID] = &c
}

// Deny refuses every message of the bot in a channel with an error, such as is_archived or restricted_action.
func (s *Server) Deny(channel, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chans[channel].denied = code
}

// Kick takes the bot out of a channel.
func (s *Server) Kick(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chans[channel]
	bot := s.team(ch.Team).Bot.ID
	ch.Members = slices.DeleteFunc(ch.Members, func(u string) bool { return u == bot })
}

func (s *Server) team(id string) *Team {
	for _, t := range s.teams {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// ts makes the next timestamp: unique in the whole server, so in every channel.
func (s *Server) ts() (string, time.Time) {
	now := s.opts.Now()
	n := max(now.UnixMicro(), s.lastTS+1)
	s.lastTS = n
	return fmt.Sprintf("%d.%06d", n/1e6, n%1e6), now
}

// id makes an id that nobody has, such as Ev0000001.
func (s *Server) id(prefix string) string {
	s.ids++
	return fmt.Sprintf("%s%08X", prefix, 0x0A000000+s.ids)
}

func (c *Channel) add(m *Message, keep int) {
	c.msgs = append(c.msgs, m)
	c.byTS[m.TS] = m
	if keep > 0 && len(c.msgs) > keep {
		for _, old := range c.msgs[:len(c.msgs)-keep] {
			delete(c.byTS, old.TS)
		}
		c.msgs = append([]*Message(nil), c.msgs[len(c.msgs)-keep:]...)
	}
}

// find is a message that is there and not deleted.
func (c *Channel) find(ts string) *Message {
	m := c.byTS[ts]
	if m == nil || m.Deleted {
		return nil
	}
	return m
}

func (c *Channel) isMember(user string) bool { return slices.Contains(c.Members, user) }

// repliesOf are those of a root that are there for everybody, oldest first.
func (c *Channel) repliesOf(root string) []*Message {
	var all []*Message
	for _, m := range c.msgs {
		if m.ThreadTS == root && m.TS != root && !m.Deleted && m.For == "" {
			all = append(all, m)
		}
	}
	return all
}

// Shown is the text as people read it: Markdown or the text of the blocks where there are any, else the text with
// Slack's escapes undone.
func (m Message) Shown() string {
	switch {
	case m.Markdown != "":
		return unescape(m.Markdown)
	case len(m.Blocks) > 0:
		if text := blocksText(m.Blocks); text != "" {
			return unescape(text)
		}
	}
	return unescape(m.Text)
}

func unescape(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

func (m *Message) clone() Message {
	c := *m
	c.Edits = slices.Clone(m.Edits)
	c.Files = slices.Clone(m.Files)
	c.Reactions = nil
	for _, r := range m.Reactions {
		c.Reactions = append(c.Reactions, Reaction{r.Name, slices.Clone(r.Users)})
	}
	return c
}
