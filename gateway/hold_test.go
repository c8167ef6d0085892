package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/gateway/client"
)

// A run is paused at its next step, over a restart, while its session stays its own; then it goes on from its journal.
func TestAPausedRunGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	g := newGate()
	r := newRig(t, setup{script: throughGate, opt: withTools(g.tool()), extra: owners + quiet})
	boss := r.person(1)
	r.say(boss, 1, "work")
	receive(t, g.called, "the tool call")
	id := r.rows(`SELECT id FROM runs`)[0]
	var got struct {
		State   string
		Pausing bool
	}
	if err := r.client().Post(t.Context(), "/v1/runs/"+id+"/pause", nil, &got); err != nil || !got.Pausing || got.State != "running" {
		t.Fatalf("%+v %v", got, err)
	}
	close(g.open)
	r.stored("the run", `SELECT state FROM runs`, "paused")
	r.say(boss, 1, "and then?")
	r.said(boss, "Your message waits: there is a turn before it, and it is paused")
	r.say(boss, 1, "hello?")
	r.halt()
	r.start(withTools(g.tool()))
	r.stored("still", `SELECT state, tries FROM runs`, "paused|1")
	if n := len(r.tg.View().Sent(boss.ID)); n != 1 {
		t.Errorf("%d messages while it is paused: %q", n, texts(r.tg.View().Sent(boss.ID)))
	}
	if err := r.client().Post(t.Context(), "/v1/runs/"+id+"/resume", nil, &got); err != nil || got.Pausing {
		t.Fatalf("%+v %v", got, err)
	}
	r.stored("it ends", `SELECT state, tries FROM runs WHERE id = '`+id+`'`, "completed|1")
	r.said(boss, "hello?")
	if len(g.called) != 0 {
		t.Error("its call ran again")
	}
}

func stoppedWhilePaused(r *rig) {
	r.answers(throughGate)
	boss := r.person(1)
	r.say(boss, 1, "work")
	receive(r.t, r.slot.gate.called, "the tool call")
	id := r.rows(`SELECT id FROM runs`)[0]
	if err := r.client().Post(r.t.Context(), "/v1/runs/"+id+"/pause", nil, nil); err != nil {
		r.t.Fatal(err)
	}
	close(r.slot.gate.open)
	r.stored("the run", `SELECT state FROM runs`, "paused")
	r.say(boss, 1, "/stop")
	r.stored("stopped", `SELECT state FROM runs`, "user_stopped")
	r.say(boss, 1, "hello")
	r.said(boss, "echo: hello")
}

// Waiting for a person takes none of the places that turns share.
func TestAWaitTakesNoPlace(t *testing.T) {
	t.Parallel()
	act := newAct()
	r := actRig(t, act, "concurrency: {turns: 1, per_model: 1}")
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	eve := r.person(77)
	r.say(eve, 77, "hello")
	r.said(eve, "echo: hello")
	r.tg.Press(ana.ID, q.ID, user(11), button(t, q, "Once"))
	r.said(ana, "acted 1")
}

func TestStopAllEndsEverySession(t *testing.T) {
	t.Parallel()
	act := newAct()
	g := newGate()
	r := newRig(t, setup{script: acts("x"), opt: withTools(act, g.tool()), extra: actors + quiet})
	ana, eve := r.person(11), r.person(77)
	r.say(ana, 11, "act")
	r.question(ana)
	r.say(eve, 77, "hello")
	r.said(eve, "echo: hello")
	r.say(eve, 77, "/stop all")
	r.said(eve, "Only owners may do that")
	r.say(ana, 11, "/stop all")
	r.said(ana, "Stopped everywhere: 1 run")
	r.stored("the run", `SELECT state FROM runs WHERE state NOT IN ('completed')`, "user_stopped")
	r.stored("the approval", `SELECT state FROM approvals`, "cancelled")
	r.stored("the audit log", `SELECT count(*) FROM audit WHERE body LIKE '%stop.all%'`, "1")
}

// No answer is a no, and it is told to the model and to the chat.
func TestAQuestionLapses(t *testing.T) {
	t.Parallel()
	act := newAct()
	r := actRig(t, act, "approvals: {expire: 10s}")
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	r.said(ana, "nobody approved it within 10s")
	r.until("the question says so", func(v telegramtest.View) bool {
		m, _ := v.Message(ana.ID, q.ID)
		return len(m.Buttons) == 0 && strings.Contains(m.Text, "Nobody answered in time")
	})
	r.stored("the approval", `SELECT state, via FROM approvals`, "expired|expiry")
	id := r.rows(`SELECT id FROM approvals`)[0]
	r.say(ana, 11, "/approve "+id+" once")
	r.said(ana, "Nobody answered in time, which is a no.")
	if act.ran.Load() != 0 {
		t.Error("it ran")
	}
}

