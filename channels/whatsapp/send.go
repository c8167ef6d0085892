package whatsapp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"
	"unicode/utf16"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"

	"parley/channels"
)

const (
	sendWait   = time.Minute            // for all of a send: a file, keys of new devices, the message
	endsWithin = 500 * time.Millisecond // of its context a send returns
)

// messageID is the id of a token's message: the same for every try, so that a second one is the same message to everybody
// who has the first. It looks like those of the web client (whatsmeow's GenerateMessageID).
func messageID(token string) string {
	sum := sha256.Sum256([]byte("parley\x00" + token))
	return whatsmeow.WebMessageIDPrefix + strings.ToUpper(hex.EncodeToString(sum[:9]))
}

// Send sends one message: a text, or one file with the text as its caption. Private, Silent and Actions have no counterpart
// on WhatsApp and are ignored. A link is never previewed: that is the sender's work there, and is not done.
func (c *Channel) Send(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	s, err := c.connected()
	if err != nil {
		return "", err
	}
	chat, err := target(p.To)
	if err != nil {
		return "", err
	}
	if n := units(p.Text); n > maxText {
		return "", bad("the text has %d units, %d go into one message", n, maxText)
	}
	if len(p.Files) > 1 {
		return "", bad("%d files in one message: WhatsApp takes one", len(p.Files))
	}
	if len(p.Files) == 0 && strings.TrimSpace(p.Text) == "" {
		return "", bad("there is nothing in the message")
	}
	ctx, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	m, err := s.compose(ctx, p)
	if err != nil {
		return "", classify("upload", err)
	}
	id := s.cli.GenerateMessageID()
	if p.Token != "" {
		id = messageID(p.Token)
	}
	if err := s.transmit(ctx, chat, id, m); err != nil {
		return "", classify("send", err)
	}
	return channels.MessageID(id), nil
}

// compose makes a post's message; a file is uploaded for it.
func (s *session) compose(ctx context.Context, p channels.Post) (*waE2E.Message, error) {
	info, err := s.contextFor(ctx, p)
	if err != nil {
		return nil, err
	}
	switch {
	case len(p.Files) > 0:
		return s.composeFile(ctx, p.Files[0], p.Text, info)
	case info != nil:
		return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: &p.Text, ContextInfo: info}}, nil
	}
	return &waE2E.Message{Conversation: &p.Text}, nil
}

// contextFor is what a post answers, and when it disappears.
func (s *session) contextFor(ctx context.Context, p channels.Post) (*waE2E.ContextInfo, error) {
	var info *waE2E.ContextInfo
	if fade := s.seen.fade(p.To.Peer); fade > 0 { // else people are warned that this message stays
		info = &waE2E.ContextInfo{Expiration: &fade}
	}
	if p.ReplyTo == "" {
		return info, nil
	}
	id, by, err := splitID(p.ReplyTo)
	if err != nil {
		return nil, err
	}
	quoted := &waE2E.Message{Conversation: proto.String("")}
	if by.IsEmpty() {
		by, _ = s.own()
		sent, _, err := s.v.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if sent != nil {
			quoted = &waE2E.Message{Conversation: proto.String(textOf(unwrap(sent)))}
		}
	} else if was, ok := s.seen.find(p.To.Peer, p.ReplyTo); ok {
		by, quoted.Conversation = was.sender, proto.String(was.text)
	} else if p.To.Kind == channels.DM {
		return info, nil // after a restart its text is not known: an empty quote would say less than none
	}
	if info == nil {
		info = &waE2E.ContextInfo{}
	}
	info.StanzaID, info.Participant, info.QuotedMessage = &id, proto.String(by.String()), quoted
	return info, nil
}

// transmit sends a message under an id and waits for the server's acknowledgement. It is kept before it goes: people's
// devices may ask for it again at once, or after our next start.
func (s *session) transmit(ctx context.Context, chat types.JID, id string, m *waE2E.Message) error {
	select {
	case s.c.turn <- struct{}{}:
	case <-ctx.Done():
		return &channels.Error{Class: channels.Retry, Err: ctx.Err()}
	}
	if !s.enter() {
		<-s.c.turn
		return &channels.Error{Class: channels.Retry, Err: errors.New("whatsapp is not connected")}
	}
	done := make(chan error, 1)
	go func() { // close waits for it
		defer s.busy.Done()
		defer func() { <-s.c.turn }()
		done <- s.hand(ctx, chat, id, m)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	// whatsmeow heeds the context, but not where it waits for another's send to end.
	soon := time.NewTimer(endsWithin)
	defer soon.Stop()
	select {
	case err := <-done:
		return err
	case <-soon.C:
	}
	time.AfterFunc(s.c.answerWait(), func() {
		select {
		case err := <-done:
			done <- err
		default:
			s.signal(error(errUnanswered)) // a line that ends frees everybody
		}
	})
	return ctx.Err()
}

// hand gives a message to whatsmeow. It has the turn.
func (s *session) hand(ctx context.Context, chat types.JID, id string, m *waE2E.Message) error {
	if err := s.sendable(); err != nil {
		return err
	}
	if s.wire.down() {
		if why := s.reason(); why != nil {
			return &channels.Error{Class: channels.Fatal, Err: why}
		}
		return &channels.Error{Class: channels.Retry, Err: errLost}
	}
	if err := s.v.put(ctx, chat, id, m, s.c.clock.Now()); err != nil {
		s.c.log.Warn("sent message cannot be stored", "err", mask(err.Error()))
	} else if chat.Server == types.GroupServer { // for each device that asks again it writes into what it keeps, without a lock
		//lint:ignore SA1019 only so it forgets the message, and asks sentBefore for one of its own
		defer s.cli.DangerousInternals().AddRecentMessage(chat, id, nil, nil)
	}
	err := errMoved
	for try := 0; errors.Is(err, errMoved) && try < movedMost; try++ {
		// whatsmeow writes into what it sends, and keeps it.
		_, err = s.cli.SendMessage(ctx, chat, proto.Clone(m).(*waE2E.Message), whatsmeow.SendRequestExtra{ID: id, Timeout: s.c.answerWait() + time.Second}) // the bound is owed's
	}
	if cutOff(err) {
		if why := s.reason(); why != nil {
			return &channels.Error{Class: channels.Fatal, Err: why}
		}
	}
	return err
}

// units counts a text as Traits says.
func units(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}
