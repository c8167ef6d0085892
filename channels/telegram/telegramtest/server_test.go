package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type answer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		Retry   int   `json:"retry_after"`
		Migrate int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// client talks to a Server with nothing but net/http.
type client struct {
	t    *testing.T
	s    *Server
	http *http.Client
}

func newClient(t *testing.T, o Options) *client {
	t.Helper()
	s := Start(t, o)
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &client{t, s, &http.Client{Transport: tr}}
}

func (c *client) try(ctx context.Context, method string, kv ...string) (answer, error) {
	form := url.Values{}
	for i := 0; i < len(kv); i += 2 {
		form.Set(kv[i], kv[i+1])
	}
	return c.post(ctx, method, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

func (c *client) post(ctx context.Context, method, kind string, body io.Reader) (answer, error) {
	var a answer
	req, err := http.NewRequestWithContext(ctx, "POST", c.s.URL()+"/bot"+c.s.Token()+"/"+method, body)
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", kind)
	resp, err := c.http.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return a, err
	}
	if !a.OK && a.Code != resp.StatusCode {
		c.t.Errorf("%s: error_code %d with HTTP %d", method, a.Code, resp.StatusCode)
	}
	return a, nil
}

func (c *client) do(method string, kv ...string) answer {
	c.t.Helper()
	a, err := c.try(c.t.Context(), method, kv...)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return a
}

func (c *client) updates(kv ...string) []int64 {
	c.t.Helper()
	a := c.do("getUpdates", kv...)
	var list []struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(a.Result, &list); err != nil {
		c.t.Fatalf("getUpdates: %v in %+v", err, a)
	}
	ids := make([]int64, 0, len(list))
	for _, u := range list {
		ids = append(ids, u.ID)
	}
	return ids
}

var ana = User{ID: 42, First: "Ana", Username: "ana"}

const (
	groupID = int64(-500)
	superID = int64(-1001)
)

// peopled adds Ana's private chat, a group, and a forum with one topic, whose id it returns.
func (c *client) peopled() int64 {
	c.s.AddPrivate(ana)
	c.s.AddChat(Chat{ID: groupID, Kind: Group, Title: "G"})
	c.s.AddChat(Chat{ID: superID, Kind: Supergroup, Title: "F", Forum: true})
	return c.s.AddTopic(superID, "Ops")
}

func TestRefusesWhatTelegramRefuses(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{NoLimits: true})
	topic := c.peopled()
	c.s.AddPrivate(User{ID: 7, First: "Gone"})
	c.s.Block(7)
	c.s.AddChat(Chat{ID: -600, Kind: Group})
	c.s.Migrate(-600, -1002)
	theirs := fmt.Sprint(c.s.Message(In{Chat: 42, From: ana, Text: "hi"}))
	c.do("sendMessage", "chat_id", "42", "text", "same", "reply_markup", `{"inline_keyboard":[[{"text":"a","callback_data":"b"}]]}`)
	long := strings.Repeat("😀", 2049) // 4098 units, 2049 characters
	type row struct {
		method, want string
		kv           []string
	}
	send := func(want string, kv ...string) row { return row{"sendMessage", want, append(kv, "chat_id", "42")} }
	htm := func(text, want string) row {
		return send("Bad Request: can't parse entities: "+want, "parse_mode", "HTML", "text", text)
	}
	edit := func(want, id string, kv ...string) row {
		return row{"editMessageText", want, append(kv, "chat_id", "42", "message_id", id)}
	}
	rows := []row{
		send("Bad Request: message text is empty"),
		send("Bad Request: message text is empty", "text", " \n "),
		send("Bad Request: message text is empty", "text", "<b></b>", "parse_mode", "HTML"),
		send("Bad Request: message is too long", "text", long),
		send("Bad Request: message is too long", "text", strings.Repeat("a", 4097)),
		send("Bad Request: unsupported parse_mode", "text", "x", "parse_mode", "BBCode"),
		htm("<b>x", `Can't find end tag corresponding to start tag "b"`),
		htm("<b><i>x</b></i>", `Unmatched end tag at byte offset 7, expected "</i>", found "</b>"`),
		htm("<h1>x</h1>", `Unsupported start tag "h1" at byte offset 0`),
		htm("a < b", `Unsupported start tag "" at byte offset 2`),
		htm("a &nbsp; b", `Character '&' is reserved and must be escaped at byte offset 2`),
		htm("x</b>", "Unexpected end tag at byte offset 1"),
		htm("x <b", "Unclosed start tag at byte offset 2"),
		htm("<b>x</b", "Unclosed end tag at byte offset 4"),
		htm(`<a href="x>y</a>`, "Unclosed start tag at byte offset 0"),
		htm(`<a href>y</a>`, `Expected equal sign in declaration of an attribute of the tag "a" at byte offset 0`),
		htm(`<span class="x">y</span>`, `Tag "span" must have class "tg-spoiler" at byte offset 0`),
		{"sendMessage", "Bad Request: chat_id is empty", []string{"text", "x"}},
		{"sendMessage", "Bad Request: chat not found", []string{"text", "x", "chat_id", "999"}},
		{"sendMessage", "Forbidden: bot was blocked by the user", []string{"text", "x", "chat_id", "7"}},
		{"sendMessage", "Bad Request: group chat was upgraded to a supergroup chat", []string{"text", "x", "chat_id", "-600"}},
		{"sendMessage", "Bad Request: message thread not found", []string{"text", "x", "chat_id", fmt.Sprint(superID), "message_thread_id", fmt.Sprint(topic + 5)}},
		send("Bad Request: message to be replied not found", "text", "x", "reply_to_message_id", "99"),
		send("Bad Request: message to be replied not found", "text", "x", "reply_parameters", `{"message_id":99}`),
		send("Bad Request: BUTTON_DATA_INVALID", "text", "x", "reply_markup", `{"inline_keyboard":[[{"text":"a","callback_data":"`+strings.Repeat("d", 65)+`"}]]}`),
		send("Bad Request: can't parse reply keyboard markup JSON object", "text", "x", "reply_markup", `{`),
		edit("Bad Request: message to edit not found", "77", "text", "x"),
		edit("Bad Request: message identifier is not specified", "", "text", "x"),
		edit("Bad Request: message can't be edited", theirs, "text", "x"),
		edit("Bad Request: MESSAGE_TOO_LONG", "2", "text", long),
		edit("Bad Request: message text is empty", "2"),
		edit(errNotModified.text, "2", "text", "<i></i>same ", "parse_mode", "HTML", "reply_markup", `{"inline_keyboard":[[{"text":"a","callback_data":"b"}]]}`),
		{"deleteMessage", "Bad Request: message to delete not found", []string{"chat_id", "42", "message_id", "77"}},
		{"sendChatAction", "Bad Request: wrong parameter action in request", []string{"chat_id", "42", "action", "dancing"}},
		{"setMessageReaction", "Bad Request: REACTION_INVALID", []string{"chat_id", "42", "message_id", theirs, "reaction", `[{"type":"emoji","emoji":"🧀"}]`}},
		{"answerCallbackQuery", "Bad Request: query is too old and response timeout expired or query ID is invalid", []string{"callback_query_id", "1"}},
		{"setMyCommands", "Bad Request: BOT_COMMAND_INVALID", []string{"commands", `[{"command":"New","description":"x"}]`}},
		{"setMyCommands", "Bad Request: BOT_COMMAND_INVALID", []string{"commands", `[{"command":"` + strings.Repeat("n", 33) + `","description":"x"}]`}},
		{"setMyCommands", "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID", []string{"commands", `[{"command":"new"}]`}},
		{"getFile", "Bad Request: invalid file_id", []string{"file_id", "x"}},
		{"sendDocument", "Bad Request: there is no document in the request", []string{"chat_id", "42"}},
		{"sendDocument", "Bad Request: message caption is too long", []string{"chat_id", "42", "caption", strings.Repeat("a", 1025)}},
		{"sendMessage", "Bad Request: strings must be encoded in UTF-8", []string{"chat_id", "42", "text", "\xff"}},
		{"makeCoffee", "Not Found", nil},
	}
	before := len(c.s.View().Sent(42))
	for _, r := range rows {
		a := c.do(r.method, r.kv...)
		if a.OK || a.Description != r.want {
			t.Errorf("%s %v:\n got %q\nwant %q", r.method, r.kv, a.Description, r.want)
		}
	}
	if n := len(c.s.View().Sent(42)); n != before {
		t.Errorf("refused calls left %d messages, want %d", n, before)
	}
	if a := c.do("sendMessage", "text", "x", "chat_id", "-600"); a.Parameters.Migrate != -1002 {
		t.Errorf("migrate_to_chat_id = %d, want -1002", a.Parameters.Migrate)
	}
}

