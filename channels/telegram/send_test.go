package telegram

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"parley/channels"
	"parley/channels/channeltest"
)

func dm() channels.Address {
	return channels.Address{Network: Network, Account: "4242", Kind: channels.DM, Peer: "7"}
}

// lastForm is the form of the only call to method.
func lastForm(t *testing.T, s *script, method string) url.Values {
	t.Helper()
	calls := s.made(method)
	if len(calls) != 1 {
		t.Fatalf("%d calls of %s", len(calls), method)
	}
	return calls[0]
}

func TestT15_SentTextIsHTMLWithoutPreview(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.on("sendMessage", ok(`{"message_id":12}`))
	c, _ := s.channel(t)
	m, err := c.Send(t.Context(), channels.Post{To: dm(), Text: "<b>a & b</b>\n世界 😀+%", Silent: true, ReplyTo: "9",
		Actions: [][]channels.Action{{{Label: "Yes", Value: "y"}, {Label: "No", Value: "n"}}}})
	if err != nil || m != "12" {
		t.Fatalf("%q, %v", m, err)
	}
	form := lastForm(t, s, "sendMessage")
	for key, want := range map[string]string{
		"chat_id": "7", "text": "<b>a & b</b>\n世界 😀+%", "parse_mode": "HTML", "disable_notification": "true",
		"link_preview_options": `{"is_disabled":true}`,
		"reply_parameters":     `{"message_id":9,"allow_sending_without_reply":true}`,
		"reply_markup":         `{"inline_keyboard":[[{"text":"Yes","callback_data":"y"},{"text":"No","callback_data":"n"}]]}`,
	} {
		if got := form.Get(key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if form.Has("message_thread_id") {
		t.Error("a topic outside of topics")
	}
}

func TestTopicIsNamedExceptTheGeneralOne(t *testing.T) {
	t.Parallel()
	for thread, want := range map[channels.ThreadID]string{"12": "12", "1": "", "": ""} {
		s := newScript()
		s.on("sendMessage", ok(`{"message_id":12}`))
		s.on("sendChatAction", ok(`true`))
		c, _ := s.channel(t)
		to := channels.Address{Kind: channels.Group, Peer: "-100", Thread: thread}
		if _, err := c.Send(t.Context(), channels.Post{To: to, Text: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := c.ShowTyping(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		if got := lastForm(t, s, "sendMessage").Get("message_thread_id"); got != want {
			t.Errorf("thread %q is sent as %q", thread, got)
		}
		if form := lastForm(t, s, "sendChatAction"); form.Get("message_thread_id") != want || form.Get("action") != "typing" {
			t.Errorf("typing: %v", form)
		}
	}
}

func TestRefusedMarkupGoesOncePlain(t *testing.T) {
	t.Parallel()
	unparsable := refuse(400, "Bad Request: can't parse entities: Unsupported start tag \"x\" at byte offset 0")
	s := newScript()
	s.onTurns("sendMessage", unparsable, ok(`{"message_id":5}`))
	s.onTurns("editMessageText", unparsable, ok(`true`))
	c, _ := s.channel(t)
	p := channels.Post{To: dm(), Text: "<x>hi", Plain: "hi", Actions: [][]channels.Action{{{Label: "a", Value: "v"}}}}
	if m, err := c.Send(t.Context(), p); err != nil || m != "5" {
		t.Fatalf("%q, %v", m, err)
	}
	if err := c.Edit(t.Context(), "5", p); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"sendMessage", "editMessageText"} {
		calls := s.made(method)
		if len(calls) != 2 || calls[1].Get("text") != "hi" || calls[1].Has("parse_mode") || !calls[1].Has("reply_markup") || !calls[1].Has("link_preview_options") {
			t.Errorf("%s: %v", method, calls)
		}
	}
	s.on("sendMessage", unparsable)
	if _, err := c.Send(t.Context(), p); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("refused twice: %v", err)
	}
	if n := len(s.made("sendMessage")); n != 4 {
		t.Errorf("%d tries, want 4", n)
	}
}

func TestEditAndDeleteOfWhatIsSoAlreadySucceed(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.on("editMessageText", refuse(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same"))
	s.on("deleteMessage", refuse(400, "Bad Request: message to delete not found"))
	c, _ := s.channel(t)
	if err := c.Edit(t.Context(), "5", channels.Post{To: dm(), Text: "x"}); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), dm(), "5"); err != nil {
		t.Error(err)
	}
	if form := lastForm(t, s, "deleteMessage"); form.Get("chat_id") != "7" || form.Get("message_id") != "5" {
		t.Errorf("%v", form)
	}
	s.on("editMessageText", refuse(400, "Bad Request: message to edit not found"))
	if err := c.Edit(t.Context(), "5", channels.Post{To: dm(), Text: "x"}); channels.ClassOf(err) != channels.BadMessage {
		t.Error(err)
	}
	s.on("deleteMessage", refuse(400, "Bad Request: message can't be deleted for everyone"))
	if err := c.Delete(t.Context(), dm(), "5"); channels.ClassOf(err) != channels.BadMessage {
		t.Error(err)
	}
}

func TestWhatTelegramCannotTakeIsRefusedUnsent(t *testing.T) {
	t.Parallel()
	s := newScript()
	c, _ := s.channel(t)
	button := func(v string) [][]channels.Action { return [][]channels.Action{{{Label: "a", Value: v}}} }
	for name, p := range map[string]channels.Post{
		"peer":          {To: channels.Address{Peer: "@name"}, Text: "x"},
		"no peer":       {Text: "x"},
		"thread":        {To: channels.Address{Peer: "1", Thread: "x"}, Text: "x"},
		"reply":         {To: dm(), Text: "x", ReplyTo: "1.5"},
		"long action":   {To: dm(), Text: "x", Actions: button(strings.Repeat("v", 65))},
		"empty action":  {To: dm(), Text: "x", Actions: button("")},
		"many files":    {To: dm(), Files: make([]channels.File, 2)},
		"missing file":  {To: dm(), Files: []channels.File{channeltest.Unopened("a", 1, errors.New("gone"))}},
		"oversize file": {To: dm(), Files: []channels.File{channeltest.Unopened("a", maxUpload+1, nil)}},
	} {
		if _, err := c.Send(t.Context(), p); channels.ClassOf(err) != channels.BadMessage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Edit(t.Context(), "x", channels.Post{To: dm()}); channels.ClassOf(err) != channels.BadMessage {
		t.Error(err)
	}
	if err := c.React(t.Context(), dm(), "", "👍"); channels.ClassOf(err) != channels.BadMessage {
		t.Error(err)
	}
	if len(s.calls) != 0 {
		t.Errorf("calls were made: %v", s.calls)
	}
}

func TestReactionIsPutAndTaken(t *testing.T) {
	t.Parallel()
	for emoji, want := range map[string]string{"👀": `[{"type":"emoji","emoji":"👀"}]`, "": `[]`} {
		s := newScript()
		s.on("setMessageReaction", ok("true"))
		c, _ := s.channel(t)
		if err := c.React(t.Context(), dm(), "5", emoji); err != nil {
			t.Fatal(err)
		}
		if got := lastForm(t, s, "setMessageReaction").Get("reaction"); got != want {
			t.Errorf("%q is sent as %s", emoji, got)
		}
	}
}

func TestMenuLeavesOutWhatWouldCostIt(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.on("setMyCommands", ok("true"))
	c, _ := s.channel(t)
	items := []channels.MenuItem{{Name: "new", Help: "start"}, {Name: "Bad Name", Help: "x"}, {Name: "dry-run", Help: strings.Repeat("é", 300)}, {Name: "bare"}}
	for range 120 {
		items = append(items, channels.MenuItem{Name: "more", Help: "m"})
	}
	if err := c.PublishMenu(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	list := lastForm(t, s, "setMyCommands").Get("commands")
	if !strings.HasPrefix(list, `[{"command":"new","description":"start"},{"command":"dry_run","description":"`+strings.Repeat("é", 256)+`"},{"command":"bare","description":"bare"}`) {
		t.Errorf("menu begins %.200s", list)
	}
	if n := strings.Count(list, `"command"`); n != 100 {
		t.Errorf("%d commands", n)
	}
}

func TestFileIsADocumentWithCaption(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	c := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || !strings.HasSuffix(r.URL.Path, "/bot"+testToken+"/sendDocument") {
			t.Errorf("%s %v", r.URL.Path, err)
			return
		}
		form, err := multipart.NewReader(r.Body, params["boundary"]).ReadForm(1 << 20)
		if err != nil {
			t.Error(err)
			return
		}
		f := form.File["document"][0]
		file, err := f.Open()
		if err != nil {
			t.Error(err)
			return
		}
		data, _ := io.ReadAll(file)
		if f.Filename != "table.csv" || string(data) != "a,b\n" || form.Value["chat_id"][0] != "7" {
			t.Errorf("%q %q %v", f.Filename, data, form.Value)
		}
		if tries.Add(1) == 1 { // the file must be there again for the second try
			w.WriteHeader(400)
			_, _ = io.WriteString(w, refuse(400, "Bad Request: can't parse entities: x").body)
			return
		}
		if form.Value["caption"][0] != "the table" || form.Value["parse_mode"] != nil {
			t.Errorf("%v", form.Value)
		}
		_, _ = io.WriteString(w, ok(`{"message_id":77}`).body)
	}))
	m, err := c.Send(t.Context(), channels.Post{To: dm(), Text: "<the table", Plain: "the table", Files: []channels.File{channeltest.Outgoing("table.csv", "text/csv", []byte("a,b\n"))}})
	if err != nil || m != "77" || tries.Load() != 2 {
		t.Errorf("%q, %v, %d tries", m, err, tries.Load())
	}
}

func TestAnswerOutlivesItsQuestion(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"message to be replied not found", "reply message not found", "replied message not found"} {
		s := newScript()
		s.onTurns("sendMessage", refuse(400, "Bad Request: "+words), ok(`{"message_id":5}`))
		c, _ := s.channel(t)
		if m, err := c.Send(t.Context(), channels.Post{To: dm(), Text: "hi", ReplyTo: "3"}); err != nil || m != "5" {
			t.Errorf("%s: %q, %v", words, m, err)
		}
		if calls := s.made("sendMessage"); len(calls) != 2 || calls[1].Has("reply_parameters") {
			t.Errorf("%s: %v", words, calls)
		}
	}
}