// A yes or no that answers the very message decides; a yes that answers something else is a message.
func decidedByAQuotedYes(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	ana := r.person(11)
	r.say(ana, 11, "hello")
	first := r.wait(ana, 1)[0]
	r.say(ana, 11, "act")
	q := r.question(ana)
	r.stored("its id is known", `SELECT count(*) FROM parts JOIN outbound ON id = outbound_id WHERE kind = 'approval' AND remote_id <> ''`, "1")
	r.tg.Message(telegramtest.In{Chat: ana.ID, From: r.user(11), Text: "Yes!", ReplyTo: q.ID})
	r.said(ana, "acted 1")
	r.stored("the approval", `SELECT state, via FROM approvals`, "consumed|tg")
	r.tg.Message(telegramtest.In{Chat: ana.ID, From: r.user(11), Text: "yes", ReplyTo: first.ID})
	r.stored("a message", `SELECT mode, state FROM inputs WHERE text = 'yes'`, "turn|answered")
}

// T11: what is too long for messages goes whole, as a file, and is answered all the same.
func longQuestionShownWhole(r *rig) {
	line := "begin " + strings.Repeat("echo something quite long; ", 2500) + " end"
	r.answers(acts(line))
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	if !strings.Contains(q.Text, "is in the file before this message") {
		r.t.Errorf("asked %q", q.Text)
	}
	var file telegramtest.File
	for _, m := range r.tg.View().Sent(ana.ID) {
		for _, f := range m.Files {
			file = f
		}
	}
	if text := string(file.Data); !strings.Contains(text, "begin ") || !strings.Contains(text, " end") || len(text) < len(line) {
		r.t.Errorf("the file %q has %d bytes of %d", file.Name, len(text), len(line))
	}
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "Once"))
	r.said(ana, "acted 1")
}

func neverForAlways(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	r.question(ana)
	id := r.rows(`SELECT id FROM approvals`)[0]
	short := strings.ToLower(id[len(id)-6:])
	r.say(ana, 11, "/approve "+short+" always")
	r.said(ana, "Nothing is ever approved for always")
	r.say(ana, 11, "/approve "+short+" session")
	r.said(ana, "Commands are approved one at a time")
	r.say(ana, 11, "/approve")
	r.said(ana, short)
	r.say(ana, 11, "/status")
	r.said(ana, "it waits for an owner to approve act (approval "+short+")")
	r.say(ana, 11, "/why")
	r.said(ana, "approval "+short+" of act: pending")
	r.stored("the approval", `SELECT state FROM approvals`, "pending")
	r.say(ana, 11, "/approve "+short+" once")
	r.said(ana, "Approved, once. I go on.")
	r.said(ana, "acted 1")
}

const payments = `
domains: [{name: payments, match: {tools: [act]}, owner: {people: [ben]}%s}]
`

// T11: a domain's call is its owner's to decide, and not that of who asked, be it the gateway's own owner.
func TestT11_ADomainsOwnerDecides(t *testing.T) {
	t.Parallel()
	act := newAct()
	r := actRig(t, act, fmt.Sprintf(payments, ""))
	ana, ben := r.person(11), r.person(12)
	r.say(ben, 12, "hello")
	r.wait(ben, 1)
	r.say(ana, 11, "act")
	q := r.question(ben)
	if !strings.Contains(q.Text, "It belongs to payments") {
		t.Errorf("asked %q", q.Text)
	}
	id := r.rows(`SELECT id FROM approvals`)[0]
	r.say(ana, 11, "/approve "+id+" once")
	r.said(ana, "You asked for it, so that somebody else must decide")
	var p *client.Problem
	err := r.client().Post(t.Context(), "/v1/approvals/"+id, map[string]string{"decision": "once"}, nil)
	if !as(err, &p) || p.Status != 403 {
		t.Errorf("by the API: %v", err)
	}
	r.say(ben, 12, "/approve "+id+" session")
	r.said(ben, "one call at a time")
	r.tg.Press(ben.ID, q.ID, user(12), button(t, q, "Once"))
	r.said(ana, "acted 1")
}

func as(err error, p **client.Problem) bool {
	q, ok := err.(*client.Problem)
	*p = q
	return ok
}

