package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"runtime/debug"
	"strings"

	"parley/channels"
	"parley/workspace/lazy"
)

// maxRaw caps what is kept of an event that cannot be read, in bytes.
const maxRaw = 64 << 10

var errShape = errors.New("the event lacks a field that it must have")

var mention = lazy.Regexp(`<@!?([0-9]+)>|<@&([0-9]+)>`)

// convert adds to the batch what an event says. It never fails: what cannot be read, or panics while being read, becomes
// KindUnparsed, so that one odd event holds up nobody.
func (r *receiver) convert(ctx context.Context, p payload, b *batch) {
	before := *b
	defer func() {
		if v := recover(); v != nil {
			r.c.log.Error("panic while an event was read", "event", p.Type, "err", v, "stack", string(debug.Stack()))
			*b = before
			r.unreadable(p.Type, p.Data, b)
		}
	}()
	if err := r.read(ctx, p, b); err != nil && ctx.Err() == nil {
		r.c.log.Warn("an event cannot be read", "event", p.Type, "err", err)
		*b = before
		r.unreadable(p.Type, p.Data, b)
	}
}

func (r *receiver) unreadable(name string, raw json.RawMessage, b *batch) {
	sum := sha256.Sum256(raw)
	b.in = append(b.in, channels.Inbound{
		Key:  "u:" + name + ":" + hex.EncodeToString(sum[:12]),
		Kind: channels.KindUnparsed,
		To:   channels.Address{Network: Network, Account: channels.AccountID(r.self.id)},
		Data: append([]byte(nil), raw[:min(len(raw), maxRaw)]...),
	})
}

func (r *receiver) read(ctx context.Context, p payload, b *batch) error {
	switch p.Type {
	case "MESSAGE_CREATE":
		m, err := decode[message](p.Data)
		if err != nil {
			return err
		}
		if m.ID == "" || m.Channel == "" || m.Author == nil {
			return errShape
		}
		r.c.rooms.heard(m.Channel, m.ID)
		return r.message(ctx, m, p.Data, b)
	case "MESSAGE_UPDATE":
		m, err := decode[message](p.Data)
		if err != nil {
			return err
		}
		return r.edited(ctx, m, b)
	case "MESSAGE_DELETE", "MESSAGE_DELETE_BULK":
		d, err := decode[deletion](p.Data)
		if err != nil {
			return err
		}
		return r.deleted(ctx, d, b)
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		re, err := decode[reaction](p.Data)
		if err != nil {
			return err
		}
		return r.reacted(ctx, re, p.Type == "MESSAGE_REACTION_ADD", b)
	}
	i, err := decode[interaction](p.Data)
	if err != nil {
		return err
	}
	return r.interacted(ctx, i, b)
}

// where is the address of a channel that an event names.
func (r *receiver) place(ctx context.Context, guild, id string) (a channels.Address, title string, err error) {
	if guild == "" {
		return r.self.address("", channel{ID: id}), "", nil
	}
	var ch channel
	err = r.patiently(ctx, func() error {
		ch, err = r.c.room(ctx, guild, id)
		return err
	})
	return r.self.address(guild, ch), ch.Name, err
}

// message adds a new message, unless it is our own, the server's, or empty.
func (r *receiver) message(ctx context.Context, m *message, raw json.RawMessage, b *batch) error {
	if m.ID == "" || m.Channel == "" || m.Author == nil {
		r.unreadable("MESSAGE_CREATE", raw, b)
		return nil
	}
	if m.Author.ID == r.self.id || m.Type != typeDefault && m.Type != typeReply {
		return nil
	}
	in, err := r.content(ctx, m)
	if err != nil {
		return err
	}
	if in.Text == "" && len(in.Attachments) == 0 && !in.Mentioned {
		return nil
	}
	in.Kind, in.ID = channels.KindMessage, channels.MessageID(m.ID)
	in.Key = channels.MessageKey(in.To, in.ID)
	in.Time = when(m.Time, m.ID)
	b.in = append(b.in, in)
	return nil
}

