package gateway_test

import (
	"context"
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
	tests := map[string]func(*rig){"a question that nobody answers": questionLapses}
	models := map[string]own{}
	for _, c := range []struct {
		name          string
		script        llmtest.Script
		says          string // a regular expression for the whole sentence
		state, reason string
	}{
		{"hangs before the headers", always(llmtest.Hang()), `I stopped after \d+s: no answer from m{{n}} for \d+ s\.`, "timeout", "timeout"},
		{"hangs in the middle", always(llmtest.HangMid("half an answer")), `half an\n\nI stopped after \d+s: the model had not finished its answer by then\.`, "timeout", "timeout"},
		{"refuses the key", always(llmtest.Unauthorized()), "I couldn't use the model: m{{n}} refuses the key \\(401\\): Incorrect API key provided\\.\\. Tell the owner\\.", "failed", "model_auth"},
		{"is limited for ten minutes", always(llmtest.TooMany("600")), "I couldn't use the model: m{{n}} takes no more requests for now \\(429\\): Rate limit reached for requests, and it asks to wait 10m0s\\. Try again later\\.", "failed", "model_limited"},
		{"answers nothing", always(llmtest.Reply{}), `The model m{{n}} gave no answer, twice\. Try to say it in other words\.`, "failed", "model_empty"},
		{"only reasons", always(llmtest.OnlyReasoning("hm, hm")), `The model m{{n}} gave no answer, twice\. Try to say it in other words\.`, "failed", "model_empty"},
		{"breaks off", always(llmtest.Cut("half an answer")), `I couldn't get an answer: the connection to m{{n}} broke off in the middle of an answer \(3 tries\)\. Please try again\.`, "failed", "model_cut"},
		{"refuses the request", always(llmtest.Failing(400)), `I couldn't use the model: m{{n}} refuses the request \(400\): .+\. Tell the owner\.`, "failed", "model_rejected"},
		{"cannot be read", always(llmtest.Reply{Raw: []string{"data: {nonsense\n\n"}}), `I couldn't get an answer: the answer of m{{n}} cannot be read: unreadable event: .* \([2-9] tries\)\. Please try again\.`, "failed", "model_malformed"},
	} {
		models[c.name] = own{}
		tests[c.name] = func(r *rig) {
			r.answers(c.script)
			ana := r.person(11)
			r.say(ana, 11, "do it")
			got := r.wait(ana, 1)
			if want := regexp.MustCompile(`^` + strings.ReplaceAll(c.says, "{{n}}", r.n()) + ` \(run [0-9a-z]{6}\)$`); len(got) != 1 || !want.MatchString(got[0].Text) {
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
	together(t, setup{extra: "sessions: {turn_timeout: 6s}\nreplies: {placeholder_after: 30s}\napprovals: {expire: 10s}", own: models}, tests)
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

// What a room sees of a turn before its answer, on one daemon.
func TestRoomsSeeWhatHappens(t *testing.T) {
	t.Parallel()
	together(t, setup{extra: "sessions: {turn_timeout: 20s}\nreplies: {first_sign: 1s, typing_after: 10ms, placeholder_after: 20ms}",
		own: map[string]own{"a wait that the model asks for": {}, "signs while the model is silent": {}}}, map[string]func(*rig){
		"an answer grows in place":              longAnswerGrows,
		"a growing answer waits for an owner":   growingAnswerWaits,
		"a placeholder that is interrupted":     interruptedPlaceholder,
		"a placeholder of what ends in silence": silenceTakesThePlaceholder,
		"steps and thinking while they happen":  stepsAndThinkingAreShown,
		"a wait that the model asks for":        statedWaitIsShown,
		"signs while the model is silent":       signsWhileTheModelIsSilent,
	})
}

// While nothing comes from the model the room sees a first sign soon and then one after another.
func signsWhileTheModelIsSilent(r *rig) {
	r.answers(func(*llmtest.Request) llmtest.Reply { return llmtest.Hang() })
	ana := r.person(11)
	began := time.Now()
	r.say(ana, 11, "anybody?")
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	if err := r.tg.WaitFor(ctx, func(v telegramtest.View) bool {
		sent := v.Sent(ana.ID)
		return len(v.Actions(ana.ID)) >= 3 && len(sent) == 1 && strings.Contains(sent[0].Text, "(run ")
	}); err != nil {
		r.t.Fatalf("three signs and the notice: %v", err)
	}
	signs := r.tg.View().Actions(ana.ID)
	if wait := signs[0].At.Sub(began); wait > 4*time.Second {
		r.t.Errorf("the first sign came after %v", wait)
	}
	for i := 1; i < len(signs); i++ {
		if gap := signs[i].At.Sub(signs[i-1].At); gap > 15*time.Second {
			r.t.Errorf("%v without a sign", gap)
		}
	}
	if sent := r.tg.View().Sent(ana.ID); len(sent) != 1 || len(sent[0].Edits) == 0 || sent[0].Edits[0].Text != "…" {
		r.t.Errorf("no placeholder was shown: %+v", sent)
	}
}

// R11: an outage costs few probes however many wait, and the fallback answers meanwhile.
func outageIsProbedSparingly(r *rig, down *llmtest.Server) {
	for i := range int64(outageChats) {
		r.say(r.person(100+i), 100+i, "hello")
	}
	for i := range int64(outageChats) {
		if got := r.wait(telegramtest.Chat{ID: r.id(100 + i)}, 1)[0].Text; got != "echo: hello" {
			r.t.Errorf("chat %d: %q", i, got)
		}
	}
	// each turn may have begun before the cool-down did; after it one probe in five seconds
	before := down.Count()
	for i := range int64(outageChats) {
		r.say(telegramtest.Chat{ID: r.id(100 + i)}, 100+i, "more")
	}
	for i := range int64(outageChats) {
		r.wait(telegramtest.Chat{ID: r.id(100 + i)}, 2)
	}
	if probes := down.Count() - before; probes > 4*4 {
		r.t.Errorf("%d probes of a model that is down, for %d turns", probes, outageChats)
	}
}

const outageChats = 20
