package whatsapp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"parley/channels"
)

const (
	maxRaw     = 64 << 10        // of an event that cannot be read, in bytes
	refusedFor = 2 * time.Minute // of trying to have a message taken, before the connection is given up; whatsmeow leaves a handler behind after 5
)

// message journals what somebody wrote. It returns true, which sends the receipt, only after the gateway has it.
//
// A gateway that is busy is asked again from here: the server would offer the message again on the next connection only,
// and what came after it would be before it.
func (s *session) message(evt *events.Message) bool {
	in, keep, err := s.read(s.life, evt)
	if err != nil { // the store's: perhaps the disk is full
		s.c.log.Warn("a message cannot be read yet", "err", mask(err.Error()))
		s.signal(errRefused)
		return false
	}
	if !keep {
		return true
	}
	s.note(evt, &in) // before the answer can be on its way
	since := s.c.clock.Now()
	for try := 0; ; try++ {
		err := channels.Offer(s.life, s.w.in, s.c.log, in)
		if err == nil {
			if try > 0 {
				s.report(channels.Status{State: channels.Ready})
			}
			return true
		}
		if s.life.Err() != nil {
			return false
		}
		s.report(channels.Status{State: channels.Deaf, Cause: "messages wait at WhatsApp: " + err.Error(), Err: err,
			Hint: "Nothing is lost; messages are taken as soon as the gateway can write and has room again."})
		if s.c.clock.Now().Sub(since) > refusedFor {
			s.signal(errRefused)
			return false
		}
		if !channels.Sleep(s.life, channels.Backoff(try, 50*time.Millisecond, 5*time.Second)) {
			return false
		}
	}
}

// read turns an event into what to journal; keep is false for what concerns nobody. What cannot be read, or panics while
// being read, becomes KindUnparsed, so that it holds up nobody.
func (s *session) read(ctx context.Context, evt *events.Message) (in channels.Inbound, keep bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.c.log.Warn("panic while a message was read", "err", mask(fmt.Sprint(p)))
			in, keep, err = s.unparsed(evt), true, nil
		}
	}()
	if evt.Info.IsFromMe || s.isMe(evt.Info.Sender) || evt.Message == nil || evt.Info.ID == "" {
		return in, false, nil // written on the account's own phone, and what the phone tells its devices
	}
	to, ok, err := s.address(ctx, &evt.Info.MessageSource)
	if err != nil || !ok {
		return in, false, err
	}
	who, err := s.human(ctx, evt.Info.Sender, evt.Info.SenderAlt)
	if err != nil {
		return in, false, err
	}
	r := reading{s: s, ctx: ctx, evt: evt, who: who, in: channels.Inbound{From: who.sender(evt.Info.PushName), To: to, Time: evt.Info.Timestamp.UTC()}}
	return r.any()
}

func (s *session) unparsed(evt *events.Message) channels.Inbound {
	data, err := proto.Marshal(evt.RawMessage)
	if err != nil {
		data = []byte(err.Error())
	}
	return channels.Inbound{
		Key:  "u:" + plain(evt.Info.Chat).String() + ":" + evt.Info.ID + ":" + plain(evt.Info.Sender).String(),
		Kind: channels.KindUnparsed,
		To:   channels.Address{Network: Network, Account: channels.AccountID(s.me.String())},
		Time: evt.Info.Timestamp.UTC(),
		Data: data[:min(len(data), maxRaw)],
	}
}

// reading is one event on its way to an Inbound.
type reading struct {
	s   *session
	ctx context.Context
	evt *events.Message
	who human
	in  channels.Inbound
}

