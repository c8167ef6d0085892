package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func soon() []time.Duration {
	return []time.Duration{0, time.Millisecond, time.Millisecond}
}

func TestSocketSaysHelloAndCountsItsNeighbours(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for want := range 3 {
		if e := dial(t, s).next(); e.Type != "hello" || e.NumConnections != want+1 {
			t.Errorf("socket %d began with %+v", want+1, e)
		}
	}
	if res, err := client(t).Get(s.URL() + "/link/?ticket=none"); err != nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("a socket without a ticket: %v %v", res, err)
	} else {
		_ = res.Body.Close()
	}
}

func TestMessageAndMentionAreTwoEventsOfOneMessage(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	l := dial(t, s)
	l.next()
	ts := s.Say(Say{Channel: room, User: ana, Text: "<@" + s.Team(0).Bot.ID + "> hello"})
	var kinds []string
	for range 2 {
		e := l.next()
		var inner struct{ Type, TS, Channel, User string }
		if err := json.Unmarshal(e.Payload.Event, &inner); err != nil || inner.TS != ts || inner.Channel != room || inner.User != ana {
			t.Errorf("event %s: %v", e.Payload.Event, err)
		}
		kinds = append(kinds, inner.Type)
		if s.View().Acked(room, ts) {
			t.Errorf("acknowledged before both were")
		}
		l.ack(e)
	}
	slices.Sort(kinds)
	if fmt.Sprint(kinds) != "[app_mention message]" {
		t.Errorf("events %v", kinds)
	}
	wait(t, s, "both acknowledgements", func(v View) bool { return v.Acked(room, ts) && v.Pending() == 0 })
	s.Say(Say{Channel: dark, User: ana, Text: "the bot is not here"})
	s.Say(Say{Channel: dm, User: ana, Text: "<@" + s.Team(0).Bot.ID + "> in private"})
	if n := len(s.View().Deliveries()); n != 3 {
		t.Errorf("%d deliveries, want 3: nothing of rooms without the bot, no app_mention in a direct message", n)
	}
}

func TestWhatIsNotAcknowledgedComesAgainUnderAnotherEnvelope(t *testing.T) {
	t.Parallel()
	s := start(t, Options{AckWithin: 50 * time.Millisecond, Retries: soon()})
	l := dial(t, s)
	l.next()
	s.Say(Say{Channel: dm, User: ana, Text: "hello"})
	first, second := l.next(), l.next()
	if first.Payload.EventID != second.Payload.EventID || first.EnvelopeID == second.EnvelopeID || second.RetryAttempt != 1 {
		t.Errorf("first %+v, then %+v", first, second)
	}
	wait(t, s, "the event to be given up", func(v View) bool { return v.Deliveries()[0].Lost })
	if n := len(v0(s).Attempts); n != 4 {
		t.Errorf("%d attempts, want 4", n)
	}
	l.ack(first)
	wait(t, s, "the late acknowledgement", func(v View) bool { return v.Deliveries()[0].Attempts[0].Late })
	if v0(s).Acked {
		t.Errorf("a late acknowledgement counted")
	}
}

func v0(s *Server) Delivery { return s.View().Deliveries()[0] }

func TestBrokenSocketHandsItsEventToTheNext(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Retries: slices.Repeat([]time.Duration{20 * time.Millisecond}, 500)})
	l := dial(t, s)
	l.next()
	s.Disturb(Faults{DropNext: 1})
	s.Say(Say{Channel: dm, User: ana, Text: "hello"})
	if e, err := l.try(); err == nil {
		t.Errorf("the socket broke in the middle and gave %+v", e)
	}
	l = dial(t, s)
	l.next()
	e := l.next()
	l.ack(e)
	wait(t, s, "the acknowledgement", func(v View) bool { return v.Pending() == 0 })
	s.Disconnect("refresh_requested")
	if e := l.next(); e.Type != "disconnect" || e.Reason != "refresh_requested" {
		t.Errorf("got %+v, want a disconnect", e)
	}
	if _, err := l.try(); err == nil {
		t.Errorf("the socket stayed")
	}
}

