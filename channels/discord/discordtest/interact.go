package discordtest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

const (
	answerWithin = 3 * time.Second  // of the first answer to an interaction
	tokenLives   = 15 * time.Minute // https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-response-object
)

// interaction is a command or a pressed button.
type interaction struct {
	id, token string
	kind      int // 2 command, 3 component
	channel   *channel
	user      *User
	at        time.Time
	answered  int // the type of the callback; 0: none
	late      bool
	original  *Message
	source    *Message // of a component: the message with it
	followed  int
}

// Answer is what became of an interaction.
type Answer struct {
	Type     int // of the callback: 4, 5, 6, 7; 0: none came
	Late     bool
	Original Message // with its newest text
	Follows  int
}

// interact makes an interaction and tells of it. The caller holds s.mu.
func (s *Server) interact(kind int, ch *channel, who *User, data obj, source *Message) *interaction {
	i := &interaction{id: s.id(), kind: kind, channel: ch, user: who, at: s.opts.Now(), source: source}
	i.token = "aW50ZXJhY3Rpb246" + i.id + "Q2RlZmdoaWprbG1ub3A"
	s.acts[i.id] = i
	o := withGuild(obj{"id": i.id, "application_id": s.opts.App, "type": kind, "token": i.token, "version": 1, "channel_id": ch.ID, "channel": s.channelJSON(ch),
		"locale": "en-US", "data": data, "entitlements": []obj{}, "app_permissions": "2248473465835073"}, ch.Guild)
	if g := s.guilds[ch.Guild]; g != nil {
		o["member"], o["guild_locale"] = s.member(g, who.ID, true), "en-US"
	} else {
		o["user"] = who.json()
	}
	if source != nil {
		o["message"] = s.json(source, false) // components carry their message whole
	}
	s.dispatch(event{name: "INTERACTION_CREATE", guild: ch.Guild, channel: ch.ID, data: func(int) any { return o }})
	s.watch.Changed()
	return i
}

// callback answers an interaction: POST /interactions/{id}/{token}/callback.
func callback(c *call) (any, *apiError) {
	s := c.s
	i := s.acts[c.args["interaction"]]
	if i == nil || i.token != c.args["token"] {
		return nil, errInteraction
	}
	if i.answered != 0 {
		return nil, errAcked
	}
	if s.opts.Now().Sub(i.at) > answerWithin {
		i.late = true
		return nil, errInteraction
	}
	var p struct {
		Type int     `json:"type"`
		Data payload `json:"data"`
	}
	if fail := c.decode(&p); fail != nil {
		return nil, fail
	}
	if fail := p.Data.check(); fail != nil {
		return nil, fail
	}
	switch p.Type {
	case 4:
		if p.Data.text() == "" && len(p.Data.Embeds) == 0 && len(c.files) == 0 && len(p.Data.Components) == 0 {
			return nil, errEmpty
		}
		i.original = s.answer0(i, &p.Data, c.files)
	case 5:
		i.original = s.answer0(i, &payload{Flags: p.Data.Flags}, nil)
		i.original.Deferred = true
		i.original.Flags |= flagLoading
	case 6, 7:
		if i.kind != 3 {
			return nil, form("type", "INTERACTION_CALLBACK_TYPE", "Interaction callback type is invalid for this interaction")
		}
		i.original = i.source
		if p.Type == 7 {
			if _, fail := s.edit(i.source, &p.Data, c.files); fail != nil {
				return nil, fail
			}
		}
	default:
		return nil, form("type", "BASE_TYPE_CHOICES", "Value must be one of (1, 4, 5, 6, 7, 8, 9, 10, 12).")
	}
	i.answered = p.Type
	return nil, nil
}

// answer0 is a message that answers an interaction.
func (s *Server) answer0(i *interaction, p *payload, files []File) *Message {
	m := &Message{Channel: i.channel.ID, Guild: i.channel.Guild, From: s.opts.Bot, Interaction: i.id, Flags: p.Flags & (flagSuppressEmbeds | flagEphemeral | flagSilent)}
	if i.kind == 2 {
		m.Type = 20
	}
	if m.Flags&flagEphemeral != 0 {
		m.For = i.user.ID
	}
	s.fill(m, p, files)
	s.post(i.channel, m)
	return m
}

