package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
)

// screen drives a view without a terminal: what it commits is kept, other commands are not run.
type screen struct {
	*testing.T
	*view
	above []string
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	cl, err := client.New("http://127.0.0.1:1", "t")
	if err != nil {
		t.Fatal(err)
	}
	talk := &conversation{App: &cli.App{}, client: cl, session: "main"}
	s := &screen{T: t, view: newView(t.Context(), talk, openHistory(filepath.Join(t.TempDir(), "state", "history")))}
	s.tell(tea.WindowSizeMsg{Width: 40, Height: 20})
	return s
}

func (s *screen) tell(m tea.Msg) {
	s.Helper()
	s.printing = true // rows are taken here, not by a command
	s.Update(m)
	s.above = append(s.above, s.rows.take()...)
}

func (s *screen) keys(list ...string) {
	s.Helper()
	special := map[string]tea.KeyPressMsg{"enter": {Code: tea.KeyEnter}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "tab": {Code: tea.KeyTab},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "left": {Code: tea.KeyLeft},
		"delete": {Code: tea.KeyDelete}, "esc": {Code: tea.KeyEscape}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}}
	for _, k := range list {
		if m, ok := special[k]; ok {
			s.tell(m)
			continue
		}
		for _, r := range k {
			s.tell(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

func (s *screen) event(kind, run, data string) {
	s.Helper()
	s.tell(eventMsg{client.Event{Type: kind, RunID: run, SessionID: "S", Time: time.Unix(1_700_000_000, 0), Data: json.RawMessage(data)}})
}

func (s *screen) shows(want ...string) {
	s.Helper()
	for _, text := range want {
		if !strings.Contains(ansi.Strip(strings.Join(s.above, "\n")), text) {
			s.Errorf("%q is not on the screen:\n%s", text, strings.Join(s.above, "\n"))
		}
	}
}

func (s *screen) typed(want string) {
	s.Helper()
	if got := s.edit.Value(); got != want {
		s.Errorf("the line holds %q, want %q", got, want)
	}
}

func TestChatTakesAPasteAsOneMessage(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.tell(tea.PasteMsg{Content: "one\ntwo\nthree"})
	s.typed("one\ntwo\nthree")
	if len(s.out.queue) != 0 {
		t.Fatalf("%d messages were sent by pasting", len(s.out.queue))
	}
	s.keys("enter")
	if len(s.out.queue) != 1 || s.out.queue[0].Text != "one\ntwo\nthree" {
		t.Fatalf("sent %+v", s.out.queue)
	}
	s.shows("› one\n  two\n  three")
	s.tell(tea.PasteMsg{Content: strings.Repeat("x\r\n", linesMost+1)})
	s.shows("its end is missing")
}

func TestChatEditsLikeAShell(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.keys("bc", "home", "a", "end", "dX", "left", "delete")
	s.typed("abcd")
	s.keys("alt+enter", "second")
	s.typed("abcd\nsecond")
	s.keys("ctrl+c")
	s.typed("")
	if s.leaving {
		t.Error("Ctrl-C left although something was typed")
	}
	s.keys("enter")
	if len(s.out.queue) > 0 {
		t.Error("an empty line was sent")
	}
	s.keys("ctrl+c")
	if !s.leaving {
		t.Error("Ctrl-C at an empty prompt stays")
	}
}

func TestChatRemembersWhatWasTyped(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state", "history")
	h := openHistory(file)
	for _, line := range []string{"first", "two\nlines", "two\nlines", " secret", "last"} {
		h.add(line)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("history file: %v %v", info, err)
	}
	s := newScreen(t)
	s.past = openHistory(file)
	s.keys("draft", "up")
	s.typed("last")
	s.keys("up")
	s.typed("two\nlines") // what began with a blank was not kept, nor what came twice
	s.keys("up", "up")    // through its two lines
	s.typed("first")
	s.keys("down", "down", "down", "down")
	s.typed("draft")
}

func TestHistoryIsCutWhenItGrows(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "history")
	h := openHistory(file)
	for i := range 2*historyKept + 10 {
		h.add(fmt.Sprint("line ", i))
	}
	if got := openHistory(file).lines; len(got) != historyKept || got[len(got)-1] != fmt.Sprint("line ", 2*historyKept+9) {
		t.Fatalf("%d lines, the last %q", len(got), got[len(got)-1])
	}
	if again := openHistory(file); len(again.lines) != historyKept {
		t.Errorf("%d lines after it was cut", len(again.lines))
	}
	if data, err := os.ReadFile(file); err != nil || strings.Count(string(data), "\n") != historyKept {
		t.Errorf("the file was not cut: %d lines, %v", strings.Count(string(data), "\n"), err)
	}
}

func TestChatCompletesCommands(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.keys("/und")
	if len(s.menu) != 1 || s.menu[0].line != "/undo" {
		t.Errorf("offered are %v", s.menu)
	}
	s.keys("tab")
	s.typed("/undo ")
	if len(s.menu) > 0 {
		t.Errorf("still offered: %v", s.menu)
	}
	s.keys("ctrl+c", "/", "tab")
	s.typed("/")
	if len(s.menu) != menuMost {
		t.Errorf("offered are %v", s.menu)
	}
	s.keys("ctrl+c", "no command/", "tab")
	s.typed("no command/")
	s.keys("ctrl+c", "/que", "tab", "fo", "tab")
	s.typed("/queue followup ")
	s.keys("ctrl+c", "/queue ")
	if len(s.menu) < 4 || s.menu[0].line != "/queue steer" {
		t.Errorf("offered are %v", s.menu)
	}
}

// What is watched live may overtake the record: cards come before the answer that follows them, and nothing stands twice.
func TestChatShowsCardsInOrder(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.keys("look", "enter")
	s.tell(sentMsg{text: "look", got: client.Answer{InputID: "I1"}})
	s.event("turn.started", "R", `{}`)
	s.event("item.completed", "R", `{"item":{"id":"I1","type":"message","role":"user","parts":[{"type":"text","text":"look"}]}}`)
	s.event("item.delta", "R", `{"item_id":"R:1","text":"I look. "}`)
	s.event("item.started", "R", `{"item":{"id":"c","type":"tool_call","parts":[{"type":"tool_call","name":"list_dir","call_id":"c"}]}}`)
	if got := ansi.Strip(s.status()); !strings.Contains(got, "list_dir") {
		t.Errorf("the status is %q", got)
	}
	s.event("item.delta", "R", `{"item_id":"R:2","text":"All done."}`)
	s.event("item.completed", "R", `{"item":{"id":"R:1","type":"message","role":"assistant","parts":[{"type":"text","text":"I look. "},{"type":"tool_call","name":"list_dir","call_id":"c","args":{"path":"notes"}}]}}`)
	s.event("item.completed", "R", `{"item":{"id":"x","type":"tool_result","role":"tool","parts":[{"type":"tool_result","call_id":"c","text":"<outside-text>\na.txt\nb.txt\n</outside-text>"}]}}`)
	s.event("item.completed", "R", `{"item":{"id":"R:2","type":"message","role":"assistant","parts":[{"type":"text","text":"All done."}]}}`)
	s.event("turn.ended", "R", `{"state":"completed"}`)
	s.shows("› look", "I look.", "· list_dir notes  0 ms  a.txt (1 line", "All done.")
	text := ansi.Strip(strings.Join(s.above, "\n"))
	if strings.Count(text, "I look.") != 1 || strings.Count(text, "All done.") != 1 || strings.Index(text, "list_dir") > strings.Index(text, "All done.") {
		t.Errorf("twice or out of order:\n%s", text)
	}
	if s.busy() {
		t.Error("it still waits for something")
	}
}

// A failing model stands above once for each failure, whatever number of times it is tried; one that sends nothing is said below.
func TestChatSaysWhatItsModelFailsWith(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.event("turn.started", "R", `{}`)
	began := s.now.UTC()
	asked := func(at time.Time) {
		s.event("model.asked", "R", `{"model":"m","provider":"OpenAI","time":"`+at.Format(time.RFC3339Nano)+`"}`)
	}
	asked(began)
	s.tell(tickMsg(began.Add(9 * time.Second)))
	if got := ansi.Strip(s.status()); strings.Contains(got, "no answer") {
		t.Errorf("after 9 s: %q", got)
	}
	s.tell(tickMsg(began.Add(12 * time.Second)))
	if got := ansi.Strip(s.status()); !strings.Contains(got, "no answer from OpenAI for 12 s; Ctrl") {
		t.Errorf("after 12 s: %q", got)
	}
	for _, wait := range []string{"1", "2"} {
		s.event("item.completed", "R", `{"item":{"id":"w","type":"status","parts":[{"type":"text","text":"OpenAI answers 500; next try in `+wait+` s"}],
			"trouble":{"model":"m","cause":"OpenAI answers 500: `+"`upstream exploded`"+`"}}}`)
		if got := ansi.Strip(s.status()); !strings.Contains(got, "next try in "+wait+" s") {
			t.Errorf("while it waits: %q", got)
		}
		asked(began.Add(13 * time.Second))
	}
	s.shows(`OpenAI answers 500: "upstream exploded".`, "/retry tries at once", "/model NAME asks another one")
	if n := strings.Count(ansi.Strip(strings.Join(s.above, "\n")), "upstream exploded"); n != 1 {
		t.Errorf("one failure stands there %d times", n)
	}
	s.event("item.delta", "R", `{"item_id":"R:1","text":"Here."}`)
	s.tell(tickMsg(began.Add(60 * time.Second)))
	if got := ansi.Strip(s.status()); strings.Contains(got, "no answer") {
		t.Errorf("while it answers: %q", got)
	}
}

func TestChatSteersAndStops(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.keys("first", "enter")
	s.tell(sentMsg{text: "first", got: client.Answer{InputID: "I1"}})
	s.event("turn.started", "R", `{}`)
	s.event("item.completed", "R", `{"item":{"id":"I1","type":"message","role":"user","parts":[{"type":"text","text":"first"}]}}`)
	s.event("item.delta", "R", `{"item_id":"R:1","text":"An answer that"}`)
	s.keys("and more", "enter")
	if len(s.out.queue) != 1 || s.out.queue[0].Text != "and more" {
		t.Fatalf("outbox %+v", s.out.queue)
	}
	// its event comes before the reply to its request
	s.event("item.completed", "R", `{"item":{"id":"I2","type":"message","role":"user","parts":[{"type":"text","text":"and more"}]}}`)
	s.tell(sentMsg{text: "and more", got: client.Answer{InputID: "I2"}})
	if len(s.out.mine) != 0 {
		t.Errorf("it waits for %v", s.out.mine)
	}
	s.keys("ctrl+c")
	if !s.turn.stopping || s.leaving {
		t.Errorf("after one Ctrl-C: stopping %v, leaving %v", s.turn.stopping, s.leaving)
	}
	s.keys("ctrl+c")
	if !s.leaving {
		t.Error("the second Ctrl-C stays")
	}
}

func TestChatShowsWhatOthersSayInTheSession(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.event("item.completed", "R", `{"item":{"id":"I9","type":"message","role":"user","name":"ana","parts":[{"type":"text","text":"from the browser\u001b[2J"}]}}`)
	s.shows("ana: from the browser")
	if strings.Contains(strings.Join(s.above, ""), "\x1b[2J") {
		t.Error("text of others controls the terminal")
	}
	s.event("item.completed", "", `{"item":{"id":"I8","type":"system","command":"/status","parts":[{"type":"text","text":"All is well."}]}}`)
	s.shows("All is well.")
}

func TestChatSaysWhenTheGatewayIsAway(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.tell(awayMsg{errLost})
	if got := ansi.Strip(s.status()); !strings.Contains(got, "does not answer") {
		t.Errorf("the status is %q", got)
	}
	s.tell(awayMsg{})
	if got := s.status(); got != "" {
		t.Errorf("the status is %q", got)
	}
}

// Notes are broken into rows that fit, and hold what was said.
func TestNotesFitTheScreen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab cé 日-\n.")), 1, 120, -1).Draw(t, "text")
		r := &rows{width: rapid.IntRange(4, 30).Draw(t, "width")}
		if _, err := r.Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
		for _, row := range r.done {
			if ansi.StringWidth(row) > r.width {
				t.Fatalf("row %q is wider than %d", row, r.width)
			}
		}
		bare := strings.NewReplacer(" ", "", "\n", "")
		if got, want := bare.Replace(strings.Join(r.take(), "")), bare.Replace(text); got != want {
			t.Fatalf("rows hold %q, want %q", got, want)
		}
	})
}

