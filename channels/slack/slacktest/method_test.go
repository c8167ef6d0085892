package slacktest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTokensAndScopesAreRefusedInSlacksWords(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	bot, app := s.Team(0).Token, s.App().Token
	for _, c := range []struct{ method, token, want string }{
		{"auth.test", "", "not_authed"},
		{"auth.test", "xoxb-wrong", "invalid_auth"},
		{"auth.test", bot, ""},
		{"chat.postMessage", app, "not_allowed_token_type"},
		{"apps.connections.open", bot, "not_allowed_token_type"},
		{"apps.connections.open", app, ""},
		{"no.such", bot, "unknown_method"},
	} {
		if a := do(t, s, c.method, "token", c.token, "channel", room, "text", "x"); a.code() != c.want {
			t.Errorf("%s with %.8q: %q, want %q", c.method, c.token, a.code(), c.want)
		}
	}
	if a := do(t, s, "auth.test"); !strings.Contains(a.header.Get("X-OAuth-Scopes"), "chat:write") || a.text("bot_id") == "" {
		t.Errorf("auth.test gave %v %v", a.header, a.body)
	}
	s.SetScopes(0, "users:read")
	a := do(t, s, "chat.postMessage", "channel", room, "text", "x")
	if a.code() != "missing_scope" || a.text("needed") != "chat:write" || a.text("provided") != "users:read" {
		t.Errorf("without the scope: %v", a.body)
	}
	for _, code := range []string{"token_revoked", "account_inactive", "invalid_auth"} {
		s.Revoke(0, code)
		if a := do(t, s, "auth.test"); a.code() != code {
			t.Errorf("revoked with %s: %v", code, a.body)
		}
	}
}

func blocks(n int, text string) string {
	one := fmt.Sprintf(`{"type":"section","text":{"type":"mrkdwn","text":%q}}`, text)
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
}

func TestWhatSlackRefusesInMessages(t *testing.T) {
	t.Parallel()
	s := start(t, Options{NoLimits: true})
	long := func(n int) string { return strings.Repeat("a", n) }
	button := func(value string) string {
		return fmt.Sprintf(`[{"type":"actions","elements":[{"type":"button","action_id":"a","value":%q,"text":{"type":"plain_text","text":"Yes"}}]}]`, value)
	}
	for _, c := range []struct {
		name, want string
		kv         []string
	}{
		{"nothing", "no_text", []string{"channel", room}},
		{"no such channel", "channel_not_found", []string{"channel", "C0NONE", "text", "x"}},
		{"private and not inside", "channel_not_found", []string{"channel", dark, "text", "x"}},
		{"the longest markdown", "", []string{"channel", room, "markdown_text", long(12000)}},
		{"too long markdown", "msg_too_long", []string{"channel", room, "markdown_text", long(12001)}},
		{"markdown with text", "markdown_text_conflict", []string{"channel", room, "markdown_text", "x", "text", "y"}},
		{"markdown with blocks", "markdown_text_conflict", []string{"channel", room, "markdown_text", "x", "blocks", blocks(1, "y")}},
		{"the longest section", "", []string{"channel", room, "blocks", blocks(1, long(3000))}},
		{"too long section", "invalid_blocks", []string{"channel", room, "blocks", blocks(1, long(3001))}},
		{"fifty blocks", "", []string{"channel", room, "blocks", blocks(50, "x")}},
		{"fifty-one blocks", "invalid_blocks", []string{"channel", room, "blocks", blocks(51, "x")}},
		{"as much as was taken", "", []string{"channel", room, "blocks", blocks(50, long(191))}},
		{"as much as was refused", "msg_blocks_too_long", []string{"channel", room, "blocks", blocks(45, long(252))}},
		{"a markdown block", "", []string{"channel", room, "blocks", `[{"type":"markdown","text":"` + long(12000) + `"}]`}},
		{"too long markdown block", "msg_blocks_too_long", []string{"channel", room, "blocks", `[{"type":"markdown","text":"` + long(12001) + `"}]`}},
		{"no blocks at all", "invalid_blocks_format", []string{"channel", room, "blocks", "{"}},
		{"a button", "", []string{"channel", room, "blocks", button(long(2000))}},
		{"too long button value", "invalid_blocks", []string{"channel", room, "blocks", button(long(2001))}},
		{"unknown block", "invalid_blocks", []string{"channel", room, "blocks", `[{"type":"nonsense"}]`}},
		{"metadata", "", []string{"channel", room, "text", "x", "metadata", `{"event_type":"e","event_payload":{"id":"1"}}`}},
		{"bad metadata", "invalid_metadata_format", []string{"channel", room, "text", "x", "metadata", `{"event_type":"e"}`}},
		{"no such thread", "thread_not_found", []string{"channel", room, "text", "x", "thread_ts", "1.000001"}},
		{"to a person", "", []string{"channel", ana, "text", "x"}},
	} {
		if a := do(t, s, "chat.postMessage", c.kv...); a.code() != c.want {
			t.Errorf("%s: %v, want %q", c.name, a.body, c.want)
		}
	}
	a := do(t, s, "chat.postMessage", "channel", room, "text", long(40001))
	if m, _ := s.View().Message(room, a.text("ts")); len(m.Text) != 40000 {
		t.Errorf("a text of 40,001 characters became %d", len(m.Text))
	}
	s.Kick(room)
	if a := do(t, s, "chat.postMessage", "channel", room, "text", "x"); a.code() != "not_in_channel" {
		t.Errorf("after being kicked: %v", a.body)
	}
	s.Deny(dm, "is_archived")
	if a := do(t, s, "chat.postMessage", "channel", dm, "text", "x"); a.code() != "is_archived" {
		t.Errorf("in an archived channel: %v", a.body)
	}
}

