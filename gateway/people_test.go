package gateway_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/channeltest"
	"parley/channels/channeltest/stage"
	"parley/channels/telegram/telegramtest"
	"parley/gateway"
	"parley/gateway/control"
	people "parley/gateway/control/person"
	"parley/workspace"
)

// clock is a time that a test moves.
type clock struct{ channeltest.Clock }

func (c *clock) in(o *gateway.Options) { o.Now = c.Now }

// operator is the call of whoever holds the gateway's token.
func operator() control.Call {
	return control.Call{Actor: workspace.Actor{Person: "local", Role: workspace.Owner, Name: "local"}}
}

const pairingOnly = "{dm: pairing, groups: open, require_mention: true}"

// code is what a stranger was sent.
func code(t *testing.T, text string) string {
	t.Helper()
	m := regexp.MustCompile(`\b[A-Z2-9]{4}-[A-Z2-9]{4}\b`).FindString(text)
	if m == "" {
		t.Fatalf("no code in %q", text)
	}
	return m
}

// T09: a stranger gets one code in ten minutes and nothing else; the code, approved, makes a guest.
func TestT09_PairingFromStrangerToGuest(t *testing.T) {
	t.Parallel()
	c := &clock{}
	r := newRig(t, setup{access: pairingOnly, opt: c.in})
	eve, ana := r.person(66), r.person(11)
	for i := range 5 {
		r.say(eve, 66, fmt.Sprintf("let me in %d", i))
		r.say(eve, 66, "/status")
	}
	r.say(ana, 11, "hello")
	first := code(t, r.wait(eve, 1)[0].Text)
	hers := code(t, r.wait(ana, 1)[0].Text)
	c.Move(11 * time.Minute)
	r.say(eve, 66, "once more")
	second := code(t, r.wait(eve, 2)[1].Text)
	if first == second {
		t.Error("the second code is the first one")
	}
	ctl := r.g.Control()
	if _, err := people.ApprovePairing.Call(t.Context(), ctl.People, operator(), people.ApproveIn{ID: first}); err == nil {
		t.Error("a code that was replaced opened the door")
	}
	if _, err := people.ApprovePairing.Call(t.Context(), ctl.People, operator(), people.ApproveIn{ID: hers}); err == nil {
		t.Error("a code of eleven minutes ago opened the door")
	}
	p, err := people.ApprovePairing.Call(t.Context(), ctl.People, operator(), people.ApproveIn{ID: strings.ToLower(second)})
	if err != nil || p.User != "66" {
		t.Fatalf("approve: %v, user %q", err, p.User)
	}
	if got := r.wait(eve, 3)[2].Text; !strings.HasPrefix(got, "You are approved.") {
		t.Errorf("told %q", got)
	}
	r.say(eve, 66, "/whoami")
	if got := r.wait(eve, 4)[3].Text; !strings.Contains(got, "role guest") {
		t.Errorf("who: %q", got)
	}
	if _, err := people.ApprovePairing.Call(t.Context(), ctl.People, operator(), people.ApproveIn{ID: second, As: workspace.Owner}); err == nil {
		t.Error("a code was used twice")
	}
	if n := r.llm.Count(); n != 0 {
		t.Errorf("%d model calls for strangers", n)
	}
	r.say(eve, 66, "thanks")
	if got := r.wait(eve, 5)[4].Text; got != "echo: thanks" {
		t.Errorf("answer %q", got)
	}
}

func TestT09_FiveWrongCodesShutTheDoorButNotTheRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{access: pairingOnly})
	eve := r.person(66)
	r.say(eve, 66, "let me in")
	right := code(t, r.wait(eve, 1)[0].Text)
	ctl := r.g.Control()
	for i := range 5 {
		if _, err := people.ApprovePairing.Call(t.Context(), ctl.People, operator(), people.ApproveIn{ID: fmt.Sprintf("AAAA-AAA%c", 'B'+i)}); err == nil {
			t.Fatal("a wrong code opened the door")
		}
	}
	if _, err := people.ApprovePairing.Call(t.Context(), ctl.People, operator(), people.ApproveIn{ID: right}); err == nil {
		t.Error("the right code still opens after five wrong ones")
	}
	list, err := people.ListPairings.Call(t.Context(), ctl.People, operator(), struct{}{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("requests %+v, %v", list, err)
	}
	if _, err := people.ApprovePairing.Call(t.Context(), ctl.People, operator(), people.ApproveIn{ID: workspace.Short(list.Items[0].ID)}); err != nil {
		t.Errorf("by its id: %v", err)
	}
	r.wait(eve, 2)
	r.say(eve, 66, "hello")
	if got := r.wait(eve, 3)[2].Text; got != "echo: hello" {
		t.Errorf("answer %q", got)
	}
}

