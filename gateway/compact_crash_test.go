package gateway_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/agentloop/llm/llmtest"
)

// R05: a gateway that is killed around /compact, /undo, /retry and /new has done each once, whole or not at all, and
// answers it once.
func TestR05_CommandsThatChangeThePromptAreDoneOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"commit command", "committed command", "asked"} {
		for _, line := range []string{"/compact", "/undo", "/retry", "/new big and a question"} {
			if point == "asked" && line != "/compact" {
				continue // only a summary waits for a model
			}
			t.Run(point+" "+strings.Fields(line)[0], func(t *testing.T) {
				t.Parallel()
				killedAround(t, point, line)
			})
		}
	}
}

func killedAround(t *testing.T, point, line string) {
	l := &listener{}
	asked, hold := make(chan struct{}, 10), make(chan struct{})
	r := newRig(t, setup{extra: owners, script: func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(string(q.Body), summaryMark) {
			asked <- struct{}{}
			if point == "asked" {
				<-hold
			}
		}
		return l.answer(q)
	}})
	chat := r.person(1)
	for i := range 4 {
		r.ask(chat, 1, fmt.Sprintf("question %d %s", i, strings.Repeat("about the blue door ", 20)))
	}
	r.stop()
	before := len(r.tg.View().Sent(chat.ID))
	p := testProgram(t, r.conf)
	env := []string{}
	if point != "asked" {
		env = append(env, childPoint+"="+point+"#1")
	}
	d := p.start(t, r.log, func() {}, env...)
	r.say(chat, 1, line)
	if point == "asked" {
		<-asked
		d.kill()
		close(hold)
	}
	<-d.exited
	again := p.start(t, r.log, func() {})
	t.Cleanup(again.kill)
	want := map[string]int{"/compact": 1, "/undo": 1, "/retry": 2, "/new big and a question": 2}[line]
	r.wait(chat, before+want)
	r.ask(chat, 1, "and now?")
	got := r.tg.View().Sent(chat.ID)
	if len(got) != before+want+1 {
		t.Errorf("%d messages for %s: %q", len(got)-before-1, line, texts(got[before:]))
	}
	marks := r.rows(`SELECT COUNT(*) FROM entries WHERE body LIKE '{"type":"compacted"%' OR body LIKE '{"type":"undone"%'`)
	if wantMarks := map[bool]string{true: "0", false: "1"}[strings.HasPrefix(line, "/new")]; marks[0] != wantMarks {
		t.Errorf("%s marks", marks[0])
	}
	body := l.last()
	switch line {
	case "/compact":
		has(t, body, "They spoke of the blue door.")
	case "/undo":
		if strings.Contains(body, "question 3") {
			t.Error("what was undone is still seen")
		}
	case "/retry":
		if strings.Count(body, "question 3") != 2 { // asked and repeated in the answer
			t.Errorf("the question is there %d times", strings.Count(body, "question 3"))
		}
	default:
		if strings.Contains(body, "question 3") || !strings.Contains(body, "and a question") {
			t.Error("the fresh session is not what it should be")
		}
	}
	if os.Getenv("PARLEY_FULL") == "" && t.Failed() {
		t.Log(body)
	}
}
