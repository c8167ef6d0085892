package gateway_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// Whatever the model does, the sender gets one plain sentence that names the run, and the next message is answered.
func TestNoFailureIsSilent(t *testing.T) {
	t.Parallel()
	always := func(r llmtest.Reply) llmtest.Script {
		return func(q *llmtest.Request) llmtest.Reply {
			if strings.Contains(q.LastUser(), "again") {
				return llmtest.Reply{Text: "fine"}
			}
			return r
		}
	}
	tests, alone := map[string]func(*rig){}, map[string]func(*rig){}
	for _, c := range []struct {
		name          string
		script        llmtest.Script
		says          string // a regular expression for the whole sentence
		state, reason string
		alone         bool // it counts for all who ask that model
	}{
		{"hangs before the headers", always(llmtest.Hang()), `I stopped after \d+s: the model had not finished its answer by then\.`, "timeout", "timeout", false},
		{"hangs in the middle", always(llmtest.HangMid("half an answer")), `half an\n\nI stopped after \d+s: the model had not finished its answer by then\.`, "timeout", "timeout", false},
		{"refuses the key", always(llmtest.Unauthorized()), "I couldn't use the model, its key was refused: error 401 from m: Incorrect API key provided\\.\\. Tell the owner\\.", "failed", "model_auth", true},
		{"is limited for ten minutes", always(llmtest.TooMany("600")), "The model takes no more requests at the moment: error 429 from m: Rate limit reached for requests, and it asks to wait 10m0s\\. Try again later\\.", "failed", "model_limited", true},
		{"answers nothing", always(llmtest.Reply{}), `The model m gave no answer, twice\. Try to say it in other words\.`, "failed", "model_empty", false},
		{"only reasons", always(llmtest.OnlyReasoning("hm, hm")), `The model m gave no answer, twice\. Try to say it in other words\.`, "failed", "model_empty", false},
		{"breaks off", always(llmtest.Cut("half an answer")), `I couldn't get an answer: the connection to m broke off in the middle of an answer \(3 tries\)\. Please try again\.`, "failed", "model_cut", false},
		{"refuses the request", always(llmtest.Failing(400)), `The model refused the request: error 400 from m: .+\. Tell the owner\.`, "failed", "model_rejected", false},
		{"cannot be read", always(llmtest.Reply{Raw: []string{"data: {nonsense\n\n"}}), `I couldn't get an answer: the answer of m cannot be read: unreadable event: .* \([23] tries\)\. Please try again\.`, "failed", "model_malformed", false},
	} {
		list := tests
		if c.alone {
			list = alone
		}
		list[c.name] = func(r *rig) {
			r.answers(c.script)
			ana := r.person(11)
			r.say(ana, 11, "do it")
			got := r.wait(ana, 1)
			if want := regexp.MustCompile(`^` + c.says + ` \(run [0-9a-z]{6}\)$`); len(got) != 1 || !want.MatchString(got[0].Text) {
				r.t.Errorf("said %q, want %s", texts(got), want)
			}
			if state, reason := r.run(got[0].Text); state != c.state || reason != c.reason {
				r.t.Errorf("the run ended %s (%s), want %s (%s)", state, reason, c.state, c.reason)
			}
			r.say(ana, 11, "again")
			if got := r.wait(ana, 2); got[1].Text != "fine" {
				r.t.Errorf("the next message: %q", got[1].Text)
			}
		}
	}
	s := setup{extra: "sessions: {turn_timeout: 3s}\nreplies: {placeholder_after: 30s}"}
	together(t, s, tests)
	for name, test := range alone {
		together(t, s, map[string]func(*rig){name: test})
	}
}

// A call that cannot be read is told to the model, which may do better; one that never does goes round in circles, and is ended.
func malformedCall(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if len(q.Chat().Tools) == 0 {
			return llmtest.Reply{Text: "I could not read the file."}
		}
		if strings.Contains(q.LastUser(), "once") && q.Round() > 0 {
			return llmtest.Reply{Text: "told: " + strings.Join(q.ToolResults(), " ")}
		}
		return llmtest.BadArguments("read_file")
	})
	ana := r.person(11)
	r.say(ana, 11, "once")
	if got := r.wait(ana, 1)[0].Text; !strings.HasPrefix(got, "told: ") || len(got) < 20 {
		r.t.Errorf("after one bad call: %q", got)
	}
	r.say(ana, 11, "always")
	if got := r.wait(ana, 2)[1].Text; got != "I could not read the file." {
		r.t.Errorf("after bad calls only: %q", got)
	}
	if got := r.rows(`SELECT state, reason FROM runs ORDER BY id`); len(got) != 2 || got[1] != "completed|repeat_limit" {
		r.t.Errorf("runs %q", got)
	}
}

