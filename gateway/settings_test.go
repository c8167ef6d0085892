package gateway_test

import (
	"fmt"
	"strings"
	"sync"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// listener is a model that keeps what it was asked and says which of its names was called.
type listener struct {
	mu     sync.Mutex
	bodies []string
	tool   string // called for "work"
	refuse int    // summaries that it fails
}

const summaryMark = "You write the summary"

func (l *listener) answer(q *llmtest.Request) llmtest.Reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bodies = append(l.bodies, string(q.Body))
	chat := q.Chat()
	switch {
	case strings.Contains(string(q.Body), summaryMark) && l.refuse > 0:
		l.refuse--
		return llmtest.Reply{Status: 401}
	case strings.Contains(string(q.Body), summaryMark):
		return llmtest.Reply{Text: "They spoke of the blue door.", Usage: llmtest.Usage{Prompt: 1000, Completion: 10}}
	case l.tool != "" && strings.Contains(q.LastUser(), "work") && q.Round() == 0:
		return llmtest.Reply{Calls: []llmtest.Call{{Name: l.tool, Args: `{"n":7}`}}}
	}
	return llmtest.Reply{Text: chat.Model + " says " + q.LastUser(), Usage: llmtest.Usage{Prompt: 100, Completion: 20}, Reasoning: "hm"}
}

// last is the newest request.
func (l *listener) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bodies[len(l.bodies)-1]
}

// bigModel and oldModel may be used instead of m.
const (
	bigModel = `, {name: big, api: openai, base_url: "{{model}}", model: gpt-5-large}`
	oldModel = `, {name: old, api: openai, base_url: "{{model}}", model: gpt-4}`
)

func settingsActAndStay(r *rig) {
	l := &listener{}
	r.answers(l.answer)
	chat := r.person(1)
	has(r.t, r.ask(chat, 1, "hello"), "test-1 says hello")
	has(r.t, r.ask(chat, 1, "/models"), "1. m ← in use (default)", "2. big", "3. old")
	has(r.t, r.ask(chat, 1, "/model nothing"), "There is no model")
	has(r.t, r.ask(chat, 1, "/model 4"), "There is no model")
	has(r.t, r.ask(chat, 1, "/model 2"), "asks big", "If it does not answer: m")
	has(r.t, r.ask(chat, 1, "one"), "gpt-5-large says one")
	has(r.t, r.ask(chat, 1, "/think"), "the model's own")
	has(r.t, r.ask(chat, 1, "/think xhigh"), "Think is now xhigh")
	r.ask(chat, 1, "two")
	has(r.t, l.last(), `"reasoning_effort":"xhigh"`)
	has(r.t, r.ask(chat, 1, "/usage full"), "Usage is now full")
	has(r.t, r.ask(chat, 1, "three"), "gpt-5-large says three", "big: 100 in, 20 out", "session: 400 in, 80 out")
	r.restart()
	has(r.t, r.ask(chat, 1, "/status"), "model big, think xhigh, usage full", "this session: 400 tokens in, 80 out")
	has(r.t, r.ask(chat, 1, "/new"), "A fresh session begins.", "Settings stay: model big, think xhigh, usage full")
	has(r.t, r.ask(chat, 1, "four"), "gpt-5-large says four", "session: 100 in, 20 out")
	has(r.t, r.ask(chat, 1, "/model default"), "asks m")
	has(r.t, r.ask(chat, 1, "/usage off"), "Usage is now off")
	if got := r.ask(chat, 1, "five"); got != "test-1 says five" {
		r.t.Errorf("five: %q", got)
	}
	// A model that is taken out of the configuration is passed over, and said so.
	r.ask(chat, 1, "/model old")
	r.restart(func() { r.change("models: [big, old]", "models: [big]") })
	has(r.t, r.ask(chat, 1, "six"), "test-1 says six")
	has(r.t, r.ask(chat, 1, "/models"), "not configured any more")
}

