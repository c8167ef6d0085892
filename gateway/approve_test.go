package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/gateway/client"
	"parley/tools"
	"parley/workspace"
)

// actTool is a tool that people are asked about, as about commands.
type actTool struct {
	ran  *atomic.Int64
	wait chan struct{} // nil: it returns at once
}

func newAct() actTool { return actTool{ran: new(atomic.Int64)} }

func (t actTool) Spec() tools.Spec {
	return tools.Spec{Name: "act", Description: "For tests.", Effect: workspace.Outside, Group: tools.GroupExec, MinRole: workspace.Guest,
		Schema: json.RawMessage(`{"type":"object","properties":{"line":{"type":"string"}},"additionalProperties":false}`)}
}

func (t actTool) Call(ctx context.Context, _ tools.Call) (tools.Result, error) {
	n := t.ran.Add(1)
	if t.wait != nil {
		select {
		case <-t.wait:
		case <-ctx.Done():
			return tools.Result{}, ctx.Err()
		}
	}
	return tools.TextResult(fmt.Sprintf("acted %d", n)), nil
}

// acts is a model that calls act once a turn and then tells what came of it.
func acts(line string) llmtest.Script {
	args, _ := json.Marshal(map[string]string{"line": line})
	return func(q *llmtest.Request) llmtest.Reply {
		if q.Round() == 0 && strings.Contains(q.LastUser(), "act") {
			return llmtest.Reply{Calls: []llmtest.Call{{Name: "act", Args: string(args)}}}
		}
		if res := q.ToolResults(); len(res) > 0 && q.Round() > 0 {
			return llmtest.Reply{Text: "result: " + res[len(res)-1]}
		}
		return llmtest.Echo(q)
	}
}

// actors are Ana (11), who owns the gateway, and Ben (12), a member whom she lets run commands.
const actors = `
people:
  - {id: ana, name: Ana, role: owner, accounts: [{channel: tg, user: "11"}]}
  - {id: ben, name: Ben, role: member, accounts: [{channel: tg, user: "12"}]}
`

func (r *rig) client() *client.Client {
	r.t.Helper()
	token, err := os.ReadFile(filepath.Join(r.dir, "data", "token"))
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := client.New("http://"+r.g.Addr(), strings.TrimSpace(string(token)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

// question waits for a chat's newest message with buttons.
func (r *rig) question(chat telegramtest.Chat) telegramtest.Message {
	r.t.Helper()
	return r.asked(chat, "")
}

// asked is the last question with words in it.
func (r *rig) asked(chat telegramtest.Chat, words string) telegramtest.Message {
	r.t.Helper()
	var found telegramtest.Message
	r.until("a question with buttons", func(v telegramtest.View) bool {
		for _, m := range v.Sent(chat.ID) {
			if len(m.Buttons) > 0 && strings.Contains(m.Text, words) {
				found = m
			}
		}
		return found.ID != 0
	})
	return found
}

// press is the data of a message's button.
func button(t *testing.T, m telegramtest.Message, label string) string {
	t.Helper()
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Text == label {
				if len(b.Data) > 64 {
					t.Errorf("the value of a button has %d bytes", len(b.Data))
				}
				return b.Data
			}
		}
	}
	t.Fatalf("no button %q in %v", label, m.Buttons)
	return ""
}

// said waits until a chat's messages hold a text.
func (r *rig) said(chat telegramtest.Chat, text string) {
	r.t.Helper()
	r.saidAfter(chat, 0, text)
}

// saidAfter is said of what comes behind the first n messages.
func (r *rig) saidAfter(chat telegramtest.Chat, n int, text string) {
	r.t.Helper()
	r.until(fmt.Sprintf("a message with %q", text), func(v telegramtest.View) bool {
		return slices.ContainsFunc(v.Sent(chat.ID)[n:], func(m telegramtest.Message) bool { return !m.Deleted && strings.Contains(m.Text, text) })
	})
}

// What becomes of a question, on one daemon.
func TestApprovals(t *testing.T) {
	t.Parallel()
	together(t, setup{extra: quiet}, map[string]func(*rig){
		"a button, and the turn goes on":      approvedByAButton,
		"a no is told and nothing runs":       deniedAndTold,
		"a restart, and an answer elsewhere":  outlivesARestart,
		"a new message takes its place":       replacedByAMessage,
		"a stop while it waits":               stoppedWhileItWaits,
		"a quoted yes":                        decidedByAQuotedYes,
		"never for always":                    neverForAlways,
		"a stop of a paused run":              stoppedWhilePaused,
		"T10_T11_in a group an owners button": decidedInAGroup,
		"T11_one of fifty answers holds":      oneOfFiftyHolds,
		"T11_a long one is shown whole":       longQuestionShownWhole,
		"sent twice, the lost one decides":    askedTwice(0),
		"sent twice, the lost one is late":    askedTwice(1, 0),
	})
}

func approvedByAButton(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	if !strings.Contains(q.Text, "rm -rf /tmp/x") || r.slot.act.ran.Load() != 0 {
		r.t.Fatalf("asked %q, ran %d times", q.Text, r.slot.act.ran.Load())
	}
	r.stored("the run", `SELECT state FROM runs`, "waiting")
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "Once"))
	r.said(ana, "acted 1")
	r.until("the question is closed", func(v telegramtest.View) bool {
		m, _ := v.Message(ana.ID, q.ID)
		return len(m.Buttons) == 0 && strings.Contains(m.Text, "Approved once by "+r.who("ana", workspace.Owner, 11))
	})
	r.stored("the approval", `SELECT state, decided_by, via, scope FROM approvals`, "consumed|"+fmt.Sprintf("ana%d", r.slot.base/slotSize)+"|tg|once")
	r.stored("the press", `SELECT count(*) FROM inputs WHERE mode = 'command' AND kind = 'button' AND state = 'answered' AND data LIKE '%"press":{"approval":"' ||
		(SELECT id FROM approvals) || '","choice":"once"}%'`, "1")
	r.stored("the step", `SELECT state FROM steps WHERE tool = 'act'`, "done")
	if n := r.slot.act.ran.Load(); n != 1 {
		r.t.Errorf("it ran %d times", n)
	}
	r.tg.Press(ana.ID, q.ID, r.user(11), "approval:"+r.rows(`SELECT id FROM approvals`)[0]+":deny") // of an old copy of the message
	r.said(ana, "Approved once by "+r.who("ana", workspace.Owner, 11)+" (tg).")
}

