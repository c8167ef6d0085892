package whatsapptest

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"fmt"

	"go.mau.fi/whatsmeow/appstate"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// appState is what the account's devices share beside messages.
type appState struct {
	asked []*waE2E.ProtocolMessage // what the client asked of the phone
}

// syncKey encrypts the shared state. One is enough.
func syncKey() (id, data []byte) {
	sum := sha256.Sum256([]byte("parley: the key of the fake's shared state"))
	return []byte{0, 0, 0, 0, 0, 1}, sum[:]
}

// keyring gives appstate's encoder that key, and remembers nothing.
type keyring struct{ *store.NoopStore }

func (keyring) GetAppStateSyncKey(_ context.Context, id []byte) (*store.AppStateSyncKey, error) {
	if own, data := syncKey(); bytes.Equal(id, own) {
		return &store.AppStateSyncKey{Data: data, Timestamp: 1}, nil
	}
	return nil, nil
}

// syncQuery answers a question for shared state. There is one change of it: the account's name, in the first patch of
// critical_block.
func (s *Server) syncQuery(child waBinary.Node) ([]waBinary.Node, *iqError) {
	var list []waBinary.Node
	for _, c := range child.GetChildren() {
		name, _ := c.Attrs["name"].(string)
		out := waBinary.Node{Tag: "collection", Attrs: waBinary.Attrs{"name": name}}
		if name == string(appstate.WAPatchCriticalBlock) && c.AttrGetter().OptionalInt("version") == 0 {
			patch, err := namePatch(s.opts.Account.Name)
			if err != nil {
				s.complainLocked("write the shared state: %v", err)
				return nil, &iqError{500, "internal-server-error"}
			}
			out.Content = []waBinary.Node{{Tag: "patches", Content: []waBinary.Node{{Tag: "patch", Content: patch}}}}
		}
		list = append(list, out)
	}
	return []waBinary.Node{{Tag: "sync", Content: nodes(list)}}, nil
}

func namePatch(name string) ([]byte, error) {
	id, _ := syncKey()
	none := &store.NoopStore{}
	p := appstate.NewProcessor(&store.Device{AppStateKeys: keyring{none}, AppState: none}, nil)
	raw, err := p.EncodePatch(context.Background(), id, appstate.HashState{}, appstate.BuildSettingPushName(name))
	if err != nil {
		return nil, err
	}
	// The version of a patch is added by the server.
	return append(raw, 0x0a, 0x02, 0x08, 0x01), nil
}

// Old is a message from before the client was linked.
type Old struct {
	From string // phone number
	Text string
	ID   string
	At   int64 // seconds since 1970
}

// Greet has the account's phone send what a newly linked device gets: the key of the shared state, people's names, and what was
// said before. A device that is paired gets it (without messages) by itself.
func (s *Server) Greet(old ...Old) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.companions {
		s.greet(d, old)
	}
	s.watch.Changed()
}

func (s *Server) greet(d *companion, old []Old) {
	id, data := syncKey()
	s.fromPhone(d, &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_APP_STATE_SYNC_KEY_SHARE.Enum(),
		AppStateSyncKeyShare: &waE2E.AppStateSyncKeyShare{Keys: []*waE2E.AppStateSyncKey{{
			KeyID: &waE2E.AppStateSyncKeyId{KeyID: id},
			KeyData: &waE2E.AppStateSyncKeyData{
				KeyData: data, Timestamp: proto.Int64(s.now().Unix()), Fingerprint: &waE2E.AppStateSyncKeyFingerprint{RawID: proto.Uint32(1)},
			},
		}}},
	})
	names := &waHistorySync.HistorySync{SyncType: waHistorySync.HistorySync_PUSH_NAME.Enum()}
	for key, p := range s.people {
		if key == p.Phone {
			names.Pushnames = append(names.Pushnames, &waHistorySync.Pushname{ID: proto.String(p.PN().String()), Pushname: proto.String(p.Name)})
		}
	}
	s.history(d, names)
	boot := &waHistorySync.HistorySync{SyncType: waHistorySync.HistorySync_INITIAL_BOOTSTRAP.Enum(), Progress: proto.Uint32(100)}
	chats := map[string]*waHistorySync.Conversation{}
	for _, o := range old {
		from := s.mustKnow(o.From)
		c := chats[o.From]
		if c == nil {
			c = &waHistorySync.Conversation{ID: proto.String(from.PN().String())}
			chats[o.From] = c
			boot.Conversations = append(boot.Conversations, c)
		}
		m := &message{chat: from.PN(), id: o.ID, from: from, body: &waE2E.Message{Conversation: proto.String(o.Text)}}
		c.Messages = append(c.Messages, &waHistorySync.HistorySyncMsg{Message: s.webMessage(m, uint64(o.At))})
	}
	s.history(d, boot)
}

// webMessage is a message as a phone hands it to a linked device.
func (s *Server) webMessage(m *message, at uint64) *waWeb.WebMessageInfo {
	k := s.key(m.chat, s.owner, m.id, m.from.Phone)
	k.FromMe = proto.Bool(m.from == s.owner)
	return &waWeb.WebMessageInfo{
		Key: k, Message: m.body, MessageTimestamp: proto.Uint64(at), PushName: proto.String(m.from.Name), Participant: k.Participant,
	}
}

