package discordtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func getMe(c *call) (any, *apiError) { return c.s.opts.Bot.json(), nil }

func getUser(c *call) (any, *apiError) {
	u := c.s.users[c.args["user"]]
	if u == nil {
		return nil, errUser
	}
	return u.json(), nil
}

// getApp: the flags say whether the message content is granted.
func getApp(c *call) (any, *apiError) { return c.s.appJSON(), nil }

func (s *Server) appJSON() obj {
	flags := 0
	if !s.opts.NoContent {
		flags |= flagMessageContentBeta
	}
	return obj{"id": s.opts.App, "name": s.opts.Bot.Global, "flags": flags, "bot_public": true, "bot_require_code_grant": false, "description": "", "icon": nil,
		"summary": "", "verify_key": "0", "bot": s.opts.Bot.json(), "owner": obj{"id": "1", "username": "owner", "discriminator": "0"}}
}

func myGuilds(c *call) (any, *apiError) {
	all := []obj{}
	for _, g := range c.s.sortedGuilds() {
		all = append(all, obj{"id": g.ID, "name": g.Name, "owner": false, "permissions": "2248473465835073", "features": []string{}})
	}
	return all, nil
}

func (s *Server) sortedGuilds() []*Guild {
	var all []*Guild
	for _, g := range s.guilds {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *Guild) int { return older(a.ID, b.ID) })
	return all
}

// openDM gives the conversation with a person, which is made the first time.
func openDM(c *call) (any, *apiError) {
	var p struct {
		With string `json:"recipient_id"`
	}
	if fail := c.decode(&p); fail != nil {
		return nil, fail
	}
	u := c.s.users[p.With]
	if u == nil {
		return nil, form("recipient_id", "NUMBER_TYPE_COERCE", fmt.Sprintf("Value %q is not snowflake.", p.With))
	}
	if u.Bot {
		return nil, errCannotDM
	}
	for _, ch := range c.s.channels {
		if ch.Type == Direct && ch.With == u.ID {
			return c.s.channelJSON(ch), nil
		}
	}
	return c.s.channelJSON(c.s.addChannel(Channel{Type: Direct, With: u.ID})), nil
}

// addChannel makes a channel without telling of it.
func (s *Server) addChannel(c Channel) *channel {
	if c.ID == "" {
		c.ID = s.id()
	}
	ch := &channel{Channel: c, nonces: map[string]*Message{}}
	s.channels[c.ID] = ch
	return ch
}

func getChannel(c *call) (any, *apiError) {
	ch, fail := c.channel()
	if fail != nil {
		return nil, fail
	}
	return c.s.channelJSON(ch), nil
}

func (c *call) guild() (*Guild, *apiError) {
	if g := c.s.guilds[c.args["guild"]]; g != nil {
		return g, nil
	}
	return nil, errGuild
}

func getGuild(c *call) (any, *apiError) {
	g, fail := c.guild()
	if fail != nil {
		return nil, fail
	}
	return c.s.guildJSON(g, false), nil
}

func guildRoles(c *call) (any, *apiError) {
	g, fail := c.guild()
	if fail != nil {
		return nil, fail
	}
	return c.s.guildJSON(g, false)["roles"], nil
}

func guildChannels(c *call) (any, *apiError) {
	g, fail := c.guild()
	if fail != nil {
		return nil, fail
	}
	return c.s.guildJSON(g, true)["channels"], nil
}

func activeThreads(c *call) (any, *apiError) {
	g, fail := c.guild()
	if fail != nil {
		return nil, fail
	}
	return obj{"threads": c.s.guildJSON(g, true)["threads"], "members": []obj{}}, nil
}

func guildMember(c *call) (any, *apiError) {
	g, fail := c.guild()
	if fail != nil {
		return nil, fail
	}
	id := c.args["user"]
	if _, in := g.Members[id]; !in && id != c.s.opts.Bot.ID {
		return nil, errMember
	}
	return c.s.member(g, id, true), nil
}

