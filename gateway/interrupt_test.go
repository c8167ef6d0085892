package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/tools"
)

// A stop that comes while an interrupted turn is still ending stops it, and what was to follow it.
func TestStopOutranksAnInterruptUnderWay(t *testing.T) {
	t.Parallel()
	called, open := make(chan struct{}, 10), make(chan struct{})
	deaf := testTool{name: "gate", call: func(context.Context, tools.Call) (tools.Result, error) {
		called <- struct{}{}
		<-open
		return tools.TextResult("done"), nil
	}}
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "work") {
			return call("gate")
		}
		return llmtest.Echo(q)
	}, opt: withTools(deaf), extra: "sessions: {queue: {mode: interrupt}}" + quiet})
	ana := r.person(11)
	r.say(ana, 11, "work")
	receive(t, called, "the tool call")
	r.say(ana, 11, "work on this instead")
	r.queued(1)
	r.say(ana, 11, "/stop")
	if got := r.wait(ana, 1); !strings.HasPrefix(got[0].Text, "Stopped:") {
		t.Fatalf("/stop says %q", got[0].Text)
	}
	close(open)
	r.say(ana, 11, "hello")
	if got := texts(r.wait(ana, 2)); got[1] != "echo: hello" {
		t.Errorf("answers %q", got)
	}
	if len(called) != 0 {
		t.Error("the stopped message was taken up again")
	}
	if got := r.rows(`SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state ORDER BY state`); !slices.Equal(got, []string{"answered|1", "cancelled|1", "stopped|1"}) {
		t.Errorf("inputs %q", got)
	}
}

// The placeholder of an interrupted turn goes, and the answer to both comes in a message of its own.
func TestInterruptedPlaceholderIsEnded(t *testing.T) {
	t.Parallel()
	g := newGate()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "work") {
			return call("gate")
		}
		return llmtest.Echo(q)
	}, opt: withTools(g.tool()), extra: "sessions: {queue: {mode: interrupt}}\nreplies: {typing_after: 20ms, placeholder_after: 50ms}"})
	ana := r.person(11)
	r.say(ana, 11, "work")
	receive(t, g.called, "the tool call")
	r.until("a placeholder", func(v telegramtest.View) bool { return len(v.Sent(ana.ID)) == 1 })
	r.say(ana, 11, "hello")
	r.until("the answer", func(v telegramtest.View) bool {
		got := texts(v.Sent(ana.ID))
		return slices.Contains(got, "echo: hello") && slices.Contains(got, "(stopped)")
	})
}

// A turn that ends in a recorded silence takes its placeholder away.
func TestSilenceTakesThePlaceholderAway(t *testing.T) {
	t.Parallel()
	h := newHold()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		return h.reply(t, q.LastUser(), llmtest.Reply{Text: "NO_REPLY"})
	},
		extra: "replies: {typing_after: 20ms, placeholder_after: 50ms}"})
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
			t.Errorf("the room reads %q", text)
		}
	}
}
