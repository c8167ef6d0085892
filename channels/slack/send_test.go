package slack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/markup"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

func (b *bench) send(p channels.Post) channels.MessageID {
	b.t.Helper()
	id, err := b.ch.Send(b.t.Context(), p)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func as[C any](b *bench) C {
	b.t.Helper()
	c, ok := channels.As[C](b.ch)
	if !ok {
		b.t.Fatalf("the adapter is no %T", *new(C))
	}
	return c
}

// TestT15_NothingRingsAndNothingIsPreviewed: what a model writes rings nobody and fetches nothing, in every form.
func TestT15_NothingRingsAndNothingIsPreviewed(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	const md = "Look <!channel> <!here|x> <@U0BEN00001> <!subteam^S0TEAM0001> @channel https://evil.example/?q=secret\n\n```\n<!everyone>\n```"
	text, plain := markup.Render(md, markup.Span{To: len(md)}, channels.Slack)
	p := channels.Post{To: b.room(""), Text: text, Plain: plain}
	ids := []channels.MessageID{b.send(p)}
	p.Actions = [][]channels.Action{{{Label: "<!channel>", Value: "v"}}}
	ids = append(ids, b.send(p))
	if err := as[channels.Editor](b).Edit(t.Context(), ids[0], p); err != nil {
		t.Fatal(err)
	}
	s.Command(groupID, anaID, "/parley", "status")
	in := b.get("a command", withText("/status"))
	p.Handle, p.Private = in.Handle, true
	b.send(p)
	for _, m := range append(s.View().Sent(groupID), s.View().Ephemerals(groupID, anaID)...) {
		if rung := m.Mentions(); len(rung) > 0 {
			t.Errorf("%q rings %q", m.Shown(), rung)
		}
		if m.For == "" && len(m.Edits) == 0 && !m.NoUnfurl {
			t.Errorf("links of %q are previewed", m.Shown())
		}
	}
}

func TestAnswersGoIntoTheThreadOfTheirQuestion(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	asked := s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "a question"})
	reply := channels.Post{To: b.room(""), Text: "an answer", Token: "t1", ReplyTo: channels.MessageID(asked)}
	id := b.send(reply)
	if m, _ := s.View().Message(groupID, string(id)); m.ThreadTS != asked {
		t.Errorf("the answer is in the thread %q, want %q", m.ThreadTS, asked)
	}
	other := s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "gone soon"})
	s.Delete(groupID, other)
	reply.ReplyTo, reply.Token, reply.Text = "1600000000.000100", "t2", "an answer to nothing"
	id = b.send(reply)
	if m, _ := s.View().Message(groupID, string(id)); m.ThreadTS != "" {
		t.Errorf("the answer to what is gone is in the thread %q", m.ThreadTS)
	}
	direct := channels.Post{To: b.dm(), Text: "flat", ReplyTo: channels.MessageID(asked)}
	if m, _ := s.View().Message(anaDM, string(b.send(direct))); m.ThreadTS != "" {
		t.Errorf("a direct message is in the thread %q", m.ThreadTS)
	}
	s.Say(slacktest.Say{Channel: groupID, User: benID, Text: "to you", Thread: string(b.send(channels.Post{To: b.room(""), Text: "a notice of Parley's"}))})
	if in := b.get("a reply to us", withText("to you")); in.Quote == nil || !in.Quote.Own || in.To.Thread == "" {
		t.Errorf("a reply in a thread of Parley's: %+v", in)
	}
}

