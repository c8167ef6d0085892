package gateway_test

import (
	"os"
	"strings"
	"testing"

	"parley/agentloop/llm/llmtest"
)

// again starts the gateway again with a changed configuration.
func (r *rig) again(old, new string) {
	r.t.Helper()
	r.stop()
	conf, err := os.ReadFile(r.conf)
	if err != nil {
		r.t.Fatal(err)
	}
	if !strings.Contains(string(conf), old) {
		r.t.Fatalf("no %q in the configuration", old)
	}
	r.write(strings.Replace(string(conf), old, new, 1))
	r.start(nil)
}

// The whole line with Anthropic's wire format: two turns, the first with thinking and two calls at once. The server
// refuses what Anthropic would refuse.
func TestWholeLineOverAnthropic(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		switch {
		case strings.Contains(q.LastUser(), "again"):
			return llmtest.Reply{Text: "still 7"}
		case q.Round() == 0:
			return llmtest.Reply{Reasoning: "secret plan", Text: "Let me look.", Calls: []llmtest.Call{
				{Name: "read_file", Args: `{"path":"seven.txt"}`}, {Name: "list_dir", Args: `{"path":"."}`}}}
		case q.Round() == 1:
			return llmtest.Reply{Reasoning: "nearly there", Calls: []llmtest.Call{{Name: "read_file", Args: `{"path":"seven.txt"}`}}}
		}
		return llmtest.Reply{Text: "read: " + strings.Join(q.ToolResults(), "")}
	}})
	r.again("api: openai", "api: anthropic")
	ana := r.person(11)
	r.say(ana, 11, "note it")
	got := r.wait(ana, 1)
	if last := got[len(got)-1].Text; !strings.Contains(last, "seven") {
		t.Fatalf("got %q", texts(got))
	}
	r.say(ana, 11, "and again?")
	got = r.wait(ana, len(got)+1)
	if last := got[len(got)-1].Text; last != "still 7" {
		t.Errorf("got %q", texts(got))
	}
	for _, text := range texts(got) {
		if strings.Contains(text, "secret plan") || strings.Contains(text, "system-reminder") {
			t.Errorf("private: %q", text)
		}
	}
	reqs := r.llm.Requests()
	if n := len(reqs); n != 4 {
		t.Errorf("%d model calls", n)
	}
	for i, q := range reqs {
		body := string(q.Body)
		if back := strings.Count(body, `"signature"`); back != []int{0, 1, 2, 0}[i] {
			t.Errorf("call %d: %d thoughts went back", i, back)
		}
		if q.Header.Get("X-Api-Key") != "sk-test-canary" || !strings.Contains(body, `"cache_control"`) {
			t.Errorf("call %d: key %q, body %s", i, q.Header.Get("X-Api-Key"), body)
		}
	}
	if strings.Contains(r.log.String(), "sk-test-canary") || strings.Contains(r.log.String(), "secret plan") {
		t.Error("the log tells a secret")
	}
}

// An Anthropic model that is overloaded, with another provider's model behind it: a conversation of both goes on.
func TestFallbackFromAnthropicToAnotherProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		anthropic := q.Header.Get("X-Api-Key") != ""
		switch text := q.LastUser(); {
		case anthropic && strings.Contains(text, "hard"):
			return llmtest.Reply{Status: 401}
		case anthropic:
			return llmtest.Reply{Text: "A: " + text}
		case q.Round() == 0:
			return llmtest.Reply{Calls: []llmtest.Call{{ID: "functions.list_dir:0", Name: "list_dir", Args: `{"path":"."}`}}}
		default:
			return llmtest.Reply{Text: "O: " + text}
		}
	}})
	r.again("models: [", `models: [{name: claude, api: anthropic, base_url: "`+r.modelURL()+`", api_key: sk-test-canary, model: test-1}, `)
	r.again("model: m}", "model: claude, fallbacks: [m]}")
	ana := r.person(11)
	for i, want := range []string{"A: easy", "O: hard", "A: easy"} {
		_, ask, _ := strings.Cut(want, ": ")
		r.say(ana, 11, ask)
		got := r.wait(ana, i+1)
		if last := got[len(got)-1].Text; last != want {
			t.Fatalf("turn %d: got %q", i, texts(got))
		}
	}
}
