package gateway_test

import (
	"slices"
	"strings"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// A stop that comes while an interrupted turn is still ending stops it, and what was to follow it.
func stopOutranksAnInterrupt(r *rig) {
	g := r.slot.gate
	g.deaf = true
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "work") {
			return call("gate")
		}
		return llmtest.Echo(q)
	})
	ana := r.person(11)
	r.say(ana, 11, "work")
	receive(r.t, g.called, "the tool call")
	r.say(ana, 11, "work on this instead")
	r.queued(1)
	r.say(ana, 11, "/stop")
	if got := r.wait(ana, 1); !strings.HasPrefix(got[0].Text, "Stopped:") {
		r.t.Fatalf("/stop says %q", got[0].Text)
	}
	close(g.open)
	r.say(ana, 11, "hello")
	if got := texts(r.wait(ana, 2)); got[1] != "echo: hello" {
		r.t.Errorf("answers %q", got)
	}
	if len(g.called) != 0 {
		r.t.Error("the stopped message was taken up again")
	}
	if got := r.rows(`SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state ORDER BY state`); !slices.Equal(got, []string{"answered|1", "cancelled|1", "stopped|1"}) {
		r.t.Errorf("inputs %q", got)
	}
}

// The placeholder of an interrupted turn goes, and the answer to both comes in a message of its own.
func interruptedPlaceholder(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "work") {
			return call("gate")
		}
		return llmtest.Echo(q)
	})
	ana := r.person(11)
	r.ask(ana, 11, "/queue interrupt")
	r.say(ana, 11, "work")
	receive(r.t, r.slot.gate.called, "the tool call")
	r.until("a placeholder", func(v telegramtest.View) bool { return len(v.Sent(ana.ID)) == 2 })
	r.say(ana, 11, "hello")
	r.until("the answer", func(v telegramtest.View) bool {
		got := texts(v.Sent(ana.ID))
		return slices.Contains(got, "echo: hello") && slices.Contains(got, "(stopped)")
	})
}

// A turn that ends in a recorded silence takes its placeholder away.
func silenceTakesThePlaceholder(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		return h.reply(r.t, q.LastUser(), llmtest.Reply{Text: "NO_REPLY"})
	})
	ana := r.person(11)
	r.say(ana, 11, "work")
	r.until("a placeholder", func(v telegramtest.View) bool { return len(v.Sent(ana.ID)) == 1 })
	close(h.open)
	r.until("no placeholder", func(v telegramtest.View) bool {
		got := v.Sent(ana.ID)
		return len(got) == 0 || got[0].Deleted
	})
	for _, text := range texts(r.tg.View().Sent(ana.ID)) {
		if strings.Contains(text, "stopped") {
			r.t.Errorf("the room reads %q", text)
		}
	}
}
