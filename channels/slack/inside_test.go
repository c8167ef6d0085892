package slack

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"parley/channels"
	"parley/channels/slack/slacktest"
)

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

// states is an Intake that takes everything and remembers the states.
type states struct {
	mu      sync.Mutex
	all     []channels.Status
	changed chan struct{}
}

func (s *states) Receive(context.Context, ...channels.Inbound) error { return nil }
func (s *states) Newest(context.Context) (map[channels.PeerID]channels.MessageID, error) {
	return nil, nil
}
func (s *states) Report(st channels.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, st)
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits for a state whose cause holds all the words.
func (s *states) wait(t *testing.T, want channels.State, words ...string) channels.Status {
	t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		for _, st := range s.all {
			if st.State == want && strings.Contains(st.Cause, strings.Join(words, " ")) {
				s.mu.Unlock()
				return st
			}
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("never %s", want)
		}
	}
}

// running is a channel of the fake's first workspace at work.
func running(t *testing.T, s *slacktest.Server, change func(*pace)) (*Channel, *states) {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	o := Options{BotToken: channels.Secret(s.Team(0).Token), AppToken: channels.Secret(s.App().Token), APIURL: s.APIURL()}
	c, err := newChannel("work", o, channels.Deps{Log: slog.New(slog.DiscardHandler), HTTP: &http.Client{Transport: tr}, Clock: wall{}}, &appRegistry{})
	if err != nil {
		t.Fatal(err)
	}
	change(&c.pace)
	in := &states{changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, in) }()
	t.Cleanup(func() { cancel(); <-done })
	return c, in
}

// TestASilentSocketIsDeaf: connected, and no ping comes: that is told, and another connection is made.
func TestASilentSocketIsDeaf(t *testing.T) {
	t.Parallel()
	s := slacktest.Start(t, slacktest.Options{NoLimits: true, PingEvery: 50 * time.Millisecond})
	_, in := running(t, s, func(p *pace) { p.quiet = 2 * time.Second })
	in.wait(t, channels.Ready)
	s.Freeze()
	if st := in.wait(t, channels.Deaf); !strings.Contains(st.Cause, "silent") || st.Hint == "" {
		t.Errorf("told %+v", st)
	}
	was := s.View().Connected()
	s.ClearFaults()
	if err := s.WaitFor(t.Context(), func(v slacktest.View) bool { return v.Connected() > was }); err != nil {
		t.Error(err)
	}
}

// offline is a channel without a network, whose names are known to be unknown.
func offline(tb testing.TB) *receiver {
	tb.Helper()
	refuse := roundTripper(func(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed })
	c, err := newChannel("work", Options{BotToken: "xoxb-1-2-abcdefgh", AppToken: "xapp-1-A-abcdefgh"},
		channels.Deps{Log: slog.New(slog.DiscardHandler), HTTP: &http.Client{Transport: refuse}, Clock: wall{}}, &appRegistry{})
	if err != nil {
		tb.Fatal(err)
	}
	c.self.Store(&identity{team: "T1", user: "U1", name: "parley", bot: "B1", account: "T1/U1"})
	return &receiver{c: c}
}

// TestMissedIsAskedForWhereSlackDoesNotBringIt: not at each of the hourly refreshes.
func TestMissedIsAskedForWhereSlackDoesNotBringIt(t *testing.T) {
	t.Parallel()
	r := offline(t)
	now := time.Now()
	for name, tc := range map[string]struct {
		since time.Time
		blind bool
		want  bool
	}{
		"start": {want: true}, "refresh": {since: now.Add(-time.Second)}, "dead line": {since: now.Add(-time.Second), blind: true, want: true},
		"long gap": {since: now.Add(-time.Minute), want: true},
	} {
		r.since, r.blind = tc.since, tc.blind
		if got := r.missing(); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzEnvelope: whatever comes over the wire is read or journalled as it is, and nothing is lost silently that has a name.
func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{
		`{"envelope_id":"e","type":"events_api","payload":{"team_id":"T1","event_id":"Ev1","event":{"type":"message","channel":"D1","ts":"1.2","user":"U2","text":"<@U1> hi"}}}`,
		`{"envelope_id":"e","type":"interactive","payload":{"type":"block_actions","container":{"message_ts":"1.2"},"actions":[{"value":"v"}]}}`,
		`{"envelope_id":"e","type":"slash_commands","payload":{"channel_id":"D1","user_id":"U2","command":"/parley","text":"x"}}`, `{`, `[]`, `{"type":"disconnect"}`,
	} {
		f.Add([]byte(s))
	}
	r := offline(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		e := readEnvelope(raw)
		in, ok := r.convert(t.Context(), e)
		if ok && (in.Key == "" || in.Kind == "" || in.Kind == channels.KindUnparsed && in.Data == nil) {
			t.Errorf("%q gives %+v", raw, in)
		}
	})
}

// FuzzReadText: reading never fails, never leaves the bot's id, and keeps valid text valid.
func FuzzReadText(f *testing.F) {
	for _, s := range []string{"<@U1> a &lt;b", "<https://x|y> <#C1|z> <!here>", "<<@U1>>", "<@U1|p> <@U1>", "\x00<@U1>"} {
		f.Add(s)
	}
	r := offline(f)
	f.Fuzz(func(t *testing.T, raw string) {
		text, _ := r.c.readText(t.Context(), raw)
		if utf8.ValidString(raw) && !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Errorf("%q is %q", raw, text)
		}
	})
}
