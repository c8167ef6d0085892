package discord

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/discord/discordtest"
)

// TestR01_WhatWasMissedIsReadBack: in a conversation, a channel, its thread and a channel that the journal does not know, in
// the order in which it was written, and more than one page of it.
func TestR01_WhatWasMissedIsReadBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	r.says(ana, dm, "hello")
	r.says(ana, general, "hello all")
	r.hears("hello", "hello all")
	r.end()
	const other = "900000000000000009"
	r.fake.AddChannel(discordtest.Channel{ID: other, Type: discordtest.Text, Guild: server, Name: "other"})
	var want []string
	for i := range 250 {
		where := []string{dm, dm, general, thread, other}[i%5]
		text := fmt.Sprintf("missed %d", i)
		r.says(ben, where, text)
		want = append(want, text)
	}
	r.restart()
	r.hears(want...)
	if got := r.j.texts()[2:]; !slices.Equal(got, want) {
		t.Errorf("read back %q", got)
	}
	for _, in := range r.j.all() {
		if in.Text == "missed 3" && (in.To != r.at(thread) || in.Server != server || in.From.Name != "Benny") {
			t.Errorf("read back as %+v", in)
		}
	}
}

// TestWhatIsReadBackIsWhatWouldHaveCome: roles, names and mentions are the same either way.
func TestWhatIsReadBackIsWhatWouldHaveCome(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	r.says(ana, general, "hello all")
	r.hears("hello all")
	r.j.refuse = nil
	text := "<@&" + botRole + "> please look, <@" + ben + ">"
	r.says(ana, general, text)
	live := r.inbound("please look, @ben")
	if !live.Mentioned || !slices.Equal(live.From.Roles, []string{opsRole}) || live.From.Name != "Ana" || live.Title != "general" {
		t.Errorf("came as %+v", live)
	}
	r.end()
	r.j.mu.Lock()
	delete(r.j.keys, live.Key)
	r.j.taken = r.j.taken[:1]
	r.j.mu.Unlock()
	r.restart()
	if again := r.inbound("please look, @ben"); fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", live) {
		t.Errorf("read back as\n%+v\ncame as\n%+v", again, live)
	}
}

func TestRoomThatIsGoneHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	r.says(ana, dm, "hello")
	r.says(ana, general, "hello all")
	r.hears("hello", "hello all")
	r.end()
	r.fake.RemoveChannel(general)
	r.j.newest["900000000000009999"] = "900000000000009999" // of a conversation that nobody knows any more
	r.says(ana, dm, "missed")
	r.fake.AddFault(discordtest.Fault{Route: "GET /channels/{channel}/messages", Do: discordtest.Reply, Status: 503, Times: 3})
	r.fake.AddFault(discordtest.Fault{Route: "GET /channels/{channel}/messages", Do: discordtest.Reply, Status: 429, After: 20 * time.Millisecond, Times: 2})
	r.restart()
	r.hears("missed")
}

func TestOddMessagesDoNotStopAPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	// A component type that nobody knows makes the SDK's own types fail; ours do not look at it.
	r.fake.Raw("MESSAGE_CREATE", `{"id":"1200000000000000001","channel_id":"`+dm+`","type":0,"author":{"id":"`+ana+`","username":"ana"},
		"content":"with a widget","timestamp":"2026-01-02T03:04:05+00:00","components":[{"type":9999,"custom":{}}]}`)
	r.fake.Raw("MESSAGE_CREATE", `{"id":17,"channel_id":[]}`)
	r.fake.Raw("MESSAGE_CREATE", `{"id":"1200000000000000002","channel_id":"`+dm+`","author":null,"content":"nobody's"}`)
	r.fake.Raw("INTERACTION_CREATE", `{"id":"5","type":2,"token":"t"}`)
	r.fake.Raw("MESSAGE_REACTION_ADD", `{}`)
	r.fake.Raw("NEVER_HEARD_OF", `{"a":1}`)
	r.says(ana, dm, "and on")
	r.hears("with a widget", "and on")
	r.wait("what cannot be read", func() bool { return r.j.count(channels.KindUnparsed) == 4 })
}

func TestEditsDeletionsAndReactionsAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	id := r.says(ana, thread, "helo")
	two := r.says(ben, thread, "second")
	r.hears("helo", "second")
	r.fake.Preview(thread, id) // no edit
	r.fake.EditIn(thread, id, "hello")
	r.fake.React(thread, id, ben, "👍", true)
	r.fake.React(thread, id, ben, "👍", false)
	r.fake.DeleteIn(thread, id, two)
	r.wait("all of it", func() bool {
		return r.j.count(channels.KindEdit) == 1 && r.j.count(channels.KindReaction) == 2 && r.j.count(channels.KindDelete) == 2
	})
	for _, in := range r.j.all()[2:] {
		if in.To != r.at(thread) || in.Kind != channels.KindDelete && in.Target != channels.MessageID(id) {
			t.Errorf("told %+v", in)
		}
	}
	if in := r.inbound("hello"); in.Kind != channels.KindEdit || in.Command {
		t.Errorf("the edit is %+v", in)
	}
}

func TestWhoIsMeant(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	bot := r.fake.Bot().ID
	id, err := r.c.Send(r.ctx(), channels.Post{To: r.at(general), Token: "t1", Text: "at your service"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, want string
		in         discordtest.In
		mentioned  bool
		command    bool
	}{
		{text: "<@" + bot + "> hi", want: "hi", mentioned: true},
		{text: "<@!" + bot + ">", want: "", mentioned: true},
		{text: "<@&" + opsRole + "> ops only", want: "<@&" + opsRole + "> ops only"},
		{text: "@everyone wake up", want: "@everyone wake up"},
		{text: "/status please", want: "/status please"},
		{text: "<@" + bot + "> /status", want: "/status", mentioned: true, command: true},
		{text: "an answer", want: "an answer", in: discordtest.In{ReplyTo: string(id)}, mentioned: true},
	} {
		c.in.Channel, c.in.From, c.in.Text = general, ana, c.text
		id := r.fake.Write(c.in)
		r.wait(c.text, func() bool {
			return slices.ContainsFunc(r.j.all(), func(in channels.Inbound) bool { return in.ID == channels.MessageID(id) })
		})
		for _, in := range r.j.all() {
			if in.ID == channels.MessageID(id) && (in.Text != c.want || in.Mentioned != c.mentioned || in.Command != c.command) {
				t.Errorf("%q became %q, mentioned %v, command %v", c.text, in.Text, in.Mentioned, in.Command)
			}
		}
	}
	r.says(ana, dm, "/new")
	if in := r.inbound("/new"); !in.Command || in.To.Kind != channels.DM {
		t.Errorf("a command in private is %+v", in)
	}
	r.fake.Write(discordtest.In{Channel: general, From: ana, Text: "by a hook", Webhook: "1"})
	r.says(ana, dm, "fence")
	r.hears("fence")
}

func TestPanicAndRefusalHoldNothingBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	n := 0
	r.j.refuse = func([]channels.Inbound) error {
		switch n++; n {
		case 1:
			panic("a fault of the other side")
		case 2, 3:
			return channels.ErrBusy
		}
		return nil
	}
	r.says(ana, dm, "patience")
	r.hears("patience")
	r.wait("ready again", func() bool { return r.j.last().State == channels.Ready })
	if !slices.ContainsFunc(r.j.told(), func(s channels.Status) bool { return s.State == channels.Deaf }) {
		t.Errorf("that messages wait was not told: %+v", r.j.told())
	}
}

