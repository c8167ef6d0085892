package channeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"parley/channels"
)

func eventChecks() []check {
	return []check{
		{"a reply quotes what it answers", Replies, replyQuotes},
		{"an edit names the edited message", EditsIn, editTold},
		{"a deletion names the deleted message", DeletesIn, deleteTold},
		{"a reaction names its message", ReactionsIn, reactionTold},
		{"a pressed button gives its value", Buttons, buttonTold},
		{"a command is marked as one", Commands, commandMarked},
		{"a file arrives with its bytes", FilesIn, fileArrives},
		{"T18 a file larger than announced is refused", FilesIn, largerRefused},
		{"T18 only what the network issued is opened", FilesIn, forgedRefused},
		{"an album is one album", Albums, albumJoined},
		{"a room that moves tells its new id", Moves, moveTold},
	}
}

func replyQuotes(r *rig) {
	r.start()
	first := r.write(Group, Ben, "shall we meet at nine?")
	in := r.message(Group, r.act(Event{Do: Write, Place: Group, Who: Ana, Text: "yes", ReplyTo: first}))
	r.equal("ReplyTo", in.ReplyTo, first)
	if in.Quote == nil || in.Quote.Text != "shall we meet at nine?" || in.Quote.From.User != r.w.User(Ben) || in.Quote.Own {
		r.t.Errorf("Quote is %+v, want Ben's question", in.Quote)
	}
	ours := r.send(r.post(Group, "at ten"))
	in = r.message(Group, r.act(Event{Do: Write, Place: Group, Who: Ana, Text: "fine", ReplyTo: ours}))
	r.equal("ReplyTo", in.ReplyTo, ours)
	if in.Quote == nil || !in.Quote.Own {
		r.t.Errorf("Quote of our own message is %+v, want Own", in.Quote)
	}
}

func editTold(r *rig) {
	r.start()
	id := r.write(DM, Ana, "helo")
	said := r.message(DM, id)
	r.act(Event{Do: EditIt, Place: DM, Who: Ana, Target: id, Text: "hello"})
	in := r.get("the edit", func(in channels.Inbound) bool { return in.Kind == channels.KindEdit })
	r.equal("Target", in.Target, id)
	r.equal("Text", in.Text, "hello")
	r.equal("To", in.To, r.w.Address(DM))
	if in.Key == "" || in.Key == said.Key {
		r.t.Errorf("the edit has the key %q, the message %q", in.Key, said.Key)
	}
}

func deleteTold(r *rig) {
	r.start()
	id := r.write(DM, Ana, "forget this")
	said := r.message(DM, id)
	r.act(Event{Do: DeleteIt, Place: DM, Who: Ana, Target: id})
	in := r.get("the deletion", func(in channels.Inbound) bool { return in.Kind == channels.KindDelete })
	r.equal("Target", in.Target, id)
	if in.Key == "" || in.Key == said.Key {
		r.t.Errorf("the deletion has the key %q, the message %q", in.Key, said.Key)
	}
}

func reactionTold(r *rig) {
	r.start()
	id := r.send(r.post(DM, "do you like it?"))
	r.act(Event{Do: ReactTo, Place: DM, Who: Ana, Target: id, Text: "👍"})
	in := r.get("the reaction", func(in channels.Inbound) bool { return in.Kind == channels.KindReaction })
	r.equal("Target", in.Target, id)
	r.equal("Text", in.Text, "👍")
	r.equal("From.User", in.From.User, r.w.User(Ana))
	r.equal("To", in.To, r.w.Address(DM))
}

func buttonTold(r *rig) {
	r.start()
	value := "a:" + strings.Repeat("v", 62) // 64 bytes: the most that the contract allows
	p := r.post(DM, "sure?")
	p.Actions = [][]channels.Action{{{Label: "Yes", Value: value}, {Label: "No", Value: "n"}}}
	id := r.send(p)
	seen := r.shown(DM, id)
	r.equal("buttons on the screen", seen.Actions, p.Actions)
	r.act(Event{Do: PressOn, Place: DM, Who: Ana, Target: id, Text: value})
	in := r.get("the button", func(in channels.Inbound) bool { return in.Kind == channels.KindButton })
	r.equal("Target", in.Target, id)
	r.equal("Text", in.Text, value)
	r.equal("From.User", in.From.User, r.w.User(Ana))
	r.equal("To", in.To, r.w.Address(DM))
	if in.Key == "" {
		r.t.Errorf("Key is empty")
	}
}

func commandMarked(r *rig) {
	r.start()
	isCommand := func(in channels.Inbound) bool { return in.Command }
	r.act(Event{Do: Command, Place: DM, Who: Ana, Text: "/new please"})
	in := r.get("the command", isCommand)
	r.equal("Text", in.Text, "/new please")
	r.equal("From.User", in.From.User, r.w.User(Ana))
	r.act(Event{Do: Command, Place: Group, Who: Ana, Text: "/status"})
	in = r.get("the command in a group", func(in channels.Inbound) bool { return in.Command && in.To.Peer == r.w.Address(Group).Peer })
	r.equal("Text", in.Text, "/status")
	r.act(Event{Do: Command, Place: Group, Who: Ana, Text: "/stop", Mention: true})
	r.fence(Group)
	for _, in := range r.in.taken() {
		if in.Command && strings.Contains(in.Text, "stop") {
			r.t.Errorf("a command for another bot is marked as ours: %+v", in)
		}
	}
}