func newWithModelAndText(r *rig) {
	l := &listener{}
	r.answers(l.answer)
	chat := r.person(1)
	r.ask(chat, 1, "an old question")
	r.say(chat, 1, "/new big what's new?")
	got := r.wait(chat, 3)
	has(r.t, got[1].Text, "A fresh session begins with the model big")
	has(r.t, got[2].Text, "gpt-5-large says what's new?")
	if strings.Contains(l.last(), "an old question") {
		r.t.Error("the fresh session still sees the old one")
	}
	r.say(chat, 1, "/new biggest question of all")
	has(r.t, r.wait(chat, 5)[4].Text, "says biggest question of all")
	r.stored("each is asked once", `SELECT COUNT(*) FROM inputs WHERE key LIKE 'new:%'`, "2")
}

func retryAndUndo(r *rig) {
	l := &listener{}
	r.answers(l.answer)
	chat := r.person(1)
	has(r.t, r.ask(chat, 1, "/undo"), "nothing here to take back")
	r.ask(chat, 1, "the first")
	r.ask(chat, 1, "the second")
	r.say(chat, 1, "/retry")
	got := r.wait(chat, 5)
	has(r.t, got[3].Text, "I answer “the second” again")
	has(r.t, got[4].Text, "test-1 says the second")
	if n := strings.Count(l.last(), "the second"); n != 1 {
		r.t.Errorf("the model saw the question %d times: %s", n, l.last())
	}
	has(r.t, r.ask(chat, 1, "/undo"), "“the second” and my answer are out")
	r.restart()
	r.ask(chat, 1, "the third")
	if body := l.last(); strings.Contains(body, "the second") || !strings.Contains(body, "the first") {
		r.t.Errorf("after undo the model saw %s", body)
	}
	has(r.t, r.ask(chat, 1, "/undo"), "the third")
	has(r.t, r.ask(chat, 1, "/undo"), "the first")
	has(r.t, r.ask(chat, 1, "/undo"), "nothing here to take back")
	has(r.t, r.ask(chat, 1, "/export"), "the first", "the second", "the third")
}

// T10: in a group nobody's question is asked again with another's rights.
func retryInAGroup(r *rig) {
	r.answers((&listener{}).answer)
	group := r.group()
	r.person(1)
	has(r.t, r.ask(group, 2, "@"+r.tg.Bot().Username+" hi"), "says")
	has(r.t, r.ask(group, 2, "/retry"), "only an owner")
	has(r.t, r.ask(group, 1, "/retry"), "somebody else's")
	has(r.t, r.ask(group, 1, "/undo"), "out of what I see")
}

func summaryInItsPlace(r *rig) {
	l := &listener{refuse: 2} // the summarizer, and the agent's model behind it
	r.answers(l.answer)
	chat := r.person(1)
	has(r.t, r.ask(chat, 1, "/compact"), "nothing yet that a summary would make shorter")
	for i := range 4 {
		r.ask(chat, 1, fmt.Sprintf("question %d %s", i, strings.Repeat("about the blue door ", 20)))
	}
	has(r.t, r.ask(chat, 1, "/compact keep the colours"), "refuses the key (401)", "Nothing was changed")
	has(r.t, r.ask(chat, 1, "/compact keep the colours"), "I summed up 2 exchanges", "b"+r.n()+": 1000 tokens in")
	has(r.t, l.last(), "keep the colours", `"test-b`+r.n()+`"`, "question 1")
	if strings.Contains(l.last(), "question 2") {
		r.t.Error("the newest exchanges were summed up too")
	}
	check := func(what string) {
		r.t.Helper()
		r.ask(chat, 1, what)
		if body := l.last(); !strings.Contains(body, "They spoke of the blue door.") || strings.Contains(body, "question 1") || !strings.Contains(body, "question 3") {
			r.t.Errorf("%s: the model saw %s", what, body)
		}
	}
	check("before the restart")
	r.restart()
	check("after the restart")
	has(r.t, r.ask(chat, 1, "/status"), "older part of the conversation is a summary", "this session: 1600 tokens in, 130 out")
	has(r.t, r.ask(chat, 1, "/context"), "summary of what was said earlier")
	has(r.t, r.ask(chat, 1, "/context json"), `"summary": `, `"window": 128000`)
	r.stored("the record stays", `SELECT COUNT(*) FROM entries WHERE role = 'user'`, "6")
	has(r.t, r.ask(chat, 1, "/new"), "fresh session")
	r.ask(chat, 1, "afresh")
	if strings.Contains(l.last(), "blue door") {
		r.t.Error("the summary came along into a fresh session")
	}
}

