//go:build !nowhatsapp

package gateway_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types"

	"parley/agentloop/llm/llmtest"
	"parley/channels/whatsapp/whatsapptest"
)

// T11: on WhatsApp, which shows no buttons, an owner answers a question by quoting it, and the call runs once.
func TestT11_AQuestionIsAnsweredByQuotingItOnWhatsApp(t *testing.T) {
	if slower > 1 {
		t.Skip("whatsmeow itself races when a line ends under a send: `make race` runs OnWhatsApp without the detector")
	}
	t.Parallel()
	whatsapptest.Quiet()
	s := whatsapptest.Start(t, whatsapptest.Options{})
	const phone = "4917700000001"
	s.AddPerson(whatsapptest.Person{Phone: phone, LID: "170000000000001", Name: "Ana", ByPhone: true})
	chat, root := types.NewJID(phone, types.DefaultUserServer), whatsapptest.Root()
	script := func(r *llmtest.Request) llmtest.Reply {
		if r.Round() > 0 {
			return llmtest.Reply{Text: "looked: " + r.ToolResults()[0]}
		}
		return llmtest.Reply{Calls: []llmtest.Call{{Name: "list_dir", Args: `{"path":"."}`}}}
	}
	r := newRig(t, setup{script: script, opt: linkedHere(t, s),
		more:  fmt.Sprintf(`, {name: wa, type: whatsapp, api_url: "%s", root_key: "%s", access: {dm: open}}`, s.URL(), hex.EncodeToString(root[:])),
		extra: quiet + fmt.Sprintf("\npeople: [{id: ana, role: owner, accounts: [{channel: wa, user: \"%s\"}]}]\ndomains: [{name: looking, match: {tools: [list_dir]}, owner: {roles: [owner]}, requester_may_approve: true}]", chat)})
	r.logged("channel=wa state=ready", 1)
	find := func(what, text string) whatsapptest.Shown {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var got whatsapptest.Shown
		if err := s.Wait(ctx, func() bool {
			for _, m := range s.Sent(chat) {
				if strings.Contains(m.Text, text) {
					got = m
					return true
				}
			}
			return false
		}); err != nil {
			t.Fatalf("%s: %v; have %+v", what, err, s.Sent(chat))
		}
		return got
	}
	s.Write(whatsapptest.In{From: phone, Text: "look around"})
	q := find("the question", "list_dir")
	r.stored("the question's receipt", "SELECT count(*) FROM parts WHERE remote_id LIKE '"+q.ID+"%'", "1") // people take longer than that
	s.Write(whatsapptest.In{From: phone, Text: "yes", ReplyTo: q.ID})
	find("the answer", "looked:")
	if rows := r.rows("SELECT state, via FROM approvals"); len(rows) != 1 || !strings.HasPrefix(rows[0], "consumed|") {
		t.Errorf("approvals: %q", rows)
	}
	if c := s.Complaints(); len(c) > 0 {
		t.Errorf("the network complains: %q", c)
	}
}