func fileArrives(r *rig) {
	r.start()
	data := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	f := File{Kind: "file", Name: "report.pdf", MIME: "application/pdf", Data: data}
	id := r.act(Event{Do: Write, Place: DM, Who: Ana, Text: "read this", Files: []File{f}})
	in := r.message(DM, id)
	r.equal("Text", in.Text, "read this")
	if len(in.Attachments) != 1 {
		r.t.Fatalf("%d attachments, want 1", len(in.Attachments))
	}
	a := in.Attachments[0]
	r.equal("Kind", a.Kind, "file")
	r.equal("Name", a.Name, "report.pdf")
	r.equal("MIME", a.MIME, "application/pdf")
	if a.Size != 0 && a.Size != int64(len(data)) {
		r.t.Errorf("Size is %d, want %d", a.Size, len(data))
	}
	got, err := r.read(a)
	if err != nil || !bytes.Equal(got, data) {
		r.t.Errorf("opened %d bytes, %v; want the %d that were sent", len(got), err, len(data))
	}
}

func (r *rig) read(a channels.Attachment) (data []byte, err error) {
	o, _ := channels.As[channels.Opener](r.ch)
	err = r.call(func(ctx context.Context) error {
		rc, err := o.Open(ctx, a)
		if err != nil {
			return err
		}
		defer rc.Close()
		data, err = io.ReadAll(rc)
		return err
	})
	return data, err
}

func largerRefused(r *rig) {
	r.start()
	f := File{Kind: "file", Name: "x.bin", MIME: "application/octet-stream", Data: make([]byte, 3000)}
	in := r.message(DM, r.act(Event{Do: Write, Place: DM, Who: Ana, Files: []File{f}}))
	if len(in.Attachments) != 1 {
		r.t.Fatalf("%d attachments, want 1", len(in.Attachments))
	}
	a := in.Attachments[0]
	a.Size = 10
	if got, err := r.read(a); !errors.Is(err, channels.ErrTooLarge) {
		r.t.Errorf("10 bytes announced, %d given: %v, want ErrTooLarge", len(got), err)
	}
}

// forgedRefused: an attachment is named by what the network issued, and nothing else is opened by its name: no address, no
// path, no guess.
func forgedRefused(r *rig) {
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("from elsewhere")) // a failed write is the adapter's loss
	}))
	defer elsewhere.Close()
	r.start()
	f := File{Kind: "file", Name: "x.bin", MIME: "application/octet-stream", Data: []byte("what was sent")}
	in := r.message(DM, r.act(Event{Do: Write, Place: DM, Who: Ana, Files: []File{f}}))
	if len(in.Attachments) != 1 {
		r.t.Fatalf("%d attachments, want 1", len(in.Attachments))
	}
	real := in.Attachments[0].ID
	other := []byte(real)
	if other[len(other)/2]++; other[len(other)/2] == '/' {
		other[len(other)/2] = 'x'
	}
	for _, id := range []string{elsewhere.URL + "/x.bin", strings.TrimPrefix(elsewhere.URL, "http://") + "/x.bin", "file:///etc/passwd", "../../../../etc/passwd",
		"/etc/passwd", real + "/../../x", string(other), ""} {
		a := in.Attachments[0]
		if a.ID = id; a.ID == real {
			continue
		}
		a.Size = 1 << 10
		if got, err := r.read(a); err == nil {
			r.t.Errorf("%q was opened: %d bytes", id, len(got))
		}
	}
	if n := asked.Load(); n > 0 {
		r.t.Errorf("another server was asked %d times", n)
	}
}

func albumJoined(r *rig) {
	r.start()
	pic := func(s string) File { return File{Kind: "image", MIME: "image/jpeg", Data: []byte(s)} }
	r.act(Event{Do: Write, Place: DM, Who: Ana, Text: "two pictures", Files: []File{pic("one"), pic("two")}})
	var items []channels.Inbound
	r.until("both pictures", func() bool {
		items = nil
		for _, in := range r.in.taken() {
			if len(in.Attachments) > 0 {
				items = append(items, in)
			}
		}
		return len(items) == 2
	})
	if items[0].Album == "" || items[0].Album != items[1].Album {
		r.t.Errorf("albums %q and %q, want one", items[0].Album, items[1].Album)
	}
	r.equal("Kind of a picture", items[0].Attachments[0].Kind, "image")
	if got, err := r.read(items[1].Attachments[0]); err != nil || string(got) != "two" {
		r.t.Errorf("second picture is %q, %v", got, err)
	}
}

func moveTold(r *rig) {
	r.start()
	old := r.w.Address(Group)
	p := r.post(Group, "before")
	r.send(p)
	r.act(Event{Do: MoveRoom, Place: Group})
	now := r.w.Address(Group)
	in := r.get("the move", func(in channels.Inbound) bool { return in.Kind == channels.KindMoved })
	r.equal("To of the move", in.To.Peer, old.Peer)
	r.equal("new id", channels.PeerID(in.Text), now.Peer)
	_, err := r.trySend(p)
	r.class("send to the old id", err, channels.PeerGone)
	var e *channels.Error
	if asError(err, &e) && e.Moved != now.Peer {
		r.t.Errorf("Moved is %q, want %q", e.Moved, now.Peer)
	}
	r.send(r.post(Group, "after"))
}

// shown is a message of the bot as people see it.
func (r *rig) shown(p Place, id channels.MessageID) Seen {
	r.t.Helper()
	var got Seen
	r.sees(fmt.Sprintf("message %s in %s", id, p), func() bool {
		for _, s := range r.w.Sent(p) {
			if s.ID == id {
				got = s
				return true
			}
		}
		return false
	})
	return got
}
