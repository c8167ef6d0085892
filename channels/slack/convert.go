package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"parley/channels"
)

const (
	lookWithin    = 1500 * time.Millisecond // for names that a batch needs: the acknowledgement must come within 3 s
	responseHolds = 30 * time.Minute        // https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
)

// convertAll normalises envelopes; what is none of our business is left out.
func (r *receiver) convertAll(ctx context.Context, list []envelope) []channels.Inbound {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	var all []channels.Inbound
	for _, e := range list {
		if in, ok := r.convert(ctx, e); ok {
			all = append(all, in)
		}
	}
	return all
}

// convert normalises one envelope. A panic in it makes it unparsed: one event never holds up the rest.
func (r *receiver) convert(ctx context.Context, e envelope) (in channels.Inbound, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			r.c.log.Error("panic while an event was read", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
			in, ok = r.unparsed(e, ""), true
		}
	}()
	switch {
	case e.bad:
		return r.unparsed(e, ""), true
	case e.Type == "events_api":
		return r.event(ctx, e)
	case e.Type == "slash_commands":
		return r.command(ctx, e)
	case e.Type == "interactive":
		return r.pressed(ctx, e)
	}
	return r.unparsed(e, ""), true
}

// unparsed is what this adapter cannot read. id is the event's own, where it could be read.
func (r *receiver) unparsed(e envelope, id string) channels.Inbound {
	data := []byte(e.Payload)
	if len(data) == 0 {
		data = e.raw
	}
	if id == "" {
		id = fingerprint(data) // an envelope has another id each time
	}
	return channels.Inbound{Key: "u:" + id, Kind: channels.KindUnparsed, To: channels.Address{Network: Network, Account: r.c.Account()}, Data: data, Team: r.team()}
}

func (r *receiver) team() string {
	if self := r.c.self.Load(); self != nil {
		return self.team
	}
	return ""
}

// event reads an Events API payload.
func (r *receiver) event(ctx context.Context, e envelope) (channels.Inbound, bool) {
	var cb callback
	if json.Unmarshal(e.Payload, &cb) != nil || len(cb.Event) == 0 {
		return r.unparsed(e, cb.EventID), true
	}
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(cb.Event, &head) != nil {
		return r.unparsed(e, cb.EventID), true
	}
	switch head.Type {
	case "message", "app_mention", "reaction_added", "reaction_removed":
	default:
		return channels.Inbound{}, false // app_home_opened and what else an app may be subscribed to
	}
	var ev slackEvent
	if json.Unmarshal(cb.Event, &ev) != nil {
		return r.unparsed(e, cb.EventID), true
	}
	var in channels.Inbound
	ok := false
	switch {
	case strings.HasPrefix(ev.Type, "reaction_"):
		in, ok = r.reaction(ctx, ev)
	case ev.Channel == "" || ev.TS == "":
		return r.unparsed(e, cb.EventID), true
	default:
		in, ok = r.messageEvent(ctx, ev)
	}
	return in, ok
}

// messageEvent reads a message or what became of one.
func (r *receiver) messageEvent(ctx context.Context, ev slackEvent) (channels.Inbound, bool) {
	switch ev.Subtype {
	case "", "file_share", "thread_broadcast", "me_message", "bot_message":
		return r.message(ctx, ev)
	case "message_changed":
		return r.edited(ctx, ev)
	case "message_deleted":
		return r.deleted(ctx, ev.Channel, ev.ChannelType, ev.DeletedTS, ev.EventTS, ev.Previous)
	}
	return channels.Inbound{}, false // joins, topics, pins
}

func (r *receiver) own(ev *slackEvent) bool {
	self := r.c.self.Load()
	return self != nil && ev != nil && (ev.User == self.user || ev.BotID != "" && ev.BotID == self.bot)
}

// message normalises a message, also one of the history. The two events of one message, message and app_mention, give
// equal values.
func (r *receiver) message(ctx context.Context, ev slackEvent) (channels.Inbound, bool) {
	if r.own(&ev) {
		return channels.Inbound{}, false
	}
	return r.plain(ctx, ev), true
}