func TestReorderAndRedeliver(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	l := dial(t, s)
	l.next()
	s.Disturb(Faults{Reorder: 3, Redeliver: 1})
	for i := range 3 {
		s.Say(Say{Channel: dm, User: ana, Text: fmt.Sprint(i)})
	}
	var order []string
	seen := map[string]int{}
	for range 6 {
		e := l.next()
		l.ack(e)
		var inner struct{ Text string }
		if err := json.Unmarshal(e.Payload.Event, &inner); err != nil {
			t.Fatal(err)
		}
		order = append(order, inner.Text)
		seen[e.Payload.EventID]++
	}
	if fmt.Sprint(order[:1]) != "[2]" || len(seen) != 3 {
		t.Errorf("order %v, events %v: want the last first and each twice", order, seen)
	}
}

func TestCommandsAndPressesAreAnsweredThroughTheirURL(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var mu sync.Mutex
	s := start(t, Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	l := dial(t, s)
	l.next()
	post := func(to, body string) string {
		res, err := client(t).Post(to, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(res.StatusCode, " ", string(raw))
	}
	s.Command(room, ana, "/parley", "status")
	e := l.next()
	l.ack(e)
	if e.Type != "slash_commands" || e.Payload.Command != "/parley" {
		t.Fatalf("got %+v", e)
	}
	for range responseUses {
		if got := post(e.Payload.URL, `{"text":"fine"}`); got != "200 ok" {
			t.Errorf("a response: %s", got)
		}
	}
	if got := post(e.Payload.URL, `{"text":"fine"}`); !strings.Contains(got, "used_url") {
		t.Errorf("the sixth response: %s", got)
	}
	if n := len(s.View().Ephemerals(room, ana)); n != 5 || len(s.View().Sent(room)) != 0 {
		t.Errorf("ana sees %d answers, want 5 that nobody else sees", n)
	}
	ts := do(t, s, "chat.postMessage", "channel", room, "text", "sure?", "blocks",
		`[{"type":"section","text":{"type":"mrkdwn","text":"sure?"}},{"type":"actions","block_id":"b","elements":[{"type":"button","action_id":"a1","value":"yes","text":{"type":"plain_text","text":"Yes"}}]}]`).text("ts")
	l.ack(l.next()) // the bot's own message
	if s.Press(room, ts, ben, "no such button") != "" || s.Press(room, ts, ben, "yes") == "" {
		t.Errorf("buttons: %+v", s.View().Sent(room)[0].Buttons())
	}
	e = l.next()
	l.ack(e)
	if got := post(e.Payload.URL, `{"text":"decided","replace_original":true}`); got != "200 ok" {
		t.Errorf("replacing: %s", got)
	}
	if m, _ := s.View().Message(room, ts); m.Shown() != "decided" || len(m.Buttons()) != 0 {
		t.Errorf("the message became %+v", m)
	}
	mu.Lock()
	now = now.Add(31 * time.Minute)
	mu.Unlock()
	if got := post(e.Payload.URL, `{"text":"late"}`); !strings.Contains(got, "expired_url") {
		t.Errorf("after 31 minutes: %s", got)
	}
}

func TestEditsAndDeletionsAreTold(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	l := dial(t, s)
	l.next()
	ts := s.Say(Say{Channel: room, User: ana, Text: "helo"})
	s.Edit(room, ts, "hello")
	s.Unfurl(room, ts)
	s.React(room, ts, ben, "+1")
	s.Delete(room, ts)
	var got []string
	for range 5 {
		e := l.next()
		l.ack(e)
		var in struct {
			Type, Subtype string
			DeletedTS     string `json:"deleted_ts"`
			Message       struct {
				Text   string
				Edited struct{ User string }
			}
			Item struct{ TS string }
		}
		if err := json.Unmarshal(e.Payload.Event, &in); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join([]string{in.Type, in.Subtype, in.Message.Text, in.Message.Edited.User}, "/"))
		if in.Subtype == "message_deleted" && in.DeletedTS != ts || in.Type == "reaction_added" && in.Item.TS != ts {
			t.Errorf("%s is not about the message", e.Payload.Event)
		}
	}
	want := []string{"message///", "message/message_changed/hello/" + ana, "message/message_changed/hello/" + ana, "reaction_added///", "message/message_deleted//"}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestEventsAPISignsRetriesAndTakesAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Retries: soon()})
	type request struct {
		retry, kind string
		body        string
	}
	requests := make(chan request, 16)
	var status sync.Map
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		h := http.Header{}
		var at int64
		if _, err := fmt.Sscan(r.Header.Get("X-Slack-Request-Timestamp"), &at); err != nil {
			t.Error(err)
		}
		Sign(h, s.App().SigningSecret, time.Unix(at, 0), body)
		if h.Get("X-Slack-Signature") != r.Header.Get("X-Slack-Signature") {
			t.Errorf("the signature is wrong")
		}
		requests <- request{r.Header.Get("X-Slack-Retry-Num"), r.Header.Get("Content-Type"), string(body)}
		var hello struct{ Challenge string }
		if json.Unmarshal(body, &hello) == nil && hello.Challenge != "" {
			_, _ = io.WriteString(w, hello.Challenge)
			return
		}
		if code, ok := status.LoadAndDelete("next"); ok {
			w.WriteHeader(code.(int))
		}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www") && r.FormValue("command") == "" {
			if v, err := url.ParseQuery(string(body)); err == nil && v.Get("command") != "" {
				_, _ = io.WriteString(w, `{"text":"at once"}`)
			}
		}
	}))
	t.Cleanup(srv.Close)
	s.SetRequestURL(srv.URL)
	if err := s.VerifyURL(within(t)); err != nil {
		t.Error(err)
	}
	<-requests
	status.Store("next", 500)
	ts := s.Say(Say{Channel: dm, User: ana, Text: "over http"})
	first, second := <-requests, <-requests
	if first.retry != "" || second.retry != "1" || first.body != second.body {
		t.Errorf("first %+v, then %+v", first, second)
	}
	wait(t, s, "the acknowledgement", func(v View) bool { return v.Acked(dm, ts) })
	s.Command(dm, ana, "/parley", "help")
	if r := <-requests; r.kind != "application/x-www-form-urlencoded" {
		t.Errorf("a command came as %s", r.kind)
	}
	wait(t, s, "the answer in the acknowledgement", func(v View) bool { return len(v.Ephemerals(dm, ana)) == 1 })
}

