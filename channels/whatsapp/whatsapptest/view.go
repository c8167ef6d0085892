package whatsapptest

import (
	"maps"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

// Shown is one message as a person sees it on the phone.
type Shown struct {
	ID        string
	From      string // phone number of the writer
	Own       bool   // the client's account wrote it
	Text      string
	File      *File
	ReplyTo   string // id of the quoted message
	Quoted    string // text of the quoted message
	Mentions  []string
	Preview   bool // it has a link preview
	Edited    bool
	Deleted   bool
	Waiting   bool              // "Waiting for this message": it could not be decrypted yet
	Reactions map[string]string // emoji by phone number of who reacted
	Time      time.Time
}

// editWindow is how long phones take an edit of a message after it was sent.
const editWindow = 20 * time.Minute

// Chat is what a person (by phone number) sees in a chat: of a direct chat with the account it is the address of the other
// side. Of groups it is the group.
func (s *Server) Chat(viewer string, chat types.JID) []Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Shown
	for _, m := range s.mustKnow(viewer).shown[s.canonical(chat)] {
		one := *m
		one.Reactions = maps.Clone(m.Reactions)
		all = append(all, one)
	}
	return all
}

// Sent are the client's messages in a chat as the other side sees them: the person, or the first member of the group. What
// was deleted is left out.
func (s *Server) Sent(chat types.JID) []Shown {
	viewer := chat.User
	s.mu.Lock()
	if r := s.groups[chat]; r != nil && len(r.Members) > 0 {
		viewer = r.Members[0]
	} else if p := s.find(chat); p != nil {
		viewer = p.Phone
	}
	s.mu.Unlock()
	var own []Shown
	for _, m := range s.Chat(viewer, chat) {
		if m.Own && !m.Deleted {
			own = append(own, m)
		}
	}
	return own
}

// canonical is the name under which a chat is kept: phone numbers for people.
func (s *Server) canonical(chat types.JID) types.JID {
	if p := s.find(chat); p != nil {
		return p.PN()
	}
	return chat
}

// show puts a message into what a person sees, as a phone does: a second one with the same id is the first again.
func (s *Server) show(viewer *person, chat types.JID, from *person, id string, at time.Time, body *waE2E.Message, n *waBinary.Node) {
	list := viewer.shown[chat]
	body, edit := unwrap(body)
	switch {
	case edit != nil:
		s.showEdit(viewer, chat, from, at, edit)
		return
	case body.GetReactionMessage() != nil:
		r := body.GetReactionMessage()
		if m := find(list, r.GetKey().GetID(), s.named(from, chat, r.GetKey())); m != nil {
			if r.GetText() == "" {
				delete(m.Reactions, from.Phone)
			} else {
				m.Reactions[from.Phone] = r.GetText()
			}
		}
		return
	case body.GetProtocolMessage() != nil:
		p := body.GetProtocolMessage()
		if m := find(list, p.GetKey().GetID(), from.Phone); p.GetType() == waE2E.ProtocolMessage_REVOKE && m != nil {
			m.Deleted, m.Text, m.File = true, "", nil
		}
		return
	}
	m := &Shown{ID: id, From: from.Phone, Own: from == s.owner, Time: at, Reactions: map[string]string{}}
	ctx := s.fill(m, body)
	if m.Text == "" && m.File == nil {
		if n != nil && body.GetSenderKeyDistributionMessage() == nil {
			s.complainLocked("message %s shows nothing", id)
		}
		return
	}
	m.ReplyTo = ctx.GetStanzaID()
	m.Quoted = textOf(ctx.GetQuotedMessage())
	m.Mentions = ctx.GetMentionedJID()
	if old := find(list, id, from.Phone); old != nil {
		if old.Waiting {
			*old = *m
		}
		return
	}
	viewer.shown[chat] = append(list, m)
}