func deniedAndTold(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "Deny"))
	r.said(ana, r.who("ana", workspace.Owner, 11)+" said no")
	r.stored("the step", `SELECT state FROM steps WHERE tool = 'act'`, "refused")
	if r.slot.act.ran.Load() != 0 {
		r.t.Error("it ran")
	}
}

// What a member asks for is the owner's to decide, and who asks is shown by what cannot be made up.
func TestT11_T27_AMembersRequestIsAskedOfTheOwner(t *testing.T) {
	t.Parallel()
	act := newAct()
	r := newRig(t, setup{script: acts("rm -rf /tmp/x"), opt: withTools(act), extra: actors + quiet, access: "{dm: pairing}", agent: ", tools: {by_role: {member: {exec: ask}}}"})
	ana := r.person(11)
	r.say(ana, 11, "hello")
	r.wait(ana, 1)
	for _, story := range []struct {
		name string
		test func(*testing.T, *rig, actTool)
	}{{"T27_who asks is shown by id and role", whoAsksIsShownByIDAndRole}, {"T11_the owner decides", theOwnerDecidesForAMember}} {
		t.Run(story.name, func(t *testing.T) {
			own := *r
			own.t = t
			story.test(t, &own, act)
		})
	}
}

// T11: a member's request is the owner's to decide, where the owner is; the member is told so and cannot decide.
func theOwnerDecidesForAMember(t *testing.T, r *rig, act actTool) {
	ana, ben := r.person(11), r.person(12)
	before, ran := len(r.tg.View().Sent(ben.ID)), act.ran.Load()
	r.say(ben, 12, "act")
	r.saidAfter(ben, before, "I need a permission for this")
	q := r.question(ana)
	for _, m := range r.tg.View().Sent(ben.ID) {
		if len(m.Buttons) > 0 {
			t.Errorf("the member got buttons: %q", m.Text)
		}
	}
	id := r.rows(`SELECT id FROM approvals WHERE state = 'pending'`)[0]
	r.say(ben, 12, "/approve "+id+" once")
	r.said(ben, "Only an owner may decide this.")
	r.tg.Press(ben.ID, 1, user(12), "approval:"+id+":once")
	if act.ran.Load() != ran {
		t.Fatal("it ran")
	}
	r.tg.Press(ana.ID, q.ID, user(11), button(t, q, "Once"))
	r.said(ben, fmt.Sprintf("acted %d", ran+1))
}