// An answer is drawn as it grows: what is final goes up once, the rest stands below until it is.
func TestAnswerIsDrawnWhileItGrows(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	s.event("turn.started", "R", `{}`)
	at := 0
	grow := func(piece string) {
		data, _ := json.Marshal(map[string]any{"item_id": "R:1", "text": piece, "offset": at})
		at += len(piece)
		s.event("item.delta", "R", string(data))
	}
	for _, piece := range []string{"# Plan\nFirst **b", "old** and\n\n|a|b|\n|-|-|\n|1|", "2|\n", "\n```sh\nmake install PREFIX=/opt/a/very/long/way/that/does/not/fit\n"} {
		grow(piece)
	}
	s.shows("Plan", "First bold and", " a │ b", "───┼───", " 1 │ 2", "\nmake install PREFIX=/opt/a/very/long/way/that/does/not/fit")
	if text := strings.Join(s.above, "\n"); strings.Contains(text, "```") || strings.Contains(text, "**") {
		t.Errorf("marks of Markdown are shown:\n%s", text)
	}
	s.tell(tea.WindowSizeMsg{Width: 30, Height: 20})
	grow("x=1")
	if got := s.View().Content; !strings.Contains(got, "x=1") {
		t.Errorf("the row that grows is not shown: %q", got)
	}
	s.event("turn.ended", "R", `{"state":"user_stopped"}`)
	text := ansi.Strip(strings.Join(s.above, "\n"))
	if !strings.Contains(text, "x=1\n(stopped)") || strings.Count(text, "Plan") != 1 || strings.Count(text, "x=1") != 1 {
		t.Errorf("the end is wrong:\n%s", text)
	}
}
