package discordtest

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

const (
	maxText   = 2000 // units of content; Discord says "characters", and this is the stricter reading: UTF-16
	maxNonce  = 25
	oldEdits  = 10 // edits in an hour of a message older than an hour
	nonceTime = 5 * time.Minute
)

// roleMention is https://discord.com/developers/docs/reference#message-formatting.
var roleMention = regexp.MustCompile(`<@&([0-9]+)>`)

func roleMentions(text string) []string {
	all := []string{}
	for _, found := range roleMention.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

var mention = regexp.MustCompile(`<@!?([0-9]+)>`)

// payload is what creates or edits a message, https://discord.com/developers/docs/resources/message#create-message.
type payload struct {
	Content    *string           `json:"content"`
	Nonce      any               `json:"nonce"`
	Enforce    bool              `json:"enforce_nonce"`
	Embeds     []json.RawMessage `json:"embeds"`
	Components []json.RawMessage `json:"components"`
	Flags      int               `json:"flags"`
	Mentions   *struct {
		Parse   []string `json:"parse"`
		Users   []string `json:"users"`
		Replied bool     `json:"replied_user"`
	} `json:"allowed_mentions"`
	Reference *struct {
		Message string `json:"message_id"`
		Must    *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Attachments *[]struct {
		ID       any    `json:"id"`
		Filename string `json:"filename"`
	} `json:"attachments"`
}

func (p *payload) text() string {
	if p.Content == nil {
		return ""
	}
	return *p.Content
}

// check refuses what no message may be.
func (p *payload) check() *apiError {
	if len(utf16.Encode([]rune(p.text()))) > maxText {
		return tooLong("content", maxText)
	}
	if n, ok := p.Nonce.(string); ok && len(n) > maxNonce {
		return tooLong("nonce", maxNonce)
	}
	if p.Mentions != nil {
		for i, kind := range p.Mentions.Parse {
			if kind != "users" && kind != "roles" && kind != "everyone" {
				return form("allowed_mentions.parse."+strconv.Itoa(i), "BASE_TYPE_CHOICES", "Value must be one of {'users', 'roles', 'everyone'}.")
			}
		}
	}
	if fail := checkEmbeds(p.Embeds); fail != nil {
		return fail
	}
	return checkRows(p.Components)
}

// checkEmbeds holds the limits of https://discord.com/developers/docs/resources/message#embed-object-embed-limits.
func checkEmbeds(all []json.RawMessage) *apiError {
	if len(all) > 10 {
		return tooLong("embeds", 10)
	}
	total := 0
	for i, raw := range all {
		var e struct {
			Title       string `json:"title"`
			Description string `json:"description"`
			Author      struct {
				Name string `json:"name"`
			} `json:"author"`
			Footer struct {
				Text string `json:"text"`
			} `json:"footer"`
			Fields []struct {
				Name  string `json:"name"`
				Value string `json:"value"`
			} `json:"fields"`
		}
		at := "embeds." + strconv.Itoa(i)
		if json.Unmarshal(raw, &e) != nil {
			return form(at, "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
		}
		for _, part := range []struct {
			name, text string
			most       int
		}{{"title", e.Title, 256}, {"description", e.Description, 4096}, {"author.name", e.Author.Name, 256}, {"footer.text", e.Footer.Text, 2048}} {
			n := len(utf16.Encode([]rune(part.text)))
			if n > part.most {
				return tooLong(at+"."+part.name, part.most)
			}
			total += n
		}
		if len(e.Fields) > 25 {
			return tooLong(at+".fields", 25)
		}
		for j, f := range e.Fields {
			if len(f.Name) > 256 || len(f.Value) > 1024 {
				return tooLong(at+".fields."+strconv.Itoa(j), 1024)
			}
			total += len(f.Name) + len(f.Value)
		}
	}
	if total > 6000 {
		return form("embeds", "MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of 6000")
	}
	return nil
}

type component struct {
	Type       int               `json:"type"`
	Components []json.RawMessage `json:"components"`
	ID         string            `json:"custom_id"`
	Label      string            `json:"label"`
	Style      int               `json:"style"`
	URL        string            `json:"url"`
	Off        bool              `json:"disabled"`
}

// checkRows takes action rows of buttons (https://discord.com/developers/docs/components/reference). Other kinds pass.
func checkRows(all []json.RawMessage) *apiError {
	if len(all) > 5 {
		return form("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	seen := map[string]bool{}
	for i, raw := range all {
		at := "components." + strconv.Itoa(i)
		var row component
		if json.Unmarshal(raw, &row) != nil || row.Type == 0 {
			return required(at + ".type")
		}
		if row.Type != 1 {
			return form(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1,).")
		}
		if len(row.Components) < 1 || len(row.Components) > 5 {
			return form(at+".components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
		}
		for j, raw := range row.Components {
			at := at + ".components." + strconv.Itoa(j)
			var b component
			if json.Unmarshal(raw, &b) != nil {
				return required(at + ".type")
			}
			if b.Type != 2 {
				continue
			}
			switch {
			case b.Style < 1 || b.Style > 6:
				return required(at + ".style")
			case b.Style == 5 && b.URL == "":
				return form(at, "BUTTON_COMPONENT_URL_REQUIRED", "A url is required")
			case b.Style != 5 && b.ID == "":
				return form(at, "BUTTON_COMPONENT_CUSTOM_ID_REQUIRED", "A custom id is required")
			case len(utf16.Encode([]rune(b.ID))) > 100:
				return tooLong(at+".custom_id", 100)
			case len(utf16.Encode([]rune(b.Label))) > 80:
				return tooLong(at+".label", 80)
			case b.ID != "" && seen[b.ID]:
				return form(at+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
			}
			seen[b.ID] = true
		}
	}
	return nil
}

func buttons(all []json.RawMessage) [][]Button {
	var rows [][]Button
	for _, raw := range all {
		var row component
		_ = json.Unmarshal(raw, &row) // checkRows took it
		var got []Button
		for _, raw := range row.Components {
			var b component
			_ = json.Unmarshal(raw, &b)
			if b.Type == 2 {
				got = append(got, Button{Label: b.Label, ID: b.ID, Style: b.Style, Off: b.Off})
			}
		}
		rows = append(rows, got)
	}
	return rows
}

// channel is the one of the path, if the bot may see it.
func (c *call) channel() (*channel, *apiError) {
	ch := c.s.channels[c.args["channel"]]
	if ch == nil || ch.gone {
		return nil, errChannel
	}
	if ch.denied.See || ch.thread() && c.s.channels[ch.Parent].denied.See {
		return nil, errAccess
	}
	return ch, nil
}

func (c *call) message() (*channel, *Message, *apiError) {
	ch, fail := c.channel()
	if fail != nil {
		return nil, nil, fail
	}
	m := c.s.message(ch.ID, c.args["message"])
	if m == nil || m.For != "" {
		return ch, nil, errMessage
	}
	return ch, m, nil
}

func createMessage(c *call) (any, *apiError) {
	ch, fail := c.channel()
	if fail != nil {
		return nil, fail
	}
	var p payload
	if fail := c.decode(&p); fail != nil {
		return nil, fail
	}
	if fail := p.check(); fail != nil {
		return nil, fail
	}
	switch {
	case ch.Type == Category || ch.Type == Forum:
		return nil, refuse(400, 50008, "Cannot send messages in a non-text channel")
	case ch.denied.Send, ch.denied.Attach && len(c.files) > 0:
		return nil, errPermissions
	case ch.blocked:
		return nil, errCannotDM
	case p.text() == "" && len(p.Embeds) == 0 && len(c.files) == 0 && len(p.Components) == 0:
		return nil, errEmpty
	}
	nonce, _ := p.Nonce.(string)
	if p.Enforce && nonce != "" {
		if old := ch.nonces[nonce]; old != nil && c.s.opts.Now().Sub(old.At) < nonceTime {
			return c.s.json(old, false), nil
		}
	}
	m := &Message{Channel: ch.ID, Guild: ch.Guild, From: c.s.opts.Bot, Nonce: nonce, Flags: p.Flags & (flagSuppressEmbeds | flagSilent | flagComponentsV2)}
	if p.Reference != nil && p.Reference.Message != "" {
		switch must := p.Reference.Must == nil || *p.Reference.Must; {
		case c.s.message(ch.ID, p.Reference.Message) != nil && !ch.denied.History:
			m.ReplyTo, m.Type = p.Reference.Message, 19
		case must:
			return nil, form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
		}
	}
	c.s.fill(m, &p, c.files)
	c.s.post(ch, m)
	if nonce != "" {
		ch.nonces[nonce] = m
	}
	if c.s.opts.OnSent != nil {
		c.s.opts.OnSent(m.clone())
	}
	return c.s.json(m, false), nil
}

// fill puts a payload into a message of the bot.
func (s *Server) fill(m *Message, p *payload, files []File) {
	if p.Content != nil {
		m.Text = *p.Content
	}
	if p.Embeds != nil {
		m.Embeds = p.Embeds
	}
	if p.Components != nil {
		m.components, m.Buttons = p.Components, buttons(p.Components)
	}
	for _, f := range files {
		f.ID = s.id()
		s.files[f.ID] = f.Data
		m.Files = append(m.Files, f)
	}
	m.Mentions, m.Pings = nil, false
	all := p.Mentions == nil
	for _, found := range mention.FindAllStringSubmatch(m.Text, -1) {
		id := found[1]
		if s.users[id] != nil && (all || slices.Contains(p.Mentions.Parse, "users") || slices.Contains(p.Mentions.Users, id)) {
			m.Mentions = append(m.Mentions, id)
		}
	}
	if strings.Contains(m.Text, "@everyone") || strings.Contains(m.Text, "@here") {
		m.Pings = all || slices.Contains(p.Mentions.Parse, "everyone")
	}
}

// post puts a new message into its channel and tells of it.
func (s *Server) post(ch *channel, m *Message) {
	m.ID, m.At = s.id(), s.opts.Now()
	m.Reactions = map[string][]string{}
	ch.msgs = append(ch.msgs, m)
	if m.For == "" {
		s.tell(m, "MESSAGE_CREATE")
	}
	s.watch.Changed()
}

// tell dispatches a message event.
func (s *Server) tell(m *Message, name string) {
	s.dispatch(event{name: name, guild: m.Guild, channel: m.Channel, intents: either(m.Guild, IntentGuildMessages, IntentDirectMessages), data: func(intents int) any {
		o := s.json(m, intents&IntentMessageContent == 0)
		if g := s.guilds[m.Guild]; g != nil {
			o["guild_id"] = m.Guild
			if _, in := g.Members[m.From.ID]; in || m.From.ID == s.opts.Bot.ID {
				o["member"] = s.member(g, m.From.ID, false)
			}
		}
		return o
	}})
}

func either(guild string, inGuild, direct int) int {
	if guild == "" {
		return direct
	}
	return inGuild
}

func editMessage(c *call) (any, *apiError) {
	_, m, fail := c.message()
	if fail != nil {
		return nil, fail
	}
	var p payload
	if fail := c.decode(&p); fail != nil {
		return nil, fail
	}
	if fail := p.check(); fail != nil {
		return nil, fail
	}
	if m.From.ID != c.s.opts.Bot.ID {
		return nil, errNotAuthor
	}
	return c.s.edit(m, &p, c.files)
}

func (s *Server) edit(m *Message, p *payload, files []File) (any, *apiError) {
	now := s.opts.Now()
	if now.Sub(m.At) > time.Hour {
		m.edits = slices.DeleteFunc(m.edits, func(at time.Time) bool { return now.Sub(at) > time.Hour })
		if len(m.edits) >= oldEdits {
			return nil, errOldEdits
		}
		m.edits = append(m.edits, now)
	}
	if p.Content != nil && *p.Content == "" && len(p.Embeds) == 0 && len(files) == 0 && len(m.Files) == 0 && len(p.Components) == 0 {
		return nil, errEmpty
	}
	if p.Attachments != nil {
		m.Files = slices.DeleteFunc(m.Files, func(f File) bool {
			for _, keep := range *p.Attachments {
				if keep.ID == f.ID {
					return false
				}
			}
			return true
		})
	}
	m.Edits = append(m.Edits, m.Text)
	m.Deferred, m.Flags = false, m.Flags&^flagLoading|p.Flags&flagSuppressEmbeds
	s.fill(m, p, files)
	m.Edited = now
	if m.For == "" {
		s.tell(m, "MESSAGE_UPDATE")
	}
	s.watch.Changed()
	return s.json(m, false), nil
}

func getMessage(c *call) (any, *apiError) {
	ch, m, fail := c.message()
	if fail != nil {
		return nil, fail
	}
	if ch.denied.History {
		return nil, errAccess
	}
	return c.s.json(m, c.s.opts.NoContent), nil
}

// listMessages: after, before or around an id, newest first (https://discord.com/developers/docs/resources/message#get-channel-messages).
func listMessages(c *call) (any, *apiError) {
	ch, fail := c.channel()
	if fail != nil {
		return nil, fail
	}
	most := 50
	if q := c.query("limit"); q != "" {
		n, err := strconv.Atoi(q)
		if err != nil || n < 1 || n > 100 {
			return nil, form("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.")
		}
		most = n
	}
	var all []*Message
	for _, m := range ch.msgs {
		if !m.Deleted && m.For == "" && !ch.denied.History {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *Message) int { return older(a.ID, b.ID) })
	cut := func(id string) int { // how many are not newer than id
		n, _ := slices.BinarySearchFunc(all, id, func(m *Message, id string) int { return older(m.ID, id) })
		return n
	}
	switch after, before, around := c.query("after"), c.query("before"), c.query("around"); {
	case after != "":
		n := cut(after)
		if n < len(all) && all[n].ID == after {
			n++
		}
		all = all[n:]
		all = all[:min(most, len(all))] // the oldest of them
	case before != "":
		all = all[:cut(before)]
		all = all[max(0, len(all)-most):]
	case around != "":
		n := cut(around)
		all = all[max(0, n-most/2):min(len(all), n+most/2+1)]
	default:
		all = all[max(0, len(all)-most):]
	}
	out := []obj{}
	for _, m := range slices.Backward(all) {
		out = append(out, c.s.json(m, c.s.opts.NoContent))
	}
	return out, nil
}

// older compares two snowflakes.
func older(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func deleteMessage(c *call) (any, *apiError) {
	ch, m, fail := c.message()
	if fail != nil {
		return nil, fail
	}
	if m.From.ID != c.s.opts.Bot.ID && ch.Guild == "" {
		return nil, refuse(403, 50003, "Cannot execute action on a DM channel")
	}
	if m.Type == 18 {
		return nil, errSystem
	}
	c.s.remove(m)
	return nil, nil
}

// remove deletes a message and tells of it.
func (s *Server) remove(m *Message) {
	m.Deleted = true
	s.dispatch(event{name: "MESSAGE_DELETE", guild: m.Guild, channel: m.Channel, intents: either(m.Guild, IntentGuildMessages, IntentDirectMessages),
		data: func(int) any { return withGuild(obj{"id": m.ID, "channel_id": m.Channel}, m.Guild) }})
	s.watch.Changed()
}

func withGuild(o obj, guild string) obj {
	if guild != "" {
		o["guild_id"] = guild
	}
	return o
}

func bulkDelete(c *call) (any, *apiError) {
	ch, fail := c.channel()
	if fail != nil {
		return nil, fail
	}
	if ch.Guild == "" {
		return nil, refuse(403, 50003, "Cannot execute action on a DM channel")
	}
	var p struct {
		Messages []string `json:"messages"`
	}
	if fail := c.decode(&p); fail != nil {
		return nil, fail
	}
	if len(p.Messages) < 2 || len(p.Messages) > 100 {
		return nil, errBulk
	}
	for _, id := range p.Messages {
		if m := c.s.message(ch.ID, id); m != nil && c.s.opts.Now().Sub(m.At) > 14*24*time.Hour {
			return nil, errTooOld
		}
	}
	c.s.removeAll(ch, p.Messages)
	return nil, nil
}

func (s *Server) removeAll(ch *channel, ids []string) {
	for _, id := range ids {
		if m := s.message(ch.ID, id); m != nil {
			m.Deleted = true
		}
	}
	s.dispatch(event{name: "MESSAGE_DELETE_BULK", guild: ch.Guild, channel: ch.ID, intents: either(ch.Guild, IntentGuildMessages, IntentDirectMessages),
		data: func(int) any { return withGuild(obj{"ids": ids, "channel_id": ch.ID}, ch.Guild) }})
	s.watch.Changed()
}