// edited adds an edit. An update without the time of an edit is a link's preview. One may hold no more than what changed: then
// the message is asked for.
func (r *receiver) edited(ctx context.Context, m *message, b *batch) error {
	if m.Edited != "" && m.Author == nil && idFormat().MatchString(m.ID) && idFormat().MatchString(m.Channel) {
		whole := &message{}
		err := r.patiently(ctx, func() error {
			return r.c.rest.get(ctx, "look at an edited message", "channels/"+m.Channel+"/messages/"+m.ID, whole)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil //nolint:nilerr // it is gone, which comes as an event of its own
		}
		whole.Guild, whole.Channel, whole.Edited = m.Guild, m.Channel, m.Edited
		m = whole
	}
	if m.Edited == "" || m.Author == nil || m.Author.ID == r.self.id || m.Type != typeDefault && m.Type != typeReply {
		return nil
	}
	if m.ID == "" || m.Channel == "" {
		return errShape
	}
	in, err := r.content(ctx, m)
	if err != nil {
		return err
	}
	in.Kind, in.Target = channels.KindEdit, channels.MessageID(m.ID)
	in.Key = channels.EditKey(in.To, in.Target, m.Edited)
	in.Time, in.Command = when(m.Edited, m.ID), false // an edit runs no command
	b.in = append(b.in, in)
	return nil
}

// content is what messages and edits share.
func (r *receiver) content(ctx context.Context, m *message) (in channels.Inbound, err error) {
	in.From = sender(m.Author, m.Member)
	in.From.Bot = in.From.Bot || m.Webhook != ""
	if in.To, in.Title, err = r.place(ctx, m.Guild, m.Channel); err != nil {
		return in, err
	}
	if err := r.learnRoles(ctx, m); err != nil {
		return in, err
	}
	in.Server = m.Guild
	in.Attachments = m.attachments()
	in.Text, in.Mentioned = r.text(m)
	r.quote(m, &in)
	in.Command = strings.HasPrefix(in.Text, "/") && len(in.Text) > 1 && (in.To.Kind == channels.DM || in.Mentioned)
	return in, nil
}

// learnRoles asks which roles the bot has in a server, where a role is called and the server has not come: it comes late, or
// not at all after a session was resumed by another process than began it.
func (r *receiver) learnRoles(ctx context.Context, m *message) error {
	if m.Guild == "" || len(m.RoleMention) == 0 || r.c.rooms.hasRoles(m.Guild) {
		return nil
	}
	var me member
	err := r.patiently(ctx, func() error {
		return r.c.rest.get(ctx, "ask for the bot's roles", "guilds/"+m.Guild+"/members/"+r.self.id, &me)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil { // else they are asked for again
		r.c.rooms.setRoles(m.Guild, me.Roles)
	}
	return nil
}

// text is the message's text without mentions of the bot, with people named instead of numbered.
func (r *receiver) text(m *message) (text string, mentioned bool) {
	names := map[string]string{}
	for _, u := range m.Mentions {
		names[u.ID] = label(&u, nil)
		mentioned = mentioned || u.ID == r.self.id && m.Type != typeReply
	}
	mentioned = mentioned || r.c.rooms.ours(m.Guild, m.RoleMention)
	text = mention().ReplaceAllStringFunc(m.Content, func(hit string) string {
		part := mention().FindStringSubmatch(hit)
		switch {
		case part[1] == r.self.id:
			mentioned = true
			return ""
		case part[2] != "" && r.c.rooms.ours(m.Guild, part[2:]):
			return ""
		case names[part[1]] != "":
			return "@" + names[part[1]]
		}
		return hit
	})
	text = strings.TrimSpace(text)
	if text == "" && !mentioned {
		text = m.describe()
	}
	return text, mentioned
}

// describe is a line for what has no text of its own.
func (m *message) describe() string {
	switch {
	case len(m.Snapshots) > 0:
		return strings.TrimSpace("[forwarded] " + m.Snapshots[0].Message.Content)
	case len(m.Stickers) > 0:
		return "[sticker: " + m.Stickers[0].Name + "]"
	case m.Poll != nil:
		return "[poll: " + m.Poll.Question.Text + "]"
	}
	return ""
}

// quote fills in what the message answers, which is in its own channel. An answer to the bot is meant for it.
func (r *receiver) quote(m *message, in *channels.Inbound) {
	if m.Type != typeReply || m.Reference == nil || m.Reference.Message == "" || m.Reference.Channel != "" && m.Reference.Channel != m.Channel {
		return
	}
	in.ReplyTo = channels.MessageID(m.Reference.Message)
	q := m.Referenced
	if q == nil || q.Author == nil || q.ID != m.Reference.Message || q.Channel != "" && q.Channel != m.Channel {
		return // it is gone
	}
	text, _ := r.text(q)
	in.Quote = &channels.Quote{From: sender(q.Author, nil), Text: text, Own: q.Author.ID == r.self.id}
	if in.Quote.Own {
		in.Mentioned = true
	} else {
		in.Quote.Attachments = q.attachments()
	}
}

func sender(u *user, m *member) channels.Sender {
	s := channels.Sender{User: channels.UserID(u.ID), Name: label(u, m), Bot: u.Bot}
	if m != nil && len(m.Roles) > 0 {
		s.Roles = m.Roles
	}
	return s
}

func label(u *user, m *member) string {
	switch {
	case m != nil && m.Nick != "":
		return m.Nick
	case u.Global != "":
		return u.Global
	}
	return u.Name
}

func (r *receiver) deleted(ctx context.Context, d *deletion, b *batch) error {
	ids := d.IDs
	if d.ID != "" {
		ids = append(ids, d.ID)
	}
	if d.Channel == "" || len(ids) == 0 {
		return errShape
	}
	to, title, err := r.place(ctx, d.Guild, d.Channel)
	if err != nil {
		return err
	}
	for _, id := range ids {
		target := channels.MessageID(id)
		b.in = append(b.in, channels.Inbound{Key: channels.DeleteKey(to, target), Kind: channels.KindDelete, To: to, Target: target,
			Time: r.c.clock.Now().UTC(), Server: d.Guild, Title: title})
	}
	return nil
}

// reacted adds a reaction; Text is empty when one was taken away. Discord gives reactions neither an id nor a time, so
// that one which is put, taken and put again counts once.
func (r *receiver) reacted(ctx context.Context, re *reaction, added bool, b *batch) error {
	if re.User == "" || re.Channel == "" || re.Message == "" {
		return errShape
	}
	if re.User == r.self.id {
		return nil
	}
	to, title, err := r.place(ctx, re.Guild, re.Channel)
	if err != nil {
		return err
	}
	from := channels.Sender{User: channels.UserID(re.User)}
	if re.Member != nil && re.Member.User != nil {
		from = sender(re.Member.User, re.Member)
	}
	name, sign := re.Emoji.Name, "+"
	if re.Emoji.ID != "" {
		name = "custom:" + re.Emoji.Name
	}
	in := channels.Inbound{Kind: channels.KindReaction, From: from, To: to, Target: channels.MessageID(re.Message), Text: name,
		Time: r.c.clock.Now().UTC(), Server: re.Guild, Title: title}
	if !added {
		sign, in.Text = "-", ""
	}
	in.Key = channels.ReactionKey(to, in.Target, re.User, sign+name)
	b.in = append(b.in, in)
	return nil
}