func TestUpdatesAndDeletions(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := start(t, Options{Now: func() time.Time { return now }, EditWindow: time.Hour})
	ts := do(t, s, "chat.postMessage", "channel", room, "text", "one", "blocks", blocks(1, "one")).text("ts")
	theirs := s.Say(Say{Channel: room, User: ana, Text: "mine"})
	check := func(what, want string, a answer) {
		t.Helper()
		if a.code() != want {
			t.Errorf("%s: %v, want %q", what, a.body, want)
		}
	}
	check("of a person", "cant_update_message", do(t, s, "chat.update", "channel", room, "ts", theirs, "text", "x"))
	check("of nothing", "message_not_found", do(t, s, "chat.update", "channel", room, "ts", "1.000001", "text", "x"))
	check("too long", "msg_too_long", do(t, s, "chat.update", "channel", room, "ts", ts, "text", strings.Repeat("a", 4001)))
	check("text alone", "", do(t, s, "chat.update", "channel", room, "ts", ts, "text", "two"))
	if m, _ := s.View().Message(room, ts); m.Shown() != "one" || m.Text != "two" {
		t.Errorf("blocks that were left out did not stay: %+v", m)
	}
	check("without blocks", "", do(t, s, "chat.update", "channel", room, "ts", ts, "text", "three", "blocks", "[]"))
	check("as markdown", "", do(t, s, "chat.update", "channel", room, "ts", ts, "markdown_text", "**four** &lt;"))
	m, _ := s.View().Message(room, ts)
	if m.Shown() != "**four** <" || len(m.Edits) != 3 {
		t.Errorf("after three updates: %+v", m)
	}
	check("deletion of a person's", "cant_delete_message", do(t, s, "chat.delete", "channel", room, "ts", theirs))
	check("deletion", "", do(t, s, "chat.delete", "channel", room, "ts", ts))
	check("deletion of what is gone", "message_not_found", do(t, s, "chat.delete", "channel", room, "ts", ts))
	check("update of what is gone", "message_not_found", do(t, s, "chat.update", "channel", room, "ts", ts, "text", "x"))
	ts = do(t, s, "chat.postMessage", "channel", room, "text", "old").text("ts")
	now = now.Add(2 * time.Hour)
	check("too late", "edit_window_closed", do(t, s, "chat.update", "channel", room, "ts", ts, "text", "x"))
}

