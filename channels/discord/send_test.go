package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/discord/discordtest"
)

// TestT15_AnswersRingNobodyAndFetchNothing: mass mentions are words, and links have no previews.
func TestT15_AnswersRingNobodyAndFetchNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	asked := r.says(ana, general, "hello all")
	text := "@everyone @here <@" + ben + "> <@&" + opsRole + "> https://evil.example/?leak=1"
	id, err := r.c.Send(r.ctx(), channels.Post{To: r.at(general), Token: "t", Text: text, ReplyTo: channels.MessageID(asked), Silent: true})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		m, _ := r.fake.Message(general, string(id))
		if m.Pings || len(m.Mentions) > 0 || m.Flags&4 == 0 || !strings.Contains(m.Text, "@everyone") {
			t.Errorf("%s: %+v", when, m)
		}
	}
	check("sent")
	if err := r.c.Edit(r.ctx(), id, channels.Post{To: r.at(general), Text: text + "!"}); err != nil {
		t.Fatal(err)
	}
	check("edited")
}

func TestR05_ASecondSendIsTheSameMessage(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Now()
	r := newRig(t, discordtest.Options{NoLimits: true, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	p := channels.Post{To: r.at(dm), Token: "01JD0PARLEY", Text: "once"}
	first, err := r.c.Send(r.ctx(), p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.c.Send(r.ctx(), p); err != nil || again != first {
		t.Errorf("sent again as %q, %v, was %q", again, err, first)
	}
	since := now
	mu.Lock()
	now = now.Add(time.Hour) // Discord has forgotten the nonce
	mu.Unlock()
	if id, found, _, err := r.c.Find(r.ctx(), p, since); err != nil || !found || id != first {
		t.Errorf("found %q, %v, %v", id, found, err)
	}
	p.Token = "another"
	if _, found, sure, err := r.c.Find(r.ctx(), p, since); err != nil || found || !sure {
		t.Errorf("found what was never sent: %v, sure %v, %v", found, sure, err)
	}
	if r.c.Traits().SameFor > 5*time.Minute {
		t.Errorf("a nonce is relied on for %v", r.c.Traits().SameFor)
	}
}

func TestRefusalsAreClassified(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	const route = "POST /channels/{channel}/messages"
	for name, c := range map[string]struct {
		fault discordtest.Fault
		want  channels.Error
	}{
		"429":               {discordtest.Fault{Status: 429, After: 7 * time.Second}, channels.Error{Class: channels.Retry, After: 7 * time.Second}},
		"429 of everything": {discordtest.Fault{Status: 429, After: 3 * time.Second, Global: true}, channels.Error{Class: channels.Retry, After: 3 * time.Second, Global: true}},
		"429 of the CDN":    {discordtest.Fault{Status: 429, Body: discordtest.Banned}, channels.Error{Class: channels.Retry, After: banPause, Global: true}},
		"500":               {discordtest.Fault{Status: 500}, channels.Error{Class: channels.Unknown}},
		"502 with a page":   {discordtest.Fault{Status: 502, Body: discordtest.BadGateway}, channels.Error{Class: channels.Unknown}},
		"403 with a page":   {discordtest.Fault{Status: 403, Body: "<html>"}, channels.Error{Class: channels.Retry}},
		"401":               {discordtest.Fault{Status: 401}, channels.Error{Class: channels.Fatal}},
		"403":               {discordtest.Fault{Status: 403}, channels.Error{Class: channels.PeerGone}},
		"413 with a page":   {discordtest.Fault{Status: 413, Body: "<html>"}, channels.Error{Class: channels.BadMessage}},
	} {
		r.fake.ClearFaults()
		c.fault.Route, c.fault.Do, c.fault.Times = route, discordtest.Reply, 1
		r.fake.AddFault(c.fault)
		_, err := r.c.Send(r.ctx(), channels.Post{To: r.at(dm), Token: name, Text: "x"})
		var e *channels.Error
		if !errors.As(err, &e) || e.Class != c.want.Class || e.After != c.want.After || e.Global != c.want.Global {
			t.Errorf("%s: %+v (%v), want %+v", name, e, err, c.want)
		}
		if err != nil && strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), r.fake.Token()) {
			t.Errorf("%s tells the token", name)
		}
	}
	r.fake.Deny(general, discordtest.Denied{Send: true})
	if _, err := r.c.Send(r.ctx(), channels.Post{To: r.at(general), Token: "x", Text: "x"}); channels.ClassOf(err) != channels.PeerGone {
		t.Errorf("without permission: %v", err)
	}
	if _, err := r.c.Send(r.ctx(), channels.Post{To: r.at(dm), Token: "x", Text: strings.Repeat("a", 2001)}); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("too long: %v", err)
	}
	many := [][]channels.Action{{{Label: "1", Value: "1"}, {Label: "2", Value: "2"}, {Label: "3", Value: "3"}, {Label: "4", Value: "4"}, {Label: "5", Value: "5"}, {Label: "6", Value: "6"}}}
	if _, err := r.c.Send(r.ctx(), channels.Post{To: r.at(dm), Token: "x", Text: "x", Actions: many}); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("six buttons in a row: %v", err)
	}
	if _, err := r.c.Send(r.ctx(), channels.Post{To: channels.Address{Peer: "../../users/@me"}, Token: "x", Text: "x"}); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("an address that is none: %v", err)
	}
}