// T09: the request lives seven days and can be approved by its id when its code has long expired, but no longer.
func TestT09_RequestIsApprovedByIdUntilItIsAWeekOld(t *testing.T) {
	t.Parallel()
	c := &clock{}
	r := newRig(t, setup{access: pairingOnly, opt: c.in})
	eve, mallory := r.person(66), r.person(67)
	r.say(eve, 66, "let me in")
	r.wait(eve, 1)
	c.Move(2 * time.Hour)
	r.say(mallory, 67, "me too")
	r.wait(mallory, 1)
	c.Move(7*24*time.Hour - time.Hour)
	ctl := r.g.Control()
	list, err := people.ListPairings.Call(t.Context(), ctl.People, operator(), struct{}{})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("requests %+v, %v", list, err)
	}
	for _, p := range list.Items {
		_, err := people.ApprovePairing.Call(t.Context(), ctl.People, operator(), people.ApproveIn{ID: p.ID})
		if old := p.User == "66"; old != (err != nil) {
			t.Errorf("user %s: %v", p.User, err)
		}
	}
}

// T09: being let into a group, or writing there, makes nobody known in direct messages, and groups hear no codes.
func TestT09_GroupsHearNoCodesAndGrantNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{access: "{dm: pairing, groups: allowlist, allow: [\"-5001\"], require_mention: true}"})
	open := r.tg.AddChat(telegramtest.Chat{ID: -5001, Kind: telegramtest.Group, Title: "team"})
	shut := r.tg.AddChat(telegramtest.Chat{ID: -5002, Kind: telegramtest.Group, Title: "strangers"})
	eve := r.person(66)
	r.say(shut, 66, "@parley_test_bot hello")
	r.say(shut, 66, "/status@parley_test_bot")
	r.say(open, 66, "@parley_test_bot hello")
	r.wait(open, 1)
	r.say(eve, 66, "and here?")
	code(t, r.wait(eve, 1)[0].Text)
	if got := texts(r.tg.View().Sent(shut.ID)); len(got) != 0 {
		t.Errorf("a group that is not allowed heard %q", got)
	}
	if n := r.llm.Count(); n != 1 {
		t.Errorf("%d model calls, want the one of the allowed group", n)
	}
}

// T08: a sender is an id. Whoever calls themselves by the owner's name and user name is a stranger.
func TestT08_NamesGrantNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{access: pairingOnly, extra: "people: [{id: ana, name: Ana, role: owner, accounts: [{channel: tg, user: \"11\"}]}]"})
	ana, eve := r.person(11), r.person(66)
	r.say(ana, 11, "/whoami")
	if got := r.wait(ana, 1)[0].Text; !strings.Contains(got, "role owner") || !strings.Contains(got, "ana") {
		t.Errorf("ana is %q", got)
	}
	fake := telegramtest.User{ID: 66, First: "Ana", Last: "ana", Username: "ana"}
	r.tg.Message(telegramtest.In{Chat: eve.ID, From: fake, Text: "/whoami"})
	code(t, r.wait(eve, 1)[0].Text)
	group := r.tg.AddChat(telegramtest.Chat{ID: -5001, Kind: telegramtest.Group, Title: "team"})
	r.tg.Message(telegramtest.In{Chat: group.ID, From: fake, Text: "/whoami@parley_test_bot"})
	if got := r.wait(group, 1)[0].Text; !strings.Contains(got, "role guest") {
		t.Errorf("in the group eve is %q", got)
	}
	r.tg.Message(telegramtest.In{Chat: group.ID, From: fake, Text: "/new@parley_test_bot"})
	if got := r.wait(group, 2)[1].Text; !strings.Contains(got, "only an owner") {
		t.Errorf("eve's /new in the group: %q", got)
	}
}

