package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
)

// secretFile keeps a secret where a configuration can name it.
func secretFile(t *testing.T) (name string, put func(string)) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "secret")
	return name, func(s string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(s+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What a reload does to the channels of a daemon on three networks: one that polls, one over a socket, one that is called.
func TestT07_ChannelsAreRenewedByReloads(t *testing.T) {
	t.Parallel()
	hook := slacktest.Start(t, slacktest.Options{NoLimits: true, Retries: []time.Duration{0, time.Hour}, Teams: []slacktest.Team{{ID: "T0HOOK0001"}}})
	hook.AddUser(slacktest.User{ID: slackAna, Name: "ana"})
	hook.AddChannel(slacktest.Channel{ID: slackAnaDM, Kind: slacktest.IM, Members: []string{slackAna}})
	token, putToken := secretFile(t)
	secret, putSecret := secretFile(t)
	putSecret(hook.App().SigningSecret)
	r := newSlackRig(t, llmtest.Echo, "sessions: {queue: {mode: followup}}"+quiet, fmt.Sprintf(`, {name: hook, type: slack, mode: http, bot_token: "%s", signing_secret: "${file:%s}", api_url: "%s", access: {dm: open}}`,
		hook.Team(0).Token, secret, hook.APIURL()))
	for _, part := range []struct {
		name string
		test func(*slackRig)
	}{
		{"T07_a rotated token counts from then on", func(r *slackRig) { rotatedToken(r, token, putToken) }},
		{"T07_a rotated signing secret counts from then on", func(r *slackRig) { rotatedSigningSecret(&slackRig{r.rig, hook}, putSecret) }},
		{"a channel is added and removed under traffic", channelComesAndGoes},
	} {
		t.Run(part.name, func(t *testing.T) {
			in := *r.rig
			in.t = t
			part.test(&slackRig{&in, r.s})
		})
	}
}

// T07: a token that was rotated in the file that it comes from counts from the reload on. That channel reconnects,
// nothing that was written meanwhile is lost, and no other channel notices.
func rotatedToken(r *slackRig, name string, put func(string)) {
	put(r.tg.Token())
	r.write(strings.Replace(r.config(), `"`+r.tg.Token()+`"`, `"${file:`+name+`}"`, 1))
	ana := r.person(11)
	r.say(ana, 11, "before")
	r.said(ana, "echo: before")
	r.tg.Rotate("7:rotated-rotated-rotated-rotated-rot")
	r.logged("channel=tg state=fatal", 1)
	r.say(ana, 11, "between")
	put("7:rotated-rotated-rotated-rotated-rot")
	r.g.Reload()
	r.said(ana, "echo: between")
	r.say(ana, 11, "after")
	r.said(ana, "echo: after")
	r.s.Say(slacktest.Say{Channel: slackAnaDM, User: slackAna, Text: "and here?"})
	r.seen("the other network", func(v slacktest.View) bool { _, ok := shows(v, slackAnaDM, "echo: and here?"); return ok })
	log := r.log.String()
	if n := strings.Count(log, "channel reconnects"); n != 1 || r.s.View().Connected() != 1 {
		r.t.Errorf("%d channels connected again, Slack saw %d sockets", n, r.s.View().Connected())
	}
	if got := len(r.tg.View().Sent(ana.ID)); got != 3 {
		r.t.Errorf("%d answers: %q", got, texts(r.tg.View().Sent(ana.ID)))
	}
}

// T07: so does a signing secret, and what is signed with the old one is refused from then on.
func rotatedSigningSecret(r *slackRig, put func(string)) {
	s, url := r.s, "http://"+r.g.Addr()+"/channels/hook/events"
	old := s.App().SigningSecret
	s.SetRequestURL(url)
	before := r.log.String()
	hears := func(text string) {
		r.t.Helper()
		s.Say(slacktest.Say{Channel: slackAnaDM, User: slackAna, Text: text})
		r.seen(text, func(v slacktest.View) bool { _, ok := shows(v, slackAnaDM, "echo: "+text); return ok })
	}
	hears("before")
	s.Rotate("0123456789abcdef0123456789abcdef")
	put("0123456789abcdef0123456789abcdef")
	r.g.Reload()
	r.logged("channel reconnects", strings.Count(before, "channel reconnects")+1)
	r.logged("channel=hook state=ready", 2)
	hears("after")
	body := []byte(`{"type":"url_verification","challenge":"c"}`)
	for secret, want := range map[string]int{old: http.StatusUnauthorized, s.App().SigningSecret: http.StatusOK} {
		req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			r.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		slacktest.Sign(req.Header, secret, time.Now(), body)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != want {
			r.t.Errorf("signed with %.4s…: %s, want %d", secret, res.Status, want)
		}
	}
	for _, other := range []string{"channel=tg state=", "channel=work state="} {
		if n := r.log.Count(other) - strings.Count(before, other); n != 0 {
			r.t.Errorf("another channel told %d states", n)
		}
	}
}

// A second bot is added and removed by reloads while people write to both: what is written to it while it is away waits at the
// network, what was taken is answered when it is there again, all of it once, and the first bot notices nothing.
func channelComesAndGoes(r *slackRig) {
	before := r.log.String()
	two := telegramtest.Start(r.t, telegramtest.Options{NoLimits: true, Token: "8:second-second-second-second-second", Bot: telegramtest.User{ID: 8, First: "Two", Username: "two_bot"}})
	ben := two.AddPrivate(telegramtest.User{ID: 12, First: "Ben"})
	says := 0
	say := func() {
		two.Message(telegramtest.In{Chat: ben.ID, From: telegramtest.User{ID: 12, First: "Ben"}, Text: fmt.Sprint("m", says)})
		says++
	}
	seen := func(what string, cond func(telegramtest.View) bool) {
		r.t.Helper()
		ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
		defer cancel()
		if err := two.WaitFor(ctx, cond); err != nil {
			r.t.Fatalf("%s: %v; %q", what, err, texts(two.View().Sent(ben.ID)))
		}
	}
	without := r.config()
	with := strings.Replace(without, "channels: [", fmt.Sprintf("channels: [{name: two, type: telegram, token: %q, api_url: %q, access: {dm: open}}, ", two.Token(), two.URL()), 1)
	ana := r.person(21)
	written := 0
	busy, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-busy:
				return
			default:
			}
			r.say(ana, 21, fmt.Sprint("m", written))
			written++
			if _, err := r.tg.WaitSent(r.t.Context(), ana.ID, written); err != nil {
				return
			}
		}
	}()
	say() // nobody listens yet
	for round := range 4 {
		r.write(with)
		r.g.Reload()
		seen("what was written before is answered", func(v telegramtest.View) bool { return len(v.Sent(ben.ID)) == says })
		for range 5 {
			say()
		}
		if round > 0 { // some are taken by then, none, or all
			seen("a message is taken", func(v telegramtest.View) bool { return len(v.Sent(ben.ID)) > says-5 })
		}
		r.write(without)
		r.g.Reload()
		seen("nobody listens any more", func(v telegramtest.View) bool { return !v.Polling() })
		say()
	}
	r.write(with)
	r.g.Reload()
	seen("all is answered", func(v telegramtest.View) bool { return len(v.Sent(ben.ID)) >= says && v.Pending() == 0 })
	close(busy)
	<-over
	for who, got := range map[string][]string{"ana": texts(r.tg.View().Sent(ana.ID)), "ben": texts(two.View().Sent(ben.ID))} {
		want := written
		if who == "ben" {
			want = says
		}
		for i := range max(want, len(got)) {
			if i >= len(got) || got[i] != fmt.Sprint("echo: m", i) {
				r.t.Fatalf("%s got %q, want the echoes of %d messages in order", who, got, want)
			}
		}
	}
	if len(two.View().Commands()) == 0 {
		r.t.Error("the added bot has no menu")
	}
	if log := r.log.String()[len(before):]; strings.Contains(log, "wait for a restart") || strings.Contains(log, "channel=tg state=") {
		r.t.Error("something waits for a restart, or the first bot connected again")
	}
}