// plain is a message as it stands, whoever wrote it.
func (r *receiver) plain(ctx context.Context, ev slackEvent) channels.Inbound {
	text, mentioned := r.c.readText(ctx, ev.said())
	to := r.address(ctx, ev.Channel, ev.ChannelType)
	in := channels.Inbound{
		Key: channels.MessageKey(to, channels.MessageID(ev.TS)), Kind: channels.KindMessage, From: r.sender(ctx, ev), To: to,
		ID: channels.MessageID(ev.TS), Time: timeOf(ev.TS), Text: text, Mentioned: mentioned,
		Attachments: attachments(ev.Files), Team: r.c.self.Load().team, Title: r.c.title(ctx, ev.Channel),
	}
	if ev.ThreadTS != "" && ev.ThreadTS != ev.TS {
		in.To.Thread, in.ReplyTo = channels.ThreadID(ev.ThreadTS), channels.MessageID(ev.ThreadTS)
		if self := r.c.self.Load(); ev.ParentUser == self.user {
			in.Quote = &channels.Quote{From: channels.Sender{User: channels.UserID(self.user), Name: self.name, Bot: true}, Own: true}
		}
	}
	if strings.HasPrefix(text, "/") && (mentioned || in.To.Kind == channels.DM) {
		in.Command = true
	}
	return in
}