// find looks a message up by its id and, where it matters, its writer.
func find(list []*Shown, id, from string) *Shown {
	for _, m := range list {
		if m.ID == id && (from == "" || m.From == from) {
			return m
		}
	}
	return nil
}

// named is the phone number of who wrote the message that a key names, as its sender sees it.
func (s *Server) named(from *person, chat types.JID, k *waCommon.MessageKey) string {
	if k.GetFromMe() {
		return from.Phone
	}
	if j, err := types.ParseJID(k.GetParticipant()); err == nil && !j.IsEmpty() {
		if p := s.find(j); p != nil {
			return p.Phone
		}
		return k.GetParticipant() // nobody
	}
	if from == s.owner {
		return chat.User
	}
	return s.owner.Phone
}

// unwrap takes the covers off, and gives the edit if it is one.
func unwrap(m *waE2E.Message) (body *waE2E.Message, edit *waE2E.ProtocolMessage) {
	for {
		switch {
		case m.GetDeviceSentMessage().GetMessage() != nil:
			m = m.GetDeviceSentMessage().GetMessage()
		case m.GetEphemeralMessage().GetMessage() != nil:
			m = m.GetEphemeralMessage().GetMessage()
		case m.GetDocumentWithCaptionMessage().GetMessage() != nil:
			m = m.GetDocumentWithCaptionMessage().GetMessage()
		case m.GetEditedMessage().GetMessage() != nil:
			m = m.GetEditedMessage().GetMessage()
		default:
			if p := m.GetProtocolMessage(); p.GetType() == waE2E.ProtocolMessage_MESSAGE_EDIT && p.GetEditedMessage() != nil {
				return m, p
			}
			return m, nil
		}
	}
}

func (s *Server) showEdit(viewer *person, chat types.JID, from *person, at time.Time, p *waE2E.ProtocolMessage) {
	m := find(viewer.shown[chat], p.GetKey().GetID(), from.Phone)
	if m == nil || m.Deleted {
		return
	}
	if at.Sub(m.Time) > editWindow {
		if from == s.owner && viewer != s.owner {
			s.complainLocked("an edit of %s after %v, which phones do not show", m.ID, at.Sub(m.Time).Round(time.Second))
		}
		return
	}
	body, _ := unwrap(p.GetEditedMessage())
	m.Text, m.Edited = textOf(body), true
}

func (s *Server) showWaiting(viewer *person, chat types.JID, id string) {
	if find(viewer.shown[chat], id, s.owner.Phone) == nil {
		viewer.shown[chat] = append(viewer.shown[chat], &Shown{
			ID: id, From: s.owner.Phone, Own: true, Waiting: true, Time: s.now(), Reactions: map[string]string{},
		})
	}
}

func textOf(m *waE2E.Message) string {
	m, _ = unwrap(m)
	switch {
	case m.GetExtendedTextMessage() != nil:
		return m.GetExtendedTextMessage().GetText()
	case m.GetImageMessage() != nil:
		return m.GetImageMessage().GetCaption()
	case m.GetVideoMessage() != nil:
		return m.GetVideoMessage().GetCaption()
	case m.GetDocumentMessage() != nil:
		return m.GetDocumentMessage().GetCaption()
	}
	return m.GetConversation()
}