// TestCommandsAndButtonsAreAnsweredThroughTheirHandle: heard within three seconds, answered in its place, for its sender
// alone in a server, and not twice when the answer's answer was lost.
func TestCommandsAndButtonsAreAnsweredThroughTheirHandle(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	if err := r.c.PublishMenu(r.ctx(), []channels.MenuItem{{Name: "status", Help: "what goes on"}, {Name: "Not a name", Help: "x"}}); err != nil {
		t.Fatal(err)
	}
	if m := r.fake.Menu(""); len(m) != 1 || m[0] != [2]string{"status", "what goes on"} {
		t.Fatalf("menu %v", m)
	}
	id, ok := r.fake.Command(thread, ana, "status", "in full")
	if !ok {
		t.Fatal("no such command")
	}
	in := r.inbound("/status in full")
	if !in.Command || in.To != r.at(thread) || !in.Handle.Holds(time.Now()) || in.From.User != ana || !slices.Equal(in.From.Roles, []string{opsRole}) {
		t.Errorf("the command is %+v", in)
	}
	post := channels.Post{To: in.To, Token: "a", Text: "all is well", Handle: in.Handle, Private: true}
	r.fake.AddFault(discordtest.Fault{Route: "PATCH /webhooks/{app}/{token}/messages/{message}", Do: discordtest.CutAfter, Times: 1})
	if _, err := r.c.Send(r.ctx(), post); channels.ClassOf(err) != channels.Unknown {
		t.Errorf("a lost answer is %v", err)
	}
	first, err := r.c.Send(r.ctx(), post)
	if err != nil {
		t.Fatal(err)
	}
	more := post
	more.Text = "and more"
	if _, err := r.c.Send(r.ctx(), more); err != nil {
		t.Fatal(err)
	}
	a := r.fake.Answer(id)
	if a.Late || a.Type != 5 || a.Original.Text != "all is well" || a.Original.For != ana || a.Original.ID != string(first) || a.Follows != 1 {
		t.Errorf("the command was answered by %+v", a)
	}
	if seen := r.fake.Sees(thread, ana); len(seen) != 2 || len(r.fake.Sees(thread, ben)) != 0 {
		t.Errorf("ana sees %+v, ben %+v", seen, r.fake.Sees(thread, ben))
	}
	r.presses()
}