// guildMembers needs the privileged intent of members.
func guildMembers(c *call) (any, *apiError) {
	g, fail := c.guild()
	if fail != nil {
		return nil, fail
	}
	if c.s.opts.NoMembers {
		return nil, errAccess
	}
	most, err := strconv.Atoi(cmp.Or(c.query("limit"), "1"))
	if err != nil || most < 1 || most > 1000 {
		return nil, form("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 1000.")
	}
	var ids []string
	for id := range g.Members {
		if older(id, c.query("after")) > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, older)
	all := []obj{}
	for _, id := range ids[:min(most, len(ids))] {
		all = append(all, c.s.member(g, id, true))
	}
	return all, nil
}

func typing(c *call) (any, *apiError) {
	ch, fail := c.channel()
	if fail != nil {
		return nil, fail
	}
	if ch.denied.Send {
		return nil, errPermissions
	}
	ch.typing = append(ch.typing, Typing{c.s.opts.Now()})
	return nil, nil
}

// emoji is a unicode emoji of the path; custom ones are not known here.
func (c *call) emoji() (string, *apiError) {
	e := c.args["emoji"]
	r, _ := utf8.DecodeRuneInString(e)
	if r < 0x203c && !strings.Contains(e, "\u20e3") { // ‼ is the first; keycaps begin with a digit
		return "", errEmoji
	}
	return e, nil
}

func putReaction(c *call) (any, *apiError) {
	ch, m, fail := c.message()
	if fail != nil {
		return nil, fail
	}
	e, fail := c.emoji()
	if fail != nil {
		return nil, fail
	}
	if ch.denied.History || ch.denied.React && len(m.Reactions[e]) == 0 {
		return nil, errPermissions
	}
	if len(m.Reactions) >= 20 && m.Reactions[e] == nil {
		return nil, refuse(400, 30010, "Maximum number of reactions reached (20)")
	}
	c.s.react(m, c.s.opts.Bot.ID, e, true)
	return nil, nil
}

func dropReaction(c *call) (any, *apiError) {
	_, m, fail := c.message()
	if fail != nil {
		return nil, fail
	}
	e, fail := c.emoji()
	if fail != nil {
		return nil, fail
	}
	c.s.react(m, c.s.opts.Bot.ID, e, false)
	return nil, nil
}

func listReactions(c *call) (any, *apiError) {
	_, m, fail := c.message()
	if fail != nil {
		return nil, fail
	}
	all := []obj{}
	for _, id := range m.Reactions[c.args["emoji"]] {
		all = append(all, c.s.users[id].json())
	}
	return all, nil
}

// react changes a reaction and tells of it, if it changed.
func (s *Server) react(m *Message, user, emoji string, on bool) {
	if slices.Contains(m.Reactions[emoji], user) == on {
		return
	}
	name := "MESSAGE_REACTION_ADD"
	if on {
		m.Reactions[emoji] = append(m.Reactions[emoji], user)
	} else {
		name = "MESSAGE_REACTION_REMOVE"
		m.Reactions[emoji] = slices.DeleteFunc(m.Reactions[emoji], func(u string) bool { return u == user })
		if len(m.Reactions[emoji]) == 0 {
			delete(m.Reactions, emoji)
		}
	}
	s.dispatch(event{name: name, guild: m.Guild, channel: m.Channel, intents: either(m.Guild, IntentGuildReactions, IntentDirectReactions), data: func(int) any {
		o := withGuild(obj{"user_id": user, "channel_id": m.Channel, "message_id": m.ID, "emoji": obj{"id": nil, "name": emoji}, "burst": false, "type": 0}, m.Guild)
		if g := s.guilds[m.Guild]; g != nil && on {
			o["member"] = s.member(g, user, true)
			o["message_author_id"] = m.From.ID
		}
		return o
	}})
	s.watch.Changed()
}