func TestTakesWhatTelegramTakes(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{NoLimits: true})
	topic := fmt.Sprint(c.peopled())
	rows := [][]string{
		{"sendMessage", "chat_id", "42", "text", strings.Repeat("😀", 2048)},
		{"sendMessage", "chat_id", "42", "parse_mode", "HTML", "text", "<b>" + strings.Repeat("a", 4096) + "</b>"},
		{"sendmessage", "chat_id", "42", "text", "the case of a method does not matter"},
		{"sendMessage", "chat_id", fmt.Sprint(superID), "message_thread_id", topic, "text", "x"},
		{"sendMessage", "chat_id", "42", "text", "x", "reply_parameters", `{"message_id":999,"allow_sending_without_reply":true}`},
		{"sendChatAction", "chat_id", "42", "action", "typing"},
		{"setMessageReaction", "chat_id", "42", "message_id", "1", "reaction", `[{"type":"emoji","emoji":"👀"}]`},
		{"setMessageReaction", "chat_id", "42", "message_id", "1"},
		{"editMessageText", "chat_id", "42", "message_id", "1", "text", "new"},
		{"editMessageReplyMarkup", "chat_id", "42", "message_id", "1", "reply_markup", `{"inline_keyboard":[[{"text":"a","callback_data":"b"}]]}`},
		{"deleteMessage", "chat_id", "42", "message_id", "1"},
		{"getChat", "chat_id", "42"},
		{"getMe"},
		{"deleteMyCommands"},
	}
	for _, r := range rows {
		if a := c.do(r[0], r[1:]...); !a.OK {
			t.Errorf("%v: %s", r[:3:3], a.Description)
		}
	}
}

func TestWrongTokenIsRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	if !c.s.authorized(DefaultToken) || c.s.authorized("1:x") || c.s.authorized("") {
		t.Error("another token is taken, or ours is not")
	}
	c.s.Revoke()
	if a := c.do("getMe"); a.Code != 401 || a.Description != "Unauthorized" {
		t.Errorf("revoked token: %+v", a)
	}
	c.s.Restore()
	if a := c.do("getMe"); !a.OK {
		t.Errorf("restored token: %+v", a)
	}
}

func TestOffsetConfirmsAndNothingElse(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{FirstUpdate: 100})
	c.peopled()
	for range 5 {
		c.s.Message(In{Chat: 42, From: ana, Text: "hi"})
	}
	steps := []struct {
		kv   []string
		want string
	}{
		{nil, "[100 101 102 103 104]"},
		{nil, "[100 101 102 103 104]"}, // given, not confirmed: again
		{[]string{"limit", "2"}, "[100 101]"},
		{[]string{"offset", "101"}, "[101 102 103 104]"},
		{[]string{"offset", "0"}, "[101 102 103 104]"},
		{[]string{"offset", "50"}, "[101 102 103 104]"},
		{[]string{"offset", "-2"}, "[103 104]"}, // forgets the older ones
		{nil, "[103 104]"},
		{[]string{"offset", "105"}, "[]"},
		{nil, "[]"},
	}
	for i, st := range steps {
		if got := fmt.Sprint(c.updates(st.kv...)); got != st.want {
			t.Fatalf("step %d %v: %s, want %s", i, st.kv, got, st.want)
		}
	}
	if v := c.s.View(); v.Pending() != 0 || v.Confirmed() != 104 {
		t.Errorf("pending %d, confirmed %d", v.Pending(), v.Confirmed())
	}
}

