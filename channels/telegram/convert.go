package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"parley/channels"
)

// maxRaw caps what is kept of an event that cannot be read, in bytes.
const maxRaw = 64 << 10

var errShape = errors.New("the update lacks a field that it must have")

// incoming is one update after reading: what to journal, if anything, and the button press to answer.
type incoming struct {
	id       int64 // update_id, 0: unreadable
	in       channels.Inbound
	keep     bool // false: nothing of it concerns us
	callback string
	post     ownPost // of a channel post, which may be our own
}

// read turns one raw update into an incoming. It never fails: what cannot be read, or panics while being read,
// becomes KindUnparsed, so that one odd update holds up nobody.
func (s *identity) read(raw json.RawMessage) incoming {
	return s.rescue(raw, func() (incoming, error) {
		var u update
		if err := json.Unmarshal(raw, &u); err != nil {
			return incoming{}, err
		}
		if u.ID == 0 {
			return incoming{}, errShape
		}
		got, err := s.convert(&u)
		got.id = u.ID
		return got, err
	})
}

// rescue replaces what went wrong, in whichever way, by the raw update.
func (s *identity) rescue(raw json.RawMessage, read func() (incoming, error)) (got incoming) {
	defer func() {
		if p := recover(); p != nil {
			got = s.unparsed(raw)
		}
	}()
	got, err := read()
	if err != nil {
		return s.unparsed(raw)
	}
	return got
}

func (s *identity) unparsed(raw json.RawMessage) incoming {
	id := updateID(raw)
	key := "u:" + decimal(id)
	if id == 0 {
		key = "u:" + digest(string(raw))
	}
	data := raw[:min(len(raw), maxRaw)]
	return incoming{id: id, keep: true, in: channels.Inbound{
		Key:  key,
		Kind: channels.KindUnparsed,
		To:   channels.Address{Network: Network, Account: s.account},
		Data: append([]byte(nil), data...), // raw is a window into the whole batch
	}}
}

func (s *identity) convert(u *update) (incoming, error) {
	switch {
	case u.Message != nil:
		return s.message(u.Message)
	case u.Post != nil:
		got, err := s.message(u.Post)
		if err == nil && u.Post.Chat.Type == "channel" {
			got.post = ownPost{u.Post.Chat.ID, u.Post.ID}
		}
		return got, err
	case u.Edited != nil:
		return s.edited(u.Edited)
	case u.Callback != nil:
		return s.pressed(u.Callback)
	case u.Reaction != nil:
		return s.reacted(u.Reaction, u.ID)
	}
	return incoming{}, nil
}

func (s *identity) message(m *message) (incoming, error) {
	if m.Chat == nil || m.Chat.ID == 0 || m.ID == 0 {
		return incoming{}, errShape
	}
	if m.MigrateTo != 0 {
		return s.moved(m.Chat.ID, m.MigrateTo, m.Date), nil
	}
	if m.MigrateFrom != 0 {
		return s.moved(m.MigrateFrom, m.Chat.ID, m.Date), nil
	}
	in, ok, err := s.content(m)
	in.Kind = channels.KindMessage
	in.ID = id(m.ID)
	in.Key = channels.MessageKey(s.address(m), in.ID)
	return incoming{in: in, keep: ok}, err
}

// edited never carries a command: an edit does not run one.
func (s *identity) edited(m *message) (incoming, error) {
	if m.Chat == nil || m.Chat.ID == 0 || m.ID == 0 {
		return incoming{}, errShape
	}
	in, ok, err := s.content(m)
	in.Kind = channels.KindEdit
	// Seconds alone would make two quick edits one.
	in.Target = id(m.ID)
	in.Key = channels.EditKey(s.address(m), in.Target, decimal(m.EditDate)+"."+digest(m.Text+"\x00"+m.Caption))
	in.Command = false
	if m.EditDate != 0 {
		in.Time = when(m.EditDate)
	}
	return incoming{in: in, keep: ok}, err
}

// content reads what messages and edits share. ok is false for service messages, for commands to other bots, and
// for what we wrote ourselves.
func (s *identity) content(m *message) (in channels.Inbound, ok bool, err error) {
	from, known := m.sender()
	if !known {
		return in, false, errShape
	}
	in = channels.Inbound{
		From:        from,
		To:          s.address(m),
		Time:        when(m.Date),
		Album:       m.Album,
		Attachments: m.attachments(),
		Title:       m.Chat.Title,
	}
	t := s.addressed(m.Text, m.Entities)
	if m.Text == "" {
		t = s.addressed(m.Caption, m.CaptionEntities)
	}
	in.Text, in.Mentioned = t.text, t.mentioned
	// A forwarded command was typed by somebody else.
	in.Command = t.command && m.Forward == nil && m.ViaBot == nil
	if in.Text == "" && !t.mentioned {
		in.Text = m.describe()
	}
	s.reply(m, &in)
	empty := in.Text == "" && len(in.Attachments) == 0 && !t.mentioned
	return in, !empty && !t.foreign && from.User != channels.UserID(s.account), nil
}

