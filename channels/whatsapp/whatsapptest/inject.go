package whatsapptest

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"go.mau.fi/libsignal/keys/prekey"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// In is something that a person writes.
type In struct {
	From    string // phone number; the account's own: it was written on its phone
	Device  uint16 // of the writer
	Group   string // the group's digits; empty: a direct message to the account
	To      string // with From the account's own phone: the person that it wrote to
	Text    string
	Mention []string // phone numbers of those who are mentioned; the text should have @<number> for each
	ReplyTo string   // id of the quoted message

	// ReplyFrom is the phone number of who wrote the quoted or otherwise named message, where its id alone does not tell:
	// ids are made by those who write, and two people can make the same.
	ReplyFrom string

	File    *File
	Album   string    // id of the message that announced the album which File is of
	ID      string    // empty: a new one
	At      time.Time // zero: now
	Corrupt int       // how often the message comes undecryptable before it comes whole
	Unavail bool      // this device gets no ciphertext at all

	Lie func(*waE2E.Message) // changes what the message says before it is sent, such as the hash of its file

	Bare bool   // only one of the writer's two addresses is told, and nothing of how a group addresses its members
	List string // digits of a broadcast list of the writer's that the account is on; "status": the writer's status
}

// Write has a person write a message and gives its id.
func (s *Server) Write(in In) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.mustKnow(in.From)
	if in.ID == "" {
		in.ID = newID()
	}
	chat := s.chatOf(from, in)
	ctx := s.context(in, chat)
	body := &waE2E.Message{}
	switch {
	case in.File != nil:
		if err := s.attach(body, in, ctx); err != nil {
			panic("whatsapptest: " + err.Error())
		}
		if in.Album != "" {
			body.MessageContextInfo = &waE2E.MessageContextInfo{MessageAssociation: &waE2E.MessageAssociation{
				AssociationType: waE2E.MessageAssociation_MEDIA_ALBUM.Enum(), ParentMessageKey: s.key(chat, from, in.Album, in.From),
			}}
		}
	case ctx != nil || strings.Contains(in.Text, "://"):
		body.ExtendedTextMessage = &waE2E.ExtendedTextMessage{Text: proto.String(in.Text), ContextInfo: ctx}
	default:
		body.Conversation = proto.String(in.Text)
	}
	if in.Lie != nil {
		in.Lie(body)
	}
	s.say(from, in, chat, body, "")
	return in.ID
}

// chatOf names a chat as the client's account has it.
func (s *Server) chatOf(from *person, in In) types.JID {
	switch {
	case in.Group != "":
		g := types.NewJID(in.Group, types.GroupServer)
		if s.groups[g] == nil {
			panic("whatsapptest: an unknown group " + in.Group)
		}
		return g
	case from == s.owner && in.To != "":
		return s.mustKnow(in.To).PN()
	}
	return from.PN()
}

// context is the quote and the mentions. People are named as the chat addresses them.
func (s *Server) context(in In, chat types.JID) *waE2E.ContextInfo {
	if in.ReplyTo == "" && len(in.Mention) == 0 {
		return nil
	}
	c := &waE2E.ContextInfo{}
	name := func(p *person) string {
		if s.byPhone(chat, p) {
			return p.PN().String()
		}
		return p.Hidden().String()
	}
	for _, phone := range in.Mention {
		c.MentionedJID = append(c.MentionedJID, name(s.mustKnow(phone)))
	}
	if in.ReplyTo == "" {
		return c
	}
	c.StanzaID = proto.String(in.ReplyTo)
	if m := s.lookup(chat, in.ReplyTo, in.ReplyFrom); m != nil {
		c.Participant = proto.String(name(m.from))
		c.QuotedMessage = proto.Clone(m.body).(*waE2E.Message)
	}
	return c
}

// byPhone says how people are addressed in a chat: a group's own mode; in a direct chat as the other one's messages come.
func (s *Server) byPhone(chat types.JID, p *person) bool {
	if r := s.groups[chat]; r != nil {
		return r.ByPhone
	}
	if other := s.find(chat); other != nil {
		return other.ByPhone
	}
	return p.ByPhone
}