func TestLimitsOfPace(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := start(t, Options{Now: func() time.Time { return now }})
	var a answer
	n := 0
	for ; n < 100; n++ {
		if a = do(t, s, "chat.postMessage", "channel", room, "text", "x"); !a.ok() {
			break
		}
	}
	if n != postBurst || a.status != http.StatusTooManyRequests || a.code() != "ratelimited" || a.header.Get("Retry-After") != "1" {
		t.Errorf("after %d messages: %d %v %v", n, a.status, a.header, a.body)
	}
	if a := do(t, s, "chat.postMessage", "channel", dm, "text", "x"); !a.ok() {
		t.Errorf("another channel is held: %v", a.body)
	}
	now = now.Add(time.Second)
	a = do(t, s, "chat.postMessage", "channel", room, "text", "x")
	for n = 0; n < 200 && do(t, s, "chat.update", "channel", room, "ts", a.text("ts"), "text", "y").ok(); n++ {
	}
	if n != 50 {
		t.Errorf("%d updates in a minute, want the 50 of tier 3", n)
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := start(t, Options{Now: func() time.Time { return now }, NoLimits: true})
	team := s.Team(0).ID
	asked := s.Say(Say{Channel: dm, User: ana, Text: "?"})
	check := func(what, want string, a answer) answer {
		t.Helper()
		if a.code() != want {
			t.Errorf("%s: %v, want %q", what, a.body, want)
		}
		return a
	}
	check("in a DM outside a thread", "invalid_arguments", do(t, s, "chat.startStream", "channel", dm))
	check("in a channel, no team", "missing_recipient_team_id", do(t, s, "chat.startStream", "channel", room))
	check("in a channel, nobody", "missing_recipient_user_id", do(t, s, "chat.startStream", "channel", room, "recipient_team_id", team))
	check("in a channel", "", do(t, s, "chat.startStream", "channel", room, "recipient_team_id", team, "recipient_user_id", ana))
	ts := check("in a DM", "", do(t, s, "chat.startStream", "channel", dm, "thread_ts", asked, "markdown_text", "one")).text("ts")
	check("an update", "streaming_state_conflict", do(t, s, "chat.update", "channel", dm, "ts", ts, "text", "x"))
	check("append", "", do(t, s, "chat.appendStream", "channel", dm, "ts", ts, "markdown_text", " two"))
	check("append nothing", "no_text", do(t, s, "chat.appendStream", "channel", dm, "ts", ts))
	check("append too much", "msg_too_long", do(t, s, "chat.appendStream", "channel", dm, "ts", ts, "markdown_text", strings.Repeat("a", 12001)))
	check("stop", "", do(t, s, "chat.stopStream", "channel", dm, "ts", ts, "markdown_text", " three"))
	if m, _ := s.View().Message(dm, ts); m.Shown() != "one two three" || m.Streaming || m.ThreadTS != asked {
		t.Errorf("the stream became %+v", m)
	}
	check("append after the stop", "message_not_in_streaming_state", do(t, s, "chat.appendStream", "channel", dm, "ts", ts, "markdown_text", "x"))
	check("append to a person's", "message_not_owned_by_app", do(t, s, "chat.appendStream", "channel", dm, "ts", asked, "markdown_text", "x"))
	ts = do(t, s, "chat.startStream", "channel", dm, "thread_ts", asked).text("ts")
	now = now.Add(6 * time.Minute)
	check("append after six minutes", "message_not_in_streaming_state", do(t, s, "chat.appendStream", "channel", dm, "ts", ts, "markdown_text", "x"))
}

func TestHistoryPagesBothWays(t *testing.T) {
	t.Parallel()
	s := start(t, Options{NoLimits: true})
	var all []string
	for i := range 7 {
		all = append(all, s.Say(Say{Channel: room, User: ana, Text: fmt.Sprint(i)}))
	}
	for i := range 3 {
		s.Say(Say{Channel: room, User: ben, Text: fmt.Sprint("reply ", i), Thread: all[0]})
	}
	texts := func(a answer) (list []string) {
		for _, m := range a.body["messages"].([]any) {
			list = append(list, m.(map[string]any)["text"].(string))
		}
		return list
	}
	a := do(t, s, "conversations.history", "channel", room, "limit", "3")
	cursor := a.body["response_metadata"].(map[string]any)["next_cursor"].(string)
	b := do(t, s, "conversations.history", "channel", room, "limit", "3", "cursor", cursor)
	if got := fmt.Sprint(texts(a), texts(b), a.body["has_more"]); got != "[6 5 4] [3 2 1] true" {
		t.Errorf("two pages backward: %s", got)
	}
	a = do(t, s, "conversations.history", "channel", room, "limit", "3", "oldest", all[1])
	if got := fmt.Sprint(texts(a), a.body["has_more"]); got != "[4 3 2] true" {
		t.Errorf("the page after %s: %s", all[1], got)
	}
	a = do(t, s, "conversations.replies", "channel", room, "ts", all[0], "limit", "2")
	cursor = a.body["response_metadata"].(map[string]any)["next_cursor"].(string)
	b = do(t, s, "conversations.replies", "channel", room, "ts", all[0], "limit", "2", "cursor", cursor)
	if got := fmt.Sprint(texts(a), texts(b)); got != "[0 reply 0 reply 1] [0 reply 2]" {
		t.Errorf("a thread: %s", got)
	}
	if a := do(t, s, "conversations.replies", "channel", room, "ts", "1.000001"); a.code() != "thread_not_found" {
		t.Errorf("no thread: %v", a.body)
	}
	if a := do(t, s, "conversations.history", "channel", room, "cursor", "x"); a.code() != "invalid_cursor" {
		t.Errorf("a bad cursor: %v", a.body)
	}
}

func TestFilesNeedTheTokenAndTellWhereTheyWereShared(t *testing.T) {
	t.Parallel()
	s := start(t, Options{SlowShares: 1})
	up := do(t, s, "files.getUploadURLExternal", "filename", "a.csv", "length", "3")
	post := func(body string) string {
		res, err := client(t).Post(up.text("upload_url"), "application/octet-stream", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(raw))
	}
	files := fmt.Sprintf(`[{"id":%q,"title":"A"}]`, up.text("file_id"))
	if a := do(t, s, "files.completeUploadExternal", "files", files, "channel_id", room); a.code() != "file_not_found" {
		t.Errorf("complete before the upload: %v", a.body)
	}
	if got := post("four") + ", " + post("a,b"); got != "upload failed, OK - 3" {
		t.Errorf("uploads answered %s", got)
	}
	if a := do(t, s, "files.completeUploadExternal", "files", files, "channel_id", room, "initial_comment", "look"); !a.ok() {
		t.Errorf("complete: %v", a.body)
	}
	sent := s.View().Sent(room)
	if len(sent) != 1 || sent[0].Text != "look" || string(sent[0].Files[0].Data) != "a,b" {
		t.Fatalf("people see %+v", sent)
	}
	info := func() map[string]any {
		return do(t, s, "files.info", "file", up.text("file_id")).body["file"].(map[string]any)
	}
	if first, second := info()["shares"], info()["shares"]; first != nil || !strings.Contains(fmt.Sprint(second), sent[0].TS) {
		t.Errorf("shares: first %v, then %v", first, second)
	}
	get := func(token string) string {
		req, err := http.NewRequestWithContext(within(t), http.MethodGet, info()["url_private"].(string), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := client(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if got := get(s.Team(0).Token); got != "a,b" {
		t.Errorf("with the token: %q", got)
	}
	if got := get("xoxb-other"); got != signInPage {
		t.Errorf("without the token: %q", got)
	}
}

func TestReactionsStatusAndPeople(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	ts := s.Say(Say{Channel: room, User: ana, Text: "look"})
	for _, c := range []struct{ method, name, want string }{
		{"reactions.add", "eyes", ""}, {"reactions.add", "eyes", "already_reacted"}, {"reactions.add", "👀", "invalid_name"},
		{"reactions.remove", "eyes", ""}, {"reactions.remove", "eyes", "no_reaction"},
	} {
		if a := do(t, s, c.method, "channel", room, "timestamp", ts, "name", c.name); a.code() != c.want {
			t.Errorf("%s %s: %v, want %q", c.method, c.name, a.body, c.want)
		}
	}
	if a := do(t, s, "assistant.threads.setStatus", "channel_id", room, "thread_ts", ts, "status", "is thinking…"); !a.ok() {
		t.Errorf("status: %v", a.body)
	}
	do(t, s, "chat.postMessage", "channel", room, "thread_ts", ts, "text", "done")
	if all := s.View().Statuses(); len(all) != 2 || all[0].Text != "is thinking…" || all[1].Text != "" {
		t.Errorf("statuses %+v: an answer ends them", all)
	}
	if a := do(t, s, "users.info", "user", ana); a.body["user"].(map[string]any)["real_name"] != "Ana Lima" {
		t.Errorf("users.info: %v", a.body)
	}
	if a := do(t, s, "conversations.open", "users", ana); a.body["channel"].(map[string]any)["id"] != dm {
		t.Errorf("conversations.open: %v", a.body)
	}
	if a := do(t, s, "conversations.info", "channel", room); a.body["channel"].(map[string]any)["is_member"] != true {
		t.Errorf("conversations.info: %v", a.body)
	}
	if a := do(t, s, "chat.postEphemeral", "channel", room, "user", ben, "text", "psst"); !a.ok() || len(s.View().Ephemerals(room, ben)) != 1 || len(s.View().Sent(room)) != 1 {
		t.Errorf("ephemeral: %v", a.body)
	}
}

func TestBodiesAndFaults(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	token := s.Team(0).Token
	a := send(t, s, "chat.postMessage", token, "application/json; charset=utf-8",
		`{"channel":"`+room+`","text":"json","blocks":[{"type":"section","text":{"type":"mrkdwn","text":"in a block"}}]}`)
	if m, _ := s.View().Message(room, a.text("ts")); m.Shown() != "in a block" {
		t.Errorf("a JSON body: %v, %+v", a.body, m)
	}
	for body, want := range map[string]string{`{`: "invalid_json", `[]`: "json_not_object"} {
		if a := send(t, s, "chat.postMessage", token, "application/json", body); a.code() != want {
			t.Errorf("body %s: %v, want %s", body, a.body, want)
		}
	}
	s.AddFault(Fault{Method: "chat.postMessage", Do: Reply, Status: 429, After: 7 * time.Second, Times: 1})
	if a := do(t, s, "chat.postMessage", "channel", room, "text", "x"); a.status != 429 || a.header.Get("Retry-After") != "7" {
		t.Errorf("told to flood: %d %v", a.status, a.header)
	}
	before := len(s.View().Sent(room))
	s.AddFault(Fault{Method: "chat.postMessage", Do: CutAfter, Times: 1})
	req, err := http.NewRequestWithContext(within(t), http.MethodPost, s.APIURL()+"chat.postMessage", strings.NewReader(`{"channel":"`+room+`","text":"swallowed"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	if res, err := client(t).Do(req); err == nil {
		_ = res.Body.Close()
		t.Errorf("a swallowed answer came: %v", res.Status)
	}
	if n := len(s.View().Sent(room)); n != before+1 {
		t.Errorf("people see %d messages, want %d: the answer was lost, not the message", n, before+1)
	}
	s.Down()
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	if a := do(t, s, "auth.test"); !a.ok() {
		t.Errorf("after down and up: %v", a.body)
	}
}