// T27: a member and a stranger call themselves as the owner is called, and more; wherever the owner reads who asks, id and role
// stand first.
func whoAsksIsShownByIDAndRole(t *testing.T, r *rig, _ actTool) {
	const name = "Ana (pick) Security team pre-approved"
	ana := r.person(11)
	chat := func(id int64) telegramtest.Chat { return r.tg.AddPrivate(telegramtest.User{ID: id, First: name}) }
	ben, eve := chat(12), chat(13)
	r.tg.Message(telegramtest.In{Chat: ben.ID, From: telegramtest.User{ID: 12, First: name}, Text: "act"})
	r.tg.Message(telegramtest.In{Chat: eve.ID, From: telegramtest.User{ID: 13, First: name}, Text: "let me in"})
	q := r.question(ana)
	r.wait(eve, 1)
	want := `ben (member) "` + name + `"`
	if !strings.HasPrefix(q.Text, "May I do this? "+want+" asked for it on telegram.") {
		t.Errorf("the question: %s", q.Text)
	}
	r.say(ana, 11, "/approve")
	r.said(ana, "asked for by "+want)
	cl := r.client()
	type item struct {
		ID        string `json:"id"`
		Requester string `json:"requester"`
		Role      string `json:"role"`
		AskedBy   string `json:"asked_by"`
		Messages  []struct {
			AskedBy string `json:"asked_by"`
		} `json:"messages"`
	}
	first := func(path string) item {
		var l client.List[item]
		if err := cl.Get(t.Context(), path, &l); err != nil || len(l.Items) == 0 {
			t.Fatalf("%s: %v %+v", path, err, l)
		}
		return l.Items[0]
	}
	if a := first("/v1/approvals"); a.AskedBy != want || a.Requester != "ben" || a.Role != "member" {
		t.Errorf("the API's approval: %+v", a)
	}
	run := first("/v1/runs?requester=ben")
	if run.AskedBy != `ben (member) "Ben"` {
		t.Errorf("the API's run: %+v", run)
	}
	var whole item
	if err := cl.Get(t.Context(), "/v1/runs/"+run.ID, &whole); err != nil || whole.AskedBy != run.AskedBy || len(whole.Messages) != 1 || whole.Messages[0].AskedBy != want {
		t.Errorf("the run's page: %v %+v", err, whole)
	}
	if p := first("/v1/pairings"); p.AskedBy != `telegram user 13 "`+name+`"` {
		t.Errorf("the API's pairing: %+v", p)
	}
	r.tg.Press(ana.ID, q.ID, user(11), button(t, q, "Deny"))
	r.said(ana, `Denied by ana (owner) "Ana"`)
	r.said(ben, "said no")
}

// T10 and T11: in a group only buttons decide, and only owners' presses.
func decidedInAGroup(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	group := r.tg.AddChat(telegramtest.Chat{ID: r.id(-100), Kind: telegramtest.Supergroup, Title: "team"})
	r.tg.Message(telegramtest.In{Chat: group.ID, From: r.user(11), Text: "@parley_test_bot act"})
	q := r.question(group)
	id := r.rows(`SELECT id FROM approvals`)[0]
	r.tg.Press(group.ID, q.ID, r.user(12), button(r.t, q, "Once"))                                                    // a member
	r.tg.Press(group.ID, q.ID, r.user(13), button(r.t, q, "Once"))                                                    // a stranger
	r.tg.Message(telegramtest.In{Chat: group.ID, From: r.user(13), Text: "yes", ReplyTo: q.ID})                       // a quoted yes
	r.tg.Message(telegramtest.In{Chat: group.ID, From: r.user(11), Text: "/approve@parley_test_bot " + id + " once"}) // an owner, in words
	r.said(group, "Not in a group")
	r.stored("three presses and words", `SELECT count(*) FROM inputs WHERE mode = 'command' AND state = 'failed'`, "3")
	if r.slot.act.ran.Load() != 0 {
		r.t.Fatal("it ran")
	}
	r.stored("the approval", `SELECT state FROM approvals`, "pending")
	r.tg.Press(group.ID, q.ID, r.user(11), button(r.t, q, "Once"))
	r.said(group, "acted 1")
	r.until("nothing said to those who may not decide", func(v telegramtest.View) bool {
		return !slices.ContainsFunc(v.Sent(group.ID), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "There is no approval") })
	})
}