// hook is the interaction of a /webhooks path, whose token is its right.
func (c *call) hook() (*interaction, *apiError) {
	if c.args["app"] != c.s.opts.App {
		return nil, errWebhook
	}
	for _, i := range c.s.acts {
		if i.token != c.args["token"] {
			continue
		}
		if c.s.opts.Now().Sub(i.at) >= tokenLives {
			return nil, errToken
		}
		if i.answered == 0 {
			return nil, errWebhook // it exists from the first answer on
		}
		return i, nil
	}
	return nil, errWebhook
}

// followUp sends another message. After a deferred answer the first one takes its place.
func followUp(c *call) (any, *apiError) {
	i, fail := c.hook()
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
	if p.text() == "" && len(p.Embeds) == 0 && len(c.files) == 0 && len(p.Components) == 0 {
		return nil, errEmpty
	}
	c.status = http.StatusOK
	i.followed++
	if i.original != nil && i.original.Deferred && !i.original.Deleted {
		return c.s.edit(i.original, &p, c.files)
	}
	return c.s.json(c.s.answer0(i, &p, c.files), false), nil
}

func (c *call) followed() (*interaction, *Message, *apiError) {
	i, fail := c.hook()
	if fail != nil {
		return nil, nil, fail
	}
	id := c.args["message"]
	if id == "@original" {
		if i.original == nil || i.original.Deleted {
			return nil, nil, errMessage
		}
		return i, i.original, nil
	}
	if m := c.s.message(i.channel.ID, id); m != nil && m.Interaction == i.id {
		return i, m, nil
	}
	return nil, nil, errMessage
}

func getFollowUp(c *call) (any, *apiError) {
	_, m, fail := c.followed()
	if fail != nil {
		return nil, fail
	}
	return c.s.json(m, false), nil
}

func editFollowUp(c *call) (any, *apiError) {
	_, m, fail := c.followed()
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
	return c.s.edit(m, &p, c.files)
}

func deleteFollowUp(c *call) (any, *apiError) {
	_, m, fail := c.followed()
	if fail != nil {
		return nil, fail
	}
	c.s.remove(m)
	return nil, nil
}

// Command has a person run an application command: its name without "/", and the text of its first option that takes one.
// It fails when the command is not registered, as Discord then does not offer it.
func (s *Server) Command(chat, who, name, text string) (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[chat]
	if ch == nil {
		return "", false
	}
	for _, o := range append(append([]obj{}, s.commands[ch.Guild]...), s.commands[""]...) {
		if o["name"] != name {
			continue
		}
		data := obj{"id": o["id"], "name": name, "type": 1}
		raw, err := json.Marshal(o)
		if err != nil {
			return "", false
		}
		var cmd command
		_ = json.Unmarshal(raw, &cmd) // it was taken before
		for _, p := range cmd.Options {
			if p.Type == 3 && strings.TrimSpace(text) != "" {
				data["options"] = []obj{{"name": p.Name, "type": 3, "value": text}}
				break
			}
		}
		return s.interact(2, ch, s.users[who], data, nil).id, true
	}
	return "", false
}

// Press has a person press a button; it fails when there is none with that custom_id.
func (s *Server) Press(chat, message, who, customID string) (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.message(chat, message)
	if m == nil {
		return "", false
	}
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.ID == customID && !b.Off {
				return s.interact(3, s.channels[chat], s.users[who], obj{"custom_id": customID, "component_type": 2}, m).id, true
			}
		}
	}
	return "", false
}

// Answer is what became of an interaction so far.
func (s *Server) Answer(id string) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.acts[id]
	if i == nil {
		return Answer{}
	}
	a := Answer{Type: i.answered, Late: cmp.Or(i.late, i.answered == 0 && s.opts.Now().Sub(i.at) > answerWithin), Follows: i.followed}
	if i.original != nil {
		a.Original = i.original.clone()
	}
	return a
}

// Offer registers commands as if an earlier run had: names with their help, each with one optional text.
func (s *Server) Offer(guild string, items ...[2]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		s.commands[guild] = append(s.commands[guild], withGuild(obj{"id": s.id(), "application_id": s.opts.App, "type": 1, "name": it[0], "description": it[1],
			"version": "1", "options": []obj{{"name": "text", "type": 3, "description": "what to say", "required": false}}}, guild))
	}
}