func (r *reading) any() (channels.Inbound, bool, error) {
	m := r.evt.Message
	switch p := m.GetProtocolMessage(); {
	case p != nil && p.GetType() == waE2E.ProtocolMessage_MESSAGE_EDIT:
		return r.edited(p.GetKey(), p.GetEditedMessage(), p.GetTimestampMS())
	case p != nil && p.GetType() == waE2E.ProtocolMessage_REVOKE:
		return r.revoked(p.GetKey())
	case p != nil:
		return r.in, false, nil // the protocol's own: timers, keys
	}
	if m.GetSecretEncryptedMessage().GetSecretEncType() == waE2E.SecretEncryptedMessage_MESSAGE_EDIT {
		return r.secretEdit()
	}
	if m.GetReactionMessage() != nil {
		return r.reacted(m.GetReactionMessage())
	}
	if m.GetEncReactionMessage() != nil {
		plain, err := r.s.cli.DecryptReaction(r.ctx, r.evt)
		if err != nil { // to a message of before our time, whose key we never had
			r.s.c.log.Debug("a reaction cannot be decrypted", "err", mask(err.Error()))
			return r.in, false, nil
		}
		if plain.Key == nil {
			plain.Key = m.GetEncReactionMessage().GetTargetMessageKey()
		}
		return r.reacted(plain)
	}
	return r.written()
}

func (r *reading) written() (channels.Inbound, bool, error) {
	r.in.Kind = channels.KindMessage
	r.in.ID = foreignID(r.evt.Info.ID, r.who.user)
	r.in.Key = channels.MessageKey(r.in.To, r.in.ID)
	some, err := r.content(r.evt.Message)
	if err != nil {
		return r.in, false, err
	}
	if some {
		return r.in, true, nil
	}
	if strange(r.evt.Message) {
		return r.s.unparsed(r.evt), true, nil
	}
	return r.in, false, nil
}

// edited never carries a command: an edit does not run one. People edit only what they wrote themselves.
func (r *reading) edited(key *waCommon.MessageKey, m *waE2E.Message, at int64) (channels.Inbound, bool, error) {
	if key.GetID() == "" || m == nil {
		return r.s.unparsed(r.evt), true, nil
	}
	some, err := r.content(m)
	if err != nil || !some {
		return r.in, false, err
	}
	r.in.Kind = channels.KindEdit
	r.in.Target = foreignID(key.GetID(), r.who.user)
	r.in.Key = channels.EditKey(r.in.To, r.in.Target, r.evt.Info.ID)
	r.in.Command = false
	if at > 0 {
		r.in.Time = time.UnixMilli(at).UTC()
	}
	return r.in, true, nil
}

// secretEdit is an edit under the key of the message that it changes.
func (r *reading) secretEdit() (channels.Inbound, bool, error) {
	m, err := r.s.cli.DecryptSecretEncryptedMessage(r.ctx, r.evt)
	if err != nil {
		r.s.c.log.Debug("an edit cannot be decrypted", "err", mask(err.Error()))
		return r.in, false, nil
	}
	key := r.evt.Message.GetSecretEncryptedMessage().GetTargetMessageKey()
	if p := m.GetProtocolMessage(); p.GetType() == waE2E.ProtocolMessage_MESSAGE_EDIT && p.GetEditedMessage() != nil {
		return r.edited(key, p.GetEditedMessage(), p.GetTimestampMS())
	}
	return r.edited(key, m, 0)
}

// revoked is for what people take back themselves. That an admin takes back another's message cannot be told here from
// somebody who only says so.
func (r *reading) revoked(key *waCommon.MessageKey) (channels.Inbound, bool, error) {
	if key.GetID() == "" {
		return r.s.unparsed(r.evt), true, nil
	}
	by, err := r.author(key)
	if err != nil || by.user != r.who.user {
		return r.in, false, err
	}
	r.in.Kind = channels.KindDelete
	r.in.Target = foreignID(key.GetID(), r.who.user)
	r.in.Key = channels.DeleteKey(r.in.To, r.in.Target)
	return r.in, true, nil
}

func (r *reading) reacted(m *waE2E.ReactionMessage) (channels.Inbound, bool, error) {
	key := m.GetKey()
	if key.GetID() == "" {
		return r.s.unparsed(r.evt), true, nil
	}
	by, err := r.author(key)
	if err != nil {
		return r.in, false, err
	}
	r.in.Kind = channels.KindReaction
	r.in.Key = channels.ReactionKey(r.in.To, foreignID(r.evt.Info.ID, r.who.user))
	r.in.Text = m.GetText()
	r.in.Target = foreignID(key.GetID(), by.user)
	if by.user == r.s.me {
		r.in.Target = channels.MessageID(key.GetID())
	}
	return r.in, true, nil
}