func TestButtonsGoWithTheDecision(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	p := channels.Post{To: b.room(""), Token: "t", Text: "**Run** `rm -r x`?", Plain: "Run rm -r x?",
		Actions: [][]channels.Action{{{Label: "Once", Value: "a:1:once"}, {Label: "Deny", Value: "a:1:deny"}}, {{Label: strings.Repeat("long ", 30), Value: "a:1:long"}}}}
	id := b.send(p)
	if m, _ := s.View().Message(groupID, string(id)); len(m.Buttons()) != 2 || !strings.Contains(m.Text, "Run rm") {
		t.Errorf("people see %+v", m)
	}
	s.Press(groupID, string(id), benID, "a:1:deny")
	in := b.get("the press", func(in channels.Inbound) bool { return in.Kind == channels.KindButton })
	if in.Text != "a:1:deny" || in.From.User != benID || in.Target != id || in.To != b.room("") || in.Handle.Secret == "" {
		t.Errorf("the press is %+v", in)
	}
	p.Text, p.Actions = "Ben said no.", nil
	if err := as[channels.Editor](b).Edit(t.Context(), id, p); err != nil {
		t.Fatal(err)
	}
	if m, _ := s.View().Message(groupID, string(id)); len(m.Buttons()) != 0 || m.Shown() != "Ben said no." {
		t.Errorf("after the decision people see %q with %v", m.Shown(), m.Buttons())
	}
}

func TestStreamsAreNativeWhereTheyMayBe(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	root := s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "at length"})
	for name, tc := range map[string]struct {
		p      channels.Post
		native bool
	}{
		"thread of a room, for somebody": {channels.Post{To: b.room(root), Token: "a", For: anaID}, true},
		"answer in a room":               {channels.Post{To: b.room(""), Token: "b", For: anaID, ReplyTo: channels.MessageID(root)}, true},
		"room, for nobody":               {channels.Post{To: b.room(root), Token: "c"}, false},
		"direct message":                 {channels.Post{To: b.dm(), Token: "d", For: anaID}, false},
		"a person Slack does not know":   {channels.Post{To: b.room(root), Token: "e", For: "U0NOBODY01"}, false},
	} {
		before := s.View().Calls("chat.appendStream")
		st, err := as[channels.Streamer](b).Stream(t.Context(), tc.p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, piece := range []string{"one ", "two "} {
			if err := st.Append(t.Context(), piece); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := st.Close(t.Context(), "three"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m, ok := s.View().Message(string(tc.p.To.Peer), string(st.ID()))
		if !ok || m.Shown() != "one two three" || m.Streaming {
			t.Errorf("%s: people see %+v", name, m)
		}
		if native := s.View().Calls("chat.appendStream") > before; native != tc.native {
			t.Errorf("%s: native %v, want %v", name, native, tc.native)
		}
		if err := as[channels.Editor](b).Edit(t.Context(), st.ID(), channels.Post{To: tc.p.To, Token: tc.p.Token, Text: "the end"}); err != nil {
			t.Errorf("%s: the last edit: %v", name, err)
		}
		id, found, _, err := as[channels.Finder](b).Find(t.Context(), tc.p, time.Now().Add(-time.Minute))
		if err != nil || !found || id != st.ID() {
			t.Errorf("%s: found %q %v %v, want %q", name, id, found, err, st.ID())
		}
	}
}

// TestAnEditEndsTheStreamOfAnEarlierProcess: Slack refuses to update what still streams.
func TestAnEditEndsTheStreamOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	root := s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "at length"})
	st, err := as[channels.Streamer](b).Stream(t.Context(), channels.Post{To: b.room(root), Text: "half", For: anaID})
	if err != nil {
		t.Fatal(err)
	}
	if err := as[channels.Editor](b).Edit(t.Context(), st.ID(), channels.Post{To: b.room(root), Text: "whole"}); err != nil {
		t.Fatal(err)
	}
	if m, _ := s.View().Message(groupID, string(st.ID())); m.Shown() != "whole" || m.Streaming {
		t.Errorf("people see %+v", m)
	}
}

