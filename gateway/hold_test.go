package gateway_test

import (
	"strings"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/workspace"
)

// A run is paused at its next step, over a restart, while its session stays its own; then it goes on from its journal.
func pausedOverARestart(r *rig) {
	r.answers(throughGate)
	boss, g := r.person(1), r.slot.gate
	r.say(boss, 1, "work")
	receive(r.t, g.called, "the tool call")
	id := r.rows(`SELECT id FROM runs`)[0]
	var got struct {
		State   string
		Pausing bool
	}
	if err := r.client().Post(r.t.Context(), "/v1/runs/"+id+"/pause", nil, &got); err != nil || !got.Pausing || got.State != "running" {
		r.t.Fatalf("%+v %v", got, err)
	}
	close(g.open)
	r.stored("the run", `SELECT state FROM runs`, "paused")
	r.say(boss, 1, "and then?")
	r.said(boss, "Your message waits: there is a turn before it, and it is paused")
	r.say(boss, 1, "hello?")
	r.restart()
	r.stored("still", `SELECT state, tries FROM runs`, "paused|1")
	if n := len(r.tg.View().Sent(boss.ID)); n != 1 {
		r.t.Errorf("%d messages while it is paused: %q", n, texts(r.tg.View().Sent(boss.ID)))
	}
	if err := r.client().Post(r.t.Context(), "/v1/runs/"+id+"/resume", nil, &got); err != nil || got.Pausing {
		r.t.Fatalf("%+v %v", got, err)
	}
	r.stored("it ends", `SELECT state, tries FROM runs WHERE id = '`+id+`'`, "completed|1")
	r.said(boss, "hello?")
	if len(g.called) != 0 {
		r.t.Error("its call ran again")
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

// Waiting for a person takes none of the places that turns share, of which there is one.
func waitTakesNoPlace(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	eve := r.person(77)
	r.say(eve, 77, "hello")
	r.said(eve, "echo: hello")
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "Once"))
	r.said(ana, "acted 1")
}

func stopAllEndsEverySession(r *rig) {
	r.answers(acts("x"))
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

// No answer within the ten seconds that are configured is a no, and it is told to the model and to the chat.
func questionLapses(r *rig) {
	r.answers(acts("rm -rf /tmp/x"))
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
	if r.slot.act.ran.Load() != 0 {
		r.t.Error("it ran")
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

// T11: who lost the right meanwhile has not approved.
func approvedByAFormerOwner(r *rig) {
	r.answers(acts("x"))
	ana, boss := r.person(11), r.person(1)
	r.say(boss, 1, "hello")
	r.wait(boss, 1)
	r.say(ana, 11, "act")
	r.question(ana)
	id := r.rows(`SELECT id FROM approvals`)[0]
	if err := r.client().Post(r.t.Context(), "/v1/runs/"+r.rows(`SELECT id FROM runs WHERE state = 'waiting'`)[0]+"/pause", nil, nil); err != nil {
		r.t.Fatal(err)
	}
	r.say(boss, 1, "/approve "+id+" once")
	r.said(boss, "Approved, once")
	r.stored("the run pauses before the call", `SELECT state FROM runs WHERE state <> 'completed'`, "paused")
	r.reload(r.boss(workspace.Owner), r.boss(workspace.Member))
	if err := r.client().Post(r.t.Context(), "/v1/runs/"+r.rows(`SELECT id FROM runs WHERE state = 'paused'`)[0]+"/resume", nil, nil); err != nil {
		r.t.Fatal(err)
	}
	r.said(ana, "who approved it may not do so any more")
	if r.slot.act.ran.Load() != 0 {
		r.t.Error("it ran")
	}
}

func growingAnswerWaits(r *rig) {
	script := acts("x")
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		reply := script(q)
		if len(reply.Calls) > 0 {
			reply.Text, reply.Latency = "Let me see.", 300*time.Millisecond
		}
		return reply
	})
	ana := r.person(11)
	r.say(ana, 11, "act")
	q := r.question(ana)
	r.said(ana, "it waits for an owner to approve act")
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "Once"))
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