// A domain's own system is asked by a signed call, tried again while it fails, and answers with the token of that question.
func TestADomainsSystemIsAskedAndCallsBack(t *testing.T) {
	t.Parallel()
	asked := make(chan map[string]any, 10)
	tries := 0
	system := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		if tries++; tries == 1 {
			w.WriteHeader(503)
			return
		}
		var v map[string]any
		if err := json.Unmarshal(body, &v); err != nil || !strings.HasPrefix(q.Header.Get("Parley-Signature"), "t=") || q.Header.Get("Idempotency-Key") != v["approval"] {
			t.Errorf("%s %v", body, q.Header)
		}
		w.WriteHeader(202)
		asked <- v
	}))
	defer system.Close()
	act := newAct()
	r := actRig(t, act, fmt.Sprintf(payments, `, handler: webhook, url: "`+system.URL+`", secret: "0123456789abcdef-canary"`))
	ana := r.person(11)
	r.say(ana, 11, "act")
	v := receive(t, asked, "the question")
	back := v["callback"].(map[string]any)
	post := func(token, body string) int {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.g.Addr()+back["path"].(string), strings.NewReader(body))
		q.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	token := back["token"].(string)
	if got := post(token[:len(token)-2]+"xx", `{"decision":"once"}`); got != 401 {
		t.Errorf("a wrong token: %d", got)
	}
	if got := post(token, `{"decision":"session"}`); got != 400 {
		t.Errorf("a session: %d", got)
	}
	if got := post(token, `{"decision":"once","external_ref":"PAY-7"}`); got != 200 {
		t.Errorf("a yes: %d", got)
	}
	if got := post(token, `{"decision":"deny"}`); got != 409 {
		t.Errorf("a second answer: %d", got)
	}
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.g.Addr()+"/v1/approvals", nil)
	q.Header.Set("Authorization", "Bearer "+token)
	if resp, err := http.DefaultClient.Do(q); err != nil || resp.StatusCode != 401 {
		t.Errorf("the token reads lists: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	r.said(ana, "acted 1")
	r.stored("the approval", `SELECT state, via, external_ref FROM approvals`, "consumed|webhook|PAY-7")
}

// What a system answers at once counts whatever it calls its type; what is not an answer is a no.
func TestADomainsSystemAnswersAtOnce(t *testing.T) {
	t.Parallel()
	var answer atomic.Pointer[[2]string]
	system := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", answer.Load()[0])
		io.WriteString(w, answer.Load()[1])
	}))
	defer system.Close()
	r := actRig(t, newAct(), fmt.Sprintf(payments, `, handler: webhook, url: "`+system.URL+`", secret: "0123456789abcdef-canary"`))
	for _, c := range []struct{ mime, body, said, state string }{
		{"text/plain", ` {"decision":"once","external_ref":"PAY-8"}`, "acted 1", "consumed|webhook|PAY-8"},
		{"application/json", `{"decision":"deny","reason":"too dear"}`, "Their words: too dear. Do not", "denied|webhook|"},
		{"application/json", `{"decision":"always"}`, "said no", "denied|webhook|"},
		{"text/plain", `{"decision":`, "said no", "denied|webhook|"},
	} {
		answer.Store(&[2]string{c.mime, c.body})
		ana := r.person(11)
		before := len(r.tg.View().Sent(ana.ID))
		r.say(ana, 11, "act")
		r.saidAfter(ana, before, c.said)
		r.stored("the approval", `SELECT state, via, external_ref FROM approvals ORDER BY id DESC LIMIT 1`, c.state)
	}
}

func TestADomainsProgramDecides(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "decide")
	r := actRig(t, newAct(), fmt.Sprintf(payments, `, handler: command, command: ["/bin/sh", "`+file+`"]`))
	for _, c := range []struct{ script, said, state string }{
		{"sleep 5 & echo REF-2; exit 0", "acted 1", "consumed|command|REF-2"},
		{"cat > $0.in; echo REF-1; exit 0", "acted 2", "consumed|command|REF-1"},
		{"echo too dear; exit 3", "too dear", "denied|command|"},
	} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ana := r.person(11)
		before := len(r.tg.View().Sent(ana.ID))
		r.say(ana, 11, "act")
		r.saidAfter(ana, before, c.said)
		r.stored("the approval", `SELECT state, via, external_ref FROM approvals ORDER BY id DESC LIMIT 1`, c.state)
	}
}

