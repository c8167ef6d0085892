package whatsapp_test

import (
	"fmt"
	"testing"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"

	"parley/channels"
	"parley/channels/whatsapp/whatsapptest"
)

// A server may tell one address of a person only; the other was learned before, or comes later.
func TestPersonIsTheSameByEitherAddressAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "both"})
	r.in.text(t, "both")
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "bare", Bare: true})
	r.net.Write(whatsapptest.In{From: ana.Phone, Group: groupID, Text: "bare in the group", Bare: true})
	for _, text := range []string{"bare", "bare in the group"} {
		if in := r.in.text(t, text); in.From.User != channels.UserID(ana.PN().String()) {
			t.Errorf("%s: from %s", text, in.From.User)
		}
	}
	stranger := whatsapptest.Person{Phone: "4917600000777", LID: "777000000000777", Name: "Cy"}
	r.net.AddPerson(stranger)
	r.net.Write(whatsapptest.In{From: stranger.Phone, Text: "who am I", Bare: true})
	first := r.in.text(t, "who am I")
	r.net.Write(whatsapptest.In{From: stranger.Phone, Text: "this is my number"})
	if again := r.in.text(t, "this is my number"); again.From.User != first.From.User || again.To != first.To {
		t.Errorf("first %s in %v, then %s in %v", first.From.User, first.To, again.From.User, again.To)
	}
	r.send(channels.Post{To: first.To, Token: "t", Text: "Hello, Cy."})
	r.sees("the answer", func() bool { return len(r.net.Sent(stranger.PN())) == 1 })
}

// Only what is written to the account in a chat is heard: a list's message is one, a status is not, nor a newsletter's post.
func TestListsAreChatsAndStatusIsNot(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Write(whatsapptest.In{From: ana.Phone, List: "status", Text: "my day"})
	r.net.Notify(waBinary.Node{Tag: "message", Attrs: waBinary.Attrs{"from": types.NewJID("120363000000000001", types.NewsletterServer), "id": "N1",
		"t": time.Now().Unix(), "type": "text", "server_id": 100}, Content: []waBinary.Node{{Tag: "plaintext", Content: []byte("\x0a\x04news")}}})
	r.net.Write(whatsapptest.In{From: ana.Phone, List: "1700000000", Text: "to my list"})
	in := r.in.text(t, "to my list")
	if in.To != r.dm(ana) || in.From.User != channels.UserID(ana.PN().String()) {
		t.Errorf("a list's message is from %s in %v", in.From.User, in.To)
	}
	r.sees("all receipts", func() bool { return len(r.net.Waiting()) == 0 })
	if all := r.in.all(); len(all) != 1 {
		t.Errorf("heard %+v", all)
	}
	r.send(channels.Post{To: in.To, Token: "t", Text: "Thanks.", ReplyTo: in.ID})
	if got := r.net.Sent(ana.PN()); len(got) != 1 || got[0].Text != "Thanks." {
		t.Errorf("the answer is %+v", got)
	}
}

// Two people's messages with one id are two; two devices of one person are one person.
func TestIDsAndDevicesOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	cy := whatsapptest.Person{Phone: "4917600000778", LID: "777000000000778", Name: "Cy", Devices: 2}
	r.net.AddPerson(cy)
	r.ready()
	r.net.Write(whatsapptest.In{From: ana.Phone, Group: groupID, ID: "3ASAME", Text: "Ana's"})
	r.net.Write(whatsapptest.In{From: ben.Phone, Group: groupID, ID: "3ASAME", Text: "Ben's"})
	a, b := r.in.text(t, "Ana's"), r.in.text(t, "Ben's")
	if a.Key == b.Key || a.ID == b.ID {
		t.Errorf("%q and %q", a.Key, b.Key)
	}
	for d := range uint16(3) {
		r.net.Write(whatsapptest.In{From: cy.Phone, Device: d, Text: fmt.Sprint("from device ", d)})
	}
	for d := range 3 {
		if in := r.in.text(t, fmt.Sprint("from device ", d)); in.To != r.dm(cy) || in.From.User != channels.UserID(cy.PN().String()) {
			t.Errorf("device %d: from %s in %v", d, in.From.User, in.To)
		}
	}
	r.send(channels.Post{To: r.dm(cy), Token: "t", Text: "To all of you."})
	if c := r.net.Complaints(); len(c) > 0 {
		t.Errorf("the network complains: %q", c)
	}
}

// What waited while the gateway was down comes once each and in order, garbled ones among it.
func TestR01_LongQueueIsTakenWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	const n = 500
	for i := range n {
		in := whatsapptest.In{From: ana.Phone, Text: fmt.Sprint("q", i)}
		if i%3 == 1 {
			in.From, in.Group = ben.Phone, groupID
		}
		r.net.Write(in)
	}
	r.ready()
	r.in.until(t, "half of them", func() bool { return len(r.in.all()) >= n/2 })
	r.net.Cut() // in the middle of it
	r.in.until(t, "all of them", func() bool { return len(r.in.all()) >= n })
	r.sees("all receipts", func() bool { return len(r.net.Waiting()) == 0 })
	r.halt()
	seen := map[string]bool{}
	for _, in := range r.in.all() {
		if seen[in.Text] {
			t.Errorf("%s twice", in.Text)
		}
		seen[in.Text] = true
	}
	if len(seen) != n || len(r.in.unequal) > 0 {
		t.Errorf("%d of %d; not equal: %v", len(seen), n, r.in.unequal)
	}
}
