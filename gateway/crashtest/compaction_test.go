//go:build !race

package crashtest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/agentloop/llm/llmtest"
)

const summaryMark = "You write the summary"

// listener is a model that keeps what it was asked, and says with what it was asked when that is a summary.
type listener struct {
	mu     sync.Mutex
	newest string
}

func (l *listener) answer(q *llmtest.Request) llmtest.Reply {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest = string(q.Body)
	if strings.Contains(l.newest, summaryMark) {
		return llmtest.Reply{Text: "They spoke of the blue door.", Usage: llmtest.Usage{Prompt: 1000, Completion: 10}}
	}
	return llmtest.Reply{Text: "heard " + q.LastUser(), Usage: llmtest.Usage{Prompt: 100, Completion: 20}, Reasoning: "hm"}
}

func (l *listener) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest
}

// promptsChanged kills the daemon around /compact, /undo, /retry and /new: it has done each once, whole or not at all, and
// answers it once.
func promptsChanged(t *testing.T, _ row) {
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
	s := newStory(t, testProgram, func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(string(q.Body), summaryMark) {
			asked <- struct{}{}
			if point == "asked" {
				<-hold
			}
		}
		return l.answer(q)
	}, owner)
	ana := s.person(11)
	s.start()
	for i := range 4 {
		s.say(ana, fmt.Sprintf("question %d %s", i, strings.Repeat("about the blue door ", 20)))
		s.messages(ana, i+1)
	}
	s.end()
	before := len(s.sent(ana))
	if point == "asked" {
		s.start()
		s.say(ana, line)
		<-asked
		s.d.kill()
		close(hold)
	} else {
		s.start(childPoint + "=" + point + "#1")
		s.say(ana, line)
		s.ends(point)
	}
	s.start()
	want := map[string]int{"/compact": 1, "/undo": 1, "/retry": 2, "/new big and a question": 2}[line]
	s.messages(ana, before+want)
	s.say(ana, "and now?")
	if got := s.messages(ana, before+want+1); len(got) != before+want+1 {
		t.Errorf("%d messages for %s: %q", len(got)-before-1, line, texts(got[before:]))
	}
	marks := s.rows(`SELECT COUNT(*) FROM entries WHERE body LIKE '{"type":"compacted"%' OR body LIKE '{"type":"undone"%'`)
	if wantMarks := map[bool]string{true: "0", false: "1"}[strings.HasPrefix(line, "/new")]; marks[0] != wantMarks {
		t.Errorf("%s marks", marks[0])
	}
	body := l.last()
	switch line {
	case "/compact":
		if !strings.Contains(body, "They spoke of the blue door.") {
			t.Error("the summary is not in the prompt")
		}
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
	if t.Failed() {
		t.Log(body)
	}
}