// said is the message's text; of one without, such as one that was only passed on, what is attached to it.
func (ev *slackEvent) said() string {
	if ev.Text != "" {
		return ev.Text
	}
	var lines []string
	for _, a := range ev.Attachments {
		line := cmp.Or(a.Text, a.Fallback)
		if a.Share && line != "" {
			line = "[forwarded] " + line
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func (r *receiver) sender(ctx context.Context, ev slackEvent) channels.Sender {
	s := channels.Sender{User: channels.UserID(ev.User), Name: r.c.person(ctx, ev.User)}
	if ev.BotID != "" {
		s.Bot = true
		if s.User == "" {
			s.User = channels.UserID(ev.BotID)
		}
		switch {
		case ev.Username != "":
			s.Name = ev.Username
		case ev.BotProfile != nil:
			s.Name = ev.BotProfile.Name
		case r.own(&ev):
			s.Name = r.c.self.Load().name
		}
	}
	return s
}

// address is a conversation. Events about mentions and reactions do not say of what kind it is.
func (r *receiver) address(ctx context.Context, channel, kind string) channels.Address {
	return channels.Address{Network: Network, Account: r.c.Account(), Kind: r.c.kind(ctx, channel, kind), Peer: channels.PeerID(channel)}
}

// edited: a preview that Slack added is an edit without one, and our own are no news.
func (r *receiver) edited(ctx context.Context, ev slackEvent) (channels.Inbound, bool) {
	m := ev.Message
	if m == nil || r.own(m) {
		return channels.Inbound{}, false
	}
	if m.Subtype == "tombstone" { // the root of a thread goes, its replies stay
		return r.deleted(ctx, ev.Channel, ev.ChannelType, m.TS, ev.EventTS, ev.Previous)
	}
	if m.Edited == nil || ev.Previous != nil && ev.Previous.Edited != nil && ev.Previous.Edited.TS == m.Edited.TS {
		return channels.Inbound{}, false
	}
	m.Channel, m.ChannelType = ev.Channel, ev.ChannelType
	in := r.plain(ctx, *m)
	in.Kind, in.Target, in.ID = channels.KindEdit, in.ID, ""
	in.Key = channels.EditKey(in.To, in.Target, m.Edited.TS)
	in.Time = timeOf(m.Edited.TS)
	return in, true
}

func (r *receiver) deleted(ctx context.Context, channel, kind, ts, at string, was *slackEvent) (channels.Inbound, bool) {
	if ts == "" || r.own(was) {
		return channels.Inbound{}, false
	}
	to, target := r.address(ctx, channel, kind), channels.MessageID(ts)
	in := channels.Inbound{Key: channels.DeleteKey(to, target), Kind: channels.KindDelete, To: to, Target: target, Time: timeOf(at),
		Team: r.c.self.Load().team}
	if was != nil {
		in.From = r.sender(ctx, *was)
		if was.ThreadTS != "" && was.ThreadTS != ts {
			in.To.Thread = channels.ThreadID(was.ThreadTS)
		}
	}
	return in, true
}

func (r *receiver) reaction(ctx context.Context, ev slackEvent) (channels.Inbound, bool) {
	self := r.c.self.Load()
	if ev.Item.Type != "message" || ev.User == self.user {
		return channels.Inbound{}, false
	}
	to, target := r.address(ctx, ev.Item.Channel, ""), channels.MessageID(ev.Item.TS)
	in := channels.Inbound{Key: channels.ReactionKey(to, target, ev.User, ev.EventTS), Kind: channels.KindReaction,
		From: channels.Sender{User: channels.UserID(ev.User), Name: r.c.person(ctx, ev.User)}, To: to,
		Target: target, Time: timeOf(ev.EventTS), Team: self.team}
	if ev.Type == "reaction_added" {
		in.Text = emojiOf(ev.Reaction)
	}
	return in, true
}

// command is a native command: /parley takes every name as its first word, other commands are names themselves.
func (r *receiver) command(ctx context.Context, e envelope) (channels.Inbound, bool) {
	var p slash
	if json.Unmarshal(e.Payload, &p) != nil || p.Channel == "" || p.User == "" || p.Command == "" {
		return r.unparsed(e, p.Trigger), true
	}
	kind := ""
	switch {
	case p.Name == "directmessage":
		kind = "im"
	case strings.HasPrefix(p.Name, "mpdm-"):
		kind = "mpim"
	}
	text := strings.TrimSpace(p.Text)
	if p.Command == "/"+mainCommand {
		text = "/" + strings.TrimPrefix(text, "/")
		if text == "/" {
			text = "/help"
		}
	} else {
		text = strings.TrimSpace(p.Command + " " + text)
	}
	plain, _ := r.c.readText(ctx, text)
	in := channels.Inbound{Key: "c:" + p.Trigger, Kind: channels.KindMessage, Command: true, Mentioned: true,
		From: channels.Sender{User: channels.UserID(p.User), Name: r.c.person(ctx, p.User)}, To: r.address(ctx, p.Channel, kind),
		Time: r.c.clock.Now(), Text: plain, Team: p.TeamID, Title: r.c.title(ctx, p.Channel)}
	if p.Trigger == "" {
		in.Key = "c:" + fingerprint(e.Payload)
	}
	if r.c.ours(p.Response) {
		in.Handle = channels.ReplyHandle{Secret: p.Response, Expires: r.c.clock.Now().Add(responseHolds)}
	}
	return in, true
}

// pressed is a button of Parley's.
func (r *receiver) pressed(ctx context.Context, e envelope) (channels.Inbound, bool) {
	var p press
	if json.Unmarshal(e.Payload, &p) != nil {
		return r.unparsed(e, ""), true
	}
	if p.Type != "block_actions" || len(p.Actions) == 0 || p.Container.TS == "" {
		return channels.Inbound{}, false // views and shortcuts, which the manifest has none of
	}
	channel := p.Container.Channel
	if channel == "" {
		channel = p.Channel.ID
	}
	a := p.Actions[0]
	to, target := r.address(ctx, channel, ""), channels.MessageID(p.Container.TS)
	in := channels.Inbound{Key: channels.PressKey(to, target, p.User.ID, a.TS), Kind: channels.KindButton,
		From: channels.Sender{User: channels.UserID(p.User.ID), Name: r.c.person(ctx, p.User.ID)}, To: to,
		Target: target, Time: timeOf(a.TS), Text: a.Value, Team: r.team()}
	if p.Container.Thread != "" && p.Container.Thread != p.Container.TS {
		in.To.Thread = channels.ThreadID(p.Container.Thread)
	}
	if r.c.ours(p.Response) {
		in.Handle = channels.ReplyHandle{Secret: p.Response, Expires: r.c.clock.Now().Add(responseHolds)}
	}
	return in, true
}

// attachments are files with Slack's own ids. Those that are kept elsewhere, or not at all any more, have no bytes for us.
func attachments(files []slackFile) (all []channels.Attachment) {
	for _, f := range files {
		if f.ID == "" || f.External || f.Mode == "external" || f.Mode == "tombstone" || f.Mode == "hidden_by_limit" {
			continue
		}
		a := channels.Attachment{ID: f.ID, Kind: "file", Name: f.Name, MIME: f.MIME, Size: f.Size}
		switch top, _, _ := strings.Cut(f.MIME, "/"); {
		case f.Subtype == "slack_audio":
			a.Kind = "voice"
		case top == "image" || top == "audio" || top == "video":
			a.Kind = top
		}
		all = append(all, a)
	}
	return all
}

// timeOf reads a ts, which is seconds with six digits behind the point.
func timeOf(ts string) time.Time {
	sec, frac, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(sec, 10, 64)
	if err != nil || s < 0 || s > 1<<36 {
		return time.Time{}
	}
	us, err := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	if err != nil {
		us = 0
	}
	return time.Unix(s, us*1000).UTC()
}
