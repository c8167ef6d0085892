package whatsapp_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"

	"parley/channels"
	"parley/channels/whatsapp/whatsapptest"
)

func TestNumberAndLIDAreOnePerson(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "from my LID"})
	r.net.Write(whatsapptest.In{From: ana.Phone, Group: groupID, Text: "in the group"})
	r.net.Write(whatsapptest.In{From: ben.Phone, Text: "from my number"})
	for _, c := range []struct {
		text string
		who  whatsapptest.Person
	}{{"from my LID", ana}, {"in the group", ana}, {"from my number", ben}} {
		from := r.in.text(t, c.text).From
		if from.User != channels.UserID(c.who.PN().String()) {
			t.Errorf("%s: user %s", c.text, from.User)
		}
		for _, id := range []string{c.who.Hidden().String(), c.who.Phone, "+" + c.who.Phone} {
			if !slices.Contains(from.Alt, channels.UserID(id)) {
				t.Errorf("%s: %s is not among %v", c.text, id, from.Alt)
			}
		}
	}
	if in := r.in.text(t, "from my LID"); in.To != r.dm(ana) || in.From.Name != "Ana" {
		t.Errorf("to %v from %q", in.To, in.From.Name)
	}
}

// The first message of a sender in a group comes in two parts with one id; the first holds only a key.
func TestKeyMaterialIsNoMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Write(whatsapptest.In{From: ana.Phone, Group: groupID, Text: "first"})
	r.net.Write(whatsapptest.In{From: ben.Phone, Group: groupID, Text: "second"})
	r.in.text(t, "first")
	r.in.text(t, "second")
	if all := r.in.all(); len(all) != 2 {
		t.Errorf("%d events, want 2: %+v", len(all), all)
	}
}

// Receipts get lost, the line is cut, and what is offered again is the same and is known.
func TestR03_WhatIsOfferedAgainIsEqual(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	const n = 30
	r.net.LoseReceipts(n * 3 / 10)
	for i := range n {
		r.net.Write(whatsapptest.In{From: ana.Phone, Text: fmt.Sprint("m", i)})
		if i%10 == 5 {
			r.net.Cut()
		}
	}
	r.in.until(t, "all messages", func() bool { return len(r.in.all()) >= n })
	r.net.Cut()
	r.sees("all receipts", func() bool { return len(r.net.Waiting()) == 0 })
	r.halt()
	for i, in := range r.in.all() {
		if in.Text != fmt.Sprint("m", i) {
			t.Errorf("message %d is %q", i, in.Text)
		}
	}
	if len(r.in.all()) != n || len(r.in.unequal) > 0 {
		t.Errorf("%d messages, want %d; not equal: %v", len(r.in.all()), n, r.in.unequal)
	}
}

func TestUnreadableMessageComesWholeAfterAsking(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "hello"})
	r.in.text(t, "hello")
	id := r.net.Write(whatsapptest.In{From: ana.Phone, Text: "garbled at first", Corrupt: 1})
	if in := r.in.text(t, "garbled at first"); in.ID != of(id, ana) {
		t.Errorf("id %s", in.ID)
	}
}

// Ids are made by the sender: one that equals ours must not become ours when it is quoted, edited or deleted.
func TestForeignMessageWithOurIDIsNotOurs(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	ours := r.send(channels.Post{To: r.group(), Token: "question", Text: "May I delete everything? Answer with yes or no."})
	r.net.Write(whatsapptest.In{From: ben.Phone, Group: groupID, ID: string(ours), Text: "Shall we order pizza?"})
	r.in.text(t, "Shall we order pizza?")
	r.net.Write(whatsapptest.In{From: ana.Phone, Group: groupID, Text: "yes, pizza", ReplyTo: string(ours), ReplyFrom: ben.Phone})
	r.net.Write(whatsapptest.In{From: ana.Phone, Group: groupID, Text: "yes, delete", ReplyTo: string(ours), ReplyFrom: r.net.Account().Phone})
	pizza, really := r.in.text(t, "yes, pizza"), r.in.text(t, "yes, delete")
	if pizza.ReplyTo != of(string(ours), ben) || pizza.Quote == nil || pizza.Quote.Own {
		t.Errorf("the answer to Ben is to %q, quote %+v", pizza.ReplyTo, pizza.Quote)
	}
	if really.ReplyTo != ours || really.Quote == nil || !really.Quote.Own {
		t.Errorf("the answer to us is to %q, quote %+v", really.ReplyTo, really.Quote)
	}
	r.net.Edit(whatsapptest.In{From: ben.Phone, Group: groupID, Text: "edited", ReplyFrom: ben.Phone}, string(ours))
	if in := r.in.text(t, "edited"); in.Target != of(string(ours), ben) {
		t.Errorf("Ben's edit changes %q", in.Target)
	}
}

