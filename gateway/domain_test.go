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

	"parley/agentloop/llm/llmtest"
	"parley/gateway/client"
	"parley/tools"
)

// T11: the ways in which a domain's calls are decided, a domain and a tool for each, on a daemon that has one place for turns.
func TestT11_Domains(t *testing.T) {
	t.Parallel()
	system, asked := newSystem(t)
	var quick atomic.Pointer[[2]string]
	hasty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", quick.Load()[0])
		_, _ = io.WriteString(w, quick.Load()[1]) // who asked may be gone
	}))
	t.Cleanup(hasty.Close)
	program := filepath.Join(t.TempDir(), "decide")
	refund := renamed{newAct(), "refund"}
	list := []tools.Tool{refund}
	for _, name := range []string{"pay", "wire", "charge", "sign", "ship"} {
		list = append(list, renamed{newAct(), name})
	}
	const webhook = `{name: %s, match: {tools: [%[1]s]}, owner: {people: [ana1]}, handler: webhook, url: "%s", secret: "0123456789abcdef-canary"}`
	domains := []string{
		`{name: payments, match: {tools: [pay]}, owner: {people: ["ben{{T11_its owner decides}}"]}}`,
		fmt.Sprintf(webhook, "wire", system.URL),
		fmt.Sprintf(webhook, "charge", hasty.URL),
		fmt.Sprintf(`{name: sign, match: {tools: [sign]}, owner: {people: [ana1]}, handler: command, command: ["/bin/sh", "%s"]}`, program),
		`{name: refund, match: {tools: [refund]}, owner: {people: [ana1]}, handler: deny}`,
		`{name: ship, match: {tools: [ship]}, owner: {roles: [owner], surfaces: [cli, "channel:tg:{{T11_it is decided at its surfaces}}00099"]}, requester_may_approve: true}`,
	}
	together(t, setup{inTurn: true, extra: "concurrency: {turns: 1, per_model: 1}\ndomains:\n  - " + strings.Join(domains, "\n  - ") + quiet, opt: withTools(list...)},
		map[string]func(*rig){
			"T11_its owner decides":              domainsOwnerDecides,
			"T11_it is decided at its surfaces":  decidedAtItsSurfaces,
			"its system is asked and calls back": func(r *rig) { systemCallsBack(r, asked) },
			"its system answers at once":         func(r *rig) { systemAnswersAtOnce(r, &quick) },
			"its program decides":                func(r *rig) { programDecides(r, program) },
			"one that is switched off denies":    func(r *rig) { switchedOffDenies(r, refund) },
			"a wait takes no place":              waitTakesNoPlace,
			"stop all ends every session":        stopAllEndsEverySession,
		})
}

// renamed is act by another name.
type renamed struct {
	actTool
	name string
}

func (n renamed) Spec() tools.Spec {
	s := n.actTool.Spec()
	s.Name = n.name
	return s
}

// actsBy is acts with such a tool.
func actsBy(tool string) llmtest.Script {
	script := acts("rm -rf /tmp/x")
	return func(q *llmtest.Request) llmtest.Reply {
		reply := script(q)
		for i := range reply.Calls {
			reply.Calls[i].Name = tool
		}
		return reply
	}
}

// newSystem is a domain's system: it is out of reach at first, and then tells what it was asked.
func newSystem(t *testing.T) (*httptest.Server, <-chan map[string]any) {
	t.Helper()
	asked := make(chan map[string]any, 10)
	tries := 0
	system := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body) // what is missing shows below
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
	t.Cleanup(system.Close)
	return system, asked
}

// T11: a domain's call is its owner's to decide, and not that of who asked, be it the gateway's own owner.
func domainsOwnerDecides(r *rig) {
	r.answers(actsBy("pay"))
	ana, ben := r.person(11), r.person(12)
	r.say(ben, 12, "hello")
	r.wait(ben, 1)
	r.say(ana, 11, "act")
	q := r.question(ben)
	if !strings.Contains(q.Text, "It belongs to payments") {
		r.t.Errorf("asked %q", q.Text)
	}
	id := r.rows(`SELECT id FROM approvals`)[0]
	r.say(ana, 11, "/approve "+id+" once")
	r.said(ana, "You asked for it, so that somebody else must decide")
	var p *client.Problem
	err := r.client().Post(r.t.Context(), "/v1/approvals/"+id, map[string]string{"decision": "once"}, nil)
	if !as(err, &p) || p.Status != 403 {
		r.t.Errorf("by the API: %v", err)
	}
	r.say(ben, 12, "/approve "+id+" session")
	r.said(ben, "one call at a time")
	r.tg.Press(ben.ID, q.ID, r.user(12), button(r.t, q, "Once"))
	r.said(ana, "acted 1")
}

