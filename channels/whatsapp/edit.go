package whatsapp

import (
	"context"
	"errors"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"

	"parley/channels"
)

// presentFor is how long after typing was shown the account stays "online". While it is, the phone is not notified.
const presentFor = 30 * time.Second

// Edit replaces the text of a message, or the caption of a file, within WhatsApp's 20 minutes; later, and for what is not
// known to be there, it is a BadMessage.
func (c *Channel) Edit(ctx context.Context, m channels.MessageID, p channels.Post) error {
	s, err := c.connected()
	if err != nil {
		return err
	}
	chat, id, err := mine(p.To, m)
	if err != nil {
		return err
	}
	if n := units(p.Text); n > maxText || n == 0 {
		return bad("the text has %d units, 1 to %d go into one message", n, maxText)
	}
	was, at, err := s.v.sentAt(ctx, id)
	switch {
	case err != nil:
		return classify("edit", err)
	case was == nil:
		return bad("the message is not there any more")
	case textOf(unwrap(was)) == p.Text:
		return nil
	case s.c.clock.Now().Sub(at) > whatsmeow.EditWindow:
		return bad("WhatsApp takes edits for 20 minutes")
	}
	now := retold(was, p.Text)
	ctx, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	if err := s.transmit(ctx, chat, s.cli.GenerateMessageID(), s.cli.BuildEdit(chat, id, now)); err != nil {
		return classify("edit", err)
	}
	return classify("edit", s.v.amend(ctx, id, now))
}

// retold is a message with another text, and else the same.
func retold(was *waE2E.Message, text string) *waE2E.Message {
	now := proto.Clone(was).(*waE2E.Message)
	in := unwrap(now)
	switch {
	case in.ExtendedTextMessage != nil:
		in.ExtendedTextMessage.Text = &text
	case in.ImageMessage != nil:
		in.ImageMessage.Caption = &text
	case in.VideoMessage != nil:
		in.VideoMessage.Caption = &text
	case in.DocumentMessage != nil:
		in.DocumentMessage.Caption = &text
	default:
		in.Conversation = &text
	}
	return now
}

// mine names one of our own messages.
func mine(to channels.Address, m channels.MessageID) (chat types.JID, id string, err error) {
	if chat, err = target(to); err != nil {
		return chat, "", err
	}
	id, by, err := splitID(m)
	if err == nil && !by.IsEmpty() {
		err = bad("the message is another's")
	}
	return chat, id, err
}

// Delete deletes one of our messages for everyone. WhatsApp takes that for about two days; later it is acknowledged and
// does nothing.
func (c *Channel) Delete(ctx context.Context, to channels.Address, m channels.MessageID) error {
	s, err := c.connected()
	if err != nil {
		return err
	}
	chat, id, err := mine(to, m)
	if err != nil {
		return err
	}
	if gone, err := s.v.dropped(ctx, id); err != nil || gone {
		return classify("delete", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	if err := s.transmit(ctx, chat, s.cli.GenerateMessageID(), s.cli.BuildRevoke(chat, types.EmptyJID, id)); err != nil {
		return classify("delete", err)
	}
	return classify("delete", s.v.drop(ctx, id))
}

// React replaces our reaction on a message.
func (c *Channel) React(ctx context.Context, to channels.Address, m channels.MessageID, emoji string) error {
	s, err := c.connected()
	if err != nil {
		return err
	}
	chat, err := target(to)
	if err != nil {
		return err
	}
	id, by, err := splitID(m)
	if err != nil {
		return err
	}
	if was, ok := s.seen.find(to.Peer, m); ok {
		by = was.sender // as the group addresses its members
	}
	ctx, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	return classify("react", s.transmit(ctx, chat, s.cli.GenerateMessageID(), s.cli.BuildReaction(chat, by, id, emoji)))
}

// ShowTyping shows "typing…" for some 15 seconds or until the next message. People see it only of accounts that are online,
// so the account is for a while.
func (c *Channel) ShowTyping(ctx context.Context, to channels.Address) error {
	s, err := c.connected()
	if err != nil {
		return err
	}
	chat, err := target(to)
	if err != nil {
		return err
	}
	if !s.enter() {
		return nil
	}
	defer s.busy.Done()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // later it would be a lie
	defer cancel()
	if c.opt.MarkRead {
		s.markRead(ctx, to)
	}
	if err := s.appear(ctx); err != nil {
		return classify("presence", err)
	}
	return classify("typing", s.cli.SendChatPresence(ctx, chat, types.ChatPresenceComposing, types.ChatPresenceMediaText))
}

// appear makes the account online. It needs the account's name, which the phone tells some time after linking; without
// one typing may not be seen, and nothing is wrong.
func (s *session) appear(ctx context.Context) error {
	now := s.c.clock.Now()
	s.mu.Lock()
	was := s.present
	s.present = now
	s.mu.Unlock()
	if now.Sub(was) < presentFor {
		return nil
	}
	err := s.cli.SendPresence(ctx, types.PresenceAvailable)
	if errors.Is(err, whatsmeow.ErrNoPushName) {
		return nil
	}
	return err
}

// withdraw makes the account offline again when nothing was written for a while. The session's loop calls it.
func (s *session) withdraw(ctx context.Context) {
	s.mu.Lock()
	due := s.up && !s.present.IsZero() && s.c.clock.Now().Sub(s.present) >= presentFor
	if due {
		s.present = time.Time{}
	}
	s.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.cli.SendPresence(ctx, types.PresenceUnavailable); err != nil && !errors.Is(err, whatsmeow.ErrNoPushName) {
		s.c.log.Debug("presence cannot be sent", "err", mask(err.Error()))
	}
}

// markRead shows the blue ticks on what is being answered.
func (s *session) markRead(ctx context.Context, to channels.Address) {
	for sender, list := range s.seen.take(to.Peer) {
		ids := make([]types.MessageID, 0, len(list))
		for _, m := range list {
			ids = append(ids, m.id)
		}
		if err := s.cli.MarkRead(ctx, ids, s.c.clock.Now(), list[0].chat, sender); err != nil {
			s.c.log.Debug("message cannot be marked as read", "err", mask(err.Error()))
		}
	}
}
