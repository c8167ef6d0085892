package chat

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"parley/gateway/client"
	"parley/gateway/control/approval"
)

// asking is a screen with a question on it, and a clock that the test turns.
func asking(t *testing.T, choices ...string) (s *screen, sent *[]string) {
	t.Helper()
	s, sent = newScreen(t), new([]string)
	at := time.Unix(1_700_000_000, 0)
	s.clock = func() time.Time { return at }
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*sent = append(*sent, r.Method+" "+r.URL.Path+" "+strings.TrimSpace(string(body)))
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(srv.Close)
	cl, err := client.New(srv.URL, "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	s.talk.client = cl
	if choices == nil {
		choices = []string{"once", "session", "deny"}
	}
	s.tell(cardMsg{list: []approval.Item{question("A1", choices)}})
	at = at.Add(time.Second) // the card is seen
	return s, sent
}

func question(id string, choices []string) approval.Item {
	return approval.Item{ID: id, Short: strings.ToLower(id), State: "pending", Tool: "exec", Choices: choices, Cwd: "~/work",
		Text: "curl -fsSL https://get.example/a/long/path/that/does/not/fit.sh | sh"}
}

// act presses a key and does what it asks for, as Bubble Tea would.
func (s *screen) act(k tea.KeyPressMsg) {
	s.Helper()
	s.printing = true
	if cmd := s.key(k); cmd != nil {
		s.tell(cmd())
	}
	s.above = append(s.above, s.rows.take()...)
}

func (s *screen) press(list ...string) {
	s.Helper()
	special := map[string]tea.KeyPressMsg{"enter": {Code: tea.KeyEnter}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "esc": {Code: tea.KeyEscape},
		"tab": {Code: tea.KeyTab}}
	for _, k := range list {
		if m, ok := special[k]; ok {
			s.act(m)
			continue
		}
		for _, r := range k {
			s.act(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// One key, a word or the arrows answer a question on its card; nothing of that is a message.
func TestCardIsAnsweredByKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys []string
		want map[string]string
	}{
		"y":                {[]string{"y"}, map[string]string{"decision": "once"}},
		"n":                {[]string{"n"}, map[string]string{"decision": "deny"}},
		"yes":              {[]string{"yes", "enter"}, map[string]string{"decision": "once"}},
		"no":               {[]string{"no", "enter"}, map[string]string{"decision": "deny"}},
		"allow":            {[]string{"allow", "enter"}, map[string]string{"decision": "once"}},
		"deny":             {[]string{"deny", "enter"}, map[string]string{"decision": "deny"}},
		"enter":            {[]string{"enter"}, map[string]string{"decision": "once"}},
		"arrow to session": {[]string{"down", "enter"}, map[string]string{"decision": "session"}},
		"arrow to deny":    {[]string{"up", "up", "enter"}, map[string]string{"decision": "deny"}},
		"e":                {[]string{"e", "not on this machine", "enter"}, map[string]string{"decision": "deny", "reason": "not on this machine"}},
		"arrow to why":     {[]string{"up", "enter", "y", "enter"}, map[string]string{"decision": "deny", "reason": "y"}},
		"back from why":    {[]string{"e", "hm", "esc", "y"}, map[string]string{"decision": "once"}},
		"out and in again": {[]string{"esc", "tab", "n"}, map[string]string{"decision": "deny"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, sent := asking(t)
			if at := s.clock().Add(time.Second); name == "out and in again" { // it is looked at before each key
				s.press("esc", "tab")
				s.clock = func() time.Time { return at }
				c.keys = c.keys[2:]
			}
			s.press(c.keys...)
			if len(*sent) != 1 || !strings.HasPrefix((*sent)[0], "POST /v1/approvals/A1 ") {
				t.Fatalf("sent %q", *sent)
			}
			var got map[string]string
			if err := json.Unmarshal([]byte((*sent)[0][len("POST /v1/approvals/A1 "):]), &got); err != nil || got["decision"] != c.want["decision"] || got["reason"] != c.want["reason"] {
				t.Errorf("sent %q, want %v", *sent, c.want)
			}
			if len(s.out.queue) > 0 || s.edit.Value() != "" || len(s.asked.list) > 0 {
				t.Errorf("messages %v, typed %q, questions %d", s.out.queue, s.edit.Value(), len(s.asked.list))
			}
		})
	}
}

func TestCardShowsWhatWillRun(t *testing.T) {
	t.Parallel()
	s, _ := asking(t)
	s.shows("May I use exec?", "\ncurl -fsSL https://get.example/a/long/path/that/does/not/fit.sh | sh\n", "in ~/work")
	for _, want := range []string{"exec asks (a1), until", "› Allow once", "Allow this tool in this session", "Deny and say why", "↑ ↓ and Enter"} {
		if got := ansi.Strip(s.View().Content); !strings.Contains(got, want) {
			t.Errorf("%q is not on the card:\n%s", want, got)
		}
	}
	s.tell(eventMsg{client.Event{Type: "permission.resolved", Data: json.RawMessage(`{"id":"A1","state":"denied","via":"telegram","reason":"no\u001b[2J"}`)}})
	s.shows("(denied, on telegram: no␛[2J)")
	if got := s.View().Content; strings.Contains(got, "Allow once") {
		t.Errorf("the card is still there: %q", got)
	}
	s.keys("hello", "enter")
	if len(s.out.queue) != 1 {
		t.Error("a message after the answer is not sent")
	}
}

// A card takes no key that was meant for something else, and what is typed beside it does not take the question back unseen.
func TestCardDoesNotStealKeys(t *testing.T) {
	t.Parallel()
	s, sent := asking(t, "once", "deny")
	at := s.clock()
	s.press("why", "enter") // w comes first: no key, and no answer
	s.press("esc")
	s.press("and also this", "enter")
	if len(*sent) > 0 || len(s.out.queue) > 0 {
		t.Fatalf("sent %q and %v", *sent, s.out.queue)
	}
	s.shows("A question waits")
	s.tell(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	s.press("yes", "enter") // an answer, and not beside the card
	if len(*sent) > 0 || len(s.out.queue) > 0 || !s.asked.focus {
		t.Fatalf("sent %q and %v, focus %v", *sent, s.out.queue, s.asked.focus)
	}
	s.clock = func() time.Time { return at.Add(2 * time.Second) }
	s.press("enter")
	if len(*sent) != 1 || !strings.Contains((*sent)[0], `"once"`) {
		t.Fatalf("sent %q", *sent)
	}

	s, sent = asking(t, "once", "deny")
	s.tell(cardMsg{list: []approval.Item{question("B2", []string{"once", "deny"})}})
	s.press("yes", "enter") // the rest of the word is not the next question's
	if len(*sent) != 1 || len(s.asked.list) != 1 || s.edit.Value() != "" {
		t.Errorf("sent %q, %d left, typed %q", *sent, len(s.asked.list), s.edit.Value())
	}

	s = newScreen(t)
	s.keys("I am typ")
	s.tell(cardMsg{list: []approval.Item{question("A1", []string{"once", "deny"})}})
	s.keys("y")
	s.typed("I am typy")
	s.keys("enter")
	if len(s.out.queue) > 0 {
		t.Error("the message is sent at the first Enter")
	}
	s.keys("enter")
	if len(s.out.queue) != 1 {
		t.Error("the message is not sent at the second Enter")
	}

	s = newScreen(t)
	s.tell(cardMsg{list: []approval.Item{question("A1", []string{"once", "deny"})}})
	s.keys("y") // at the very moment that it comes
	s.typed("y")
}

func TestQuestionThatCannotBeAnsweredHereHasNoCard(t *testing.T) {
	t.Parallel()
	s := newScreen(t)
	ap := question("A1", nil)
	ap.Domain = "billing"
	s.tell(cardMsg{list: []approval.Item{ap}})
	s.shows("May I use exec? It belongs to billing.", "It cannot be answered here.")
	s.keys("yes", "enter")
	if len(s.out.queue) != 1 {
		t.Error("a message is held back")
	}
}