func TestLongPollWakesOnMessage(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{FirstUpdate: 7})
	c.peopled()
	got := make(chan []int64, 1)
	go func() { got <- c.updates("timeout", "50") }()
	c.wait(View.Polling)
	c.s.Message(In{Chat: 42, From: ana, Text: "hi"})
	if ids := <-got; fmt.Sprint(ids) != "[7]" {
		t.Errorf("long poll gave %v", ids)
	}
}

func (c *client) wait(cond func(View) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	if err := c.s.WaitFor(ctx, cond); err != nil {
		c.t.Fatal(err)
	}
}

func TestLongPollEndsEmptyAtItsTimeout(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	start := time.Now()
	if ids := c.updates("timeout", "1"); len(ids) != 0 {
		t.Errorf("got %v", ids)
	}
	if d := time.Since(start); d < 900*time.Millisecond {
		t.Errorf("answered after %v, asked to wait 1 s", d)
	}
}

func TestSecondPollerEndsTheFirst(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	first := make(chan answer, 1)
	go func() {
		a, _ := c.try(c.t.Context(), "getUpdates", "timeout", "50")
		first <- a
	}()
	c.wait(View.Polling)
	c.updates("timeout", "0")
	if a := <-first; a.Code != 409 || !strings.HasPrefix(a.Description, "Conflict: terminated by other getUpdates") {
		t.Errorf("first poller got %+v", a)
	}
}

func TestWebhookForbidsPolling(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	c.s.SetWebhook("https://example.org/hook")
	if a := c.do("getUpdates"); a.Code != 409 || !strings.Contains(a.Description, "webhook is active") {
		t.Errorf("with a webhook: %+v", a)
	}
	if a := c.do("getWebhookInfo"); !strings.Contains(string(a.Result), "example.org/hook") {
		t.Errorf("getWebhookInfo: %s", a.Result)
	}
	c.do("deleteWebhook")
	if a := c.do("getUpdates"); !a.OK {
		t.Errorf("after deleteWebhook: %+v", a)
	}
}

func TestAllowedUpdatesAreRemembered(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	c.peopled()
	id := c.s.Message(In{Chat: 42, From: ana, Text: "hi"})
	if c.s.React(42, id, ana, "", "👍") != 0 {
		t.Error("message_reaction was queued although nobody asked for it")
	}
	c.updates("offset", "-1", "allowed_updates", `["message_reaction"]`)
	c.updates() // says nothing about kinds
	if c.s.React(42, id, ana, "", "👍") == 0 {
		t.Error("message_reaction was dropped although it was asked for")
	}
	if up, _ := c.s.Inject(In{Chat: 42, From: ana, Text: "hi"}); up != 0 {
		t.Error("message was queued although only message_reaction was asked for")
	}
}

func TestJSONAndMultipartBodies(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{NoLimits: true})
	c.peopled()
	a, err := c.post(t.Context(), "sendMessage", "application/json; charset=utf-8",
		strings.NewReader(`{"chat_id":42,"text":"a\"b","reply_markup":{"inline_keyboard":[[{"text":"Yes","callback_data":"y"}]]}}`))
	if err != nil || !a.OK {
		t.Fatalf("JSON: %+v %v", a, err)
	}
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	_ = w.WriteField("chat_id", "42")
	_ = w.WriteField("caption", "see <b>this</b>")
	_ = w.WriteField("parse_mode", "HTML")
	f, _ := w.CreateFormFile("document", "a.txt")
	_, _ = f.Write([]byte("hello"))
	_ = w.Close()
	a, err = c.post(t.Context(), "sendDocument", w.FormDataContentType(), &buf)
	if err != nil || !a.OK {
		t.Fatalf("multipart: %+v %v", a, err)
	}
	sent := c.s.View().Sent(42)
	if len(sent) != 2 || sent[0].Text != `a"b` || sent[0].Buttons[0][0].Data != "y" {
		t.Fatalf("sent %+v", sent)
	}
	doc := sent[1]
	if doc.Text != "see this" || doc.Files[0].Name != "a.txt" || string(doc.Files[0].Data) != "hello" {
		t.Errorf("document %+v", doc)
	}
	if e := doc.Entities; len(e) != 1 || e[0].Type != "bold" || e[0].Offset != 4 || e[0].Length != 4 {
		t.Errorf("caption entities %+v", e)
	}
}

