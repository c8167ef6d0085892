package gateway_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// code is what a stranger was sent.
func code(t *testing.T, text string) string {
	t.Helper()
	m := regexp.MustCompile(`\b[A-Z2-9]{4}-[A-Z2-9]{4}\b`).FindString(text)
	if m == "" {
		t.Fatalf("no code in %q", text)
	}
	return m
}

// Who people are: strangers, whom a code lets in, and known ones, who link a second account; on one daemon, one test after another,
// each of which leaves the clock as it found it.
func TestPeople(t *testing.T) {
	t.Parallel()
	c, dc := &clock{}, newSecond(t)
	var groups []string // of the slots
	for n := range int64(10) {
		groups = append(groups, fmt.Sprintf(`"%d"`, -5001-n*slotSize))
	}
	together(t, setup{inTurn: true, opt: c.in, more: dc.more(), extra: "sessions: {dm_scope: per-peer}",
		access: "{dm: pairing, groups: allowlist, allow: [" + strings.Join(groups, ", ") + "], require_mention: true}"}, map[string]func(*rig){
		"T09_pairing from stranger to guest":                     func(r *rig) { fromStrangerToGuest(r, c) },
		"T09_five wrong codes shut the door, not the request":    fiveWrongCodes,
		"T09_a request is approved by its id until it is a week": func(r *rig) { requestsLiveAWeek(r, c) },
		"T09_groups hear no codes and grant nothing":             groupsGrantNothing,
		"T08_names grant nothing":                                namesGrantNothing,
		"T18_files of strangers are not fetched":                 filesOfStrangers,
		"T09_a link joins two networks and raises no role":       func(r *rig) { linkJoinsTwoNetworks(r, dc) },
		"T09_codes of links expire, and tries are counted":       func(r *rig) { linkCodesExpire(r, dc, c) },
	})
}

// approve lets in who has a code or a request.
func (r *rig) approve(id string, as workspace.Role) (people.Pairing, error) {
	return people.ApprovePairing.Call(r.t.Context(), r.g.Control().People, operator(), people.ApproveIn{ID: id, As: as})
}