func threadFromMessage(c *call) (any, *apiError) {
	ch, m, fail := c.message()
	if fail != nil {
		return nil, fail
	}
	if m.Thread != "" {
		return nil, errHasThread
	}
	return c.thread(ch, m)
}

func startThread(c *call) (any, *apiError) {
	ch, fail := c.channel()
	if fail != nil {
		return nil, fail
	}
	return c.thread(ch, nil)
}

func (c *call) thread(ch *channel, from *Message) (any, *apiError) {
	var p struct {
		Name string `json:"name"`
		Type int    `json:"type"`
	}
	if fail := c.decode(&p); fail != nil {
		return nil, fail
	}
	n := utf8.RuneCountInString(p.Name)
	switch {
	case ch.Type != Text && ch.Type != Announcement:
		return nil, refuse(400, 50024, "Cannot execute action on this channel type")
	case n < 1 || n > 100:
		return nil, form("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	case ch.denied.Send:
		return nil, errPermissions
	}
	if p.Type == 0 {
		p.Type = PublicThread
	}
	t := c.s.newThread(ch, from, p.Name, p.Type)
	c.status = http.StatusCreated
	return c.s.channelJSON(t), nil
}

// newThread makes a thread, whose id is that of the message it starts from, and tells of it.
func (s *Server) newThread(ch *channel, from *Message, name string, kind int) *channel {
	t := Channel{Type: kind, Guild: ch.Guild, Name: name, Parent: ch.ID}
	if from != nil {
		t.ID, from.Thread = from.ID, from.ID
		if t.ID != "" && from.Thread != "" {
			from.Flags |= 1 << 5
		}
	}
	made := s.addChannel(t)
	s.dispatch(event{name: "THREAD_CREATE", guild: ch.Guild, channel: ch.ID, intents: IntentGuilds, data: func(int) any {
		o := s.channelJSON(made)
		o["newly_created"] = true
		return o
	}})
	s.watch.Changed()
	return made
}

func joinThread(c *call) (any, *apiError) {
	ch, fail := c.channel()
	if fail != nil {
		return nil, fail
	}
	if !ch.thread() {
		return nil, refuse(400, 50024, "Cannot execute action on this channel type")
	}
	return nil, nil
}

// commandName is https://discord.com/developers/docs/interactions/application-commands#application-command-object-application-command-naming.
var commandName = regexp.MustCompile(`^[-_'\p{L}\p{N}\p{Devanagari}\p{Thai}]{1,32}$`)

type command struct {
	Name        string   `json:"name"`
	Type        int      `json:"type"`
	Description string   `json:"description"`
	Options     []option `json:"options"`
}

type option struct {
	Name        string `json:"name"`
	Type        int    `json:"type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

func (o command) check(at string) *apiError {
	if !commandName.MatchString(o.Name) || o.Name != strings.ToLower(o.Name) {
		return form(at+"name", "STRING_TYPE_REGEX", "String value did not match validation regex.")
	}
	if n := utf8.RuneCountInString(o.Description); o.Type <= 1 && (n < 1 || n > 100) {
		return form(at+"description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	if len(o.Options) > 25 {
		return tooLong(at+"options", 25)
	}
	optional := false
	for i, p := range o.Options {
		at := at + "options." + strconv.Itoa(i) + "."
		n := utf8.RuneCountInString(p.Description)
		switch {
		case !commandName.MatchString(p.Name) || p.Name != strings.ToLower(p.Name):
			return form(at+"name", "STRING_TYPE_REGEX", "String value did not match validation regex.")
		case n < 1 || n > 100:
			return form(at+"description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
		case p.Type < 1 || p.Type > 11:
			return required(at + "type")
		case p.Required && optional:
			return form(at, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be placed before non-required options")
		}
		optional = optional || !p.Required
	}
	return nil
}

// scope is where the commands of the path are kept; "" is global.
func (c *call) scope() (string, *apiError) {
	if c.args["app"] != c.s.opts.App {
		return "", refuse(404, 10002, "Unknown Application")
	}
	g, in := c.args["guild"]
	if in && c.s.guilds[g] == nil {
		return "", errAccess
	}
	return g, nil
}

func listCommands(c *call) (any, *apiError) {
	g, fail := c.scope()
	if fail != nil {
		return nil, fail
	}
	return append([]obj{}, c.s.commands[g]...), nil
}

func overwriteCommands(c *call) (any, *apiError) {
	g, fail := c.scope()
	if fail != nil {
		return nil, fail
	}
	var all []json.RawMessage
	if json.Unmarshal(c.body, &all) != nil {
		return nil, form("_", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
	}
	if len(all) > 100 {
		return nil, refuse(400, 30032, "Maximum number of application commands reached (100)")
	}
	made := []obj{}
	names := map[string]bool{}
	for i, raw := range all {
		o, name, fail := c.s.newCommand(raw, g, strconv.Itoa(i)+".")
		if fail != nil {
			return nil, fail
		}
		if names[name] {
			return nil, form("_", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
		}
		names[name] = true
		made = append(made, o)
	}
	c.s.commands[g] = made
	return made, nil
}

func (s *Server) newCommand(raw json.RawMessage, guild, at string) (obj, string, *apiError) {
	var cmd command
	var o obj
	if json.Unmarshal(raw, &cmd) != nil || json.Unmarshal(raw, &o) != nil {
		return nil, "", form(at+"name", "BASE_TYPE_REQUIRED", "This field is required")
	}
	if fail := cmd.check(at); fail != nil {
		return nil, "", fail
	}
	o["id"], o["application_id"], o["version"] = s.id(), s.opts.App, s.id()
	if cmd.Type == 0 {
		o["type"] = 1
	}
	return withGuild(o, guild), cmd.Name, nil
}

func createCommand(c *call) (any, *apiError) {
	g, fail := c.scope()
	if fail != nil {
		return nil, fail
	}
	o, name, fail := c.s.newCommand(c.body, g, "")
	if fail != nil {
		return nil, fail
	}
	all := slices.DeleteFunc(c.s.commands[g], func(o obj) bool { return o["name"] == name })
	c.s.commands[g] = append(all, o)
	c.status = http.StatusCreated
	return o, nil
}

func deleteCommand(c *call) (any, *apiError) {
	g, fail := c.scope()
	if fail != nil {
		return nil, fail
	}
	n := len(c.s.commands[g])
	c.s.commands[g] = slices.DeleteFunc(c.s.commands[g], func(o obj) bool { return o["id"] == c.args["command"] })
	if len(c.s.commands[g]) == n {
		return nil, refuse(404, 10063, "Unknown application command")
	}
	return nil, nil
}

// signature is what an attachment's address must carry: it ends (https://discord.com/developers/docs/reference#signed-attachment-cdn-urls).
func signature(id string, expires int64) string {
	return fmt.Sprintf("?ex=%x&is=%x&hm=%x", expires, expires-int64(24*time.Hour/time.Second), "hm"+id)
}

// serveFile is the CDN: /attachments/{channel}/{attachment}/{name}. It wants a signature that has not ended, and no token.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.calls["GET /attachments"]++
	hit := s.faults.Take("GET /attachments")
	leaked := r.Header.Get("Authorization") != ""
	if leaked {
		s.calls["token at the CDN"]++
	}
	s.watch.Changed()
	s.mu.Unlock()
	if !hit.Before(r, func(f Fault) { s.answer(w, f) }) {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/attachments/"), "/")
	expires, err := strconv.ParseInt(r.URL.Query().Get("ex"), 16, 64)
	if len(parts) != 3 || err != nil || s.opts.Now().Unix() > expires || "?"+r.URL.RawQuery != signature(parts[1], expires) {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	s.mu.Lock()
	data, ok := s.files[parts[1]]
	s.mu.Unlock()
	if !ok {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	hit.After(w, data)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client may be gone
}