// A conversation that fills its model's window is summed up before the turn, without being asked.
func fullWindowIsSummedUp(r *rig) {
	l := &listener{}
	r.answers(l.answer)
	chat := r.person(1)
	for i := range 20 {
		r.ask(chat, 1, fmt.Sprintf("question %d %s", i, strings.Repeat("many words ", 340)))
	}
	if !strings.Contains(l.last(), "They spoke of the blue door.") || strings.Contains(l.last(), "left out to fit") {
		r.t.Errorf("the model saw %d bytes: %.3000s", len(l.last()), l.last())
	}
	got := r.rows(`SELECT COUNT(*) > 0, MAX(s.compacted) > 0 FROM entries e JOIN sessions s ON s.id = e.session_id WHERE e.body LIKE '{"type":"compacted"%'`)
	if got[0] != "1|1" {
		r.t.Errorf("stored: %q", got)
	}
}

func verbose(r *rig) {
	l := &listener{tool: "look"}
	r.answers(l.answer)
	chat := r.person(1)
	if got := r.ask(chat, 1, "work"); strings.Contains(got, "look") {
		r.t.Errorf("without being asked: %q", got)
	}
	has(r.t, r.ask(chat, 1, "/v on"), "Verbose is now on")
	has(r.t, r.ask(chat, 1, "work"), "look ✓\n\ntest-1 says work")
	has(r.t, r.ask(chat, 1, "/verbose full"), "what with")
	has(r.t, r.ask(chat, 1, "work"), `look {"n":7} ✓ nothing to see`)
	r.stored("the transcript holds none of it", `SELECT COUNT(*) FROM entries WHERE body LIKE '%✓%'`, "0")
}

func sendOff(r *rig) {
	r.answers((&listener{}).answer)
	chat, guest := r.person(1), r.person(2)
	r.ask(guest, 2, "hello")
	has(r.t, r.ask(guest, 2, "/send off"), "Only owners may do that")
	r.ask(chat, 1, "hello")
	has(r.t, r.ask(chat, 1, "/send off"), "Send is now off")
	r.say(chat, 1, "in silence")
	r.stored("the answer is in the transcript", `SELECT COUNT(*) FROM entries WHERE role = 'assistant' AND body LIKE '%says in silence%'`, "1")
	has(r.t, r.ask(chat, 1, "/send inherit"), "answers are sent")
	has(r.t, r.ask(chat, 1, "aloud"), "says aloud")
	if got := r.rows(`SELECT COUNT(*) FROM outbound WHERE kind = 'answer'`); got[0] != "3" {
		r.t.Errorf("%s answers were sent", got[0])
	}
}

func activation(r *rig) {
	r.answers((&listener{}).answer)
	group := r.group()
	chat := r.person(1)
	has(r.t, r.ask(chat, 1, "/activation always"), "/activation is for groups")
	has(r.t, r.ask(group, 1, "/activation"), "as configured")
	has(r.t, r.ask(group, 2, "/activation always"), "Only owners may do that")
	has(r.t, r.ask(group, 1, "/activation always"), "I answer every message here")
	has(r.t, r.ask(group, 2, "no name in it"), "says")
	r.restart()
	has(r.t, r.ask(group, 2, "nor in this"), "says")
	has(r.t, r.ask(group, 1, "/status"), "activation always")
	has(r.t, r.ask(group, 1, "/activation mention"), "when I am mentioned")
	r.say(group, 2, "only context now")
	r.stored("it is context", `SELECT state FROM inputs WHERE text = 'only context now'`, "context")
}