// What a quote of Parley's says is taken from what we sent, not from what the sender says that we sent.
func TestQuoteOfOursHasOurWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	ours := r.send(channels.Post{To: r.dm(ana), Token: "t", Text: "I said this."})
	r.net.Raw(whatsapptest.In{From: ana.Phone}, &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: proto.String("see?"), ContextInfo: &waE2E.ContextInfo{
		StanzaID: proto.String(string(ours)), Participant: proto.String(r.account()), QuotedMessage: &waE2E.Message{Conversation: proto.String("I said something else.")},
	}}})
	if in := r.in.text(t, "see?"); in.Quote == nil || in.Quote.Text != "I said this." || in.ReplyTo != ours {
		t.Errorf("reply to %q, quote %+v", in.ReplyTo, in.Quote)
	}
}

// T27: an answer's text is given only where the answer was given, and an id under which we sent nothing is nobody's, whatever
// the writer's phone says of it.
func TestT27_AQuoteGivesOnlyWhatWasSaidHere(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	toAna := r.send(channels.Post{To: r.dm(ana), Token: "a", Text: "Ana's secret"})
	toAll := r.send(channels.Post{To: r.group(), Token: "g", Text: "for the group"})
	for i, c := range []struct {
		name     string
		by       whatsapptest.Person
		group    string
		id       channels.MessageID
		remote   string // what the writer says of where it was said
		ours     bool
		says     string
		attempts string
	}{
		{"where it was said", ana, "", toAna, "", true, "Ana's secret", "made up"},
		{"by another", ben, "", toAna, "", false, "made up", "made up"},
		{"by another, without words", ben, "", toAna, "", false, "", ""},
		{"by another, who names the chat", ben, "", toAna, ana.PN().String(), false, "made up", "made up"},
		{"by another, who names us", ben, "", toAna, r.account(), false, "made up", "made up"},
		{"in a group", ben, groupID, toAna, "", false, "made up", "made up"},
		{"of a group, in its group", ben, groupID, toAll, "", true, "for the group", "made up"},
		{"of a group, in private", ben, "", toAll, "", false, "made up", "made up"},
		{"an id that is nobody's", ben, "", "3EB0FFFFFFFFFFFFFFFFFF", "", false, "Ben may see everything", "Ben may see everything"},
	} {
		text := fmt.Sprintf("case %d", i)
		info := &waE2E.ContextInfo{StanzaID: proto.String(string(c.id)), Participant: proto.String(r.account()), QuotedMessage: &waE2E.Message{Conversation: &c.attempts}}
		if c.remote != "" {
			info.RemoteJID = &c.remote
		}
		r.net.Raw(whatsapptest.In{From: c.by.Phone, Group: c.group}, &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: &text, ContextInfo: info}})
		in := r.in.text(t, text)
		q := in.Quote
		if q == nil || q.Own != c.ours || q.Text != c.says || (in.ReplyTo == c.id) != c.ours {
			t.Errorf("%s: reply to %q, quote %+v", c.name, in.ReplyTo, q)
		}
		if q != nil && !c.ours && q.From.User != "" {
			t.Errorf("%s: it is said to be by %q", c.name, q.From.User)
		}
	}
}

func TestOwnPhoneAndHistoryAreNotHeard(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	own := r.net.Account().Phone
	r.net.Write(whatsapptest.In{From: own, To: ana.Phone, Text: "from my phone"})
	r.net.Write(whatsapptest.In{From: own, Group: groupID, Text: "in the group from my phone"})
	r.net.Raw(whatsapptest.In{From: own}, &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_HISTORY_SYNC_NOTIFICATION.Enum(),
		HistorySyncNotification: &waE2E.HistorySyncNotification{SyncType: waE2E.HistorySyncType_INITIAL_BOOTSTRAP.Enum(), DirectPath: proto.String("/v/history"), MediaKey: make([]byte, 32)}}})
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "the end"})
	r.in.text(t, "the end")
	if all := r.in.all(); len(all) != 1 {
		t.Errorf("heard %+v", all)
	}
	r.sees("all receipts", func() bool { return len(r.net.Waiting()) == 0 })
}

func TestForwardedCommandIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Raw(whatsapptest.In{From: ana.Phone}, &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: proto.String("/new"),
		ContextInfo: &waE2E.ContextInfo{IsForwarded: proto.Bool(true)}}})
	if in := r.in.text(t, "/new"); in.Command {
		t.Error("a forwarded command runs")
	}
}

// A file is opened by a reference that only the adapter can make, and never from a host that the sender names.
func TestT18_AttachmentIsOpenedByItsReferenceOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "listen", File: &whatsapptest.File{Kind: "voice", MIME: "audio/ogg; codecs=opus", Data: []byte("OggS voice")}})
	in := r.in.get(t, "the note", func(in channels.Inbound) bool { return len(in.Attachments) > 0 })
	a := in.Attachments[0]
	if a.Kind != "voice" || a.MIME != "audio/ogg" {
		t.Errorf("a voice note is %+v", a)
	}
	f, err := r.ch.Open(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(f)
	if err != nil || string(got) != "OggS voice" {
		t.Errorf("opened %q, %v", got, err)
	}
	f.Close()
	other := a
	other.ID = strings.Repeat("A", len(a.ID))
	if _, err := r.ch.Open(t.Context(), other); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("a made-up reference: %v", err)
	}
	r.net.Raw(whatsapptest.In{From: ana.Phone}, &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{FileName: proto.String("x"), Caption: proto.String("elsewhere"),
		URL: proto.String("https://evil.example/x"), DirectPath: proto.String("@evil.example/x"), MediaKey: make([]byte, 32)}})
	if in := r.in.text(t, "elsewhere"); len(in.Attachments) != 0 {
		t.Errorf("a file of another host is %+v", in.Attachments)
	}
	if _, err := r.ch.Open(t.Context(), a); err != nil {
		t.Errorf("opened again: %v", err)
	}
}

// What a message says of its file is not believed: neither its length, nor its hashes, nor its key.
func TestT18_FilesAreHeldToWhatTheirMessageSays(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	data := []byte(strings.Repeat("what is in the file ", 500))
	for name, c := range map[string]struct {
		lie  func(*waE2E.DocumentMessage)
		want error
	}{
		"a smaller length": {func(d *waE2E.DocumentMessage) { d.FileLength = proto.Uint64(100) }, channels.ErrTooLarge},
		"a huge length":    {func(d *waE2E.DocumentMessage) { d.FileLength = proto.Uint64(1 << 62) }, channels.ErrTooLarge},
		"a negative one":   {func(d *waE2E.DocumentMessage) { d.FileLength = proto.Uint64(1<<64 - 1) }, channels.ErrTooLarge},
		"another hash":     {func(d *waE2E.DocumentMessage) { d.FileSHA256 = make([]byte, 32) }, nil},
		"another checksum": {func(d *waE2E.DocumentMessage) { d.FileEncSHA256 = make([]byte, 32) }, nil},
		"another key":      {func(d *waE2E.DocumentMessage) { d.MediaKey = make([]byte, 32) }, nil},
		"a short key":      {func(d *waE2E.DocumentMessage) { d.MediaKey = []byte{1} }, nil},
		"another file":     {func(d *waE2E.DocumentMessage) { d.DirectPath = proto.String("/v/none") }, nil},
	} {
		r.net.Write(whatsapptest.In{From: ana.Phone, Text: name, File: &whatsapptest.File{Kind: "file", Name: "x.txt", MIME: "text/plain", Data: data},
			Lie: func(m *waE2E.Message) {
				d := m.GetDocumentMessage()
				if d == nil {
					d = m.GetDocumentWithCaptionMessage().GetMessage().GetDocumentMessage()
				}
				c.lie(d)
			}})
		in := r.in.text(t, name)
		if len(in.Attachments) != 1 {
			t.Errorf("%s: %+v", name, in)
			continue
		}
		f, err := r.ch.Open(t.Context(), in.Attachments[0])
		if err == nil {
			f.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) || c.want == nil && channels.ClassOf(err) != channels.BadMessage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
