//go:build !race

package crashtest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/tools"
	"parley/workspace"
)

// fileTool is a tool that people are asked about, as about commands. Its effect outlives the process: a line in a file, on
// the disk before it returns.
type fileTool struct {
	file  string
	point func(string)
}

func (fileTool) Spec() tools.Spec {
	return tools.Spec{Name: "act", Description: "For tests.", Effect: workspace.Outside, Group: tools.GroupExec, MinRole: workspace.Guest,
		Schema: json.RawMessage(`{"type":"object","properties":{"line":{"type":"string"}},"additionalProperties":false}`)}
}

func (t fileTool) Call(context.Context, tools.Call) (tools.Result, error) {
	pass := func(name string) {
		if t.point != nil {
			t.point(name)
		}
	}
	pass("act begins")
	f, err := os.OpenFile(t.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return tools.Result{}, err
	}
	if _, err := f.WriteString("acted\n"); err != nil {
		return tools.Result{}, err
	}
	if err := f.Sync(); err != nil {
		return tools.Result{}, err
	}
	pass("act ends")
	return tools.TextResult("acted once"), f.Close()
}

// approvedAtEveryLine kills the daemon at any line around asking, deciding, using up and starting: an approved call runs at
// most once, and the turn always ends where people see it.
func approvedAtEveryLine(t *testing.T, _ row) {
	list := filepath.Join(t.TempDir(), "points")
	approvedCall(t, childPoints+"="+list) // nothing dies: which points there are
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	points := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, must := range []string{"commit ask", "committed ask", "commit command", "committed command", "commit move run", "committed move run", "commit step", "committed step",
		"commit finish", "committed finish", "act begins", "act ends"} {
		if !slices.Contains(points, must) {
			t.Errorf("%q is not passed, but %q", must, points)
		}
	}
	for _, point := range points {
		if strings.Contains(point, "boot") || strings.Contains(point, "clean") {
			continue // there is nothing yet, or no more
		}
		for _, nth := range []string{"1", "3"} {
			if nth == "3" && !strings.HasSuffix(point, " step") && !strings.HasSuffix(point, " outbound") {
				continue
			}
			t.Run(point+" "+nth, func(t *testing.T) {
				t.Parallel()
				approvedCall(t, childPoint+"="+point+"#"+nth)
			})
		}
	}
}

// acts is a model that calls act once a turn and then tells what came of it.
func acts(q *llmtest.Request) llmtest.Reply {
	if q.Round() == 0 && strings.Contains(q.LastUser(), "act") {
		return llmtest.Act("act", "line", "touch x")
	}
	if res := q.ToolResults(); len(res) > 0 && q.Round() > 0 {
		return llmtest.Reply{Text: "result: " + res[len(res)-1]}
	}
	return llmtest.Echo(q)
}

// approvedCall has a daemon asked for a call and approves it by a button, and starts the daemon again whenever it is gone.
func approvedCall(t *testing.T, env string) {
	t.Helper()
	s := newStory(t, testProgram, acts, owner+noSigns)
	done := filepath.Join(s.dir, "done")
	s.prog.env = append(s.prog.env, childAct+"="+done)
	ana := s.person(11)
	s.start(env)
	s.say(ana, "act")
	limit := time.After(60 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	pressed := time.Time{}
	for {
		sent := s.sent(ana)
		if slices.ContainsFunc(sent, func(m telegramtest.Message) bool { return strings.Contains(m.Text, "result:") }) {
			break
		}
		if i := slices.IndexFunc(sent, asks); i >= 0 && time.Since(pressed) > 3*time.Second {
			pressed = time.Now() // again, if nothing comes of it: as people do
			s.tg.Press(ana.ID, sent[i].ID, user(11), once(t, sent[i]))
		}
		select {
		case <-s.d.exited:
			s.start()
		case <-tick.C:
		case <-limit:
			t.Fatalf("the turn does not end: %q, approvals %v, steps %v, runs %v", texts(sent), s.rows(`SELECT state || ' ' || via FROM approvals`),
				s.rows(`SELECT tool || ' ' || state FROM steps`), s.rows(`SELECT state || ' ' || tries FROM runs`))
		}
	}
	ran := 0
	if text, err := os.ReadFile(done); err == nil {
		ran = strings.Count(string(text), "acted")
	}
	s.until("no question to stand", func() bool {
		return slices.Equal(s.rows(`SELECT count(*) FROM approvals WHERE state NOT IN ('consumed')`), []string{"0"})
	})
	step := s.rows(`SELECT state FROM steps WHERE tool = 'act'`)
	switch {
	case slices.Equal(step, []string{"done"}) && ran == 1:
	case slices.Equal(step, []string{"unknown"}) && ran <= 1:
	default:
		t.Errorf("it ran %d times and its step is %v", ran, step)
	}
	s.seen("the question is closed", func() bool { return !slices.ContainsFunc(s.sent(ana), asks) })
}

func asks(m telegramtest.Message) bool { return len(m.Buttons) > 0 }

// once is the value of the button that allows a call once.
func once(t *testing.T, m telegramtest.Message) string {
	t.Helper()
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Text == "Once" {
				return b.Data
			}
		}
	}
	t.Fatalf("no such button in %v", m.Buttons)
	return ""
}