func queueOptions(r *rig) {
	r.answers((&listener{}).answer)
	chat := r.person(1)
	r.ask(chat, 1, "hello")
	has(r.t, r.ask(chat, 1, "/queue collect debounce:2s cap:3 drop:new"), "collect", "at most 3 wait", "newest is dropped", "within 2s")
	has(r.t, r.ask(chat, 1, "/queue cap:4"), "collect", "at most 4 wait")
	r.restart()
	has(r.t, r.ask(chat, 1, "/queue"), "collect", "at most 4 wait", "within 2s")
	has(r.t, r.ask(chat, 1, "/status"), "queue collect, debounce 2s, cap 4, drop new")
	has(r.t, r.ask(chat, 1, "/queue default"), "steer", "at most 20 wait")
}

// While a turn works its steps grow in one message, and that a model thinks is shown to who wants to know.
func stepsAndThinkingAreShown(r *rig) {
	l, g, thinks := &listener{tool: "gate"}, r.slot.gate, make(chan struct{})
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "ponder") {
			select {
			case <-thinks:
			default:
				return llmtest.Reply{Reasoning: "a private thought", Text: "never sent", HangAfter: 2}
			}
		}
		return l.answer(q)
	})
	chat := r.person(1)
	r.ask(chat, 1, "hello")
	r.ask(chat, 1, "/verbose on")
	r.say(chat, 1, "work")
	<-g.called
	r.until("the step under way", func(v telegramtest.View) bool {
		sent := v.Sent(chat.ID)
		return strings.Contains(sent[len(sent)-1].Text, "gate …")
	})
	n := len(r.tg.View().Sent(chat.ID))
	close(g.open)
	r.until("the answer behind the step", func(v telegramtest.View) bool {
		sent := v.Sent(chat.ID)
		return len(sent) == n && strings.Contains(sent[n-1].Text, "gate ✓") && strings.Contains(sent[n-1].Text, "says work")
	})
	r.ask(chat, 1, "/reasoning on")
	r.say(chat, 1, "ponder")
	r.until("the thinking", func(v telegramtest.View) bool {
		sent := v.Sent(chat.ID)
		return strings.Contains(sent[len(sent)-1].Text, "thinking")
	})
	close(thinks)
	has(r.t, r.ask(chat, 1, "/stop"), "Stopped")
	for _, m := range r.tg.View().Sent(chat.ID) {
		if strings.Contains(m.Text, "private thought") {
			r.t.Errorf("a private thought left: %q", m.Text)
		}
	}
}

// A summary that is being made can be stopped, and one that a shutdown cut off is made after the next start.
func summaryIsStoppedAndOutlivesARestart(r *rig) {
	l, asked, hold := &listener{}, make(chan struct{}, 10), make(chan struct{})
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(string(q.Body), summaryMark) {
			asked <- struct{}{}
			<-hold
		}
		return l.answer(q)
	})
	chat := r.person(1)
	for i := range 4 {
		r.ask(chat, 1, fmt.Sprintf("question %d %s", i, strings.Repeat("about the blue door ", 20)))
	}
	r.say(chat, 1, "/compact")
	<-asked
	r.say(chat, 1, "/stop")
	got := r.wait(chat, 6)
	both := got[4].Text + got[5].Text
	has(r.t, both, "Stopped: the summary.", "Stopped. Nothing was changed.")
	r.say(chat, 1, "/compact")
	<-asked
	r.restart(func() { close(hold) }) // a shutdown that does not wait
	has(r.t, r.wait(chat, 7)[6].Text, "I summed up 2 exchanges")
}
