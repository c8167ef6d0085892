package whatsapp_test

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/whatsapp"
	"parley/channels/whatsapp/whatsapptest"
)

func TestMain(m *testing.M) {
	whatsmeow.WACertPubKey = whatsapptest.Root()
	whatsapptest.Quiet()
	whatsmeow.KeepAliveIntervalMin, whatsmeow.KeepAliveIntervalMax = time.Second, 2*time.Second
	whatsmeow.KeepAliveResponseDeadline = 2 * time.Second
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(whatsapptest.Stuck))
}

func TestSuite(t *testing.T) { channeltest.Run(t, harness{device()}) }

// harness joins the suite to the adapter over the fake network.
type harness struct{ linked linkedDevice }

func (harness) Network() channels.Network { return whatsapp.Network }

const groupID = "120363000000000001"

func person(w channeltest.Who) whatsapptest.Person {
	if w == channeltest.Ben {
		return whatsapptest.Person{Phone: "4917622220002", LID: "190000000000022", Name: "Ben", ByPhone: true}
	}
	return whatsapptest.Person{Phone: "4917611110001", LID: "190000000000011", Name: "Ana", Devices: 1}
}

// linkedDevice is a channel's file with a linked device, made once: each world has a copy.
type linkedDevice struct {
	file    []byte
	known   whatsapptest.Linked
	secrets []string
}

// makeDevice links a device to the fake's account, in a folder that may go afterwards.
func makeDevice(dir string) (d linkedDevice, err error) {
	s := whatsapptest.New(whatsapptest.Options{})
	defer s.Close()
	path := filepath.Join(dir, "wa.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=foreign_keys(1)&_txlock=immediate")
	if err != nil {
		return d, err
	}
	box := sqlstore.NewWithDB(db, "sqlite", nil)
	ctx := context.Background()
	if err := box.Upgrade(ctx); err != nil {
		return d, err
	}
	dev := box.NewDevice()
	if d.known, err = s.Link(ctx, dev, 20); err != nil {
		return d, err
	}
	for _, key := range [][]byte{dev.NoiseKey.Priv[:], dev.IdentityKey.Priv[:], dev.AdvSecretKey} {
		d.secrets = append(d.secrets, base64.StdEncoding.EncodeToString(key), fmt.Sprintf("%x", key))
	}
	if err := box.Close(); err != nil {
		return d, err
	}
	d.file, err = os.ReadFile(path)
	return d, err
}

func (h harness) World(t channeltest.T) channeltest.World {
	dir, err := os.MkdirTemp("", "wa-suite-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "wa-wa.db"), h.linked.file, 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	s := whatsapptest.New(whatsapptest.Options{})
	s.AddPerson(person(channeltest.Ana))
	s.AddPerson(person(channeltest.Ben))
	s.AddGroup(whatsapptest.Group{ID: groupID, Subject: "Friends", Members: []string{person(channeltest.Ana).Phone, person(channeltest.Ben).Phone}})
	s.Adopt(h.linked.known)
	return &world{Server: s, dir: dir, secrets: h.linked.secrets}
}

// world is the fake with the people of the suite in it, and the channel's folder.
type world struct {
	*whatsapptest.Server
	dir     string
	secrets []string

	mu   sync.Mutex
	ch   channels.Channel
	scan bool // the next QR code that is shown is scanned
	mute bool // the next message gets no answer
}

func (w *world) Open(d channels.Deps) (channels.Channel, error) {
	d.Dir = w.dir
	ch, err := whatsapp.New("wa", whatsapp.Options{APIURL: w.URL()}, d)
	if err != nil {
		return nil, err
	}
	ch.Hurry()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ch = &playing{Channel: ch, w: w}
	return w.ch, nil
}

func (w *world) Close() {
	w.Server.Close()
	_ = os.RemoveAll(w.dir)
}

// playing is a channel beside which the suite's world acts.
type playing struct {
	*whatsapp.Channel
	w *world
}

// Send does not wait for long where the network gives no answer.
func (p *playing) Send(ctx context.Context, post channels.Post) (channels.MessageID, error) {
	p.w.mu.Lock()
	mute := p.w.mute
	p.w.mute = false
	p.w.mu.Unlock()
	if mute {
		defer p.ExpectNoAnswer()()
	}
	return p.Channel.Send(ctx, post)
}

// Login has the code that is shown scanned with the account's phone.
func (p *playing) Login(ctx context.Context, how channels.LoginHow, show func(channels.LoginStep)) error {
	return p.Channel.Login(ctx, how, func(step channels.LoginStep) {
		show(step)
		p.w.mu.Lock()
		scan := p.w.scan
		p.w.scan = false
		p.w.mu.Unlock()
		if scan && step.QR != "" {
			if err := p.w.Scan(step.QR); err != nil {
				panic(err)
			}
		}
	})
}

func (w *world) Account() channels.AccountID {
	return channels.AccountID(w.Server.Account().PN().String())
}

func (w *world) Secrets() []string { return w.secrets }

func (w *world) User(who channeltest.Who) channels.UserID {
	return channels.UserID(person(who).PN().String())
}

func (w *world) Broken() string { return "" }

func (w *world) chat(p channeltest.Place) types.JID {
	switch p {
	case channeltest.OtherDM:
		return person(channeltest.Ben).PN()
	case channeltest.Group, channeltest.Echo:
		return types.NewJID(groupID, types.GroupServer)
	}
	return person(channeltest.Ana).PN()
}

func (w *world) Address(p channeltest.Place) channels.Address {
	a := channels.Address{Network: whatsapp.Network, Account: w.Account(), Kind: channels.DM, Peer: channels.PeerID(w.chat(p).String())}
	if w.chat(p).Server == types.GroupServer {
		a.Kind = channels.Group
	}
	return a
}

func (w *world) Act(e channeltest.Event) (channels.MessageID, bool) {
	in := whatsapptest.In{From: person(e.Who).Phone, Text: e.Text}
	if w.chat(e.Place).Server == types.GroupServer {
		in.Group = groupID
	}
	switch e.Do {
	case channeltest.Write, channeltest.Fence, channeltest.Command:
		return w.write(e, in), true
	case channeltest.EditIt:
		w.Edit(in, bare(e.Target))
		return e.Target, true
	case channeltest.DeleteIt:
		in.Text = ""
		w.Revoke(in, bare(e.Target))
		return e.Target, true
	case channeltest.ReactTo:
		w.React(in, bare(e.Target))
		return e.Target, true
	case channeltest.Garbage:
		in.From = person(channeltest.Ana).Phone
		m := &waE2E.Message{} // of a kind that is newer than the client
		m.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 9999, protowire.BytesType), "what is this?"))
		w.Raw(in, m)
		return "", true
	}
	return "", w.trouble(e)
}