// Edit has a person change an earlier message of theirs. The edit has an id of its own, which is given back.
func (s *Server) Edit(in In, target string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, id := s.prepare(&in)
	chat := s.chatOf(from, in)
	body := &waE2E.Message{EditedMessage: &waE2E.FutureProofMessage{Message: &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Key: s.key(chat, from, target, in.ReplyFrom), Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), TimestampMS: proto.Int64(s.now().UnixMilli()),
		EditedMessage: &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: proto.String(in.Text), ContextInfo: s.context(in, chat)}},
	}}}}
	s.say(from, in, chat, body, "1")
	return id
}

// Revoke has a person delete a message of theirs for everyone.
func (s *Server) Revoke(in In, target string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, id := s.prepare(&in)
	chat := s.chatOf(from, in)
	body := &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{Key: s.key(chat, from, target, in.ReplyFrom), Type: waE2E.ProtocolMessage_REVOKE.Enum()}}
	s.say(from, in, chat, body, "7")
	return id
}

// React has a person put an emoji (in.Text; empty: take it off) on a message.
func (s *Server) React(in In, target string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, id := s.prepare(&in)
	chat := s.chatOf(from, in)
	body := &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{
		Key: s.key(chat, from, target, in.ReplyFrom), Text: proto.String(in.Text), SenderTimestampMS: proto.Int64(s.now().UnixMilli()),
	}}
	s.say(from, in, chat, body, "")
	return id
}

// Raw has a person send any message at all.
func (s *Server) Raw(in In, body *waE2E.Message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, id := s.prepare(&in)
	s.say(from, in, s.chatOf(from, in), body, "")
	return id
}

func (s *Server) prepare(in *In) (*person, string) {
	if in.ID == "" {
		in.ID = newID()
	}
	return s.mustKnow(in.From), in.ID
}

// key names a message as its writer does: RemoteJID is the chat from the writer's side.
func (s *Server) key(chat types.JID, by *person, target, writer string) *waCommon.MessageKey {
	remote := chat
	if chat.Server != types.GroupServer && by != s.owner {
		remote = s.owner.PN()
		if !s.byPhone(chat, by) {
			remote = s.owner.Hidden()
		}
	}
	k := &waCommon.MessageKey{RemoteJID: proto.String(remote.String()), ID: proto.String(target), FromMe: proto.Bool(true)}
	if m := s.lookup(chat, target, writer); m != nil && m.from != by {
		k.FromMe = proto.Bool(false)
		if chat.Server == types.GroupServer {
			who := m.from.Hidden()
			if s.byPhone(chat, m.from) {
				who = m.from.PN()
			}
			k.Participant = proto.String(who.String())
		}
	}
	return k
}

// say brings a message to all who are in the chat. Under the lock.
func (s *Server) say(from *person, in In, chat types.JID, body *waE2E.Message, edit string) {
	at := in.At
	if at.IsZero() {
		at = s.now()
	}
	m := &message{chat: chat, id: in.ID, from: from, at: at, body: body, device: in.Device, bare: in.Bare, list: in.List}
	s.taken = append(s.taken, m)
	for _, p := range s.viewers(chat) {
		s.show(p, chat, from, in.ID, at, body, nil)
	}
	for _, d := range s.companions {
		s.carry(d, m, in, edit)
	}
	s.watch.Changed()
}

// viewers are the people, the account's phone among them, who see a chat.
func (s *Server) viewers(chat types.JID) []*person {
	if r := s.groups[chat]; r != nil {
		var all []*person
		for phone, in := range r.members {
			if in {
				all = append(all, s.people[phone])
			}
		}
		return all
	}
	if p := s.find(chat); p != nil {
		return []*person{p, s.owner}
	}
	return nil
}