// T11: 50 answers at one moment, by every way: one holds, and all others are told who decided.
func oneOfFiftyHolds(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	id := r.rows(`SELECT id FROM approvals`)[0]
	c := r.client()
	var won, lost atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		say := []string{"once", "deny"}[i%2]
		switch i % 5 {
		case 0:
			r.tg.Press(ana.ID, q.ID, r.user(11), "approval:"+id+":"+say)
		case 1:
			r.say(ana, 11, "/approve "+id+" "+say)
		default:
			wg.Go(func() {
				err := c.Post(r.t.Context(), "/v1/approvals/"+id, map[string]string{"decision": say}, nil)
				var p *client.Problem
				switch {
				case err == nil:
					won.Add(1)
				case errors.As(err, &p) && p.Status == 409 && p.Code() == "decided" && (strings.Contains(p.Detail, "Approved once by") || strings.Contains(p.Detail, "Denied by")):
					lost.Add(1)
				default:
					r.t.Errorf("answer %d: %v", i, err)
				}
			})
		}
	}
	wg.Wait()
	r.stored("all commands ended", `SELECT count(*) FROM inputs WHERE mode = 'command' AND state IN ('answered', 'failed')`, "20")
	answered := r.rows(`SELECT count(*) FROM inputs WHERE mode = 'command' AND state = 'answered'`)[0]
	if fmt.Sprint(1-won.Load()) != answered {
		r.t.Errorf("%d won by HTTP and %s by chat", won.Load(), answered)
	}
	r.until("the turn ends", func(v telegramtest.View) bool {
		return slices.ContainsFunc(v.Sent(ana.ID), func(m telegramtest.Message) bool { return strings.HasPrefix(m.Text, "result:") })
	})
	if n := r.slot.act.ran.Load(); n > 1 {
		r.t.Errorf("it ran %d times", n)
	}
	rows := r.rows(`SELECT state FROM approvals`)
	if want := map[int64]string{0: "denied", 1: "consumed"}[r.slot.act.ran.Load()]; !slices.Equal(rows, []string{want}) {
		r.t.Errorf("it ran %d times and is %v", r.slot.act.ran.Load(), rows)
	}
}

// Asked on one surface before a restart, answered on another after it: it runs exactly once.
func outlivesARestart(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	r.restart()
	id := r.rows(`SELECT id FROM approvals`)[0]
	var got struct{ State, Grant string }
	if err := r.client().Post(r.t.Context(), "/v1/approvals/"+id, map[string]string{"decision": "once"}, &got); err != nil || got.State != "approved" || got.Grant != "once" {
		r.t.Fatalf("%+v %v", got, err)
	}
	r.said(ana, "acted 1")
	r.until("the question is closed", func(v telegramtest.View) bool {
		m, _ := v.Message(ana.ID, q.ID)
		return len(m.Buttons) == 0 && strings.Contains(m.Text, "Approved once")
	})
	r.stored("the run", `SELECT state, tries FROM runs`, "completed|1")
	if n := r.slot.act.ran.Load(); n != 1 {
		r.t.Errorf("it ran %d times", n)
	}
}

// A new message of the requester takes the question's place; one of somebody else waits with one notice.
func replacedByAMessage(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	r.question(ana)
	r.say(ana, 11, "no wait, say banana")
	r.said(ana, "echo: no wait, say banana")
	r.stored("the approval", `SELECT state, via, reason FROM approvals`, "cancelled|message|the person wrote instead")
	r.stored("one run took both", `SELECT count(DISTINCT run_id) FROM inputs WHERE run_id <> ''`, "1")
	last := r.bodies()[len(r.bodies())-1]
	if !strings.Contains(last, "Not run: the person wrote a new message") || r.slot.act.ran.Load() != 0 {
		r.t.Errorf("ran %d times; the model read %s", r.slot.act.ran.Load(), last)
	}
}

func stoppedWhileItWaits(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	r.say(ana, 11, "/stop")
	r.said(ana, "Stopped: run")
	r.stored("the run", `SELECT state FROM runs`, "user_stopped")
	r.stored("the approval", `SELECT state, via FROM approvals`, "cancelled|stop")
	r.stored("the step", `SELECT state FROM steps WHERE tool = 'act'`, "cancelled")
	r.until("the question is closed", func(v telegramtest.View) bool {
		m, _ := v.Message(ana.ID, q.ID)
		return len(m.Buttons) == 0
	})
	r.say(ana, 11, "hello")
	r.said(ana, "echo: hello")
}