// requests are those of the slot's people.
func (r *rig) requests() (own []people.Pairing) {
	r.t.Helper()
	list, err := people.ListPairings.Call(r.t.Context(), r.g.Control().People, operator(), struct{}{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range list.Items {
		if id, _ := strconv.ParseInt(p.User, 10, 64); id/slotSize*slotSize == r.slot.base {
			own = append(own, p)
		}
	}
	return own
}

// T09: a stranger gets one code in ten minutes and nothing else; the code, approved, makes a guest.
func fromStrangerToGuest(r *rig, c *clock) {
	defer c.Move(-11 * time.Minute)
	eve, dora := r.person(66), r.person(31)
	for i := range 5 {
		r.say(eve, 66, fmt.Sprintf("let me in %d", i))
		r.say(eve, 66, "/status")
	}
	r.say(dora, 31, "hello")
	first := code(r.t, r.wait(eve, 1)[0].Text)
	hers := code(r.t, r.wait(dora, 1)[0].Text)
	c.Move(11 * time.Minute)
	r.say(eve, 66, "once more")
	second := code(r.t, r.wait(eve, 2)[1].Text)
	if first == second {
		r.t.Error("the second code is the first one")
	}
	if _, err := r.approve(first, ""); err == nil {
		r.t.Error("a code that was replaced opened the door")
	}
	if _, err := r.approve(hers, ""); err == nil {
		r.t.Error("a code of eleven minutes ago opened the door")
	}
	p, err := r.approve(strings.ToLower(second), "")
	if err != nil || p.User != fmt.Sprint(r.id(66)) {
		r.t.Fatalf("approve: %v, user %q", err, p.User)
	}
	if got := r.wait(eve, 3)[2].Text; !strings.HasPrefix(got, "You are approved.") {
		r.t.Errorf("told %q", got)
	}
	r.say(eve, 66, "/whoami")
	if got := r.wait(eve, 4)[3].Text; !strings.Contains(got, "role guest") {
		r.t.Errorf("who: %q", got)
	}
	if _, err := r.approve(second, workspace.Owner); err == nil {
		r.t.Error("a code was used twice")
	}
	if n := len(r.bodies()); n != 0 {
		r.t.Errorf("%d model calls for strangers", n)
	}
	r.say(eve, 66, "thanks")
	if got := r.wait(eve, 5)[4].Text; got != "echo: thanks" {
		r.t.Errorf("answer %q", got)
	}
}

func fiveWrongCodes(r *rig) {
	eve := r.person(66)
	r.say(eve, 66, "let me in")
	right := code(r.t, r.wait(eve, 1)[0].Text)
	for i := range 5 {
		if _, err := r.approve(fmt.Sprintf("AAAA-AAA%c", 'B'+i), ""); err == nil {
			r.t.Fatal("a wrong code opened the door")
		}
	}
	if _, err := r.approve(right, ""); err == nil {
		r.t.Error("the right code still opens after five wrong ones")
	}
	list := r.requests()
	if len(list) != 1 {
		r.t.Fatalf("requests %+v", list)
	}
	if _, err := r.approve(workspace.Short(list[0].ID), ""); err != nil {
		r.t.Errorf("by its id: %v", err)
	}
	r.wait(eve, 2)
	r.say(eve, 66, "hello")
	if got := r.wait(eve, 3)[2].Text; got != "echo: hello" {
		r.t.Errorf("answer %q", got)
	}
}

// T09: the request lives seven days and can be approved by its id when its code has long expired, but no longer.
func requestsLiveAWeek(r *rig, c *clock) {
	defer c.Move(-7*24*time.Hour - time.Hour)
	eve, mallory := r.person(66), r.person(67)
	r.say(eve, 66, "let me in")
	r.wait(eve, 1)
	c.Move(2 * time.Hour)
	r.say(mallory, 67, "me too")
	r.wait(mallory, 1)
	c.Move(7*24*time.Hour - time.Hour)
	list := r.requests()
	if len(list) != 2 {
		r.t.Fatalf("requests %+v", list)
	}
	for _, p := range list {
		_, err := r.approve(p.ID, "")
		if old := p.User == fmt.Sprint(r.id(66)); old != (err != nil) {
			r.t.Errorf("user %s: %v", p.User, err)
		}
	}
}

// T09: being let into a group, or writing there, makes nobody known in direct messages, and groups hear no codes.
func groupsGrantNothing(r *rig) {
	open := r.group()
	shut := r.tg.AddChat(telegramtest.Chat{ID: r.id(-5002), Kind: telegramtest.Group, Title: "strangers"})
	eve := r.person(66)
	r.say(shut, 66, "@parley_test_bot hello")
	r.say(shut, 66, "/status@parley_test_bot")
	r.say(open, 66, "@parley_test_bot hello")
	r.wait(open, 1)
	r.say(eve, 66, "and here?")
	code(r.t, r.wait(eve, 1)[0].Text)
	if got := texts(r.tg.View().Sent(shut.ID)); len(got) != 0 {
		r.t.Errorf("a group that is not allowed heard %q", got)
	}
	if n := len(r.bodies()); n != 1 {
		r.t.Errorf("%d model calls, want the one of the allowed group", n)
	}
}

// T08: a sender is an id. Whoever calls themselves by the owner's name and user name is a stranger.
func namesGrantNothing(r *rig) {
	ana, eve := r.person(11), r.person(66)
	r.say(ana, 11, "/whoami")
	if got := r.wait(ana, 1)[0].Text; !strings.Contains(got, "role owner") || !strings.Contains(got, "ana"+r.n()) {
		r.t.Errorf("ana is %q", got)
	}
	fake := telegramtest.User{ID: eve.ID, First: "ana" + r.n(), Last: "P" + r.n(), Username: "ana" + r.n()}
	r.tg.Message(telegramtest.In{Chat: eve.ID, From: fake, Text: "/whoami"})
	code(r.t, r.wait(eve, 1)[0].Text)
	group := r.group()
	r.tg.Message(telegramtest.In{Chat: group.ID, From: fake, Text: "/whoami@parley_test_bot"})
	if got := r.wait(group, 1)[0].Text; !strings.Contains(got, "role guest") {
		r.t.Errorf("in the group eve is %q", got)
	}
	r.tg.Message(telegramtest.In{Chat: group.ID, From: fake, Text: "/new@parley_test_bot"})
	if got := r.wait(group, 2)[1].Text; !strings.Contains(got, "only an owner") {
		r.t.Errorf("eve's /new in the group: %q", got)
	}
}

func filesOfStrangers(r *rig) {
	fetched := r.tg.View().Calls("getFile")
	dora, group := r.person(31), r.group()
	f := telegramtest.File{Type: "document", Name: "x.txt", Data: []byte("x")}
	r.send(dora, 31, "hello", f)
	r.wait(dora, 1)
	r.send(group, 12, "look at this, all of you", f)
	r.send(group, 12, "@parley_test_bot hello", telegramtest.File{Type: "document", Name: "y.txt", Data: []byte("y")})
	r.wait(group, 1)
	if n := r.tg.View().Calls("getFile") - fetched; n != 1 {
		r.t.Errorf("%d files were fetched, want that of the message which was answered", n)
	}
	if got := r.inboxes("x.txt", "y.txt"); len(got) != 1 || filepath.Base(got[0]) != "y.txt" {
		r.t.Errorf("files %q", got)
	}
}

// Only owners stop others' turns in a group.
func stopInAGroup(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	group := r.group()
	r.say(group, 12, "@parley_test_bot of ben")
	receive(r.t, h.asked, "ben's turn")
	r.say(group, 66, "@parley_test_bot of eve")
	r.queued(1)
	r.say(group, 66, "/stop@parley_test_bot")
	if got := r.wait(group, 1)[0].Text; got != "Stopped: 1 waiting message." {
		r.t.Errorf("eve's stop: %q", got)
	}
	r.say(group, 11, "/stop@parley_test_bot")
	if got := r.wait(group, 2)[1].Text; !strings.HasPrefix(got, "Stopped: run ") {
		r.t.Errorf("the owner's stop: %q", got)
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