// Only owners stop others' turns in a group.
func TestT10_StopInAGroupIsForTheRequesterAndOwners(t *testing.T) {
	t.Parallel()
	h := newHold()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply { return h.reply(t, q.LastUser(), llmtest.Echo(q)) },
		extra: "people: [{id: ana, role: owner, accounts: [{channel: tg, user: \"11\"}]}]\nsessions: {queue: {mode: followup}}" + quiet})
	group := r.tg.AddChat(telegramtest.Chat{ID: -5001, Kind: telegramtest.Group, Title: "team"})
	r.say(group, 12, "@parley_test_bot of ben")
	receive(t, h.asked, "ben's turn")
	r.say(group, 66, "@parley_test_bot of eve")
	r.queued(1)
	r.say(group, 66, "/stop@parley_test_bot")
	if got := r.wait(group, 1)[0].Text; got != "Stopped: 1 waiting message." {
		t.Errorf("eve's stop: %q", got)
	}
	r.say(group, 11, "/stop@parley_test_bot")
	if got := r.wait(group, 2)[1].Text; !strings.HasPrefix(got, "Stopped: run ") {
		t.Errorf("the owner's stop: %q", got)
	}
	r.stored("runs", `SELECT state FROM runs`, "user_stopped")
}

// T12: a noisy day leaves no secret and no word of what people wrote in the log.
func TestT12_LogHoldsNoSecretsAndNoTexts(t *testing.T) {
	t.Parallel()
	info := &stage.Log{}
	boom := testTool{name: "boom", call: boomCall}
	r := newRig(t, setup{opt: func(o *gateway.Options) {
		o.Tools = append(o.Tools, boom)
		o.Log = infoLog(info)
	}, script: func(q *llmtest.Request) llmtest.Reply {
		switch text := q.LastUser(); {
		case strings.Contains(text, "401"):
			return llmtest.Unauthorized()
		case strings.Contains(text, "cut"):
			return llmtest.Cut("canary-answer canary-answer")
		case strings.Contains(text, "boom") && q.Round() == 0:
			return call("boom")
		case strings.Contains(text, "hang"):
			return llmtest.Hang()
		}
		return llmtest.Reply{Text: "canary-answer"}
	}, extra: "sessions: {turn_timeout: 2s, queue: {mode: followup, cap: 2}}" + quiet})
	for i, text := range []string{"plain", "401", "cut", "boom", "hang", "/whoami", "/canary-text", "\x1b[31mred\u202e"} {
		chat := r.person(100 + int64(i))
		r.say(chat, chat.ID, text+" canary-text")
	}
	for i := range 8 {
		r.wait(telegramtest.Chat{ID: 100 + int64(i)}, 1)
	}
	ana := r.person(11)
	for i, f := range []telegramtest.Fault{
		{Method: "sendMessage", Do: telegramtest.CutAfter, Times: 1}, {Method: "sendMessage", Do: telegramtest.Reply, Status: 502, Body: telegramtest.BadGateway, Times: 1},
		{Method: "sendMessage", Do: telegramtest.Reply, Status: 400, Body: `{"ok":false,"error_code":400,"description":"Bad Request: nonsense"}`, Times: 1},
	} {
		r.tg.AddFault(f)
		r.say(ana, 11, "canary-text "+fmt.Sprint(i))
		r.wait(ana, i+1)
	}
	if err := r.tg.Cut(); err != nil {
		t.Fatal(err)
	}
	r.tg.Block(ana.ID)
	r.write("nonsense: canary-config\n" + r.config())
	r.g.Reload()
	ctx := t.Context()
	if err := info.Wait(ctx, "configuration refused, the former one stays in force", 1); err != nil {
		t.Fatal(err)
	}
	r.tg.Revoke()
	if err := info.Wait(ctx, "state=fatal", 1); err != nil {
		t.Fatal(err)
	}
	text := info.String()
	secret := r.tg.Token()
	_, half, _ := strings.Cut(secret, ":")
	for _, canary := range []string{secret, half, "sk-test-canary", "canary-text", "canary-answer", "\x1b", "\u202e"} {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("the log holds %q: …%s…", canary, text[max(0, i-300):min(len(text), i+100)])
		}
	}
	for line := range strings.Lines(text) {
		if len(line) > 16<<10 {
			t.Errorf("a line of %d bytes: %s…", len(line), line[:200])
		}
	}
	if lines := slices.Collect(strings.Lines(text)); len(lines) < 8 {
		t.Errorf("the day was not noisy: %d lines\n%s", len(lines), text)
	}
}