// A domain's own system is asked by a signed call, tried again while it fails, and answers with the token of that question.
func systemCallsBack(r *rig, asked <-chan map[string]any) {
	r.answers(actsBy("wire"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	v := receive(r.t, asked, "the question")
	back := v["callback"].(map[string]any)
	post := func(token, body string) int {
		q, _ := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.g.Addr()+back["path"].(string), strings.NewReader(body))
		q.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			r.t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	token := back["token"].(string)
	if got := post(token[:len(token)-2]+"xx", `{"decision":"once"}`); got != 401 {
		r.t.Errorf("a wrong token: %d", got)
	}
	if got := post(token, `{"decision":"session"}`); got != 400 {
		r.t.Errorf("a session: %d", got)
	}
	if got := post(token, `{"decision":"once","external_ref":"PAY-7"}`); got != 200 {
		r.t.Errorf("a yes: %d", got)
	}
	if got := post(token, `{"decision":"deny"}`); got != 409 {
		r.t.Errorf("a second answer: %d", got)
	}
	q, _ := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.g.Addr()+"/v1/approvals", nil)
	q.Header.Set("Authorization", "Bearer "+token)
	if resp, err := http.DefaultClient.Do(q); err != nil || resp.StatusCode != 401 {
		r.t.Errorf("the token reads lists: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	r.said(ana, "acted 1")
	r.stored("the approval", `SELECT state, via, external_ref FROM approvals`, "consumed|webhook|PAY-7")
}

// What a system answers at once counts whatever it calls its type; what is not an answer is a no.
func systemAnswersAtOnce(r *rig, answer *atomic.Pointer[[2]string]) {
	r.answers(actsBy("charge"))
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

func programDecides(r *rig, file string) {
	r.answers(actsBy("sign"))
	for _, c := range []struct{ script, said, state string }{
		{"sleep 5 & echo REF-2; exit 0", "acted 1", "consumed|command|REF-2"},
		{"cat > $0.in; echo REF-1; exit 0", "acted 2", "consumed|command|REF-1"},
		{"echo too dear; exit 3", "too dear", "denied|command|"},
	} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			r.t.Fatal(err)
		}
		ana := r.person(11)
		before := len(r.tg.View().Sent(ana.ID))
		r.say(ana, 11, "act")
		r.saidAfter(ana, before, c.said)
		r.stored("the approval", `SELECT state, via, external_ref FROM approvals ORDER BY id DESC LIMIT 1`, c.state)
	}
}

func switchedOffDenies(r *rig, refund renamed) {
	r.answers(actsBy("refund"))
	ana := r.person(11)
	r.say(ana, 11, "act")
	r.said(ana, "switched off")
	if got := r.rows(`SELECT count(*) FROM approvals`)[0]; got != "0" || refund.ran.Load() != 0 {
		r.t.Errorf("%s questions, ran %d times", got, refund.ran.Load())
	}
}

// A domain may be decided about by some ways alone.
func decidedAtItsSurfaces(r *rig) {
	r.answers(actsBy("ship"))
	ana, boss := r.person(11), r.person(99)
	r.say(boss, 99, "hello") // whoever this is: no owner, so that their press decides nothing
	r.wait(boss, 1)
	r.say(ana, 11, "act")
	q := r.question(boss)
	r.said(ana, "I need a permission for this")
	id := r.rows(`SELECT id FROM approvals`)[0]
	r.tg.Press(boss.ID, q.ID, r.user(99), button(r.t, q, "Once"))
	r.say(ana, 11, "/approve "+id+" once")
	r.said(ana, "This is decided elsewhere: cli, channel:tg:"+fmt.Sprint(r.id(99))+".")
	c := r.client()
	var p *client.Problem
	if err := c.Post(r.t.Context(), "/v1/approvals/"+id, map[string]string{"decision": "once"}, nil); !as(err, &p) || p.Status != 403 {
		r.t.Errorf("by the API: %v", err)
	}
	c.Surface = "cli"
	if err := c.Post(r.t.Context(), "/v1/approvals/"+id, map[string]string{"decision": "once"}, nil); err != nil {
		r.t.Errorf("by the command line: %v", err)
	}
	r.said(ana, "acted 1")
}

func as(err error, p **client.Problem) bool {
	q, ok := err.(*client.Problem)
	*p = q
	return ok
}
