package whatsapptest

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"go.mau.fi/libsignal/signalerror"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// Codes in <ack error=…>. What the network means by them is not documented: 403, 463 and 479 are known from reports about
// whatsmeow (issues 679, 1074, 690), the rest is this fake's choice after the codes of queries.
const (
	CodeForbidden = 403 // not for you: also a group that the account left
	CodeNotFound  = 404 // nobody has this address
	CodeTooLarge  = 413
	CodeFlood     = 429
	CodeRestrict  = 463 // the account may not write to this person now
	CodeInvalid   = 479 // a stanza that is not well made
)

// MaxStanza is how many bytes a message stanza may have. The network has a limit near the size of a text of 65,536
// characters for some devices; the exact number is this fake's choice.
const MaxStanza = 256 << 10

// takeMessage is what the client sends: it is decrypted for each device that it was encrypted for.
func (s *Server) takeMessage(c *conn, n *waBinary.Node) {
	to, _ := n.Attrs["to"].(types.JID)
	id, _ := n.Attrs["id"].(string)
	if id == "" || to.IsEmpty() {
		s.complainLocked("a message without id or address")
		return
	}
	f := &s.faults
	if f.lose == id {
		f.lose = ""
		return
	}
	if len(f.refuse) > 0 {
		code := f.refuse[0]
		f.refuse = f.refuse[1:]
		s.ackMessage(c, n, code, "")
		return
	}
	f.taken++
	if n.Attrs["category"] == "peer" && (len(f.peer) > 0 || f.peerSeen[id]) {
		s.failPeer(c, n, id)
		return
	}
	code, phash := s.bring(c.device, n, to, id)
	switch {
	case f.swallow > 0:
		f.swallow--
	case f.garble > 0:
		f.garble--
		c.pushRaw([]byte{0, 0xf8, 0x02, 0xff, 0xff, 0xff}) // no stanza
	default:
		s.ackMessage(c, n, code, phash)
	}
}

// failPeer takes a message to the account's phone as the next fault says. One that comes again is taken once.
func (s *Server) failPeer(c *conn, n *waBinary.Node, id string) {
	f := &s.faults
	if !f.peerSeen[id] {
		s.takePeer(c.device, n, id)
	}
	if f.peerSeen == nil {
		f.peerSeen = map[string]bool{}
	}
	f.peerSeen[id] = true
	if len(f.peer) == 0 {
		s.ackMessage(c, n, 0, "")
		return
	}
	fault := f.peer[0]
	f.peer = f.peer[1:]
	if fault == PeerCut {
		c.cancel()
	}
	s.watch.Changed()
}

func (s *Server) ackMessage(c *conn, n *waBinary.Node, code int, phash string) {
	a := waBinary.Attrs{"class": "message", "id": n.Attrs["id"], "from": n.Attrs["to"], "t": s.now().Unix()}
	if p, ok := n.Attrs["participant"]; ok {
		a["participant"] = p
	}
	if code != 0 {
		a["error"] = code
	}
	if phash != "" {
		a["phash"] = phash
	}
	c.push(waBinary.Node{Tag: "ack", Attrs: a})
}

// bring delivers a client's message. It gives the refusal, or 0, and the hash of the devices that should have got it when
// the client thought of others.
func (s *Server) bring(d *companion, n *waBinary.Node, to types.JID, id string) (code int, phash string) {
	if raw, err := waBinary.Marshal(*n); err != nil || len(raw) > MaxStanza {
		return CodeTooLarge, ""
	}
	switch to.Server {
	case types.GroupServer:
		r := s.groups[to]
		if r == nil {
			return CodeNotFound, ""
		}
		if !r.members[s.owner.Phone] {
			return CodeForbidden, ""
		}
	case types.DefaultUserServer, types.HiddenUserServer:
		if p := s.find(to); p == nil || p.gone {
			return CodeNotFound, ""
		}
	default:
		s.complainLocked("a message to %s", to)
		return CodeInvalid, ""
	}
	if n.Attrs["category"] == "peer" {
		s.takePeer(d, n, id)
		return 0, ""
	}
	if _, again := n.GetOptionalChildByTag("participants"); !again {
		return s.bringAgain(d, n, to, id), ""
	}
	return s.bringAll(d, n, to, id)
}

