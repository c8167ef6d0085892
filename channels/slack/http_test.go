package slack_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

// mounted is an adapter in mode http with its handler on a server that Slack posts to.
func mounted(t *testing.T, s *slacktest.Server) *bench {
	t.Helper()
	b := start(t, s, func(o *slack.Options) {
		o.Mode, o.AppToken, o.SigningSecret = "http", "", channels.Secret(s.App().SigningSecret)
	})
	m, _ := channels.As[channels.Mounter](b.ch)
	srv := httptest.NewServer(m.Handler())
	t.Cleanup(srv.Close)
	s.SetRequestURL(srv.URL)
	return b
}

func TestHTTPReceivesEverything(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := mounted(t, s)
	if err := s.VerifyURL(t.Context()); err != nil {
		t.Error(err)
	}
	ts := s.Say(slacktest.Say{Channel: anaDM, User: anaID, Text: "over http"})
	b.get("the message", withText("over http"))
	s.Command(groupID, anaID, "/parley", "status now")
	if in := b.get("the command", withText("/status now")); !in.Command || in.Handle.Secret == "" || in.From.Name != "ana" {
		t.Errorf("the command is %+v", in)
	}
	id, err := b.ch.Send(t.Context(), channels.Post{To: b.dm(), Text: "sure?", Actions: [][]channels.Action{{{Label: "Yes", Value: "y"}}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Press(anaDM, string(id), anaID, "y")
	b.get("the button", func(in channels.Inbound) bool {
		return in.Kind == channels.KindButton && in.Text == "y" && in.Target == id
	})
	b.until("every acknowledgement", func() bool { return s.View().Pending() == 0 && s.View().Acked(anaDM, ts) })
}

func TestHTTPAsksAgainWhatWasNotTaken(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{Retries: []time.Duration{0, 0, 0}})
	b := mounted(t, s)
	refused := make(chan struct{}, 10)
	b.in.refuse = func([]channels.Inbound) error {
		select {
		case refused <- struct{}{}:
			return channels.ErrBusy
		default:
			return nil
		}
	}
	for range 5 {
		refused <- struct{}{}
	}
	ts := s.Say(slacktest.Say{Channel: anaDM, User: anaID, Text: "patience"})
	b.get("the message", withText("patience"))
	b.until("the acknowledgement", func() bool { return s.View().Acked(anaDM, ts) })
}

// TestT05_SignatureIsLookedAtFirst: no secret, no adapter; then headers before the body, the raw body before its meaning.
func TestT05_SignatureIsLookedAtFirst(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	for _, secret := range []channels.Secret{"", "short"} {
		o := &slack.Options{Mode: "http", BotToken: channels.Secret(s.Team(0).Token), SigningSecret: secret}
		if _, err := slack.Factory().New("work", o, channels.Deps{Log: slog.New(slog.DiscardHandler), HTTP: http.DefaultClient, Clock: &channeltest.Clock{}}); err == nil || !strings.Contains(err.Error(), "signing_secret") {
			t.Errorf("with the signing secret %q the adapter is made: %v", secret, err)
		}
	}
	b := mounted(t, s)
	m, _ := channels.As[channels.Mounter](b.ch)
	body := `{"type":"event_callback","team_id":"` + s.Team(0).ID + `","event_id":"Ev1","event":{"type":"message","channel":"` + anaDM + `","channel_type":"im","user":"` + anaID + `","ts":"1700000000.000100","text":"forged"}}`
	at := time.Now()
	for name, tc := range map[string]struct {
		change func(*http.Request)
		body   io.Reader
		want   int
	}{
		"no signature": {func(r *http.Request) { r.Header.Del("X-Slack-Signature") }, unread{t}, 401},
		"no timestamp": {func(r *http.Request) { r.Header.Del("X-Slack-Request-Timestamp") }, unread{t}, 401},
		"no hex":       {func(r *http.Request) { r.Header.Set("X-Slack-Signature", "v0=zz") }, unread{t}, 401},
		"old": {func(r *http.Request) {
			slacktest.Sign(r.Header, s.App().SigningSecret, at.Add(-6*time.Minute), []byte(body))
		}, unread{t}, 401},
		"from the future": {func(r *http.Request) {
			slacktest.Sign(r.Header, s.App().SigningSecret, at.Add(6*time.Minute), []byte(body))
		}, unread{t}, 401},
		"another secret":   {func(r *http.Request) { slacktest.Sign(r.Header, "another secret", at, []byte(body)) }, strings.NewReader(body), 401},
		"another body":     {func(*http.Request) {}, strings.NewReader(body + " "), 401},
		"announced 2 MiB":  {func(r *http.Request) { r.ContentLength = 2 << 20 }, unread{t}, 413},
		"really 1 MiB + 1": {func(r *http.Request) { r.ContentLength = -1 }, strings.NewReader(strings.Repeat("a", 1<<20+1)), 413},
		"GET":              {func(r *http.Request) { r.Method = http.MethodGet }, unread{t}, 405},
		"as it should be":  {func(*http.Request) {}, strings.NewReader(body), 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/events", tc.body)
		slacktest.Sign(r.Header, s.App().SigningSecret, at, []byte(body))
		r.Header.Set("Content-Type", "application/json")
		tc.change(r)
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s: %d, want %d", name, w.Code, tc.want)
		}
	}
	if got := b.in.texts(); len(got) != 1 {
		t.Errorf("taken: %q, want the one that was signed", got)
	}
}

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read before the headers were found good")
	return 0, io.EOF
}

// TestT06_ReplayIsOneMessage: within the window a copied request passes the signature, under a new one or the same; the
// message's own id in the verified body makes it one.
func TestT06_ReplayIsOneMessage(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := mounted(t, s)
	body := []byte(`{"type":"event_callback","team_id":"` + s.Team(0).ID + `","event_id":"Ev1","event":{"type":"message","channel":"` + anaDM + `","channel_type":"im","user":"` + anaID + `","ts":"1700000000.000100","text":"pay ten"}}`)
	for _, at := range []time.Duration{0, 0, -time.Second, -4 * time.Minute} {
		status, err := s.Post(t.Context(), body, func(r *http.Request) { slacktest.Sign(r.Header, s.App().SigningSecret, time.Now().Add(at), body) })
		if err != nil || status != 200 {
			t.Errorf("signed %v ago: %d %v", at, status, err)
		}
	}
	if status, err := s.Post(t.Context(), body, func(r *http.Request) {
		slacktest.Sign(r.Header, s.App().SigningSecret, time.Now().Add(-6*time.Minute), body)
	}); err != nil || status != 401 {
		t.Errorf("a replay after the window: %d %v", status, err)
	}
	b.in.mu.Lock()
	defer b.in.mu.Unlock()
	if len(b.in.keys) != 1 || len(b.in.all) != 4 {
		t.Errorf("%d offers have %d keys, want 4 of one", len(b.in.all), len(b.in.keys))
	}
}

// TestT07_RotatedSigningSecretEndsAtOnce: the next request that is signed with the old one is refused.
func TestT07_RotatedSigningSecretEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	old := s.App().SigningSecret
	b := start(t, s, func(o *slack.Options) { o.Mode, o.AppToken, o.SigningSecret = "http", "", "a secret that was rotated" })
	m, _ := channels.As[channels.Mounter](b.ch)
	body := `{"type":"event_callback","event":{"type":"app_home_opened"}}`
	for secret, want := range map[string]int{old: 401, "a secret that was rotated": 200} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/events", strings.NewReader(body))
		slacktest.Sign(r.Header, secret, time.Now(), []byte(body))
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("signed with %q: %d, want %d", secret, w.Code, want)
		}
	}
	b.stop()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/events", strings.NewReader(body))
	slacktest.Sign(r.Header, "a secret that was rotated", time.Now(), []byte(body))
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("an adapter that has ended answers %d", w.Code)
	}
}