func TestFileDownloads(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	c.peopled()
	c.s.Message(In{Chat: 42, From: ana, Text: "cap", File: File{Type: "document", Name: "n.bin", Data: []byte("bytes")}})
	c.s.Message(In{Chat: 42, From: ana, File: File{Type: "video", Size: maxDownload + 1}})
	msgs := c.s.View().Messages(42)
	a := c.do("getFile", "file_id", msgs[0].Files[0].ID)
	var f struct {
		Path string `json:"file_path"`
	}
	if err := json.Unmarshal(a.Result, &f); err != nil || f.Path == "" {
		t.Fatalf("getFile: %s", a.Result)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", c.s.URL()+"/file/bot"+c.s.Token()+"/"+f.Path, nil)
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "bytes" {
		t.Errorf("downloaded %q", body)
	}
	if a := c.do("getFile", "file_id", msgs[1].Files[0].ID); a.Description != "Bad Request: file is too big" {
		t.Errorf("21 MB: %+v", a)
	}
}

func TestPrivacyModeHidesOrdinaryMessages(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{NoLimits: true})
	c.s.AddChat(Chat{ID: groupID, Kind: Supergroup, Privacy: true})
	c.do("sendMessage", "chat_id", fmt.Sprint(groupID), "text", "ask me")
	rows := map[string]bool{
		"hello": false, "@parley_test_bot hello": true, "x@parley_test_bot.example": false, "/new": true, "/new@other_bot": false,
		"/new@parley_test_bot": true, "see /etc/passwd": false, "@PARLEY_test_bot": true,
	}
	for text, reaches := range rows {
		up, _ := c.s.Inject(In{Chat: groupID, From: ana, Text: text})
		if (up != 0) != reaches {
			t.Errorf("%q reaches the bot: %v, want %v", text, up != 0, reaches)
		}
	}
	if up, _ := c.s.Inject(In{Chat: groupID, From: ana, Text: "an answer", ReplyTo: 1}); up == 0 {
		t.Error("an answer to the bot does not reach it")
	}
}

func TestEditsAreRecorded(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{NoLimits: true})
	c.peopled()
	c.do("sendMessage", "chat_id", "42", "text", "…")
	c.do("editMessageText", "chat_id", "42", "message_id", "1", "text", "a")
	c.do("editMessageText", "chat_id", "42", "message_id", "1", "text", "<b>b</b>", "parse_mode", "HTML")
	m, _ := c.s.View().Message(42, 1)
	if m.Text != "b" || m.Raw != "<b>b</b>" || len(m.Edits) != 2 || m.Edits[0].Text != "…" || m.Edits[1].Text != "a" {
		t.Errorf("message %+v", m)
	}
	c.do("deleteMessage", "chat_id", "42", "message_id", "1")
	if n := len(c.s.View().Sent(42)); n != 0 {
		t.Errorf("%d messages after deletion", n)
	}
}

func TestKeepBoundsMemory(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{NoLimits: true, Keep: 3})
	c.peopled()
	for i := range 50 {
		c.do("sendMessage", "chat_id", "42", "text", fmt.Sprint(i))
	}
	msgs := c.s.View().Messages(42)
	if len(msgs) > 6 || msgs[len(msgs)-1].ID != 50 || msgs[len(msgs)-1].Text != "49" {
		t.Errorf("%d kept, last %+v", len(msgs), msgs[len(msgs)-1])
	}
	if a := c.do("editMessageText", "chat_id", "42", "message_id", "50", "text", "new"); !a.OK {
		t.Errorf("edit of a kept message: %+v", a)
	}
}