// carry encrypts a message for one device of the client and queues it.
func (s *Server) carry(d *companion, m *message, in In, edit string) {
	p := m.from.devices[min(int(m.device), len(m.from.devices)-1)]
	attrs := s.envelope(p, m)
	if edit != "" {
		attrs["edit"] = edit
	}
	if in.Unavail {
		s.enqueue(d, waBinary.Node{Tag: "message", Attrs: attrs, Content: []waBinary.Node{{Tag: "unavailable", Attrs: waBinary.Attrs{"type": ""}}}})
		return
	}
	content, err := s.sealFor(d, p, m, false)
	if err != nil {
		panic("whatsapptest: " + err.Error())
	}
	if in.Corrupt > 0 {
		s.faults.corrupt(in.ID, in.Corrupt-1)
		spoil(content)
	}
	s.enqueue(d, waBinary.Node{Tag: "message", Attrs: attrs, Content: content})
}

// envelope is what a message stanza tells beside its ciphertext.
func (s *Server) envelope(p *peer, m *message) waBinary.Attrs {
	byPhone := s.byPhone(m.chat, m.from)
	a := waBinary.Attrs{"id": m.id, "t": m.at.Unix(), "type": stanzaType(m.body), "notify": m.from.Name}
	self, other := p.address(byPhone), p.address(!byPhone).ToNonAD()
	if m.bare {
		defer func() {
			for _, name := range []string{"addressing_mode", "participant_lid", "participant_pn", "sender_lid", "sender_pn"} {
				delete(a, name)
			}
		}()
	}
	switch {
	case m.list != "":
		a["from"], a["participant"], a["addressing_mode"] = types.NewJID(m.list, types.BroadcastServer), self, mode(byPhone)
		if byPhone {
			a["participant_lid"] = other
		} else {
			a["participant_pn"] = other
		}
	case m.chat.Server == types.GroupServer:
		a["from"], a["participant"], a["addressing_mode"] = m.chat, self, mode(byPhone)
		if byPhone {
			a["participant_lid"] = other
		} else {
			a["participant_pn"] = other
		}
	case m.from == s.owner:
		to := s.find(m.chat)
		a["from"] = self
		if to != nil && !byPhone {
			a["recipient"], a["peer_recipient_pn"] = to.Hidden(), to.PN()
		} else if to != nil {
			a["recipient"], a["peer_recipient_lid"] = to.PN(), to.Hidden()
		}
	case byPhone:
		a["from"], a["sender_lid"] = self, other
	default:
		a["from"], a["sender_pn"] = self, other
	}
	return a
}

func stanzaType(m *waE2E.Message) string {
	switch {
	case m.ReactionMessage != nil:
		return "reaction"
	case mediaType(m) != "":
		return "media"
	}
	return "text"
}

// sealFor encrypts a message for one device of the client: directly; in a group with the sender key, which goes along
// the first time. fresh starts a new session and, in a group, sends the message itself directly, as a resending phone does.
func (s *Server) sealFor(d *companion, p *peer, m *message, fresh bool) ([]waBinary.Node, error) {
	to := d.address(s.owner, false).SignalAddress()
	bundle := func() (*prekey.Bundle, error) { return d.bundle() }
	direct := func(body *waE2E.Message) (waBinary.Node, error) {
		plain, err := proto.Marshal(body)
		if err != nil {
			return waBinary.Node{}, fmt.Errorf("write a message: %w", err)
		}
		kind, sealed, err := p.signalStore.seal(to, plain, fresh, bundle)
		if err != nil {
			return waBinary.Node{}, err
		}
		return encNode(kind, sealed, m.body), nil
	}
	if m.chat.Server != types.GroupServer {
		body := m.body
		if m.from == s.owner && m.body.DeviceSentMessage == nil && !peerMessage(m.body) {
			body = &waE2E.Message{DeviceSentMessage: &waE2E.DeviceSentMessage{DestinationJID: proto.String(m.chat.String()), Message: m.body}}
		}
		n, err := direct(body)
		s.runLow(d)
		return []waBinary.Node{n}, err
	}
	dist, err := p.signalStore.distribution(m.chat.String(), p.signal())
	if err != nil {
		return nil, err
	}
	key := &waE2E.SenderKeyDistributionMessage{GroupID: proto.String(m.chat.String()), AxolotlSenderKeyDistributionMessage: dist}
	if fresh {
		body := proto.Clone(m.body).(*waE2E.Message)
		body.SenderKeyDistributionMessage = key
		n, err := direct(body)
		return []waBinary.Node{n}, err
	}
	var list []waBinary.Node
	if with := fmt.Sprint(m.chat, " ", d.device); !p.shared[with] {
		n, err := direct(&waE2E.Message{SenderKeyDistributionMessage: key})
		if err != nil {
			return nil, err
		}
		p.shared[with] = true
		list = append(list, n)
	}
	plain, err := proto.Marshal(m.body)
	if err != nil {
		return nil, fmt.Errorf("write a message: %w", err)
	}
	sealed, err := p.signalStore.sealGroup(m.chat.String(), p.signal(), plain)
	if err != nil {
		return nil, err
	}
	s.runLow(d)
	return append(list, encNode("skmsg", sealed, m.body)), nil
}