func TestFindTellsWhatWasSent(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	root := s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "root"})
	since := time.Now()
	for name, p := range map[string]channels.Post{
		"direct":    {To: b.dm(), Token: "tok-direct", Text: "x"},
		"in a room": {To: b.room(""), Token: "tok-room", Text: "x", ReplyTo: channels.MessageID(root)},
		"in thread": {To: b.room(root), Token: "tok-thread", Text: "x"},
		"buttons":   {To: b.dm(), Token: "tok-buttons", Text: "x", Actions: [][]channels.Action{{{Label: "Y", Value: "y"}}}},
		"a file":    {To: b.dm(), Token: "tok-file", Text: "x", Files: []channels.File{channeltest.Outgoing("t.csv", "text/csv", []byte("a,b\n"))}},
	} {
		if _, found, sure, err := as[channels.Finder](b).Find(t.Context(), p, since); err != nil || found || !sure {
			t.Errorf("%s, before: found %v, sure %v, %v", name, found, sure, err)
		}
		id := b.send(p)
		for range 300 { // more than a page
			if name == "direct" {
				s.Say(slacktest.Say{Channel: anaDM, User: anaID, Text: "noise"})
			}
		}
		got, found, _, err := as[channels.Finder](b).Find(t.Context(), p, since)
		if err != nil || !found || got != id {
			t.Errorf("%s: found %q %v %v, want %q", name, got, found, err, id)
		}
		if again := b.send(p); len(p.Files) == 0 && again != id {
			t.Errorf("%s: a second send of one token is another message", name)
		}
	}
}

func TestHandlesEndAndFallBack(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	s.Command(anaDM, anaID, "/parley", "")
	in := b.get("a bare command", withText("/help"))
	p := channels.Post{To: b.dm(), Text: "answer", Handle: in.Handle}
	for range 7 { // it works five times
		b.send(p)
	}
	if sent := s.View().Sent(anaDM); len(sent) != 7 {
		t.Errorf("%d answers, want 7", len(sent))
	}
	p.Private = true
	if _, err := b.ch.Send(t.Context(), p); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("a private answer without a handle left: %v", err)
	}
	p.Handle.Secret = "https://evil.example/commands/x"
	if _, err := b.ch.Send(t.Context(), p); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("a handle elsewhere: %v", err)
	}
	for _, secret := range []string{in.Handle.Secret, in.Handle.Secret[len(in.Handle.Secret)-12:]} {
		if strings.Contains(b.log.String(), secret) {
			t.Error("the response_url is in the log")
		}
	}
}