func (r *rig) presses() {
	t := r.t
	asked, err := r.c.Send(r.ctx(), channels.Post{To: r.at(general), Token: "q", Text: "sure?", Actions: [][]channels.Action{{{Label: "Yes", Value: "y:1"}, {Label: "No", Value: "n:1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	id, ok := r.fake.Press(general, string(asked), ben, "y:1")
	if !ok {
		t.Fatal("no such button")
	}
	in := r.inbound("y:1")
	if in.Kind != channels.KindButton || in.Target != asked || in.From.User != ben || in.To != r.at(general) {
		t.Errorf("the press is %+v", in)
	}
	if _, err := r.c.Send(r.ctx(), channels.Post{To: in.To, Token: "n", Text: "only Ana may", Handle: in.Handle, Private: true}); err != nil {
		t.Fatal(err)
	}
	if a := r.fake.Answer(id); a.Type != 6 || a.Late {
		t.Errorf("the press was answered by %+v", a)
	}
	if m, _ := r.fake.Message(general, string(asked)); m.Text != "sure?" {
		t.Errorf("the question became %q", m.Text)
	}
	if seen := r.fake.Sees(general, ben); len(seen) != 2 || len(r.fake.Sees(general, ana)) != 1 {
		t.Errorf("ben sees %+v", seen)
	}
	if err := r.c.Edit(r.ctx(), asked, channels.Post{To: r.at(general), Text: "Ben said yes"}); err != nil {
		t.Fatal(err)
	}
	if m, _ := r.fake.Message(general, string(asked)); m.Text != "Ben said yes" || len(m.Buttons) != 0 {
		t.Errorf("after the decision: %+v", m)
	}
	// A handle that does not work any more is no reason to say nothing.
	stale := channels.ReplyHandle{Secret: ofCommand + "gone"}
	if _, err := r.c.Send(r.ctx(), channels.Post{To: r.at(dm), Token: "s", Text: "late", Handle: stale}); err != nil {
		t.Fatal(err)
	}
	if sent := r.fake.Sent(dm); len(sent) != 1 || sent[0].Text != "late" {
		t.Errorf("without a handle: %+v", sent)
	}
	// … unless all would read what is for one.
	before := len(r.fake.Sent(general))
	if _, err := r.c.Send(r.ctx(), channels.Post{To: r.at(general), Token: "p", Text: "for Ben alone", Handle: stale, Private: true}); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("a private answer without a handle: %v", err)
	}
	if now := len(r.fake.Sent(general)); now != before {
		t.Errorf("everybody was told what was for Ben")
	}
}

func TestCommandThatNobodyAnswersStopsThinking(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.c.pace.thinking = 20 * time.Millisecond
	r.run()
	r.fake.Offer("", [2]string{"status", "what goes on"})
	id, ok := r.fake.Command(general, ben, "status", "")
	if !ok {
		t.Fatal("no such command")
	}
	in := r.inbound("/status")
	if err := r.fake.WaitFor(r.ctx(), func() bool { return r.fake.Answer(id).Original.Deleted }); err != nil {
		t.Fatalf("it still thinks: %+v", r.fake.Answer(id))
	}
	if _, err := r.c.Send(r.ctx(), channels.Post{To: in.To, Token: "l", Text: "late", Handle: in.Handle, Private: true}); err != nil {
		t.Fatal(err)
	}
	if seen := r.fake.Sees(general, ben); len(seen) != 1 || seen[0].Text != "late" || seen[0].For != ben {
		t.Errorf("a late answer is %+v", seen)
	}
}

func TestOptionsAreJudgedWithoutTheNetwork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ token, url, want string }{
		{discordtest.DefaultToken, "", ""},
		{discordtest.DefaultToken, "http://127.0.0.1:8082/api/v10", ""},
		{"", "", "token is missing"},
		{"Bot " + discordtest.DefaultToken, "", `without "Bot "`},
		{"abc", "", "token is not a bot token"},
		{"a.b.c\n", "", "token is not a bot token"},
		{discordtest.DefaultToken, "ftp://h", "api_url must be"},
		{discordtest.DefaultToken, "http://h/?t=1", "api_url must be"},
	} {
		err := (&Options{Token: channels.Secret(c.token), APIURL: c.url}).Validate()
		var bad *channels.OptionError
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &bad)) {
			t.Errorf("%q %q: %v, want %q", c.token, c.url, err, c.want)
		}
	}
	for id, good := range map[string]bool{"1198622483471925248": true, "ana": false, "": false, "12 3": false, "-1198622483471925248": false} {
		if err := (&Options{}).CheckID(id); (err == nil) != good {
			t.Errorf("id %q: %v", id, err)
		}
	}
}

// T27: a reply quotes what stands in its own channel. What names another one gives no text of it and calls nobody.
func TestT27_AQuoteGivesOnlyWhatWasSaidHere(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	for i, c := range []struct {
		name, in, of, id string // where the reference says that it is, what it refers to, and the id of what is given for it
		ours             bool
	}{
		{"here", general, general, "7", true},
		{"said to be elsewhere", dm, general, "7", false},
		{"given from elsewhere", general, dm, "7", false},
		{"given for another", general, general, "8", false},
		{"in its thread", thread, thread, "7", false},
	} {
		text := fmt.Sprintf("case %d", i)
		r.fake.Raw("MESSAGE_CREATE", fmt.Sprintf(`{"id":"120000000000000000%d","channel_id":"%s","guild_id":"%s","type":19,"author":{"id":"%s","username":"ana"},"content":"%s",
			"message_reference":{"message_id":"7","channel_id":"%s"},"referenced_message":{"id":"%s","channel_id":"%s","author":{"id":"%s","username":"parley"},"content":"an answer"}}`,
			i, general, server, ana, text, c.in, c.id, c.of, r.fake.Bot().ID))
		in := r.inbound(text)
		if q := in.Quote; (q != nil) != c.ours || in.Mentioned != c.ours || q != nil && (!q.Own || q.Text != "an answer") {
			t.Errorf("%s: reply to %q, quote %+v", c.name, in.ReplyTo, q)
		}
	}
}