// author is who sent the message that a key names. The key is written from its writer's side: "from me" is the writer.
// The account itself comes back as its number.
func (r *reading) author(key *waCommon.MessageKey) (human, error) {
	if key.GetFromMe() {
		return r.who, nil
	}
	if key.GetParticipant() == "" {
		if r.in.To.Kind == channels.DM {
			return human{user: r.s.me}, nil
		}
		return human{}, nil
	}
	return r.named(key.GetParticipant())
}

// named is somebody by the address in a message's text; nobody, when it is none.
func (r *reading) named(jid string) (human, error) {
	j, err := types.ParseJID(jid)
	if err != nil || j.User == "" {
		return human{}, nil
	}
	if r.s.isMe(j) {
		return human{user: r.s.me}, nil
	}
	return r.s.human(r.ctx, j, types.EmptyJID)
}

// content reads what messages and edits share; false: there is nothing in it for people.
func (r *reading) content(m *waE2E.Message) (bool, error) {
	m = unwrap(m)
	text := textOf(m)
	files, err := r.s.attachments(m)
	if err != nil {
		return false, err
	}
	info := contextOf(m)
	rest, us, others := r.s.mentions(text, info.GetMentionedJID())
	r.in.Text, r.in.Mentioned = rest, us
	r.in.Attachments = files
	r.in.Album = albumOf(m, r.evt.Message, r.who)
	// A forwarded command was typed by somebody else; one that names another is for them.
	r.in.Command = strings.HasPrefix(rest, "/") && len(rest) > 1 && !info.GetIsForwarded() && (us || !others)
	if r.in.Text == "" && !us {
		r.in.Text = describe(m)
	}
	if err := r.quoted(info); err != nil {
		return false, err
	}
	return r.in.Text != "" || len(files) > 0 || us, nil
}

// quoted fills in what the message answers. Its text and writer are what the sender's phone says, who may name any id and
// write any text: what we sent is taken from our own record, and only in the conversation that we sent it to. An id under
// which we sent nothing here is nobody's.
func (r *reading) quoted(info *waE2E.ContextInfo) error {
	id := info.GetStanzaID()
	if id == "" {
		return nil
	}
	by, err := r.named(info.GetParticipant())
	if err != nil || by.user.IsEmpty() {
		return err
	}
	was := unwrap(info.GetQuotedMessage())
	q := &channels.Quote{From: by.sender(""), Text: textOf(was)}
	if q.Text == "" {
		q.Text = describe(was)
	}
	r.in.Quote = q
	elsewhere := info.GetRemoteJID()
	switch {
	case by.user == r.s.me:
		return r.quotedOurs(q, id, elsewhere)
	case elsewhere != "" && !r.here(elsewhere):
		return nil // nothing here can be meant by it
	}
	r.in.ReplyTo = foreignID(id, by.user)
	q.Attachments, err = r.s.attachments(was)
	return err
}

// quotedOurs fills in a quote that is said to be ours.
func (r *reading) quotedOurs(q *channels.Quote, id, elsewhere string) error {
	sent, chat, err := r.s.v.get(r.ctx, id)
	if err != nil {
		return err
	}
	if elsewhere != "" && !r.here(elsewhere) || sent == nil || !r.saidHere(chat) {
		q.From = channels.Sender{}
		return nil
	}
	r.in.ReplyTo, q.Own = channels.MessageID(id), true
	if text := textOf(unwrap(sent)); text != "" {
		q.Text = text
	}
	return nil
}

// saidHere says whether what we sent to a chat was sent to this conversation.
func (r *reading) saidHere(chat string) bool {
	here, err := types.ParseJID(string(r.in.To.Peer))
	return err == nil && r.s.sameChat(r.ctx, chat, here)
}

// here says whether an address is this conversation, or the account itself in a chat with it.
func (r *reading) here(jid string) bool {
	j, err := types.ParseJID(jid)
	if err != nil {
		return false
	}
	j = plain(j)
	return j == plain(r.evt.Info.Chat) || string(r.in.To.Peer) == j.String() || j == r.who.alt || r.s.isMe(j)
}