// history sends a part of the phone's history, within the message itself.
func (s *Server) history(d *companion, h *waHistorySync.HistorySync) {
	raw, err := proto.Marshal(h)
	if err != nil {
		panic("whatsapptest: " + err.Error())
	}
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(raw) // into memory
	_ = z.Close()
	s.fromPhone(d, &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_HISTORY_SYNC_NOTIFICATION.Enum(),
		HistorySyncNotification: &waE2E.HistorySyncNotification{
			SyncType:                          waE2E.HistorySyncType(h.GetSyncType()).Enum(),
			InitialHistBootstrapInlinePayload: packed.Bytes(), Progress: h.Progress, ChunkOrder: proto.Uint32(1),
		},
	})
}

// fromPhone sends a message between the account's own devices.
func (s *Server) fromPhone(d *companion, p *waE2E.ProtocolMessage) {
	phone := s.owner.devices[0]
	m := &message{chat: s.owner.PN(), id: newID(), from: s.owner, at: s.now(), body: &waE2E.Message{ProtocolMessage: p}}
	content, err := s.sealFor(d, phone, m, false)
	if err != nil {
		panic("whatsapptest: " + err.Error())
	}
	s.taken = append(s.taken, m)
	s.enqueue(d, waBinary.Node{Tag: "message", Attrs: waBinary.Attrs{
		"id": m.id, "t": m.at.Unix(), "type": "text", "category": "peer", "from": phone.address(true),
	}, Content: content})
}

// peerMessage says that a message is between own devices and not a copy of something sent.
func peerMessage(m *waE2E.Message) bool {
	p := m.GetProtocolMessage()
	return p.GetHistorySyncNotification() != nil || p.GetAppStateSyncKeyShare() != nil || p.GetPeerDataOperationRequestResponseMessage() != nil
}

// takePeer is a message of the client to its own phone.
func (s *Server) takePeer(d *companion, n *waBinary.Node, id string) {
	enc, ok := n.GetOptionalChildByTag("enc")
	if !ok {
		s.complainLocked("a peer message without content")
		return
	}
	body, err := s.unseal(d, s.owner.devices[0], s.owner.PN(), n, &enc, nil)
	if err != nil {
		s.complainLocked("the phone cannot read the peer message %s: %v", id, err)
		return
	}
	p := body.GetProtocolMessage()
	s.state.asked = append(s.state.asked, p)
	if req := p.GetPeerDataOperationRequestMessage(); req.GetPeerDataOperationRequestType() == waE2E.PeerDataOperationRequestType_PLACEHOLDER_MESSAGE_RESEND {
		s.replace(d, id, req)
	}
}

// replace has the phone hand the client messages that it could not read or did not get.
func (s *Server) replace(d *companion, reqID string, req *waE2E.PeerDataOperationRequestMessage) {
	answer := &waE2E.PeerDataOperationRequestResponseMessage{PeerDataOperationRequestType: req.PeerDataOperationRequestType, StanzaID: proto.String(reqID)}
	for _, one := range req.GetPlaceholderMessageResendRequest() {
		k := one.GetMessageKey()
		j, err := types.ParseJID(k.GetRemoteJID())
		if err != nil {
			continue
		}
		writer := ""
		if who, err := types.ParseJID(k.GetParticipant()); err == nil {
			if p := s.find(who); p != nil {
				writer = p.Phone
			}
		}
		m := s.lookup(s.canonical(j), k.GetID(), writer)
		if m == nil {
			continue
		}
		raw, err := proto.Marshal(s.webMessage(m, uint64(m.at.Unix())))
		if err != nil {
			panic("whatsapptest: " + err.Error())
		}
		answer.PeerDataOperationResult = append(answer.PeerDataOperationResult, &waE2E.PeerDataOperationRequestResponseMessage_PeerDataOperationResult{
			PlaceholderMessageResendResponse: &waE2E.PeerDataOperationRequestResponseMessage_PeerDataOperationResult_PlaceholderMessageResendResponse{
				WebMessageInfoBytes: raw,
			},
		})
	}
	s.fromPhone(d, &waE2E.ProtocolMessage{
		Type:                                    waE2E.ProtocolMessage_PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE.Enum(),
		PeerDataOperationRequestResponseMessage: answer,
	})
}

// Asked are what the client asked of the account's phone, such as a message that it could not read.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, p := range s.state.asked {
		all = append(all, fmt.Sprint(p.GetType()))
	}
	return all
}

// SyncState tells the client that the shared state has changed, as after a change of the name: it asks for it.
func (s *Server) SyncState() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.companions {
		s.enqueue(d, waBinary.Node{Tag: "notification", Attrs: waBinary.Attrs{
			"from": types.ServerJID, "id": newID(), "type": "server_sync", "t": s.now().Unix(),
		}, Content: []waBinary.Node{{Tag: "collection", Attrs: waBinary.Attrs{"name": string(appstate.WAPatchCriticalBlock), "version": 1}}}})
	}
}