func TestBotHearsItselfInChannelsOnly(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{NoLimits: true})
	c.peopled()
	c.s.AddChat(Chat{ID: -1003, Kind: Channel, Title: "News"})
	for chat, hears := range map[int64]int{42: 0, groupID: 0, -1003: 1} {
		before := c.s.View().Pending()
		c.do("sendMessage", "chat_id", fmt.Sprint(chat), "text", "it was me")
		if got := c.s.View().Pending() - before; got != hears {
			t.Errorf("chat %d: %d updates of the bot's own message, want %d", chat, got, hears)
		}
	}
}

func TestOneAnswerHasAtMostAHundredUpdates(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	c.peopled()
	for range 150 {
		c.s.Message(In{Chat: 42, From: ana, Text: "hi"})
	}
	for _, limit := range []string{"", "100", "101", "100000"} {
		if n := len(c.updates("limit", limit)); n != 100 {
			t.Errorf("limit %q gave %d updates", limit, n)
		}
	}
}

// TestThreadsLookLikeTelegrams: a topic's messages are marked and answer the topic's first; a chain of replies in a
// supergroup without topics has a thread id and no mark.
func TestThreadsLookLikeTelegrams(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	topic := c.peopled()
	c.s.AddChat(Chat{ID: -1009, Kind: Supergroup})
	c.s.Message(In{Chat: superID, From: ana, Text: "in a topic", Thread: topic})
	first := c.s.Message(In{Chat: -1009, From: ana, Text: "root"})
	second := c.s.Message(In{Chat: -1009, From: ana, Text: "reply", ReplyTo: first})
	c.s.Message(In{Chat: -1009, From: ana, Text: "reply to the reply", ReplyTo: second})
	type msg struct {
		Thread int64 `json:"message_thread_id"`
		Topic  bool  `json:"is_topic_message"`
		Reply  struct {
			ID    int64           `json:"message_id"`
			Topic json.RawMessage `json:"forum_topic_created"`
		} `json:"reply_to_message"`
	}
	var ups []struct{ Message msg }
	if err := json.Unmarshal(c.do("getUpdates").Result, &ups); err != nil || len(ups) != 4 {
		t.Fatal(len(ups), err)
	}
	if m := ups[0].Message; m.Thread != topic || !m.Topic || m.Reply.ID != topic || m.Reply.Topic == nil {
		t.Errorf("in a topic: %+v", m)
	}
	if m := ups[1].Message; m.Thread != 0 || m.Topic {
		t.Errorf("no reply: %+v", m)
	}
	for i, m := range []msg{ups[2].Message, ups[3].Message} {
		if m.Thread != first || m.Topic || m.Reply.ID == 0 {
			t.Errorf("reply %d: %+v", i, m)
		}
	}
	if a := c.do("sendMessage", "chat_id", fmt.Sprint(superID), "message_thread_id", "1", "text", "x"); a.OK {
		t.Error("the General topic was named in a send, and taken")
	}
}

func TestLoadDriverIsToldOfSendsAndEdits(t *testing.T) {
	t.Parallel()
	told := make(chan string, 8)
	c := newClient(t, Options{NoLimits: true, OnSent: func(m Message) { told <- "sent " + m.Text }, OnEdited: func(m Message) { told <- "edited " + m.Text }})
	c.peopled()
	c.do("sendMessage", "chat_id", "42", "text", "a")
	c.do("editMessageText", "chat_id", "42", "message_id", "1", "text", "b")
	c.do("editMessageText", "chat_id", "42", "message_id", "1", "text", "b")
	if got := <-told + ", " + <-told; got != "sent a, edited b" || len(told) != 0 {
		t.Errorf("told %s and %d more", got, len(told))
	}
}