// fill reads the content of a message. A file is fetched and decrypted, as the phone does.
func (s *Server) fill(m *Shown, body *waE2E.Message) *waE2E.ContextInfo {
	m.Text = textOf(body)
	switch {
	case body.GetExtendedTextMessage() != nil:
		x := body.GetExtendedTextMessage()
		m.Preview = x.GetMatchedText() != "" || x.GetTitle() != "" || len(x.GetJPEGThumbnail()) > 0
		return x.GetContextInfo()
	case body.GetImageMessage() != nil:
		x := body.GetImageMessage()
		m.File = s.fetch("image", "", x.GetMimetype(), x, m)
		return x.GetContextInfo()
	case body.GetVideoMessage() != nil:
		x := body.GetVideoMessage()
		m.File = s.fetch("video", "", x.GetMimetype(), x, m)
		return x.GetContextInfo()
	case body.GetAudioMessage() != nil:
		x := body.GetAudioMessage()
		kind := "audio"
		if x.GetPTT() {
			kind = "voice"
		}
		m.File = s.fetch(kind, "", x.GetMimetype(), x, m)
		return x.GetContextInfo()
	case body.GetDocumentMessage() != nil:
		x := body.GetDocumentMessage()
		m.File = s.fetch("file", x.GetFileName(), x.GetMimetype(), x, m)
		return x.GetContextInfo()
	case body.GetStickerMessage() != nil:
		x := body.GetStickerMessage()
		m.File = s.fetch("sticker", "", x.GetMimetype(), x, m)
		return x.GetContextInfo()
	}
	return nil
}

// Typing is one time that the client showed that it writes, or stopped to.
type Typing struct {
	Chat  types.JID
	State string // composing, recording, paused
	Seen  bool   // people see it: only of somebody who is shown online
}

func (s *Server) takeChatState(c *conn, n *waBinary.Node) {
	to, _ := n.Attrs["to"].(types.JID)
	kids := n.GetChildren()
	if len(kids) != 1 {
		s.complainLocked("a chat state without a state")
		return
	}
	state := kids[0].Tag
	if kids[0].Attrs["media"] == "audio" {
		state = "recording"
	}
	s.typing = append(s.typing, Typing{Chat: s.canonical(to), State: state, Seen: c.device.available})
}

func (s *Server) takePresence(c *conn, n *waBinary.Node) {
	switch n.Attrs["type"] {
	case "available":
		if name, _ := n.Attrs["name"].(string); name == "" {
			s.complainLocked("available without a name")
		}
		c.device.available = true
	case "unavailable":
		c.device.available = false
	}
}

// Typed are the chat states that the client sent for a chat, oldest first.
func (s *Server) Typed(chat types.JID) []Typing {
	s.mu.Lock()
	defer s.mu.Unlock()
	chat = s.canonical(chat)
	var all []Typing
	for _, t := range s.typing {
		if t.Chat == chat {
			all = append(all, t)
		}
	}
	return all
}

// Online says whether the client shows itself online.
func (s *Server) Online() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.companions {
		if d.available {
			return true
		}
	}
	return false
}

// Connected counts the devices that are logged in and have asked for what waits.
func (s *Server) Connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, d := range s.companions {
		if d.conn != nil && d.active {
			n++
		}
	}
	return n
}

// Queries counts the queries of a kind, such as "usync usync" or "encrypt key".
func (s *Server) Queries(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries[kind]
}

// Compose has a person show that they write, in the chat.
func (s *Server) Compose(in In) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.mustKnow(in.From)
	chat := s.chatOf(from, in)
	byPhone := s.byPhone(chat, from)
	a := waBinary.Attrs{"from": from.devices[0].address(byPhone)}
	if chat.Server == types.GroupServer {
		a = waBinary.Attrs{"from": chat, "participant": from.devices[0].address(byPhone)}
	}
	for _, d := range s.companions { // it is not kept for who is away
		if d.conn != nil && d.active {
			d.conn.push(waBinary.Node{Tag: "chatstate", Attrs: a, Content: []waBinary.Node{{Tag: "composing"}}})
		}
	}
}

// Read has a person read a message of the client, which gets a receipt.
func (s *Server) Read(phone string, chat types.JID, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mustKnow(phone).devices[0]
	to := chat
	if chat.Server != types.GroupServer {
		to = p.address(p.owner.ByPhone).ToNonAD()
	}
	for _, d := range s.companions {
		a := s.receiptAttrs(p, to, id)
		a["type"] = "read"
		s.enqueue(d, waBinary.Node{Tag: "receipt", Attrs: a})
	}
}