func (s *Server) bringAll(d *companion, n *waBinary.Node, to types.JID, id string) (int, string) {
	parts := n.GetChildByTag("participants")
	got := map[*peer]bool{}
	var sent []types.JID
	for _, part := range parts.GetChildren() {
		j, _ := part.Attrs["jid"].(types.JID)
		sent = append(sent, j)
		p := s.peerOf(j)
		enc, ok := part.GetOptionalChildByTag("enc")
		if p == nil || !ok {
			continue // a device that is gone by now
		}
		got[p] = true
		s.deliver(d, p, to, id, n, &enc, skOf(n))
	}
	want := s.expected(d, to)
	for _, p := range want {
		if !got[p] && to.Server == types.GroupServer && skOf(n) != nil {
			got[p] = true
			s.deliver(d, p, to, id, n, nil, skOf(n)) // it may have the sender key from before
		}
	}
	if to.Server != types.GroupServer && !slices.ContainsFunc(want, func(p *peer) bool { return p.owner != s.owner && got[p] }) {
		s.complainLocked("message %s has nothing for any device of %s", id, to)
		return CodeInvalid, ""
	}
	return 0, s.differs(d, to, sent)
}

func skOf(n *waBinary.Node) *waBinary.Node {
	for _, child := range n.GetChildren() {
		if child.Tag == "enc" && child.Attrs["type"] == "skmsg" {
			return &child
		}
	}
	return nil
}

// expected are the simulated devices that a message to the chat must reach.
func (s *Server) expected(d *companion, to types.JID) []*peer {
	var all []*peer
	for _, p := range s.viewers(to) {
		if !p.gone {
			all = append(all, p.devices...)
		}
	}
	return all
}

// differs gives the hash of the device list when the client's is another one.
func (s *Server) differs(d *companion, to types.JID, sent []types.JID) string {
	var want []types.JID
	byPhone := to.Server == types.DefaultUserServer
	if r := s.groups[to]; r != nil {
		byPhone = r.ByPhone
	}
	for _, p := range s.expected(d, to) {
		want = append(want, p.address(byPhone))
	}
	for n, other := range s.companions {
		if n != d.device {
			want = append(want, other.address(s.owner, byPhone))
		}
	}
	if h := participantHash(want); h != participantHash(sent) {
		return h
	}
	return ""
}

func participantHash(list []types.JID) string {
	var all []string
	for _, j := range list {
		all = append(all, j.ADString())
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "")))
	return "2:" + base64.RawStdEncoding.EncodeToString(sum[:6])
}

// bringAgain is a message that was encrypted again for one device that asked for it.
func (s *Server) bringAgain(d *companion, n *waBinary.Node, to types.JID, id string) int {
	j := to
	if p, ok := n.Attrs["participant"].(types.JID); ok {
		j = p
	}
	p := s.peerOf(j)
	enc, ok := n.GetOptionalChildByTag("enc")
	if p == nil || !ok {
		s.complainLocked("message %s to %s is for no device", id, to)
		return CodeInvalid
	}
	s.deliver(d, p, to, id, n, &enc, nil)
	return 0
}

// deliver decrypts one device's part of a client's message and shows it to the person.
func (s *Server) deliver(d *companion, p *peer, to types.JID, id string, n, enc, sk *waBinary.Node) {
	chat := to.ToNonAD()
	if q := s.find(chat); q != nil {
		chat = q.PN()
		if q.blocks {
			return
		}
	}
	body, err := s.unseal(d, p, chat, n, enc, sk)
	if errors.Is(err, signalerror.ErrOldCounter) && find(p.owner.shown[chat], id, s.owner.Phone) != nil {
		return // the same stanza again, after a lost acknowledgement: phones drop it
	}
	if err == nil && s.faults.blind[p.owner.Phone] > 0 {
		s.faults.blind[p.owner.Phone]--
		err = errors.New("the test wants it undecryptable")
	} else if err != nil {
		s.complainLocked("%s of %s cannot read %s: %v", deviceName(p), p.owner.Name, id, err)
	}
	if err != nil {
		if p.device == 0 {
			s.showWaiting(p.owner, chat, id)
		}
		s.askAgain(d, p, to, id, n)
		return
	}
	if p.device == 0 {
		s.show(p.owner, chat, s.owner, id, s.now(), body, n)
	}
	s.remember(chat, id, body)
	s.confirm(d, p, to, id)
}

