package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"parley/agentloop/llm/llmtest"
)

// What depends on a model, its provider and what it can do, each with one of its own; on one daemon, one test after another.
func TestModels(t *testing.T) {
	t.Parallel()
	down := llmtest.Start(t, func(*llmtest.Request) llmtest.Reply { return llmtest.Failing(503) })
	var chats []int64
	for i := range int64(outageChats) {
		chats = append(chats, 100+i)
	}
	models := map[string]own{
		"the whole line over Anthropic":                {model: ", api: anthropic"},
		"a fallback to another provider":               {model: ", api: anthropic", agent: ", fallbacks: [m]"},
		"R11_an outage is probed sparingly":            {model: `, base_url: "` + strings.TrimRight(down.URL, "/") + `"`, agent: ", fallbacks: [m]", chats: chats},
		"tries are not renewed by a restart":           {},
		"a run that is over, of a model that hangs":    {},
		"a run that is over, of a model that fails":    {},
		"pictures in a stable prefix, openai":          {model: ", vision: yes"},
		"pictures in a stable prefix, anthropic":       {model: ", vision: yes, api: anthropic"},
		"a summary in its place":                       {second: ", context_window: 128000", agent: ", models: [b{{n}}], roles: {summarizer: b{{n}}}"},
		"a full window is summed up":                   {model: ", context_window: 16000, max_output_tokens: 1000"},
		"a summary is stopped, and outlives a restart": {},
		"another model takes over":                     {second: ", context_window: 128000", agent: ", models: [b{{n}}]"},
	}
	tests := map[string]func(*rig){
		"the whole line over Anthropic":                wholeLineOverAnthropic,
		"a fallback to another provider":               fallbackToAnotherProvider,
		"R11_an outage is probed sparingly":            func(r *rig) { outageIsProbedSparingly(r, down) },
		"tries are not renewed by a restart":           restartRenewsNothing,
		"a run that is over, of a model that hangs":    runThatIsOver(func(*rig) llmtest.Reply { return llmtest.Hang() }, "the model had not finished its answer by then. (run"),
		"a run that is over, of a model that fails":    runThatIsOver((*rig).exploded, "m answers 500: upstream exploded, *now* for [redacted]. Try again in a few minutes. (run"),
		"pictures in a stable prefix, openai":          prefixIsByteStable,
		"pictures in a stable prefix, anthropic":       prefixIsByteStable,
		"a summary in its place":                       summaryInItsPlace,
		"a full window is summed up":                   fullWindowIsSummedUp,
		"a summary is stopped, and outlives a restart": summaryIsStoppedAndOutlivesARestart,
		"another model takes over":                     anotherModelTakesOver,
	}
	for config, c := range documents {
		models["a document, "+config] = own{model: ", " + config}
		tests["a document, "+config] = documentIsShown(c.want, c.not)
	}
	together(t, setup{inTurn: true, extra: quiet, own: models}, tests)
}

// The whole line with Anthropic's wire format: two turns, the first with thinking and two calls at once. The server
// refuses what Anthropic would refuse.
func wholeLineOverAnthropic(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
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
	})
	ana := r.person(11)
	r.say(ana, 11, "note it")
	got := r.wait(ana, 1)
	if last := got[len(got)-1].Text; !strings.Contains(last, "seven") {
		r.t.Fatalf("got %q", texts(got))
	}
	r.say(ana, 11, "and again?")
	got = r.wait(ana, len(got)+1)
	if last := got[len(got)-1].Text; last != "still 7" {
		r.t.Errorf("got %q", texts(got))
	}
	for _, text := range texts(got) {
		if strings.Contains(text, "secret plan") || strings.Contains(text, "system-reminder") {
			r.t.Errorf("private: %q", text)
		}
	}
	reqs := slices.DeleteFunc(r.llm.Requests(), func(q *llmtest.Request) bool { return q.Header.Get("X-Api-Key") != "sk-slot-"+r.n() })
	if n := len(reqs); n != 4 {
		r.t.Errorf("%d model calls", n)
	}
	for i, q := range reqs {
		body := string(q.Body)
		if back := strings.Count(body, `"signature"`); back != []int{0, 1, 2, 0}[i] {
			r.t.Errorf("call %d: %d thoughts went back", i, back)
		}
		if !strings.Contains(body, `"cache_control"`) {
			r.t.Errorf("call %d: body %s", i, body)
		}
	}
	if strings.Contains(r.log.String(), "sk-slot-") || strings.Contains(r.log.String(), "secret plan") {
		r.t.Error("the log tells a secret")
	}
}

// An Anthropic model that is overloaded, with another provider's model behind it: a conversation of both goes on.
func fallbackToAnotherProvider(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
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
	})
	ana := r.person(11)
	for i, want := range []string{"A: easy", "O: hard", "A: easy"} {
		_, ask, _ := strings.Cut(want, ": ")
		r.say(ana, 11, ask)
		got := r.wait(ana, i+1)
		if last := got[len(got)-1].Text; last != want {
			r.t.Fatalf("turn %d: got %q", i, texts(got))
		}
	}
}
