package slack

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/slack/slacktest"
)

// TestAServerThatGreetsAndHangsUpIsNotHammered: the new connection that is asked for waits when the old one had only begun.
func TestAServerThatGreetsAndHangsUpIsNotHammered(t *testing.T) {
	t.Parallel()
	s := slacktest.Start(t, slacktest.Options{NoLimits: true, HangUp: true})
	_, in := running(t, s, func(p *pace) { p.first, p.longest, p.greeted = time.Hour, time.Hour, time.Hour })
	in.wait(t, channels.Ready)
	if st := in.wait(t, channels.Connecting, "new connection"); st.Cause == "" {
		t.Errorf("told %+v", st)
	}
	if n := s.View().Connected(); n != 2 {
		t.Errorf("%d connections, want the second at once, since it was asked for, and the third after a pause", n)
	}
}

// TestAServerThatDoesNotPingIsNotLeft, as long as it answers pings.
func TestAServerThatDoesNotPingIsNotLeft(t *testing.T) {
	t.Parallel()
	s := slacktest.Start(t, slacktest.Options{NoLimits: true, PingEvery: time.Hour})
	_, in := running(t, s, func(p *pace) { p.quiet = 9 * time.Second; p.ping = 20 * time.Millisecond })
	in.wait(t, channels.Ready)
	if err := s.WaitFor(t.Context(), func(v slacktest.View) bool { return v.Pings() > 5 }); err != nil {
		t.Fatal(err)
	}
	if n := s.View().Connected(); n != 1 {
		t.Errorf("%d connections, want the first to hold", n)
	}
}

// TestAWebAPIWithoutMarkdown: a text goes as one that it reads, with its buttons, and is asked for once.
func TestAWebAPIWithoutMarkdown(t *testing.T) {
	t.Parallel()
	s := slacktest.Start(t, slacktest.Options{NoLimits: true, NoMarkdown: true})
	s.AddUser(slacktest.User{ID: "U0GUEST001", Name: "guest", Team: s.Team(0).ID})
	s.AddChannel(slacktest.Channel{ID: "D0GUEST001", Team: s.Team(0).ID, Kind: slacktest.IM, Members: []string{"U0GUEST001"}})
	c, in := running(t, s, func(*pace) {})
	in.wait(t, channels.Ready)
	to := channels.Address{Network: Network, Account: c.Account(), Kind: channels.DM, Peer: "D0GUEST001"}
	long := strings.Repeat("a < b & c ", 700)
	id, err := c.Send(t.Context(), channels.Post{To: to, Token: "1", Text: "**" + long + "**", Plain: long, Actions: [][]channels.Action{{{Label: "Yes", Value: "y"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Edit(t.Context(), id, channels.Post{To: to, Token: "1", Text: "*short*", Plain: "short"}); err != nil {
		t.Error(err)
	}
	for _, token := range []string{"2", "3"} {
		if _, err := c.Send(t.Context(), channels.Post{To: to, Token: token, Text: "*" + token + "*", Plain: token}); err != nil {
			t.Error(err)
		}
	}
	if !c.legacyServer.Load() {
		t.Error("it is tried each time")
	}
}

// TestWhoseAnEventIs: what counts is the installation through which it came, wherever its writer is from.
func TestWhoseAnEventIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		payload string
		ours    bool
	}{
		"plain":                         {`{"team_id":"T1"}`, true},
		"says nothing":                  {`{"type":"event_callback"}`, true},
		"of another workspace":          {`{"team_id":"T2"}`, false},
		"of a guest from elsewhere":     {`{"team_id":"T2","context_team_id":"T1","is_ext_shared_channel":true}`, true},
		"by its authorization":          {`{"team_id":"T2","authorizations":[{"team_id":"T1","user_id":"U1","is_bot":true}]}`, true},
		"by another's":                  {`{"team_id":"T2","authorizations":[{"team_id":"T2","user_id":"U9","is_bot":true}]}`, false},
		"by our bot in an org":          {`{"team_id":"T7","authorizations":[{"enterprise_id":"E1","team_id":null,"user_id":"U1","is_bot":true,"is_enterprise_install":true}]}`, true},
		"of our organisation":           {`{"team_id":"T7","authorizations":[{"enterprise_id":"E1","team_id":"T7","is_enterprise_install":true}]}`, true},
		"of another in our org":         {`{"team_id":"T7","authorizations":[{"enterprise_id":"E1","team_id":"T7","user_id":"U9","is_bot":true,"is_enterprise_install":false}]}`, false},
		"a press, by its team":          {`{"type":"block_actions","team":{"id":"T1"},"user":{"team_id":"T2"}}`, true},
		"a press in an org":             {`{"type":"block_actions","team":null}`, true},
		"a press in another's":          {`{"type":"block_actions","team":{"id":"T2"}}`, false},
		"authorizations are not a list": {`{"team_id":"T1","authorizations":{}}`, true},
	} {
		r := offline(t)
		r.c.self.Load().enterprise = "E1"
		r.c.apps.add(r.c)
		whose, ok := r.owner(installations(json.RawMessage(c.payload)))
		if !ok || (whose == r) != c.ours {
			t.Errorf("%s: given to %v, %v", name, whose, ok)
		}
	}
}

// TestWaitsAreRead: seconds, parts of them, a date, or nothing.
func TestWaitsAreRead(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{"": "1", "30": "30", "1.2": "2", "0": "0", "soon": "1", "-5": "1", "Mon, 02 Jan 2006 15:04:05 GMT": "0"} {
		resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}}
		if said != "" {
			resp.Header.Set("Retry-After", said)
		}
		if whole(resp); resp.Header.Get("Retry-After") != want {
			t.Errorf("%q is %q, want %q", said, resp.Header.Get("Retry-After"), want)
		}
	}
}

// TestMessagesWithoutAText: what was passed on, or posted by a program, is said by what is attached.
func TestMessagesWithoutAText(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"text":"mine","attachments":[{"text":"a preview"}]}`:                           "mine",
		`{"text":"","attachments":[{"is_share":true,"text":"the plan","fallback":"x"}]}`: "[forwarded] the plan",
		`{"attachments":[{"fallback":"disk full"},{"text":"on db1"},{}]}`:                "disk full\non db1",
		`{}`: "",
	} {
		var ev slackEvent
		if err := json.Unmarshal([]byte(raw), &ev); err != nil || ev.said() != want {
			t.Errorf("%s says %q (%v), want %q", raw, ev.said(), err, want)
		}
	}
}

// TestNoticesFit: what stands in for blocks is whole where it can be, and never more than an edit takes.
func TestNoticesFit(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"short", strings.Repeat("<", 5000), strings.Repeat("👩", 5000), strings.Repeat("a", 3900)} {
		got := notice(channels.Post{Text: text})
		if len(got) > 4000 || len(text) <= 3900 && got != text {
			t.Errorf("of %d bytes: %d", len(text), len(got))
		}
	}
}