// TestT18_TheTokenGoesToSlackOnly: a file that is kept elsewhere is not fetched, a redirect not followed, a page of another
// kind not taken for the file.
func TestT18_TheTokenGoesToSlackOnly(t *testing.T) {
	t.Parallel()
	stolen := make(chan string, 10)
	elsewhere := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") })}
	defer elsewhere.Close()
	for name, info := range map[string]string{
		"external":  `{"ok":true,"file":{"id":"F1","size":3,"is_external":true,"url_private_download":"https://evil.example/x"}}`,
		"elsewhere": `{"ok":true,"file":{"id":"F1","size":3,"url_private_download":"https://slack.com.evil.example/x"}}`,
		"no https":  `{"ok":true,"file":{"id":"F1","size":3,"url_private_download":"http://files.slack.com/x"}}`,
		"nowhere":   `{"ok":true,"file":{"id":"F1","size":3}}`,
		"endless":   `{"ok":true,"file":{"id":"F1","size":99999999999,"url_private_download":"https://files.slack.com/x"}}`,
	} {
		api := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "slack.com" {
				stolen <- r.URL.Host
			}
			return answer(info), nil
		})
		ch, err := slack.Factory().New("work", &slack.Options{BotToken: "xoxb-1-2-abcdefgh", AppToken: "xapp-1-A-abcdefgh"},
			channels.Deps{Log: discard(), HTTP: &http.Client{Transport: api}, Clock: &channeltest.Clock{}})
		if err != nil {
			t.Fatal(err)
		}
		o, _ := channels.As[channels.Opener](ch)
		if rc, err := o.Open(t.Context(), channels.Attachment{ID: "F1"}); err == nil {
			_ = rc.Close()
			t.Errorf("%s: opened", name)
		}
	}
	select {
	case host := <-stolen:
		t.Errorf("the token went to %q", host)
	default:
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(body string) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

func TestFailuresAreClassified(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	for code, want := range map[string]channels.Class{
		"channel_not_found": channels.PeerGone, "is_archived": channels.PeerGone, "restricted_action": channels.PeerGone, "msg_too_long": channels.BadMessage,
		"ratelimited": channels.Retry, "internal_error": channels.Unknown, "fatal_error": channels.Unknown, "token_revoked": channels.Fatal, "a_new_word": channels.BadMessage,
		"missing_scope": channels.BadMessage,
	} {
		s.AddFault(slacktest.Fault{Method: "chat.postMessage", Do: slacktest.Reply, Error: code, Times: 1})
		if _, err := b.ch.Send(t.Context(), channels.Post{To: b.dm(), Text: "x"}); channels.ClassOf(err) != want {
			t.Errorf("%s is %s (%v), want %s", code, channels.ClassOf(err), err, want)
		}
	}
	b.until("the missing scope to be told", func() bool { st := b.in.told(channels.Ready); return strings.Contains(st.Cause, "missing_scope") })
	for do, want := range map[slacktest.Do]channels.Class{slacktest.CutAfter: channels.Unknown, slacktest.CutMiddle: channels.Unknown} {
		s.AddFault(slacktest.Fault{Method: "chat.postMessage", Do: do, Times: 1})
		if _, err := b.ch.Send(t.Context(), channels.Post{To: b.dm(), Text: "x"}); channels.ClassOf(err) != want {
			t.Errorf("fault %d is %s, want %s", do, channels.ClassOf(err), want)
		}
	}
	for _, p := range []channels.Post{{To: b.dm()}, {To: b.dm(), Text: strings.Repeat("a", 12001)}, {To: b.dm(), Text: "x", Actions: [][]channels.Action{{{Label: "Y"}}}},
		{To: b.dm(), Text: "x", Files: []channels.File{channeltest.Unopened("x", 1, errors.New("gone"))}}} {
		if _, err := b.ch.Send(t.Context(), p); channels.ClassOf(err) != channels.BadMessage {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestTokensAreTold(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		o    slack.Options
		want string
	}{
		{slack.Options{BotToken: "xapp-1-2-3", AppToken: "xoxb-1-2-3"}, "swapped"},
		{slack.Options{BotToken: "xoxp-1-2-3", AppToken: "xapp-1-2-3"}, "not a bot token"},
		{slack.Options{BotToken: "xoxb-1-2-3"}, "app_token is missing"},
		{slack.Options{AppToken: "xapp-1"}, "bot_token is missing"},
		{slack.Options{BotToken: "xoxb-1-2-3", AppToken: "xapp-1-2-3", APIURL: "ftp://x"}, "api_url"},
		{slack.Options{BotToken: "xoxb-1-2-3", AppToken: "xapp-1-2-3", Mode: "carrier pigeon"}, "mode"},
		{slack.Options{BotToken: "xoxb-1-2-3", AppToken: "xapp-1-2-3"}, ""},
	} {
		err := tc.o.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.o, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "1-2-3") {
			t.Errorf("a token is told: %v", err)
		}
	}
}

func TestReadingSlacksText(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	bot := "<@" + s.Team(0).Bot.ID + ">"
	for i, tc := range [][2]string{
		{"a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"},
		{"<https://go.dev> and <https://go.dev|go.dev> and <https://go.dev/x|the docs>", "https://go.dev and go.dev and [the docs](https://go.dev/x)"},
		{"<mailto:a@b.example|a@b.example>", "a@b.example"},
		{"<@U0BEN00001> in <#C0GROUP001|friends> and <#C0GROUP001>", "@ben in #friends and #C0GROUP001"},
		{"<!here> <!subteam^S012|@ops> <!date^1700000000^{date}|today>", "@here @ops today"},
		{bot + " do it", "do it"}, {bot + ": do it", "do it"}, {"do it " + bot, "do it"}, {"ask " + bot + " to do it", "ask @parley to do it"},
		{bot, ""}, {bot + " /status", "/status"}, {"1 < 2 <not a link", "1 < 2 <not a link"},
	} {
		ts := s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: tc[0]})
		in := b.get(fmt.Sprint("message ", i), func(in channels.Inbound) bool { return in.ID == channels.MessageID(ts) })
		if in.Text != tc[1] || in.Mentioned != strings.Contains(tc[0], bot) || in.Command != strings.HasPrefix(tc[1], "/") {
			t.Errorf("%q is %q, mentioned %v, command %v; want %q", tc[0], in.Text, in.Mentioned, in.Command, tc[1])
		}
	}
}

