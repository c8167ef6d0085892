package gateway_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// exploded is a failure that tells the key of the slot's model.
func (r *rig) exploded() llmtest.Reply {
	return llmtest.Reply{Status: 500, ErrorBody: `{"error":{"message":"upstream exploded, *now* for sk-slot-` + r.n() + `","type":"server_error"}}`}
}

// A model that fails for good ends the turn with its own words, and until then the log, the run and the chat's commands tell.
func modelFailsForGood(r *rig) {
	var asked atomic.Int32
	r.answers(func(*llmtest.Request) llmtest.Reply {
		asked.Add(1)
		return r.exploded()
	})
	model := "m" + r.n()
	ana := r.person(11)
	began := time.Now()
	r.say(ana, 11, "do it")
	r.logged(" model="+model+" ", 1)
	r.stored("the run's trouble", `SELECT count(*) FROM runs WHERE state = 'running' AND trouble LIKE '%"status":500,"said":"upstream exploded, *now* for [redacted]"%'`, "1")
	if v := r.newestRun(); v.Trouble.Model != model || v.Trouble.Status != 500 || v.Trouble.NextTry == nil || !strings.HasPrefix(v.Trouble.Sentence, model+" answers 500: `upstream exploded, *now* for [redacted]`; next try in ") {
		r.t.Errorf("while it fails: %+v", v.Trouble)
	}
	r.say(ana, 11, "/status")
	r.say(ana, 11, "/why")
	got := texts(r.waitLong(ana, 3))
	for _, text := range got[:2] {
		if !strings.Contains(text, model+" answers 500: upstream exploded, *now* for [redacted]") {
			r.t.Errorf("asked meanwhile: %q", text)
		}
	}
	if want := regexp.MustCompile(`^I couldn't reach the model: ` + model + ` answers 500: upstream exploded, \*now\* for \[redacted\] \(6 tries\)\. Try again in a few minutes\. \(run \w{6}\)$`); !want.MatchString(got[2]) {
		r.t.Errorf("at the end: %q", got[2])
	}
	if took := time.Since(began); took > time.Minute || asked.Load() != 6 {
		r.t.Errorf("ended after %s and %d calls", took, asked.Load())
	}
	if v := r.newestRun(); v.State != "failed" || v.Reason != "model_down" || v.Trouble.Failures != 6 || v.Trouble.NextTry != nil || !strings.Contains(v.Error, "upstream exploded") {
		r.t.Errorf("at the end: %+v", v)
	}
	if n := len(failures(r.log.String(), model)); n != 1 {
		r.t.Errorf("%d lines of the log for one failure, seen six times", n)
	}
	if strings.Contains(r.log.String(), "sk-slot-"+r.n()) {
		r.t.Error("the key stands in the log")
	}
}

// failures are the lines of a log that tell that a model fails.
func failures(log, model string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, `msg="model fails"`) && strings.Contains(line, " model="+model+" ") {
			lines = append(lines, line)
		}
	}
	return lines
}

type shownRun struct {
	ID, State, Reason, Error, Model string

	Timeline []struct{ Type, Text string }
	Trouble  struct {
		Model, Sentence, Message string
		Status, Failures         int
		NextTry                  *time.Time `json:"next_try"`
	}
}

// newestRun is a run as the API shows it.
func (r *rig) newestRun() (v shownRun) {
	r.t.Helper()
	id := r.rows(`SELECT id FROM runs ORDER BY id DESC LIMIT 1`)[0]
	var raw json.RawMessage
	if err := r.client().Get(r.t.Context(), "/v1/runs/"+id, &raw); err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		r.t.Fatal(err)
	}
	return v
}

// What a run has used of its time and of its tries is stored: a restart renews neither.
func restartRenewsNothing(r *rig) {
	var asked atomic.Int32
	r.answers(func(*llmtest.Request) llmtest.Reply {
		asked.Add(1)
		return r.exploded()
	})
	ana := r.person(11)
	r.say(ana, 11, "do it")
	r.stored("three failures", `SELECT count(*) FROM runs WHERE trouble LIKE '%"failures":3,%'`, "1")
	was := r.rows(`SELECT deadline FROM runs`)
	r.restart()
	if got := r.waitLong(ana, 1)[0].Text; !strings.Contains(got, "m"+r.n()+" answers 500") || !strings.Contains(got, "(6 tries)") || asked.Load() != 6 {
		r.t.Errorf("%q after %d calls", got, asked.Load())
	}
	if got := r.rows(`SELECT deadline FROM runs`); !slices.Equal(got, was) || got[0] == "0" {
		r.t.Errorf("the deadline moved from %q to %q", was, got)
	}
}