func toolPanics(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if q.Round() == 0 && strings.Contains(q.LastUser(), "boom") {
			return call("boom")
		}
		return llmtest.Reply{Text: "told: " + strings.Join(q.ToolResults(), " ")}
	})
	ana := r.person(11)
	r.say(ana, 11, "boom please")
	if got := r.wait(ana, 1)[0].Text; !strings.HasPrefix(got, "told: ") || strings.Contains(got, "goroutine") || len(got) < 15 {
		r.t.Errorf("after the panic: %q", got)
	}
	r.say(ana, 11, "more")
	r.wait(ana, 2)
}

func stepLimit(r *rig) {
	n := 0
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if len(q.Chat().Tools) == 0 {
			return llmtest.Reply{Text: "I did a part of it."}
		}
		n++
		return llmtest.Reply{Calls: []llmtest.Call{{Name: "look", Args: `{"n":` + strings.Repeat("1", n) + `}`}}}
	})
	ana := r.person(11)
	r.say(ana, 11, "go")
	if got := r.wait(ana, 1)[0].Text; got != "I did a part of it." {
		r.t.Errorf("at the limit: %q", got)
	}
	if n != 20 {
		r.t.Errorf("%d steps, want 20", n)
	}
	if got := r.rows(`SELECT state, reason FROM runs`); len(got) != 1 || got[0] != "completed|step_limit" {
		r.t.Errorf("runs %q", got)
	}
}

// While nothing comes from the model the room sees a first sign soon and then one after another.
func TestRoomSeesSignsWhileTheModelIsSilent(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{script: func(*llmtest.Request) llmtest.Reply { return llmtest.Hang() },
		extra: "sessions: {turn_timeout: 10s}\nreplies: {first_sign: 1s, typing_after: 1s, placeholder_after: 1500ms}"})
	ana := r.person(11)
	began := time.Now()
	r.say(ana, 11, "anybody?")
	r.until("three signs and the notice", func(v telegramtest.View) bool {
		sent := v.Sent(ana.ID)
		return len(v.Actions(ana.ID)) >= 3 && len(sent) == 1 && strings.Contains(sent[0].Text, "(run ")
	})
	signs := r.tg.View().Actions(ana.ID)
	if wait := signs[0].At.Sub(began); wait > 4*time.Second {
		t.Errorf("the first sign came after %v", wait)
	}
	for i := 1; i < len(signs); i++ {
		if gap := signs[i].At.Sub(signs[i-1].At); gap > 15*time.Second {
			t.Errorf("%v without a sign", gap)
		}
	}
	if sent := r.tg.View().Sent(ana.ID); len(sent) != 1 || len(sent[0].Edits) == 0 || sent[0].Edits[0].Text != "…" {
		t.Errorf("no placeholder was shown: %+v", sent)
	}
}

// R11: an outage costs few probes however many wait, and the fallback answers meanwhile.
func TestR11_OutageIsProbedSparinglyAndFallbackAnswers(t *testing.T) {
	t.Parallel()
	down := llmtest.Start(t, func(*llmtest.Request) llmtest.Reply { return llmtest.Failing(503) })
	r := newRig(t, setup{})
	r.halt()
	r.write(strings.NewReplacer("models: [", "models: [{name: primary, api: openai, base_url: \""+strings.TrimRight(down.URL, "/")+"\", api_key: k, model: p}, ",
		"model: m}", "model: primary, fallbacks: [m]}").Replace(r.config()))
	r.start(nil)
	const chats = 20
	for i := range int64(chats) {
		r.say(r.person(100+i), 100+i, "hello")
	}
	for i := range int64(chats) {
		if got := r.wait(telegramtest.Chat{ID: 100 + i}, 1)[0].Text; got != "echo: hello" {
			t.Errorf("chat %d: %q", i, got)
		}
	}
	// each turn may have begun before the cool-down did; after it one probe in five seconds
	before := down.Count()
	for i := range int64(chats) {
		r.say(telegramtest.Chat{ID: 100 + i}, 100+i, "more")
	}
	for i := range int64(chats) {
		r.wait(telegramtest.Chat{ID: 100 + i}, 2)
	}
	if probes := down.Count() - before; probes > 4*4 {
		t.Errorf("%d probes of a model that is down, for %d turns", probes, chats)
	}
}
