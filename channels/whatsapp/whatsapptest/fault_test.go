package whatsapptest_test

import (
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"parley/channels/whatsapp/whatsapptest"
)

func TestLoginFailuresAreEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    whatsapptest.Failure
		want func(r *rig)
	}{
		{whatsapptest.Failure{Reason: "402", Code: "102", Expire: "3600"}, func(r *rig) {
			b := wait(r, "a ban", func(*events.TemporaryBan) bool { return true })
			if b.Code != 102 || b.Expire != time.Hour {
				r.t.Errorf("ban %+v", b)
			}
		}},
		{whatsapptest.Failure{Reason: "405"}, func(r *rig) { wait(r, "outdated", func(*events.ClientOutdated) bool { return true }) }},
		{whatsapptest.Failure{Reason: "401"}, func(r *rig) { wait(r, "logged out", func(e *events.LoggedOut) bool { return e.OnConnect }) }},
		{whatsapptest.Failure{Reason: "403"}, func(r *rig) { wait(r, "gone", func(e *events.LoggedOut) bool { return int(e.Reason) == 403 }) }},
		{whatsapptest.Failure{Reason: "409"}, func(r *rig) {
			wait(r, "a failure", func(e *events.ConnectFailure) bool { return int(e.Reason) == 409 })
		}},
	} {
		t.Run(c.f.Reason, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, true)
			r.s.FailLogin(c.f)
			r.start()
			if err := r.cli.Connect(); err != nil {
				t.Fatal(err)
			}
			c.want(r)
		})
	}
}

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	r.s.StreamError("503")
	r.s.Cut()
	wait(r, "a new connection", func(*events.Connected) bool { return true })
	r.s.Replace()
	wait(r, "replaced", func(*events.StreamReplaced) bool { return true })
	r.stop()
	r.connect()
	r.s.LogOut()
	wait(r, "logged out", func(*events.LoggedOut) bool { return true })
}

// TestOneConnectionADevice: a second process with the same keys takes the place of the first.
func TestOneConnectionADevice(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	first := r.cli
	defer first.Disconnect()
	r.connect()
	wait(r, "replaced", func(*events.StreamReplaced) bool { return true })
	if n := r.s.Connected(); n != 1 {
		t.Errorf("%d devices are connected", n)
	}
}

func TestDownUpAndFreeze(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	r.s.Down()
	wait(r, "disconnected", func(*events.Disconnected) bool { return true })
	if err := r.s.Up(); err != nil {
		t.Fatal(err)
	}
	wait(r, "connected", func(*events.Connected) bool { return true })
	r.send(pn(ana), "hello") // it knows Ana's devices from now on: the question for them has no deadline of Parley's
	r.s.Freeze()
	if _, err := r.cli.SendMessage(t.Context(), pn(ana), &waE2E.Message{Conversation: proto.String("?")},
		whatsmeow.SendRequestExtra{Timeout: 100 * time.Millisecond}); err == nil {
		t.Error("a frozen network answered")
	}
	r.s.Thaw()
	r.send(pn(ana), "again")
}