// A run whose time was over before the restart ends at once, with what it had waited for.
func runThatIsOver(reply func(*rig) llmtest.Reply, want string) func(*rig) {
	return func(r *rig) {
		reply := reply(r)
		asked := make(chan struct{}, 10)
		r.answers(func(*llmtest.Request) llmtest.Reply {
			asked <- struct{}{}
			return reply
		})
		ana := r.person(11)
		r.say(ana, 11, "do it")
		receive(r.t, asked, "the model's call")
		if reply.Status == 500 {
			r.logged(`msg="model fails"`, 1)
		}
		n := 0
		r.restart(func() {
			r.exec(`UPDATE runs SET deadline = 1 WHERE id = '` + r.rows(`SELECT id FROM runs`)[0] + `'`)
			n = len(asked)
		})
		got := r.wait(ana, 1)[0].Text
		if !strings.HasPrefix(got, "I stopped after ") || !strings.Contains(got, strings.NewReplacer("from m ", "from m"+r.n()+" ", "m answers", "m"+r.n()+" answers").Replace(want)) {
			r.t.Errorf("said %q, want %q", got, want)
		}
		if state, reason := r.run(got); state != "timeout" || reason != "timeout" || len(asked) != n {
			r.t.Errorf("ended %s (%s), %d further calls", state, reason, len(asked)-n)
		}
	}
}

// A wait that the provider asks for is shown and kept, beyond what a failure may last.
func statedWaitIsShown(r *rig) {
	var asked atomic.Int32
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if asked.Add(1) <= 7 {
			return llmtest.TooMany("1")
		}
		return llmtest.Echo(q)
	})
	ana := r.person(11)
	r.say(ana, 11, "do it")
	shows := func(text string) func(telegramtest.View) bool {
		return func(v telegramtest.View) bool {
			return slices.ContainsFunc(v.Sent(ana.ID), func(m telegramtest.Message) bool { return strings.Contains(m.Text, text) })
		}
	}
	r.until("the wait", shows("m"+r.n()+" asks to wait 1 s (429)"))
	r.until("the answer", shows("echo: do it"))
	if asked.Load() != 8 {
		r.t.Errorf("%d calls", asked.Load())
	}
	if got := r.rows(`SELECT trouble FROM runs`); !slices.Equal(got, []string{""}) {
		r.t.Errorf("of a model that answered there is left %q", got)
	}
}

// While a turn waits for its model, /retry asks that at once and /model another one, ahead of the wait and also after a restart; a
// turn that a model has failed is asked again once, by who asked.
func anotherModelTakesOver(r *rig) {
	asked := make(chan string, 20)
	refuses := llmtest.TooMany("300")
	var key atomic.Bool
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		model := q.Chat().Model
		asked <- model
		switch {
		case model == "test-b"+r.n():
			return llmtest.Echo(q)
		case key.Load():
			return llmtest.Unauthorized()
		}
		return refuses
	})
	wants := func(what, model string) {
		r.t.Helper()
		if got := receive(r.t, asked, what); got != "test-"+model+r.n() {
			r.t.Errorf("%s: asked %s", what, got)
		}
	}
	ana := r.person(11)
	said := func(text string) {
		r.t.Helper()
		r.until(text, func(v telegramtest.View) bool {
			return slices.ContainsFunc(v.Sent(ana.ID), func(m telegramtest.Message) bool { return strings.Contains(m.Text, text) })
		})
	}
	r.say(ana, 11, "do it")
	wants("the first try", "m")
	r.stored("the wait", `SELECT count(*) FROM runs WHERE state = 'running' AND trouble LIKE '%"stated":true%'`, "1")
	r.say(ana, 11, "/retry")
	wants("the try that was asked for", "m")
	said("I ask the model again now.")
	r.restart()
	wants("the try after a restart", "m")
	r.say(ana, 11, "/model b"+r.n())
	wants("the other model", "b")
	said("What it works on goes on with it.")
	said("echo: do it")
	if v := r.newestRun(); v.State != "completed" || v.Trouble.Model != "" || v.Model != "b"+r.n() {
		r.t.Errorf("at the end: %+v", v)
	}

	key.Store(true)
	r.say(ana, 11, "/model default")
	said("asks m" + r.n() + ".")
	r.say(ana, 11, "once more")
	wants("the refused key", "m")
	said("m" + r.n() + " refuses the key (401)")
	v := r.newestRun()
	if err := r.client().Do(r.t.Context(), "POST", "/v1/runs/"+v.ID+"/retry", nil, nil); err == nil || !strings.Contains(err.Error(), "somebody else") {
		r.t.Errorf("an owner asked in her name: %v", err)
	}
	if len(v.Timeline) < 4 || v.Timeline[len(v.Timeline)-2].Type != "trouble" || !strings.HasPrefix(v.Timeline[len(v.Timeline)-2].Text, "m"+r.n()+" refuses the key (401)") {
		r.t.Errorf("its timeline: %+v", v.Timeline)
	}
}