func encNode(kind string, sealed []byte, body *waE2E.Message) waBinary.Node {
	a := waBinary.Attrs{"v": "2", "type": kind}
	if t := mediaType(body); t != "" {
		a["mediatype"] = t
	}
	return waBinary.Node{Tag: "enc", Attrs: a, Content: sealed}
}

// spoil breaks the last ciphertext of a message.
func spoil(content []waBinary.Node) {
	last := &content[len(content)-1]
	b := append([]byte(nil), last.Content.([]byte)...)
	_, _ = rand.Read(b[len(b)-6:]) // never fails (crypto/rand); the end is the MAC or the signature
	last.Content = b
}

// runLow tells a client that its prekeys are nearly used up.
func (s *Server) runLow(d *companion) {
	if len(d.once) == 4 {
		s.enqueue(d, waBinary.Node{Tag: "notification", Attrs: waBinary.Attrs{
			"from": types.ServerJID, "id": newID(), "type": "encrypt", "t": s.now().Unix(),
		}, Content: []waBinary.Node{{Tag: "count", Attrs: waBinary.Attrs{"value": len(d.once)}}}})
	}
}

// resend answers a client that could not read a message: the writer's device encrypts it again, under the same id.
func (s *Server) resend(d *companion, n *waBinary.Node, to types.JID) {
	id, _ := n.Attrs["id"].(string)
	chat := to.ToNonAD()
	if p := s.find(chat); p != nil && p != s.owner {
		chat = p.PN()
	}
	if r, ok := n.Attrs["recipient"].(types.JID); ok {
		if p := s.find(r); p != nil {
			chat = p.PN()
		}
	}
	m := s.lookup(chat, id, s.writerOf(n, to))
	if m == nil {
		s.complainLocked("a retry receipt for %s of %s, which nobody wrote", id, chat)
		return
	}
	p := m.from.devices[min(int(m.device), len(m.from.devices)-1)]
	content, err := s.sealFor(d, p, m, true)
	if err != nil {
		s.complainLocked("resend %s: %v", id, err)
		return
	}
	retry := n.GetChildByTag("retry")
	count := retry.AttrGetter().OptionalInt("count")
	content[0].Attrs["count"] = count
	if s.faults.corrupted(id) {
		spoil(content)
	}
	s.enqueue(d, waBinary.Node{Tag: "message", Attrs: s.envelope(p, m), Content: content})
}

// lookup finds a message of a chat; writer is a phone number or empty.
func (s *Server) lookup(chat types.JID, id, writer string) *message {
	for _, m := range s.taken {
		if m.chat == chat && m.id == id && (writer == "" || m.from.Phone == writer) {
			return m
		}
	}
	return nil
}

// writerOf is the phone number of whose message a receipt is about.
func (s *Server) writerOf(n *waBinary.Node, to types.JID) string {
	who := to
	if p, ok := n.Attrs["participant"].(types.JID); ok {
		who = p
	}
	if p := s.find(who); p != nil {
		return p.Phone
	}
	return ""
}