// TestNoRateLimitIsSleptAway: a 429 is told at once and the next send is tried at once; waiting is the core's.
func TestNoRateLimitIsSleptAway(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRig(t, discordtest.Options{Now: func() time.Time { return now }})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	limited := 0
	for i := range 12 {
		_, err := r.c.Send(ctx, channels.Post{To: r.at(dm), Token: fmt.Sprint(i), Text: "x"})
		if channels.ClassOf(err) == channels.Retry {
			limited++
		}
	}
	if limited != 7 {
		t.Errorf("%d of 12 were told to wait, want the 7 beyond Discord's 5", limited)
	}
}

// TestT18_FilesComeFromDiscordAlone: their ids mean nothing elsewhere, the token stays here, and sizes are held.
func TestT18_FilesComeFromDiscordAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	r.run()
	r.fake.Write(discordtest.In{Channel: dm, From: ana, Text: "read", Files: []discordtest.File{{Name: "a.txt", MIME: "text/plain", Data: []byte("abc")}, {Name: "b.png", MIME: "image/png", Data: []byte("png")}}})
	in := r.inbound("read")
	if len(in.Attachments) != 2 || in.Attachments[1].Kind != "image" || in.Attachments[0].Size != 3 {
		t.Fatalf("attachments %+v", in.Attachments)
	}
	rc, err := r.c.Open(r.ctx(), in.Attachments[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, rc); got != "abc" || r.fake.Calls("token at the CDN") != 0 {
		t.Errorf("read %q; the token went along %d times", got, r.fake.Calls("token at the CDN"))
	}
	small := in.Attachments[0]
	small.Size = 2
	if _, err := r.c.Open(r.ctx(), small); !errors.Is(err, channels.ErrTooLarge) {
		t.Errorf("larger than was said: %v", err)
	}
	small.Size = 1 << 40
	if _, err := r.c.Open(r.ctx(), small); !errors.Is(err, channels.ErrTooLarge) {
		t.Errorf("larger than anything: %v", err)
	}
	for _, id := range []string{"", "x", dm + "/../x", "https://evil.example/x", dm + "/" + string(in.ID) + "/1"} {
		if _, err := r.c.Open(r.ctx(), channels.Attachment{ID: id}); channels.ClassOf(err) != channels.BadMessage {
			t.Errorf("attachment %q: %v", id, err)
		}
	}
	public := &rest{base: must(t, defaultAPI), files: &http.Client{}}
	for _, to := range []string{"http://127.0.0.1/x", "https://evil.example/x", "https://discordapp.com.evil.example/x", "file:///etc/passwd", "http://cdn.discordapp.com/x"} {
		if _, err := public.download(r.ctx(), to, 10); channels.ClassOf(err) != channels.BadMessage {
			t.Errorf("%s was asked: %v", to, err)
		}
	}
}

func TestFilesGoOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	p := channels.Post{To: r.at(thread), Token: "f", Text: "here", Files: []channels.File{channeltest.Outgoing("t.csv", "text/csv", []byte("a,b\n"))}}
	for range 2 { // the second is the same message
		if _, err := r.c.Send(r.ctx(), p); err != nil {
			t.Fatal(err)
		}
	}
	if sent := r.fake.Sent(thread); len(sent) != 1 || sent[0].Text != "here" || string(sent[0].Files[0].Data) != "a,b\n" {
		t.Errorf("people see %+v", sent)
	}
	p.Files[0] = channeltest.Unopened("t.csv", maxUpload+1, nil)
	if _, err := r.c.Send(r.ctx(), p); channels.ClassOf(err) != channels.BadMessage {
		t.Errorf("too large: %v", err)
	}
}

func TestThreadBeginsWithItsMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	root := r.says(ana, general, "it is down again")
	made := r.fake.Thread(general, root, "down again")
	for i := range 30 {
		r.says(ben, made, fmt.Sprint("line ", i))
	}
	to := r.at(general)
	to.Thread = channels.ThreadID(made)
	past, err := r.c.History(r.ctx(), to, 3)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, in := range past {
		texts = append(texts, in.Text)
	}
	if got := strings.Join(texts, ", "); got != "it is down again, line 27, line 28, line 29" {
		t.Errorf("history %s", got)
	}
}

func TestCheckFindsWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	for _, f := range r.c.Check(r.ctx()) {
		if !f.OK {
			t.Errorf("a well account has %+v", f)
		}
	}
	r.fake.Kick(server)
	if found := fmt.Sprint(r.c.Check(r.ctx())); !has(found, "client_id="+r.fake.App(), "permissions=274878024768") {
		t.Errorf("in no server: %s", found)
	}
	r.fake.Revoke()
	if found := r.c.Check(r.ctx()); len(found) != 1 || found[0].OK || !has(found[0].Hint, "Reset Token") {
		t.Errorf("refused: %+v", found)
	}
}