func TestADomainThatIsSwitchedOffDenies(t *testing.T) {
	t.Parallel()
	act := newAct()
	r := actRig(t, act, fmt.Sprintf(payments, ", handler: deny"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	r.said(ana, "switched off")
	if got := r.rows(`SELECT count(*) FROM approvals`)[0]; got != "0" || act.ran.Load() != 0 {
		t.Errorf("%s questions, ran %d times", got, act.ran.Load())
	}
}

// T11: who lost the right meanwhile has not approved.
func TestT11_AnApprovalOfAFormerOwnerIsVoid(t *testing.T) {
	t.Parallel()
	act := newAct()
	r := newRig(t, setup{script: acts("x"), opt: withTools(act), extra: strings.Replace(actors, "{id: ben, name: Ben, role: member", "{id: ben, name: Ben, role: owner", 1) + quiet})
	ana, ben := r.person(11), r.person(12)
	r.say(ben, 12, "hello")
	r.wait(ben, 1)
	r.say(ana, 11, "act")
	r.question(ana)
	id := r.rows(`SELECT id FROM approvals`)[0]
	if err := r.client().Post(t.Context(), "/v1/runs/"+r.rows(`SELECT id FROM runs WHERE state = 'waiting'`)[0]+"/pause", nil, nil); err != nil {
		t.Fatal(err)
	}
	r.say(ben, 12, "/approve "+id+" once")
	r.said(ben, "Approved, once")
	r.stored("the run pauses before the call", `SELECT state FROM runs WHERE state <> 'completed'`, "paused")
	text, err := os.ReadFile(r.conf)
	if err != nil {
		t.Fatal(err)
	}
	r.write(strings.Replace(string(text), "name: Ben, role: owner", "name: Ben, role: member", 1))
	r.g.Reload()
	r.logged("configuration reloaded", 1)
	if err := r.client().Post(t.Context(), "/v1/runs/"+r.rows(`SELECT id FROM runs WHERE state = 'paused'`)[0]+"/resume", nil, nil); err != nil {
		t.Fatal(err)
	}
	r.said(ana, "who approved it may not do so any more")
	if act.ran.Load() != 0 {
		t.Error("it ran")
	}
}

func TestAGrowingAnswerSaysThatItWaits(t *testing.T) {
	t.Parallel()
	act := newAct()
	script := acts("x")
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		reply := script(q)
		if len(reply.Calls) > 0 {
			reply.Text, reply.Latency = "Let me see.", 300*time.Millisecond
		}
		return reply
	}, opt: withTools(act), extra: actors + "\nreplies: {typing_after: 10ms, placeholder_after: 20ms}"})
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	r.said(ana, "it waits for an owner to approve act")
	r.tg.Press(ana.ID, q.ID, user(11), button(t, q, "Once"))
	r.said(ana, "acted 1")
	r.until("one message holds the answer, one the question", func(v telegramtest.View) bool {
		shown := 0
		for _, m := range v.Sent(ana.ID) {
			if !m.Deleted {
				shown++
			}
		}
		return shown == 2
	})
}

// A domain may be decided about by some ways alone.
func TestT11_ADomainIsDecidedAtItsSurfaces(t *testing.T) {
	t.Parallel()
	act := newAct()
	r := actRig(t, act, `domains: [{name: payments, match: {tools: [act]}, owner: {roles: [owner], surfaces: [cli, "channel:tg:99"]}, requester_may_approve: true}]`)
	ana, boss := r.person(11), r.person(99)
	r.say(boss, 99, "hello") // whoever this is: no owner, so that their press decides nothing
	r.wait(boss, 1)
	r.say(ana, 11, "act")
	q := r.question(boss)
	r.said(ana, "I need a permission for this")
	id := r.rows(`SELECT id FROM approvals`)[0]
	r.tg.Press(boss.ID, q.ID, user(99), button(t, q, "Once"))
	r.say(ana, 11, "/approve "+id+" once")
	r.said(ana, "This is decided elsewhere: cli, channel:tg:99.")
	c := r.client()
	var p *client.Problem
	if err := c.Post(t.Context(), "/v1/approvals/"+id, map[string]string{"decision": "once"}, nil); !as(err, &p) || p.Status != 403 {
		t.Errorf("by the API: %v", err)
	}
	c.Surface = "cli"
	if err := c.Post(t.Context(), "/v1/approvals/"+id, map[string]string{"decision": "once"}, nil); err != nil {
		t.Errorf("by the command line: %v", err)
	}
	r.said(ana, "acted 1")
}