func deviceName(p *peer) string {
	if p.device == 0 {
		return "the phone"
	}
	return "a linked device"
}

// unseal opens what one device got: its own part, and in a group the common one.
func (s *Server) unseal(d *companion, p *peer, chat types.JID, n, enc, sk *waBinary.Node) (*waE2E.Message, error) {
	from := d.address(s.owner, false).SignalAddress()
	var body waE2E.Message
	if enc != nil {
		kind, _ := enc.Attrs["type"].(string)
		raw, _ := enc.Content.([]byte)
		if kind == "pkmsg" {
			if err := verify(contentOf(n, "device-identity"), s.primaryKey, d.identity); err != nil {
				return nil, err
			}
		}
		plain, err := p.signalStore.open(from, kind, raw)
		if err != nil {
			return nil, err
		}
		if err := proto.Unmarshal(plain, &body); err != nil {
			return nil, err
		}
	}
	if k := body.SenderKeyDistributionMessage; k != nil {
		if err := p.signalStore.learn(chat.String(), from, k.GetAxolotlSenderKeyDistributionMessage()); err != nil {
			return nil, err
		}
	}
	if sk == nil {
		if inner := body.GetDeviceSentMessage().GetMessage(); inner != nil {
			if p.owner != s.owner {
				return nil, errors.New("a copy for own devices was sent to somebody else")
			}
			return inner, nil
		}
		return &body, nil
	}
	raw, _ := sk.Content.([]byte)
	plain, err := p.signalStore.openGroup(chat.String(), from, raw)
	if err != nil {
		return nil, err
	}
	var common waE2E.Message
	if err := proto.Unmarshal(plain, &common); err != nil {
		return nil, err
	}
	return &common, nil
}

// remember keeps the client's message for quotes and retries of others.
func (s *Server) remember(chat types.JID, id string, body *waE2E.Message) {
	if s.lookup(chat, id, s.owner.Phone) == nil {
		s.taken = append(s.taken, &message{chat: chat, id: id, from: s.owner, at: s.now(), body: body})
	}
}

// confirm is the delivery receipt of a person's device.
func (s *Server) confirm(d *companion, p *peer, to types.JID, id string) {
	if p.owner == s.owner || s.faults.noReceipts {
		return
	}
	s.enqueue(d, waBinary.Node{Tag: "receipt", Attrs: s.receiptAttrs(p, to, id)})
}

func (s *Server) receiptAttrs(p *peer, to types.JID, id string) waBinary.Attrs {
	a := waBinary.Attrs{"id": id, "t": s.now().Unix()}
	if to.Server == types.GroupServer {
		r := s.groups[to]
		a["from"], a["participant"] = to, p.address(r.ByPhone)
		return a
	}
	a["from"] = p.address(to.Server == types.DefaultUserServer)
	return a
}

// askAgain is the retry receipt of a device that could not read a message.
func (s *Server) askAgain(d *companion, p *peer, to types.JID, id string, n *waBinary.Node) {
	key := p.signal().String() + " " + id
	s.faults.retried[key]++
	count := s.faults.retried[key]
	if count > 4 {
		return // phones give up
	}
	a := s.receiptAttrs(p, to, id)
	a["type"] = "retry"
	if p.owner == s.owner {
		a["recipient"] = to
	}
	content := []waBinary.Node{
		{Tag: "retry", Attrs: waBinary.Attrs{"count": count, "id": id, "t": s.now().Unix(), "v": "1"}},
		{Tag: "registration", Content: []byte{0, 0, byte(p.signalStore.regID >> 8), byte(p.signalStore.regID)}},
	}
	if count > 1 { // whatsmeow's own devices give keys from the second time on (sendRetryReceipt of its retry.go)
		_, identity, signed, once := p.bundle()
		content = append(content, waBinary.Node{Tag: "keys", Content: []waBinary.Node{
			{Tag: "type", Content: []byte{5}}, {Tag: "identity", Content: identity[:]}, keyNode("key", once), keyNode("skey", signed),
		}})
	}
	s.enqueue(d, waBinary.Node{Tag: "receipt", Attrs: a, Content: content})
}