func TestMediaBothWays(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	in := whatsapptest.File{Kind: "voice", MIME: "audio/ogg; codecs=opus", Data: []byte("not really a voice")}
	r.s.Write(whatsapptest.In{From: ana, File: &in})
	m := wait(r, "a voice note", func(m *events.Message) bool { return m.Message.GetAudioMessage().GetPTT() })
	got, err := r.cli.Download(t.Context(), m.Message.GetAudioMessage())
	if err != nil || string(got) != string(in.Data) {
		t.Errorf("downloaded %q, %v", got, err)
	}
	r.s.FailDownloads(404)
	if _, err := r.cli.Download(t.Context(), m.Message.GetAudioMessage()); err == nil {
		t.Error("a file that is gone was downloaded")
	}
	doc := whatsapptest.File{Kind: "file", Name: "a.txt", MIME: "text/plain", Data: []byte("text")}
	r.s.Write(whatsapptest.In{From: ana, Group: group, Text: "look", File: &doc})
	d := wait(r, "a document", func(m *events.Message) bool { return m.Message.GetDocumentMessage() != nil })
	if !d.IsDocumentWithCaption || d.Message.GetDocumentMessage().GetCaption() != "look" || d.Info.MediaType != "document" {
		t.Errorf("document %+v", d)
	}
	up, err := r.cli.Upload(t.Context(), []byte("a picture"), whatsmeow.MediaImage)
	if err != nil {
		t.Fatal(err)
	}
	img := &waE2E.Message{ImageMessage: &waE2E.ImageMessage{
		URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256,
		FileLength: &up.FileLength, Mimetype: proto.String("image/png"), Caption: proto.String("mine"),
	}}
	if _, err := r.cli.SendMessage(t.Context(), pn(ana), img); err != nil {
		t.Fatal(err)
	}
	sent := r.s.Sent(pn(ana))
	if len(sent) != 1 || sent[0].Text != "mine" || sent[0].File == nil || string(sent[0].File.Data) != "a picture" || sent[0].File.Kind != "image" {
		t.Fatalf("Ana sees %+v", sent)
	}
	r.clean()
	wrong := proto.Clone(img).(*waE2E.Message)
	wrong.ImageMessage.MediaKey[0] ^= 1
	if _, err := r.cli.SendMessage(t.Context(), pn(ana), wrong); err != nil {
		t.Fatal(err)
	}
	if c := r.s.Complaints(); len(c) == 0 || !strings.Contains(c[0], "cannot be opened") {
		t.Errorf("a file with a wrong key: complaints %q", c)
	}
}

func TestTypingIsSeenOfWhoIsOnline(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	show := func() {
		if err := r.cli.SendChatPresence(t.Context(), pn(ana), types.ChatPresenceComposing, types.ChatPresenceMediaText); err != nil {
			t.Fatal(err)
		}
	}
	show()
	r.sees("typing", func() bool { return len(r.s.Typed(pn(ana))) == 1 })
	if err := r.cli.SendPresence(t.Context(), types.PresenceAvailable); err != nil {
		t.Fatal(err)
	}
	show()
	r.sees("typing", func() bool { return len(r.s.Typed(pn(ana))) == 2 })
	if got := r.s.Typed(pn(ana)); got[0].Seen || !got[1].Seen {
		t.Errorf("typing %+v", got)
	}
	r.s.Compose(whatsapptest.In{From: ana})
	wait(r, "that Ana types", func(e *events.ChatPresence) bool { return e.State == types.ChatPresenceComposing })
}

func TestReadReceiptsAndOwnPhone(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	id := r.send(pn(ana), "read me")
	wait(r, "delivered", func(e *events.Receipt) bool { return e.Type == types.ReceiptTypeDelivered && e.MessageIDs[0] == id })
	r.s.Read(ana, pn(ana), id)
	wait(r, "read", func(e *events.Receipt) bool { return e.Type == types.ReceiptTypeRead && e.MessageIDs[0] == id })
	r.sees("acknowledged", func() bool { return len(r.s.Waiting()) == 0 })
	r.s.Write(whatsapptest.In{From: r.s.Account().Phone, To: ana, Text: "from my phone"})
	if m := r.message("from my phone"); !m.Info.IsFromMe || m.Info.Chat.User == r.s.Account().Phone {
		t.Errorf("info %+v", m.Info)
	}
	r.s.Write(whatsapptest.In{From: r.s.Account().Phone, Group: group, Text: "to all"})
	if m := r.message("to all"); !m.Info.IsFromMe || m.Info.Chat != groupJID() {
		t.Errorf("info %+v", m.Info)
	}
	if got := r.s.Sent(pn(ana)); len(got) != 2 {
		t.Errorf("Ana sees %+v", got)
	}
	if owner := r.s.Chat(r.s.Account().Phone, pn(ana)); len(owner) != 2 {
		t.Errorf("the account's phone shows %+v", owner)
	}
	r.clean()
}