func TestWorkspacesDoNotMix(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Teams: []Team{{}, {}}})
	second := s.Team(1)
	s.AddChannel(Channel{ID: "C0SECOND01", Team: second.ID, Kind: Public, Members: []string{second.Bot.ID}})
	if a := do(t, s, "chat.postMessage", "channel", "C0SECOND01", "text", "x"); a.code() != "channel_not_found" {
		t.Errorf("with the first workspace's token: %v", a.body)
	}
	if a := do(t, s, "chat.postMessage", "token", second.Token, "channel", "C0SECOND01", "text", "x"); !a.ok() {
		t.Errorf("with its own: %v", a.body)
	}
	l := dial(t, s)
	l.next()
	s.Say(Say{Channel: "C0SECOND01", User: ana, Text: "hi"})
	e := l.next()
	var in struct{ Team string }
	if err := json.Unmarshal(e.Payload.Event, &in); err != nil || in.Team != second.ID {
		t.Errorf("the event is of %q, want %q: %v", in.Team, second.ID, err)
	}
	l.ack(e)
	s.RevokeApp("invalid_auth")
	if e := l.next(); e.Reason != "link_disabled" {
		t.Errorf("after the app was refused: %+v", e)
	}
	if a := do(t, s, "apps.connections.open", "token", s.App().Token); a.code() != "invalid_auth" {
		t.Errorf("opening again: %v", a.body)
	}
}

func TestFreezeAndThaw(t *testing.T) {
	t.Parallel()
	s := start(t, Options{AckWithin: time.Hour})
	l := dial(t, s)
	l.next()
	s.Freeze()
	ts := s.Say(Say{Channel: dm, User: ana, Text: "into the ice"})
	if s.View().Acked(dm, ts) {
		t.Errorf("acknowledged in the ice")
	}
	s.ClearFaults()
	l.ack(l.next())
	wait(t, s, "the acknowledgement", func(v View) bool { return v.Acked(dm, ts) })
}