func TestEditsDeletesAndReactions(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	ts := s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "helo"})
	s.Unfurl(groupID, ts)
	s.Edit(groupID, ts, "hello")
	s.React(groupID, ts, benID, "thumbsup::skin-tone-3")
	s.React(groupID, ts, benID, "partyparrot")
	s.Unreact(groupID, ts, benID, "partyparrot")
	s.Say(slacktest.Say{Channel: groupID, User: benID, Text: "reply", Thread: ts})
	s.Delete(groupID, ts) // the root of a thread: a tombstone stays
	b.until("all", func() bool { return s.View().Pending() == 0 })
	var got []string
	b.in.mu.Lock()
	for _, in := range b.in.all {
		got = append(got, fmt.Sprintf("%s %s %s", in.Kind, in.From.Name, in.Text))
		if in.Kind != channels.KindMessage && in.Target != channels.MessageID(ts) {
			t.Errorf("%s has the target %q", in.Kind, in.Target)
		}
	}
	b.in.mu.Unlock()
	want := []string{"message ana helo", "edit ana hello", "reaction ben 👍", "reaction ben :partyparrot:", "reaction ben ", "message ben reply", "delete ana "}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("came\n%q, want\n%q", got, want)
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	raw, err := slack.Manifest(channels.ManifestAsk{Name: "Parley", Commands: []channels.MenuItem{{Name: "new", Help: "start afresh"}, {Name: "status", Help: "Slack has its own"}}})
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "manifest.json")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || strings.TrimSpace(string(want)) != string(raw) {
		t.Errorf("the manifest is\n%s\nwant the golden file, %v", raw, err)
	}
	raw, err = slack.Manifest(channels.ManifestAsk{Name: "Parley", URL: "https://parley.example/channels/work/events"})
	var m struct {
		Settings struct {
			Socket bool `json:"socket_mode_enabled"`
			Events struct {
				URL string `json:"request_url"`
			} `json:"event_subscriptions"`
		} `json:"settings"`
	}
	if err != nil || json.Unmarshal(raw, &m) != nil || m.Settings.Socket || m.Settings.Events.URL == "" {
		t.Errorf("over http: %s %v", raw, err)
	}
	for _, ask := range []channels.ManifestAsk{{}, {Name: strings.Repeat("x", 36)}, {Name: "x", URL: "http://plain.example"}} {
		if _, err := slack.Manifest(ask); err == nil {
			t.Errorf("%+v gives a manifest", ask)
		}
	}
}

func TestHistoryHasOursAndTheLast(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	root := s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "root"})
	for i := range 250 {
		s.Say(slacktest.Say{Channel: groupID, User: benID, Text: fmt.Sprint("reply ", i), Thread: root})
	}
	b.send(channels.Post{To: b.room(root), Text: "ours"})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	list, err := as[channels.Historian](b).History(ctx, b.room(root), 20)
	if err != nil || len(list) != 21 || list[0].Text != "root" || list[1].Text != "reply 231" || list[20].Text != "ours" || !list[20].From.Bot || list[20].From.Name == "" {
		t.Errorf("history of %d, %v: %+v", len(list), err, list)
	}
}