// trouble makes the network fail; false: it is a deed that WhatsApp does not know.
func (w *world) trouble(e channeltest.Event) bool {
	switch e.Do {
	case channeltest.Flood:
		w.RefuseNext(whatsapptest.CodeFlood)
	case channeltest.Trouble:
		w.RefuseNext(500)
	case channeltest.BadAnswer:
		w.GarbleNext(1)
		w.expectNoAnswer()
	case channeltest.Swallow:
		w.SwallowNext(1)
		w.expectNoAnswer()
	case channeltest.Block:
		w.Unregister(person(channeltest.Ben).Phone)
	case channeltest.Revoke:
		w.LogOut()
	case channeltest.Unlink:
		w.LogOut()
		w.mu.Lock()
		w.scan = true
		w.mu.Unlock()
	case channeltest.Freeze:
		w.Server.Freeze()
	case channeltest.Cut:
		w.Server.Cut()
	case channeltest.Down:
		w.Server.Down()
	case channeltest.Up:
		return w.Server.Up() == nil
	default:
		return false
	}
	return true
}

func (w *world) expectNoAnswer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = true
}

// bare is the network's own id.
func bare(id channels.MessageID) string {
	out, _, _ := strings.Cut(string(id), " ")
	return out
}

func (w *world) write(e channeltest.Event, in whatsapptest.In) channels.MessageID {
	in.ReplyTo = bare(e.ReplyTo)
	switch {
	case e.Do == channeltest.Command && e.Mention: // it names another, whom it is for
		name, args, _ := strings.Cut(e.Text, " ")
		in.Text = strings.TrimSpace(name + " @" + person(channeltest.Ben).LID + " " + args)
		in.Mention = []string{person(channeltest.Ben).Phone}
	case e.Mention:
		in.Text = "@" + w.Server.Account().LID + " " + in.Text
		in.Mention = []string{w.Server.Account().Phone}
	}
	if len(e.Files) > 1 {
		return w.album(e, in)
	}
	if len(e.Files) == 1 {
		in.File = file(e.Files[0])
	}
	return w.id(e, w.Write(in))
}

// album is an announcement, and the pictures that name it; the text goes with the first.
func (w *world) album(e channeltest.Event, in whatsapptest.In) channels.MessageID {
	in.Album = w.Raw(whatsapptest.In{From: in.From, Group: in.Group}, &waE2E.Message{AlbumMessage: &waE2E.AlbumMessage{ExpectedImageCount: proto.Uint32(uint32(len(e.Files)))}})
	var first string
	for _, f := range e.Files {
		in.File = file(f)
		id := w.Write(in)
		if first == "" {
			first = id
		}
		in.Text = ""
	}
	return w.id(e, first)
}

func file(f channeltest.File) *whatsapptest.File {
	return &whatsapptest.File{Kind: f.Kind, Name: f.Name, MIME: f.MIME, Data: f.Data}
}

func (w *world) id(e channeltest.Event, id string) channels.MessageID {
	return channels.MessageID(id + " " + person(e.Who).PN().String())
}

func (w *world) Acked(_ channeltest.Place, id channels.MessageID) bool {
	return w.Receipted("", bare(id))
}

func (w *world) Sent(p channeltest.Place) []channeltest.Seen {
	var all []channeltest.Seen
	for _, m := range w.Server.Sent(w.chat(p)) {
		s := channeltest.Seen{ID: channels.MessageID(m.ID), Text: m.Text, Previews: m.Preview, Rings: m.Mentions}
		if m.ReplyTo != "" {
			s.ReplyTo = channels.MessageID(m.ReplyTo + " " + person(channeltest.Ana).PN().String())
		}
		if m.File != nil {
			s.Files = []channeltest.File{{Name: m.File.Name, MIME: m.File.MIME, Data: m.File.Data}}
		}
		all = append(all, s)
	}
	return all
}

func (w *world) Reaction(p channeltest.Place, id channels.MessageID) string {
	for _, m := range w.Chat(person(channeltest.Ana).Phone, w.chatOf(p)) {
		if m.ID == bare(id) {
			return m.Reactions[w.Server.Account().Phone]
		}
	}
	return ""
}

// chatOf is a chat as Ana has it.
func (w *world) chatOf(p channeltest.Place) types.JID {
	return w.chat(p)
}

func (w *world) Typing(p channeltest.Place) int { return len(w.Typed(w.chat(p))) }

func (w *world) Menu() []channels.MenuItem { return nil }
