package whatsapp_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/whatsapp/whatsapptest"
)

// The same token is the same message, also from another process; another token is another.
func TestR05_OneTokenIsOneMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	p := channels.Post{To: r.dm(ana), Token: "01JOUTBOUND/0", Text: "once"}
	first := r.send(p)
	again := r.send(p)
	r.halt()
	r.ready()
	third := r.send(p)
	if first != again || first != third {
		t.Errorf("ids %s, %s, %s", first, again, third)
	}
	other := p
	other.Token = "01JOUTBOUND/1"
	r.send(other)
	if all := r.net.Sent(ana.PN()); len(all) != 2 {
		t.Errorf("Ana sees %d messages, want 2: %+v", len(all), all)
	}
	if c := r.net.Complaints(); len(c) > 0 {
		t.Errorf("the network complains: %q", c)
	}
}

// A person's device that could not read a message asks for it, and gets it from what is kept on disk.
func TestMessageIsSentAgainToWhoeverCouldNotReadIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Blind(ana.Phone, 1)
	id := r.send(channels.Post{To: r.dm(ana), Token: "t", Text: "can you read this?"})
	r.sees("the message in clear", func() bool {
		for _, m := range r.net.Sent(ana.PN()) {
			if m.ID == string(id) && m.Text == "can you read this?" && !m.Waiting {
				return true
			}
		}
		return false
	})
}

// A person's devices have a session each, also for the first message after a start.
func TestFirstMessageAfterAStartIsReadOnEveryDevice(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "hello"}) // tells that her number and her LID are one
	r.in.text(t, "hello")
	for _, text := range []string{"to a device that never got any", "to one that did"} {
		r.halt()
		r.ready()
		r.send(channels.Post{To: r.dm(ana), Text: text})
	}
	if c := r.net.Complaints(); len(c) > 0 {
		t.Errorf("the network complains: %q", c)
	}
}

// Devices that ask again while more is sent to them get all of it: no two messages have one key.
func TestMessagesAreSentAgainBesideOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	for n := range 24 {
		if n%4 == 0 { // a device that cannot read its fifth copy asks no more
			r.net.Blind(ana.Phone, 2)
		}
		r.send(channels.Post{To: r.dm(ana), Text: fmt.Sprint("message ", n)})
	}
	r.net.Blind(ana.Phone, 0)
	r.sees("all messages in clear", func() bool {
		return !slices.ContainsFunc(r.net.Sent(ana.PN()), func(m whatsapptest.Shown) bool { return m.Waiting })
	})
	if c := r.net.Complaints(); len(c) > 0 {
		t.Errorf("the network complains: %q", c)
	}
}

func TestT15_NothingIsPreviewedOrMentioned(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.send(channels.Post{To: r.group(), Token: "t", Text: "@everyone @" + ana.Phone + " look: https://evil.example/?q=secret"})
	m := r.net.Sent(r.groupJID())[0]
	if m.Preview || len(m.Mentions) > 0 {
		t.Errorf("shown as %+v", m)
	}
}

func TestEditEndsWithItsWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	p := channels.Post{To: r.dm(ana), Token: "t", Text: "one"}
	id := r.send(p)
	p.Text = "two"
	if err := r.ch.Edit(t.Context(), id, p); err != nil {
		t.Fatal(err)
	}
	r.sees("the edit", func() bool { return r.net.Sent(ana.PN())[0].Text == "two" })
	r.time.Move(21 * time.Minute)
	p.Text = "three"
	if err := r.ch.Edit(t.Context(), id, p); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("an edit after 21 minutes: %v", err)
	}
	p.Text = "two"
	if err := r.ch.Edit(t.Context(), id, p); err != nil {
		t.Errorf("an edit that changes nothing: %v", err)
	}
	if err := r.ch.Edit(t.Context(), of(string(id), ana), p); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("an edit of another's message: %v", err)
	}
}

func TestFilesAreShownAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		data             []byte
		mime, text, want string
	}{
		{picture.Bytes(), "image/png", "look", "image"},
		{[]byte("OggS"), "audio/ogg", "", "voice"},
		{[]byte("OggS"), "audio/ogg", "a recording with words", "file"},
		{picture.Bytes(), "application/x-unknown", "", "file"},
	} {
		r.send(channels.Post{To: r.dm(ana), Token: c.want + c.text + c.mime, Text: c.text, Files: []channels.File{channeltest.Outgoing("name.bin", c.mime, c.data)}})
		m := r.net.Sent(ana.PN())[i]
		if m.File == nil || m.File.Kind != c.want || m.Text != c.text {
			t.Errorf("%s with %q is shown as %+v", c.mime, c.text, m)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, ".wa-file-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Typing is seen only of somebody who is online; the blue ticks come with the answer, if they are wanted.
func TestTypingIsSeenAndMessagesAreMarkedAsRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.opt.MarkRead = true
	r.ready()
	id := r.net.Write(whatsapptest.In{From: ana.Phone, Text: "hello"})
	r.in.text(t, "hello")
	if r.net.Receipted("read", id) {
		t.Error("marked as read before it is answered")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.ch.ShowTyping(ctx, r.dm(ana)); err != nil {
		t.Fatal(err)
	}
	r.sees("typing", func() bool {
		all := r.net.Typed(ana.PN())
		return len(all) == 1 && all[0].Seen && all[0].State == "composing"
	})
	r.sees("the blue ticks", func() bool { return r.net.Receipted("read", id) })
}

// whatsmeow acknowledges a device's question for a message before its answer is out: what is cut between the two is
// answered after the next connection, by the same process or the next.
func TestR01_QuestionForAMessageOutlivesTheLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	for _, to := range []channels.Address{r.dm(ana), r.group()} {
		for _, restart := range []bool{false, true} {
			r.net.Hold()
			r.net.Blind(ana.Phone, 1)
			id := r.send(channels.Post{To: to, Token: fmt.Sprint(to, restart), Text: fmt.Sprint("read me ", restart)})
			chat, err := types.ParseJID(string(to.Peer))
			if err != nil {
				t.Fatal(err)
			}
			shown := func() whatsapptest.Shown {
				all := r.net.Chat(ana.Phone, chat)
				return all[slices.IndexFunc(all, func(m whatsapptest.Shown) bool { return m.ID == string(id) })]
			}
			r.net.LoseNext(string(id)) // the answer
			r.net.Release(nil)
			r.sees("the loss of the answer", func() bool { return len(r.net.Waiting()) == 0 && r.net.LostNext() })
			if !shown().Waiting {
				t.Fatalf("%v: the answer was not lost: %+v", to, shown())
			}
			if restart {
				r.halt()
				r.ready()
			} else {
				r.net.Cut()
			}
			r.sees("the message", func() bool { return !shown().Waiting })
			r.sees("the confirmations", func() bool { return len(r.net.Waiting()) == 0 })
		}
	}
	if c := r.net.Complaints(); len(c) > 0 {
		t.Errorf("the network complains: %q", c)
	}
}
