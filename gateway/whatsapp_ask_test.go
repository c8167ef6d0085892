//go:build !nowhatsapp

package gateway_test

import (
	"context"
	"fmt"
	"strings"

	"go.mau.fi/whatsmeow/types"
	"go.uber.org/goleak"

	"parley/agentloop/llm/llmtest"
	"parley/channels/whatsapp/whatsapptest"
)

// stuck are goroutines of libraries that nothing can free.
var stuck = []goleak.Option{goleak.IgnoreAnyFunction(whatsapptest.Stuck)}

// whatsAppOwner is an owner who is asked before an agent looks around.
type whatsAppOwner struct {
	s     *whatsapptest.Server
	phone string
	chat  types.JID
}

func (o whatsAppOwner) config() string {
	return fmt.Sprintf(`people: [{id: dora, role: owner, accounts: [{channel: wa, user: "%s"}]}]
domains: [{name: looking, match: {tools: [list_dir]}, owner: {roles: [owner]}, requester_may_approve: true}]`, o.chat)
}

// script looks around when it is told to, and else does as another.
func (o whatsAppOwner) script(other llmtest.Script) llmtest.Script {
	return func(q *llmtest.Request) llmtest.Reply {
		switch {
		case !strings.Contains(q.LastUser(), "look around"):
			return other(q)
		case q.Round() > 0:
			return llmtest.Reply{Text: "looked: " + q.ToolResults()[0]}
		}
		return llmtest.Reply{Calls: []llmtest.Call{{Name: "list_dir", Args: `{"path":"."}`}}}
	}
}

// answersByQuoting: T11: on WhatsApp, which shows no buttons, an owner answers a question by quoting it, and the call runs once.
func (o whatsAppOwner) answersByQuoting(r *rig) {
	find := func(what, text string) whatsapptest.Shown {
		r.t.Helper()
		ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
		defer cancel()
		var got whatsapptest.Shown
		if err := o.s.Wait(ctx, func() bool {
			for _, m := range o.s.Sent(o.chat) {
				if strings.Contains(m.Text, text) {
					got = m
					return true
				}
			}
			return false
		}); err != nil {
			r.t.Fatalf("%s: %v; have %+v", what, err, o.s.Sent(o.chat))
		}
		return got
	}
	o.s.Write(whatsapptest.In{From: o.phone, Text: "look around"})
	q := find("the question", "list_dir")
	r.stored("the question's receipt", "SELECT count(*) FROM parts WHERE remote_id LIKE '"+q.ID+"%'", "1") // people take longer than that
	o.s.Write(whatsapptest.In{From: o.phone, Text: "yes", ReplyTo: q.ID})
	find("the answer", "looked:")
	if rows := r.rows("SELECT state, via FROM approvals"); len(rows) != 1 || !strings.HasPrefix(rows[0], "consumed|") {
		r.t.Errorf("approvals: %q", rows)
	}
}