// reply fills in what the message answers. In a topic a plain message "answers" the message that opened it.
func (s *identity) reply(m *message, in *channels.Inbound) {
	r := m.ReplyTo
	if r != nil && (r.Chat == nil || r.Chat.ID != m.Chat.ID) {
		return // another chat's is told as an external reply
	}
	if r == nil || (m.IsTopic && r.ID == m.Thread) {
		if m.Quote != nil && m.External != nil { // from another chat: its writer is not shown to bots
			in.Quote = &channels.Quote{Text: m.Quote.Text}
		}
		return
	}
	in.ReplyTo = id(r.ID)
	from, _ := r.sender()
	q := &channels.Quote{From: from, Text: r.Text, Own: r.From != nil && r.From.ID == s.ID}
	if !q.Own {
		q.Attachments = r.attachments()
	}
	if q.Text == "" {
		q.Text = r.Caption
	}
	if q.Text == "" {
		q.Text = r.describe()
	}
	if m.Quote != nil && m.Quote.Text != "" && (!q.Own || strings.Contains(q.Text, m.Quote.Text)) {
		q.Text = m.Quote.Text // a part of it; ours has no words that we did not write
	}
	in.Quote = q
	in.Mentioned = in.Mentioned || q.Own
}

func (s *identity) moved(from, to, date int64) incoming {
	return incoming{keep: true, in: channels.Inbound{
		Key:  fmt.Sprintf("v:%d:%d", from, to), // both rooms tell it, once each
		Kind: channels.KindMoved,
		To:   channels.Address{Network: Network, Account: s.account, Kind: channels.Group, Peer: channels.PeerID(decimal(from))},
		Time: when(date),
		Text: decimal(to),
	}}
}

// pressed reads a button press. Telegram gives it no time of its own: that of the message would make a press on
// an old question look stale, so Time stays zero.
func (s *identity) pressed(c *callback) (incoming, error) {
	if c.ID == "" || c.From == nil || c.From.ID == 0 {
		return incoming{}, errShape
	}
	got := incoming{callback: c.ID}
	if c.Message == nil || c.Message.Chat == nil || c.Message.ID == 0 || c.Data == "" {
		return got, nil // an inline message or a game: not ours
	}
	got.keep = true
	got.in = channels.Inbound{
		Key:    "b:" + c.ID,
		Kind:   channels.KindButton,
		From:   c.From.sender(),
		To:     s.address(c.Message),
		Target: id(c.Message.ID),
		Text:   c.Data,
		Title:  c.Message.Chat.Title,
	}
	return got, nil
}

// reacted keeps the emoji that was added; Text is empty when one was taken away.
func (s *identity) reacted(r *reactionUpdate, updateID int64) (incoming, error) {
	if r.Chat == nil || r.Chat.ID == 0 || r.ID == 0 {
		return incoming{}, errShape
	}
	var from channels.Sender
	switch {
	case r.User != nil:
		from = r.User.sender()
	case r.Actor != nil:
		from = r.Actor.sender()
	default:
		return incoming{}, errShape
	}
	return incoming{keep: true, in: channels.Inbound{
		Key:    "r:" + decimal(updateID),
		Kind:   channels.KindReaction,
		From:   from,
		To:     s.address(&message{Chat: r.Chat}), // which topic it was is not told
		Target: id(r.ID),
		Time:   when(r.Date),
		Text:   added(r.Old, r.New),
		Title:  r.Chat.Title,
	}}, nil
}

func added(before, after []reaction) string {
	had := make(map[reaction]bool, len(before))
	for _, r := range before {
		had[r] = true
	}
	for _, r := range after {
		if had[r] {
			continue
		}
		switch r.Type {
		case "custom_emoji":
			return "custom:" + r.Custom
		case "paid":
			return "⭐"
		}
		return r.Emoji
	}
	return ""
}

func (s *identity) address(m *message) channels.Address {
	a := channels.Address{Network: Network, Account: s.account, Peer: channels.PeerID(decimal(m.Chat.ID))}
	switch m.Chat.Type {
	case "private":
		a.Kind = channels.DM
	case "channel":
		a.Kind = channels.Room
	default:
		a.Kind = channels.Group
	}
	if m.IsTopic && m.Thread != 0 {
		a.Thread = channels.ThreadID(decimal(m.Thread))
	}
	return a
}

// sender is who wrote. Anonymous admins and channels come with a stand-in user in from; the chat that they
// speak for is the identity.
func (m *message) sender() (channels.Sender, bool) {
	switch {
	case m.SenderChat != nil && m.SenderChat.ID != 0:
		return m.SenderChat.sender(), true
	case m.From != nil && m.From.ID != 0:
		return m.From.sender(), true
	case m.Chat != nil && m.Chat.Type == "channel":
		return m.Chat.sender(), true
	}
	return channels.Sender{}, false
}

func (u *user) sender() channels.Sender {
	name := strings.TrimSpace(u.First + " " + u.Last)
	if name == "" {
		name = u.Username
	}
	return channels.Sender{User: channels.UserID(decimal(u.ID)), Name: name, Bot: u.IsBot}
}

func (c *chat) sender() channels.Sender {
	name := c.Title
	if name == "" {
		name = c.Username
	}
	return channels.Sender{User: channels.UserID(decimal(c.ID)), Name: name}
}

func id(n int64) channels.MessageID { return channels.MessageID(decimal(n)) }

// when is a Unix time in seconds; the zero time when there is none, or none that a calendar has.
func when(seconds int64) time.Time {
	if seconds <= 0 || seconds > 253402300799 { // the end of the year 9999
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// digest tells texts apart; it guards nothing.
func digest(text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // a hash never fails
	return strconv.FormatUint(h.Sum64(), 16)
}
